package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/ask/skeleton"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
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
			dir, file, err := a.forNew(name)
			if err != nil {
				return err
			}
			w, err := skeleton.New(skeleton.Request{Dir: dir, Project: file.Name, Name: name, Lang: lang, Source: a.cfg.Source, DryRun: dryRun, Outside: outside()})
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

// forNew is the project file and the folder that it is in, and an error if the project has a processor of that name. One that cannot be
// loaded is no reason to write none: a new one may be what it lacks. Its name is then known by the project file, or not at all.
func (a *app) forNew(name string) (dir string, file *project.Project, err error) {
	if dir, err = project.Find(a.dir); err != nil {
		return "", nil, err
	}
	file, l := project.Load(dir, project.Given{Set: a.cfg.Set})
	if err := l.Err(); err != nil {
		return "", nil, err
	}
	is := slices.ContainsFunc(file.Processors, func(c project.CustomProcessor) bool { return c.Name == name }) ||
		slices.ContainsFunc(slices.Concat(a.cfg.Team, a.cfg.Processors), func(x processor.Processor) bool { return x.Info().Name == name })
	if p, err := a.open(); err == nil && !is {
		is = slices.ContainsFunc(p.Processors(), func(info processor.Info) bool { return info.Name == name })
	}
	if is {
		return "", nil, wrongUsage("take another name", "there is a processor %q already", name)
	}
	return dir, file, nil
}

// newSource writes Kiln's packages anew.
func (a *app) newSource() error {
	dir, err := project.Find(a.dir)
	if err != nil {
		return err
	}
	w, err := skeleton.Renew(dir, a.cfg.Source, outside())
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
