package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kiln-pipeline/kiln/internal/ask/manual"
	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// Groups of commands in the help.
const (
	groupMake  = "make"
	groupLook  = "look"
	groupAbout = "about"
)

func newRootCommand(a *app) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "kiln",
		Short: "Kiln turns a game's source files into game-ready content",
		Long: `Kiln turns a game's source files into game-ready content, and rebuilds only what a change
really touches. The project is the nearest folder, here or above, with a kiln.toml.`,
		Example: `  kiln init                   write a kiln.toml for the files that are here
  kiln build                  build everything that is out of date
  kiln why sprites/tank.png   show why it was built, or would be`,
		Args: a.onlyKnownCommands,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return a.tellVersion()
			}
			return cmd.Help()
		},
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return errors.Join(a.checkFlags(cmd), a.mayRelay(cmd)) },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddGroup(
		&cobra.Group{ID: groupMake, Title: "Building:"},
		&cobra.Group{ID: groupLook, Title: "Inspecting a project:"},
		&cobra.Group{ID: groupAbout, Title: "About Kiln:"},
	)
	root.SetFlagErrorFunc(a.flagError)
	a.addFlags(root)
	root.Flags().BoolVar(&version, "version", false, "show which Kiln this is")
	root.AddCommand(
		newInitCommand(a),
		newNewCommand(a),
		newTestCommand(a),
		newBuildCommand(a), newRunCommand(a),
		newWatchCommand(a), newServeCommand(a),
		newLsCommand(a),
		newWhyCommand(a),
		newDepsCommand(a),
		newRdepsCommand(a),
		newImpactCommand(a),
		newInspectCommand(a),
		newParcelCommand(a),
		newQueryCommand(a),
		newShellCommand(a),
		newDoctorCommand(a),
		newCheckCommand(a),
		newIDsCommand(a),
		newMvCommand(a),
		newCleanCommand(a),
		newGCCommand(a),
		newCacheCommand(a),
		newVerifyCommand(a),
		newAuditCommand(a),
		newSettingsCommand(a),
		newProcessorsCommand(a),
		newExplainCommand(a),
		newSchemaCommand(a),
		newCompletionCommand(a),
		newManCommand(a),
		newVersionCommand(a), newRunJobCommand(a),
	)
	for _, cmd := range root.Commands() {
		if slices.Contains(relayed, cmd.Name()) {
			a.relay(cmd)
		}
	}
	a.prepareHelp(root)
	return root
}

func (a *app) addFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVarP(&a.dir, "directory", "C", ".", "look for the project in `DIR` and above")
	f.StringArrayVarP(&a.platforms, "platform", "p", nil, "only `PLATFORM`; may be given several times (default all)")
	f.IntVarP(&a.workers, "jobs", "j", 0, "run `N` jobs at once (default one a processor core, and one more while programs run)")
	f.StringArrayVar(&a.sets, "set", nil, "`NAME=VALUE`: set a variable of kiln.toml; may be given several times")
	f.StringArrayVar(&a.cfg.Stages, "stage", nil, "let rules for the stage `NAME` count, too; may be given several times")
	f.BoolVar(&a.json, "json", false, "write one JSON object a line to standard output")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no warnings")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "print more")
	f.StringVar(&a.color, "color", "auto", "`WHEN` to use colour: auto, always or never")
	root.RegisterFlagCompletionFunc("platform", a.completePlatforms)
	root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
	root.MarkFlagDirname("directory")
}

func (a *app) checkFlags(cmd *cobra.Command) error {
	switch a.color {
	case "auto", "always", "never":
	default:
		return wrongUsage("it is one of: auto, always, never", "--color cannot be %q", a.color)
	}
	if a.wd != "" && !filepath.IsAbs(a.dir) {
		a.dir = filepath.Join(a.wd, a.dir)
	}
	if a.workers < 0 || a.workers == 0 && cmd.Flags().Changed("jobs") {
		return wrongUsage("leave it out for one job a processor core", "-j cannot be %d", a.workers)
	}
	return a.takeSets(a.sets)
}

