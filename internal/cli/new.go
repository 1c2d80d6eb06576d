package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/settings"
	"github.com/kiln-pipeline/kiln/internal/skeleton"
)

type newLine struct {
	Type      string   `json:"type"`
	Processor string   `json:"processor"`
	Files     []string `json:"files"`
}

func newNewCommand(a *app) *cobra.Command {
	var lang string
	cmd := &cobra.Command{
		Use:   "new processor NAME",
		Short: "Write a first processor of the project's own",
		Long: `Write a processor that works, with its golden test, into tools/NAME, and name it in kiln.toml. Nothing is
overwritten. Change it, and let kiln test compare what it makes.`,
		GroupID:   groupMake,
		Example:   "  kiln new processor tilemap",
		Args:      exactly("processor", "NAME"),
		ValidArgs: []string{"processor"},
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] != "processor" {
				return wrongUsage("write `kiln new processor NAME`", "there is nothing called %q to make", args[0])
			}
			name := args[1]
			if !settings.Name().MatchString(name) || name == "none" {
				return wrongUsage("use lower case letters, digits and dashes", "a processor cannot be called %q", name)
			}
			p, err := a.open()
			if err != nil {
				return err
			}
			for _, info := range p.Processors() {
				if info.Name == name {
					return wrongUsage("take another name", "there is a processor %q already", name)
				}
			}
			files, err := skeleton.New(p.Dir, name, lang)
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(newLine{"new", name, files})
			}
			for _, f := range files {
				fmt.Fprintln(a.out, "wrote", f)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&lang, "lang", "star", "`LANGUAGE` to write it in: "+strings.Join(skeleton.Languages, ", "))
	cmd.RegisterFlagCompletionFunc("lang", cobra.FixedCompletions(skeleton.Languages, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
