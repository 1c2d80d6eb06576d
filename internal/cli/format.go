package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/ask/formats"
	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/report"
)

// formatted collects the messages of a command with --format, which are written to standard output at the end, as one
// document.
type formatted struct {
	format string
	ready  bool // the command line is valid
	run    formats.Run
	said   map[string]bool
}

func (a *app) addFormat(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.formatted.format, "format", "", "write messages for CI to standard output, as `FORMAT`: "+strings.Join(formats.Names(), ", "))
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats.Names(), cobra.ShellCompDirectiveNoFileComp))
}

func (a *app) checkFormat() error {
	f := &a.formatted
	switch {
	case f.format == "":
		return nil
	case !slices.Contains(formats.Names(), f.format):
		return wrongUsage("it is one of: "+strings.Join(formats.Names(), ", "), "--format cannot be %q", f.format)
	case a.json:
		return wrongUsage("leave out one of them", "--json and --format both write to standard output")
	}
	f.ready, f.said = true, map[string]bool{}
	return nil
}

// note adds messages, each once.
func (f *formatted) note(l diag.List) {
	if !f.ready {
		return
	}
	for _, m := range l {
		if id := m.ID(); !f.said[id] {
			f.said[id] = true
			f.run.Messages = append(f.run.Messages, m)
		}
	}
}

// built adds the messages of a build, which are in a fixed order, whenever they were shown.
func (f *formatted) built(r *report.Report) {
	if !f.ready {
		return
	}
	f.run.Messages, f.said, f.run.Seconds = nil, map[string]bool{}, r.Summary.Seconds
	s := &r.Summary
	f.run.Summary = fmt.Sprintf("%s: %d built, %d up to date, %d failed, in %.1f s", count(s.Assets, "asset", "assets"), s.AssetsBuilt,
		max(0, s.Assets-s.AssetsBuilt-s.AssetsFailed-s.HeldByIgnore-s.Unbuilt), s.AssetsFailed, s.Seconds)
	f.note(r.Messages)
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.State == engine.Ran && !j.Failed && j.Part == "" {
			f.run.Passed = append(f.run.Passed, formats.Case{Class: j.Platform, Name: j.Name(), Seconds: j.Seconds})
		}
	}
}

// writeFormatted writes the document, if requested.
func (a *app) writeFormatted() error {
	f := &a.formatted
	if !f.ready {
		return nil
	}
	f.run.Version, f.run.File = a.cfg.Version.Identity(), project.File
	if dir, err := project.Find(a.dir); err == nil {
		f.run.Folder = belowRepository(dir)
	}
	f.run.Pages, _ = a.pages()
	return errors.Join(formats.Write(a.out, f.format, &f.run), a.summarise())
}

// stepSummary is the variable by which GitHub names the file for the page of a step.
const stepSummary = "GITHUB_STEP_SUMMARY"

// summarise adds a summary to the page of the step, in a workflow of GitHub, which names the file for that.
func (a *app) summarise() error {
	file := a.getenv(stepSummary)
	if a.formatted.format != "github" || file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(formats.Summary(f, &a.formatted.run), f.Close())
}

// belowRepository is the path of a folder relative to the top of its Git working tree, with slashes, or
// "".
func belowRepository(dir string) string {
	for top := dir; ; {
		if _, err := os.Stat(filepath.Join(top, ".git")); err == nil {
			if rel, err := filepath.Rel(top, dir); err == nil && rel != "." {
				return filepath.ToSlash(rel)
			}
			return ""
		}
		up := filepath.Dir(top)
		if up == top {
			return ""
		}
		top = up
	}
}
