package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/build"
	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/internal/project"
	"github.com/kiln-pipeline/kiln/internal/settings"
)

func newMvCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "mv OLD NEW",
		Short: "Rename a source file or folder, and keep the UUIDs of its assets",
		Long: `Rename a source file or folder in every source root that has it. Rules whose match begins with the old path get the new
one, and assets that would have another UUID get a rule that pins the one they had, so that references by UUID and
resource ids survive. Files that name it by its path are not changed.`,
		GroupID:           groupMake,
		Example:           "  kiln mv sprites/knight.png sprites/galahad.png\n  kiln mv characters heroes",
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
			return a.move(cmd.Context(), p, args[0], args[1])
		},
	}
}

func (a *app) move(ctx context.Context, p *build.Project, from, to string) error {
	v, err := p.Look(ctx, nil, nil)
	if err != nil {
		return err
	}
	m := mover{p: p, from: belowRoot(p, from), to: belowRoot(p, to), was: map[string]string{}}
	if err := m.check(from, to); err != nil {
		return err
	}
	for i := range v.Assets {
		if rest, ok := m.below(v.Assets[i].Path); ok {
			m.was[m.to+rest] = v.Assets[i].UUID
		}
	}
	edits, err := m.ruleEdits()
	if err != nil {
		return err
	}
	if err := m.rename(); err != nil {
		return err
	}
	for file, text := range edits {
		if err := replace(file, text); err != nil {
			return err
		}
	}
	pins, err := a.pin(ctx, &m)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(mvLine{"mv", m.from, m.to, len(m.was), len(edits), pins})
	}
	if a.quiet {
		return nil
	}
	_, err = fmt.Fprintf(a.out, "%s is %s now: %s, %s\n", m.from, m.to, count(len(m.was), "asset", "assets"), count(pins, "UUID pinned", "UUIDs pinned"))
	return err
}

type mvLine struct {
	Type   string `json:"type"`
	From   string `json:"from"`
	To     string `json:"to"`
	Assets int    `json:"assets"` // that moved
	Files  int    `json:"files"`  // of rules that were edited
	Pinned int    `json:"pinned"` // assets that got a rule
}

// mover renames one path below the source roots.
type mover struct {
	p        *build.Project
	from, to string            // below the roots
	roots    []string          // that have it, absolute
	folder   bool              // it is one
	was      map[string]string // new path of each asset to the UUID it had
}

// belowRoot is a path as sources have it, without the root that it may begin with.
func belowRoot(p *build.Project, name string) string {
	name = path.Clean(filepath.ToSlash(name))
	for _, r := range p.Roots {
		if rest, ok := strings.CutPrefix(name, r.Path+"/"); ok {
			return rest
		}
	}
	return name
}

// below tells what follows the old path in another one that is it or lies in it.
func (m *mover) below(name string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, m.from)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// check finds the roots that have the old path, and refuses what cannot be.
func (m *mover) check(from, to string) error {
	for _, name := range []string{m.from, m.to} {
		if !filepath.IsLocal(filepath.FromSlash(name)) || name == "." {
			return wrongUsage("give a path below a source root", "%q is no path below the source roots", name)
		}
	}
	if _, in := m.below(m.to); in {
		return wrongUsage("", "%q cannot become %q", from, to)
	}
	for _, r := range m.p.Roots {
		root := filepath.Join(m.p.Dir, filepath.FromSlash(r.Path))
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(m.to))); err == nil {
			return wrongUsage("give the new path in full", "%q is there already", path.Join(r.Path, m.to))
		}
		if info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(m.from))); err == nil {
			m.folder = m.folder || info.IsDir()
			m.roots = append(m.roots, root)
		}
	}
	if len(m.roots) == 0 {
		return wrongUsage("", "there is no source file or folder %q", from)
	}
	if base := path.Base(m.from); base == project.RulesFile || base == project.File {
		return wrongUsage("rename it by other means", "%q is no content", from)
	}
	return nil
}

// rename renames in all roots, or in none.
func (m *mover) rename() error {
	for i, root := range m.roots {
		to := filepath.Join(root, filepath.FromSlash(m.to))
		err := os.MkdirAll(filepath.Dir(to), 0o777)
		if err == nil {
			err = os.Rename(filepath.Join(root, filepath.FromSlash(m.from)), to)
		}
		if err != nil {
			for _, r := range m.roots[:i] {
				os.Rename(filepath.Join(r, filepath.FromSlash(m.to)), filepath.Join(r, filepath.FromSlash(m.from)))
			}
			return err
		}
	}
	return nil
}

// edit replaces what a span covers.
type edit struct {
	at   settings.Span
	text string
}

