// Package move renames source files and folders, and keeps what their assets are known by.
//
// An asset's UUID is made of its path, so a rename would be the end of it. After a move every asset that had another UUID has a rule that
// pins the one it had, and rules that named the old path name the new one. Files are renamed in all source roots that have them, or in
// none; what other source files say of the path is theirs.
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

// Result is what was done.
type Result struct {
	From, To string // below the source roots
	Assets   int    // that moved
	Files    int    // of rules that were edited
	Pinned   int    // assets that got a rule; 0 in a dry run
	Mentions []Mention
}

// Options say how to move.
type Options struct {
	DryRun  bool // change nothing
	Rewrite bool // change the files that name what moves, where it is known which characters do
}

// Refused says why a path cannot be moved, before anything was.
type Refused struct{ Text, Hint string }

func (r *Refused) Error() string { return r.Text }

func refuse(hint, format string, args ...any) error {
	return &Refused{fmt.Sprintf(format, args...), hint}
}

// Move renames a source file or folder. The paths are absolute, or relative to the project folder or to a source root. again opens the
// project as it is afterwards. The caller holds the project's lock.
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
	edits, err := m.ruleEdits()
	if err != nil {
		return Result{}, err
	}
	mentions := m.mentions(v)
	if o.DryRun {
		return Result{m.from, m.to, len(m.was), len(edits), 0, mentions}, nil
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

// follow has the rules follow what was renamed, and tells how many assets were pinned.
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

// replace writes a file of rules, and keeps what it was.
func (m *mover) replace(file string, text []byte) error {
	old, err := disk.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.Save(file, text); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err // of a file beside, which nobody has to know of
		}
		return fmt.Errorf("%s cannot be written: %w", filepath.Base(file), err)
	}
	m.replaced = append(m.replaced, replaced{file, old, err != nil})
	return nil
}

// replaced is a file of rules as it was.
type replaced struct {
	file string
	text []byte
	none bool // there was none
}

// undo has everything be as it was: assets that were renamed and not pinned would have lost their UUIDs, and with these their resource ids.
// Its error is what made that necessary, and what could not be undone.
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
	from, to string            // below the roots
	roots    []string          // that have it, absolute
	folder   bool              // it is one
	was      map[string]string // new path of each asset to the UUID it had
	replaced []replaced        // files of rules, in the order in which they were written
}

// belowRoot is a path as sources have it, without the root that it may begin with.
func belowRoot(p *build.Project, name string) string {
	name = path.Clean(p.InProject(name))
	for _, prefix := range p.Prefixes() {
		if rest, ok := strings.CutPrefix(name, prefix); ok && prefix != "" {
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
		// The rules that follow are not on the disk before this is.
		if err := errors.Join(disk.SyncFolder(filepath.Dir(to)), disk.SyncFolder(filepath.Dir(filepath.Join(root, filepath.FromSlash(m.from))))); err != nil {
			m.back(m.roots[:i+1])
			return err
		}
	}
	return nil
}

// back renames to what it was.
func (m *mover) back(roots []string) error {
	var errs error
	for _, r := range roots {
		errs = errors.Join(errs, os.Rename(filepath.Join(r, filepath.FromSlash(m.to)), filepath.Join(r, filepath.FromSlash(m.from))))
	}
	return errs
}
