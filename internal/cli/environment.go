package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kiln-pipeline/kiln/internal/ask/manual"
)

// withVariables returns the command line with a flag for each environment variable KILN_NAME, if the command has that
// flag and it is not set. A list, such as of platforms, is separated by commas.
func (a *app) withVariables(root *cobra.Command) []string {
	if len(a.args) > 0 && strings.HasPrefix(a.args[0], "__") { // completion
		return a.args
	}
	cmd, _, err := root.Find(a.args)
	if err != nil {
		cmd = root
	}
	var more []string
	take := func(f *pflag.Flag) {
		value := a.getenv(manual.Variable(f))
		if value == "" || f.Hidden || f.Name == "help" || f.Name == "version" || given(a.args, f) {
			return
		}
		values := []string{value}
		if f.Value.Type() == "stringArray" {
			values = strings.Split(value, ",")
		}
		for _, v := range values {
			more = append(more, "--"+f.Name+"="+v)
		}
	}
	cmd.LocalFlags().VisitAll(take)
	if cmd.HasParent() {
		cmd.InheritedFlags().VisitAll(take)
	}
	if len(more) == 0 {
		return a.args
	}
	return slices.Concat(more, a.args)
}

// given reports whether a command line sets a flag.
func given(args []string, f *pflag.Flag) bool {
	for _, arg := range args {
		name, long := strings.CutPrefix(arg, "--")
		switch {
		case arg == "--":
			return false
		case long:
			if name, _, _ = strings.Cut(name, "="); name == f.Name {
				return true
			}
		case f.Shorthand != "" && strings.HasPrefix(arg, "-"+f.Shorthand):
			return true
		}
	}
	return false
}