// ruleEdits are the new texts of kiln.toml and of the rules.toml above the old path, by file. Those below it move with it.
func (m *mover) ruleEdits() (map[string][]byte, error) {
	out := map[string][]byte{}
	collect := func(file, base string, rules []project.Rule, parcels []project.Parcel) error {
		var edits []edit
		retarget := func(match string, at settings.Span) {
			full := path.Join(base, match)
			rest, ok := m.below(full)
			to, in := m.to, true
			if base != "" {
				to, in = strings.CutPrefix(m.to, base+"/")
			}
			if ok && in && match != "./" {
				if strings.HasSuffix(match, "/") {
					rest += "/"
				}
				edits = append(edits, edit{at, strconv.Quote(to + rest)})
			}
		}
		for _, r := range rules {
			retarget(r.Match, r.MatchSpan)
		}
		for _, pc := range parcels {
			for _, g := range pc.Assets {
				retarget(g.Text, g.Span)
			}
		}
		if len(edits) == 0 {
			return nil
		}
		text, err := os.ReadFile(file)
		if err == nil {
			out[file] = splice(text, edits)
		}
		return err
	}
	if err := collect(filepath.Join(m.p.Dir, project.File), "", m.p.Rules, m.p.Parcels); err != nil {
		return nil, err
	}
	for _, root := range m.roots {
		for dir := path.Dir(m.from); ; dir = path.Dir(dir) {
			file := filepath.Join(root, filepath.FromSlash(dir), project.RulesFile)
			if text, err := os.ReadFile(file); err == nil {
				base := strings.TrimPrefix(dir, ".")
				rules, _ := project.ParseRules(file, base, text)
				if err := collect(file, base, rules, nil); err != nil {
					return nil, err
				}
			}
			if dir == "." {
				break
			}
		}
	}
	return out, nil
}

// splice puts edits into a text and leaves all else as it is. A byte order mark is no character of a column.
func splice(text []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(x, y edit) int {
		if x.at.Line != y.at.Line {
			return x.at.Line - y.at.Line
		}
		return x.at.Column - y.at.Column
	})
	body, bom := bytes.CutPrefix(text, []byte("\uFEFF"))
	lines := bytes.SplitAfter(body, []byte("\n"))
	for _, e := range slices.Backward(edits) {
		line := []rune(string(lines[e.at.Line-1]))
		from := e.at.Column - 1
		lines[e.at.Line-1] = []byte(string(line[:from]) + e.text + string(line[from+e.at.Length:]))
	}
	out := bytes.Join(lines, nil)
	if bom {
		out = append([]byte("\uFEFF"), out...)
	}
	return out
}

// pin looks at the project as it is now, and writes rules for the assets whose UUID is another one.
func (a *app) pin(ctx context.Context, m *mover) (int, error) {
	p, err := a.open()
	if err != nil {
		return 0, err
	}
	v, err := p.Look(ctx, nil, nil)
	if err != nil {
		return 0, err
	}
	file, base := m.pinFile()
	var rules strings.Builder
	n := 0
	for i := range v.Assets {
		as := &v.Assets[i]
		uuid, moved := m.was[as.Path]
		if !moved || uuid == as.UUID {
			continue
		}
		n++
		match := strings.TrimPrefix(strings.TrimPrefix(as.Path, base), "/")
		if as.Folder {
			match += "/"
		}
		if match == "/" {
			match = "./"
		}
		if project.IsGlob(match) {
			return 0, diag.Errorf(diag.BadGlob, diag.Pos{File: as.Path}, "its UUID %s cannot be pinned: the name has characters of globs", uuid).WithHint("rename it again")
		}
		fmt.Fprintf(&rules, "\n[[rules]]\nmatch = %s\nuuid  = %q\n", strconv.Quote(match), uuid)
	}
	if n == 0 {
		return 0, nil
	}
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return 0, err
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	if len(text) == 0 {
		return n, replace(file, []byte(strings.TrimPrefix(rules.String(), "\n")))
	}
	return n, replace(file, append(text, rules.String()...))
}

// pinFile is where pins go: into the folder that was moved, so that they move with it the next time; for a file into the rules of its folder
// if there are any, and else into the project file. base is what the rules there are relative to.
func (m *mover) pinFile() (file, base string) {
	for _, root := range m.roots {
		at := m.to
		if !m.folder {
			at = path.Dir(m.to)
		}
		file := filepath.Join(root, filepath.FromSlash(at), project.RulesFile)
		if _, err := os.Stat(file); err == nil || m.folder {
			return file, strings.TrimPrefix(at, ".")
		}
	}
	return filepath.Join(m.p.Dir, project.File), ""
}
