package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/ask/skeleton"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

type newLine struct {
	Type      string   `json:"type"`
	Processor string   `json:"processor"` // "": none, only Kiln's packages
	Language  string   `json:"language"`
	DryRun    bool     `json:"dry_run,omitempty"`
	Files     []string `json:"files"`
	Next      []string `json:"next"`
}

func newNewCommand(a *app) *cobra.Command {
	var lang string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "new processor NAME | new source",
		Short: "Write a first processor of the project's own",
		Long: `Write a processor that works, with its golden test, into tools/NAME, and name it in kiln.toml. Nothing is
overwritten. Change it, and let kiln test compare what it makes.

It is a script (star); Go that is compiled into a kiln of the project's own, in tools/kiln (go); Go or C that becomes a
WebAssembly module (wasm, c). Kiln then prints the command to run.

Processors in Go are compiled with Kiln's packages, which lie beside them in tools/kiln-go: those for WebAssembly, or, for a kiln of the
project's own, all. After an update of Kiln, kiln new source writes them again.`,
		GroupID:   groupMake,
		Example:   "  kiln new processor tilemap\n  kiln new processor voxel --lang wasm\n  kiln new source",
		ValidArgs: []string{"processor", "source"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "source" {
				return exactly("source")(cmd, args)
			}
			return exactly("processor", "NAME")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			switch args[0] {
			case "processor":
			case "source":
				if dryRun {
					return wrongUsage("", "-n shows what a new processor would be; new source writes tools/kiln-go as a whole")
				}
				return a.newSource()
			default:
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
			w, err := skeleton.New(skeleton.Request{Dir: p.Dir, Project: p.Project.Name, Name: name, Lang: lang, Source: a.cfg.Source, DryRun: dryRun})
			if err != nil {
				return err
			}
			return a.tellNew(newLine{"new", name, lang, dryRun, w.Files, w.Next})
		},
	}
	cmd.Flags().StringVar(&lang, "lang", "star", "`LANGUAGE` to write it in: "+strings.Join(skeleton.Languages, ", "))
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "show which files would be written, and write nothing")
	cmd.RegisterFlagCompletionFunc("lang", cobra.FixedCompletions(skeleton.Languages, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// newSource writes Kiln's packages again.
func (a *app) newSource() error {
	dir, err := project.Find(a.dir)
	if err != nil {
		return err
	}
	w, err := skeleton.Renew(dir, a.cfg.Source)
	if err != nil {
		return err
	}
	return a.tellNew(newLine{"new", "", "go", false, w.Files, append([]string{}, w.Next...)})
}

func (a *app) tellNew(n newLine) error {
	if a.json {
		return a.emit(n)
	}
	wrote := map[bool]string{true: "would write", false: "wrote"}[n.DryRun]
	for _, f := range n.Files {
		fmt.Fprintln(a.out, wrote, f)
	}
	if n.DryRun {
		return nil
	}
	for i, command := range n.Next {
		fmt.Fprintf(a.out, "%s  %s\n", map[bool]string{true: "now run", false: "       "}[i == 0], command)
	}
	return nil
}