// takeSets reads the values of --set.
func (a *app) takeSets(sets []string) error {
	a.cfg.Set = nil
	for _, s := range sets {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return wrongUsage("write --set NAME=VALUE", "--set cannot be %q", s)
		}
		if a.cfg.Set == nil {
			a.cfg.Set = map[string]string{}
		}
		a.cfg.Set[name] = value
	}
	return nil
}

// onlyKnownCommands returns an error if the first word is not a subcommand, with a suggestion.
func (a *app) onlyKnownCommands(parent *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	hint := "`kiln help` lists the commands"
	if parent.HasParent() {
		hint = fmt.Sprintf("`%s --help` lists the commands", parent.CommandPath())
	}
	if near := commandLike(parent, words[0]); near != "" {
		hint = fmt.Sprintf("did you mean `%s %s`?", parent.CommandPath(), near)
	}
	name := strings.TrimPrefix(parent.CommandPath()+" "+words[0], "kiln ")
	return wrongUsage(hint, "there is no command %q", name)
}

func commandLike(parent *cobra.Command, word string) string {
	var names []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if n := diag.Nearest(word, names); n != "" {
		return n
	}
	for _, n := range parent.SuggestionsFor(word) {
		return n
	}
	return ""
}

// flagError is the message for a wrong flag. If the command itself is unknown, that is the error.
func (a *app) flagError(cmd *cobra.Command, err error) error {
	if !cmd.HasParent() {
		if words := a.words(cmd); len(words) > 0 {
			return a.onlyKnownCommands(cmd, words)
		}
	}
	hint := fmt.Sprintf("`%s --help` lists the flags", cmd.CommandPath())
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := diag.Nearest(unknown.GetSpecifiedName(), names); near != "" && len(unknown.GetSpecifiedName()) > 1 {
			hint = fmt.Sprintf("did you mean --%s?", near)
		}
	}
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		if name := manual.Variable(value.GetFlag()); a.getenv(name) == value.GetValue() && value.GetValue() != "" {
			hint = "the variable " + name + " says so"
		}
		return wrongUsage(hint, "--%s cannot be %q", value.GetFlag().Name, value.GetValue())
	}
	return wrongUsage(hint, "%v", err)
}

// words returns the arguments that are not flags, as far as flags are known.
func (a *app) words(root *cobra.Command) []string {
	f, _ := a.known(root)
	return f.Args()
}

// known reads the flags that every command has, and skips others. The error says that help is requested.
func (a *app) known(root *cobra.Command) (*pflag.FlagSet, error) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	f.Usage = func() {}
	root.PersistentFlags().VisitAll(func(fl *pflag.Flag) {
		if fl.Value.Type() == "bool" {
			f.BoolP(fl.Name, fl.Shorthand, false, "")
		} else if fl.Value.Type() == "stringArray" {
			f.StringArrayP(fl.Name, fl.Shorthand, nil, "")
		} else {
			f.StringP(fl.Name, fl.Shorthand, fl.DefValue, "")
		}
	})
	return f, f.Parse(a.args)
}

// exactly requires these arguments, named as in the usage line.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return wrongUsage(fmt.Sprintf("`%s --help` shows an example", cmd.CommandPath()), "%s needs %s", cmd.CommandPath(), names[len(args)])
		}
		if len(args) > len(names) {
			return tooMany(cmd, args[len(names)])
		}
		return nil
	}
}

// atMost allows at most n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return tooMany(cmd, args[n])
		}
		return nil
	}
}

// atLeastOne requires one argument or more.
func atLeastOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return exactly(name)(cmd, args)
		}
		return nil
	}
}

func tooMany(cmd *cobra.Command, word string) error {
	return wrongUsage(fmt.Sprintf("usage: %s", cmd.UseLine()), "%q is one argument too many", word)
}
