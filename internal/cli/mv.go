package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/ask/move"
	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/build"
)

func newMvCommand(a *app) *cobra.Command {
	var o move.Options
	cmd := &cobra.Command{
		Use:   "mv OLD NEW",
		Short: "Rename a source file or folder, and keep the UUIDs of its assets",
		Long: `Rename a source file or folder in every source root that has it. Rules whose match begins with the old path get the new
one, and assets that would have another UUID get a rule that pins the one they had, so that references by UUID and
resource ids survive. Files that name it by its path are listed; --rewrite changes them, too.`,
		GroupID:           groupMake,
		Example:           "  kiln mv sprites/knight.png sprites/galahad.png\n  kiln mv characters heroes --rewrite\n  kiln mv -n characters heroes",
		Args:              exactly("OLD", "NEW"),
		ValidArgsFunction: a.assetIDs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			if err := a.lock(cmd.Context(), p, false); err != nil {
				return err
			}
			defer p.Unlock()
			from, to := a.named(p, args[:1])[0], args[1]
			if folder := p.Below(a.dir); from != args[0] && !filepath.IsAbs(to) { // both are relative to the current folder, or none
				to = path.Join(folder, filepath.ToSlash(to))
			}
			return a.move(cmd.Context(), p, from, to, o)
		},
	}
	cmd.Flags().BoolVarP(&o.DryRun, "dry-run", "n", false, "show what would change, and change nothing")
	cmd.Flags().BoolVar(&o.Rewrite, "rewrite", false, "change the files that name the old path")
	return cmd
}

func (a *app) move(ctx context.Context, p *build.Project, from, to string, o move.Options) error {
	r, err := move.Move(ctx, p, a.open, from, to, o)
	var refused *move.Refused
	switch {
	case errors.As(err, &refused):
		return wrongUsage(refused.Hint, "%s", refused.Text)
	case err != nil:
		return err
	case a.json:
		return a.emit(newMvLine(&r, o.DryRun))
	case a.quiet:
		return nil
	}
	what := "%s is %s now: %s, %s\n"
	args := []any{r.From, r.To, count(r.Assets, "asset", "assets"), count(r.Pinned, "UUID pinned", "UUIDs pinned")}
	if o.DryRun {
		what = "%s would be %s: %s, %s\n"
	}
	if _, err := fmt.Fprintf(a.out, what, args...); err != nil || len(r.Mentions) == 0 {
		return err
	}
	return a.listMentions(&r, o)
}

// listMentions shows which files name the old path, and whether they were changed.
func (a *app) listMentions(r *move.Result, o move.Options) error {
	left, closed := 0, 0 // in text files, in others
	t := a.table()
	for i := range r.Mentions {
		m := &r.Mentions[i]
		state := styled(green, "rewritten")
		switch {
		case o.DryRun && o.Rewrite && m.Line > 0:
			state = styled(yellow, "would be rewritten")
		case !m.Rewritten && m.Line > 0:
			left++
			state = styled(red, "names the old path")
		case !m.Rewritten:
			closed++
			state = styled(red, "names the old path")
		}
		at := diag.Pos{File: m.File, Line: m.Line, Column: m.Column}
		t.row(cell{text: "  " + at.String()}, state, cell{text: m.Old + " -> " + m.New})
	}
	if err := t.write(); err != nil {
		return err
	}
	switch {
	case left > 0 && o.DryRun:
		fmt.Fprintf(a.errs, "%s the old path; `kiln mv --rewrite` changes that as well\n", count(left, "place names", "places name"))
	case left > 0:
		fmt.Fprintf(a.errs, "%s the old path: change it there, or go back with `kiln mv %s %s` and move again with --rewrite\n",
			count(left, "place names", "places name"), r.To, r.From)
	}
	if closed > 0 {
		fmt.Fprintf(a.errs, "%s the old path in a file that is not text: change it there\n", count(closed, "place names", "places name"))
	}
	return nil
}

type mvLine struct {
	Type     string        `json:"type"`
	From     string        `json:"from"`
	To       string        `json:"to"`
	Assets   int           `json:"assets"` // assets that moved
	Files    int           `json:"files"`  // files of rules that were edited
	Pinned   int           `json:"pinned"` // assets that got a rule, or would
	DryRun   bool          `json:"dry_run,omitempty"`
	Mentions []mentionLine `json:"mentions"`
}

// mentionLine is a place with the old path.
type mentionLine struct {
	diag.Pos
	Old       string `json:"old"`
	New       string `json:"new"`
	Rewritten bool   `json:"rewritten"`
}

func newMvLine(r *move.Result, dryRun bool) mvLine {
	l := mvLine{"mv", r.From, r.To, r.Assets, r.Files, r.Pinned, dryRun, []mentionLine{}}
	for _, m := range r.Mentions {
		l.Mentions = append(l.Mentions, mentionLine{diag.Pos{File: m.File, Line: m.Line, Column: m.Column}, m.Old, m.New, m.Rewritten})
	}
	return l
}
