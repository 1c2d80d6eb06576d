// Package move renames source files and folders, and keeps what their assets are known by.
//
// An asset's UUID is made of its path, so a rename would be the end of it. After a move every asset that had another UUID has a rule that pins
// the one it had, and rules that named the old path name the new one. Files are renamed in all source roots that have them, or in none;
// what other source files say of the path is theirs.
package move

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/build"
	"github.com/kiln-pipeline/kiln/internal/project"
	"github.com/kiln-pipeline/kiln/internal/ship"
)

// Result is what was done.
type Result struct {
	From, To string // below the source roots
	Assets   int    // that moved
	Files    int    // of rules that were edited
	Pinned   int    // assets that got a rule
}

// Refused says why a path cannot be moved, before anything was.
type Refused struct{ Text, Hint string }

func (r *Refused) Error() string { return r.Text }

func refuse(hint, format string, args ...any) error {
	return &Refused{fmt.Sprintf(format, args...), hint}
}

// Move renames a source file or folder. The paths are relative to the project folder or to a source root. again opens the project as it is
// afterwards. The caller holds the project's lock.
func Move(ctx context.Context, p *build.Project, again func() (*build.Project, error), from, to string) (Result, error) {
	v, err := p.Look(ctx, nil, nil)
	if err != nil {
		return Result{}, err
	}
	m := mover{p: p, from: belowRoot(p, from), to: belowRoot(p, to), was: map[string]string{}}
	if err := m.check(from, to); err != nil {
		return Result{}, err
	}
	for i := range v.Assets {
		if rest, ok := m.below(v.Assets[i].Path); ok {
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
	if err := m.rename(); err != nil {
		return Result{}, err
	}
	for file, text := range edits {
		if err := ship.Replace(file, text); err != nil {
			return Result{}, err
		}
	}
	if p, err = again(); err != nil {
		return Result{}, err
	}
	if v, err = p.Look(ctx, nil, nil); err != nil {
		return Result{}, err
	}
	pinned, err := m.pin(v)
	return Result{m.from, m.to, len(m.was), len(edits), pinned}, err
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
			return refuse("give a path below a source root", "%q is no path below the source roots", name)
		}
	}
	if _, in := m.below(m.to); in {
		return refuse("", "%q cannot become %q", from, to)
	}
	for _, r := range m.p.Roots {
		root := filepath.Join(m.p.Dir, filepath.FromSlash(r.Path))
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(m.to))); err == nil {
			return refuse("give the new path in full", "%q is there already", path.Join(r.Path, m.to))
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
		return refuse("rename it by other means", "%q is no content", from)
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
