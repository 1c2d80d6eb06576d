// Package move renames source files and folders, and keeps the identity of their assets.
//
// An asset's UUID is computed from its path, so a rename alone would change it. After a move, every asset whose UUID
// would change has a rule that pins the old one, and rules with the old path have the new one. Files are renamed in all
// source roots that have them, or in none. Paths in other source files are changed only on request.
package move

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/build"
)

// Result is the result of a move.
type Result struct {
	From, To string // relative to the source roots
	Assets   int    // number of moved assets
	Files    int    // number of edited files of rules
	Pinned   int    // number of assets that got a rule, or would
	Mentions []Mention
}

// Options are settings for a move.
type Options struct {
	DryRun  bool // change nothing
	Rewrite bool // change the files that name moved files, where the exact characters are known
}

// Refused is the reason why a path cannot be moved. Nothing was changed.
type Refused struct{ Text, Hint string }

func (r *Refused) Error() string { return r.Text }

func refuse(hint, format string, args ...any) error {
	return &Refused{fmt.Sprintf(format, args...), hint}
}

// Move renames a source file or folder. The paths are absolute, or relative to the project folder or to a source root.
// again opens the project after the rename. The caller holds the project's lock.
func Move(ctx context.Context, p *build.Project, again func() (*build.Project, error), from, to string, o Options) (Result, error) {
	v, err := p.Look(ctx, nil, nil)
	if err != nil {
		return Result{}, err
	}
	m := mover{p: p, from: belowRoot(p, from), to: belowRoot(p, to), was: map[string]string{}}
	if err := m.check(from, to); err != nil {
		return Result{}, err
	}
	for i := range v.Assets {
		if rest, ok := m.below(v.Assets[i].Path); ok && !v.Assets[i].Declared {
			m.was[m.to+rest] = v.Assets[i].UUID
		}
	}
	if err := m.pinnable(); err != nil {
		return Result{}, err
	}
	named := m.inSettings(v)
	if !o.Rewrite {
		named.edits = nil
	}
	edits, err := m.ruleEdits(named.edits)
	if err != nil {
		return Result{}, err
	}
	for i := range named.mentions {
		named.mentions[i].Rewritten = o.Rewrite && !o.DryRun && named.mentions[i].setting
	}
	mentions := append(named.mentions, m.mentions(v)...)
	if o.DryRun {
		return Result{m.from, m.to, len(m.was), len(edits), m.wouldPin(v), mentions}, nil
	}
	if err := m.rename(); err != nil {
		return Result{}, err
	}
	if o.Rewrite {
		if err := m.rewrite(mentions); err != nil {
			return Result{}, m.undo(err)
		}
	}
	pinned, err := m.follow(ctx, again, edits)
	if err != nil {
		return Result{}, m.undo(err)
	}
	return Result{m.from, m.to, len(m.was), len(edits), pinned, mentions}, nil
}

// follow updates the rules after the rename, and returns the number of pinned assets.
func (m *mover) follow(ctx context.Context, again func() (*build.Project, error), edits map[string][]byte) (pinned int, err error) {
	for file, text := range edits {
		if err := m.replace(file, text); err != nil {
			return 0, err
		}
	}
	p, err := again()
	if err != nil {
		return 0, err
	}
	v, err := p.Look(ctx, nil, nil)
	if err != nil {
		return 0, err
	}
	return m.pin(v)
}

// replace writes a file of rules, and keeps the old content.
func (m *mover) replace(file string, text []byte) error {
	old, err := disk.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.Save(file, text); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err // without the path of the temporary file
		}
		return fmt.Errorf("%s cannot be written: %w", filepath.Base(file), err)
	}
	m.replaced = append(m.replaced, replaced{file, old, err != nil})
	return nil
}

// replaced is the old content of a file of rules.
type replaced struct {
	file string
	text []byte
	none bool // the file did not exist
}

// undo restores everything. Assets that were renamed but not pinned would otherwise lose their UUIDs, and their
// resource ids with them. It returns the cause, and what could not be restored.
func (m *mover) undo(why error) error {
	why = fmt.Errorf("nothing was moved: %w", why)
	for _, r := range slices.Backward(m.replaced) {
		var err error
		if r.none {
			err = os.Remove(r.file)
		} else {
			err = disk.Save(r.file, r.text)
		}
		if err != nil {
			why = fmt.Errorf("%w; and %s could not be restored: %w", why, r.file, err)
		}
	}
	if err := m.back(m.roots); err != nil {
		why = fmt.Errorf("%w; and not all that was renamed could be renamed back: %w", why, err)
	}
	return why
}

// mover renames one path below the source roots.
type mover struct {
	p        *build.Project
	from, to string            // relative to the roots
	roots    []string          // absolute paths of the roots that have it
	folder   bool              // it is a folder
	was      map[string]string // old UUID of each asset, by its new path
	replaced []replaced        // files of rules, in the order in which they were written
}

// belowRoot returns a path without the source root that it may begin with.
func belowRoot(p *build.Project, name string) string {
	name = path.Clean(p.InProject(name))
	for _, prefix := range p.Prefixes() {
		if rest, ok := strings.CutPrefix(name, prefix); ok && prefix != "" {
			return rest
		}
	}
	return name
}

// below returns the part of name after the old path, if name is the old path or inside it.
func (m *mover) below(name string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, m.from)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// check finds the roots that have the old path. It returns an error if the move is not possible.
func (m *mover) check(from, to string) error {
	for _, name := range []string{m.from, m.to} {
		if !filepath.IsLocal(filepath.FromSlash(name)) || name == "." {
			return refuse("give a path below a source root", "%q is not a path below the source roots", name)
		}
	}
	if _, in := m.below(m.to); in {
		return refuse("", "%q cannot become %q", from, to)
	}
	for _, r := range m.p.Roots {
		root := r.Dir(m.p.Dir)
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(m.to))); err == nil {
			return refuse("give the new path in full", "%q is there already", r.Prefix()+m.to)
		}
		if info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(m.from))); err == nil {
			m.folder = m.folder || info.IsDir()
			m.roots = append(m.roots, root)
		}
	}
	if len(m.roots) == 0 {
		return refuse("", "there is no source file or folder %q", from)
	}
	if base := path.Base(m.from); base == project.RulesFile || base == project.File {
		return refuse("rename it by other means", "%q is not content", from)
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
			m.back(m.roots[:i])
			return err
		}
		// The rename is written to disk before the changed rules are.
		if err := errors.Join(disk.SyncFolder(filepath.Dir(to)), disk.SyncFolder(filepath.Dir(filepath.Join(root, filepath.FromSlash(m.from))))); err != nil {
			m.back(m.roots[:i+1])
			return err
		}
	}
	return nil
}

// back reverses the rename.
func (m *mover) back(roots []string) error {
	var errs error
	for _, r := range roots {
		errs = errors.Join(errs, os.Rename(filepath.Join(r, filepath.FromSlash(m.to)), filepath.Join(r, filepath.FromSlash(m.from))))
	}
	return errs
}
