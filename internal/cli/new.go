package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/settings"
	"github.com/kiln-pipeline/kiln/internal/skeleton"
)

type newLine struct {
	Type      string   `json:"type"`
	Processor string   `json:"processor"`
	Language  string   `json:"language"`
	Files     []string `json:"files"`
	Next      []string `json:"next"`
}

func newNewCommand(a *app) *cobra.Command {
	var lang, kiln string
	cmd := &cobra.Command{
		Use:   "new processor NAME",
		Short: "Write a first processor of the project's own",
		Long: `Write a processor that works, with its golden test, into tools/NAME, and name it in kiln.toml. Nothing is
overwritten. Change it, and let kiln test compare what it makes.

It is a script (star); Go that is compiled into a kiln of the project's own, in tools/kiln (go); Go or C that becomes a
WebAssembly module (wasm, c). What is to be run then is told.`,
		GroupID:   groupMake,
		Example:   "  kiln new processor tilemap\n  kiln new processor voxel --lang wasm",
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
			if kiln != "" {
				if kiln, err = filepath.Abs(kiln); err != nil {
					return err
				}
			}
			w, err := skeleton.New(skeleton.Request{Dir: p.Dir, Project: p.Project.Name, Name: name, Lang: lang, Kiln: kiln})
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(newLine{"new", name, lang, w.Files, w.Next})
			}
			for _, f := range w.Files {
				fmt.Fprintln(a.out, "wrote", f)
			}
			for i, command := range w.Next {
				fmt.Fprintf(a.out, "%s  %s\n", map[bool]string{true: "now run", false: "       "}[i == 0], command)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&lang, "lang", "star", "`LANGUAGE` to write it in: "+strings.Join(skeleton.Languages, ", "))
	cmd.Flags().StringVar(&kiln, "kiln", "", "`FOLDER` of Kiln's sources that go.mod is to name instead of a release")
	cmd.RegisterFlagCompletionFunc("lang", cobra.FixedCompletions(skeleton.Languages, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
