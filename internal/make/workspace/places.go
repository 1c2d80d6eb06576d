package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
)

// Where the project's files are, and the names of Kiln's own.

// ScanOptions returns where source files are and what a scan skips.
func (p *Workspace) ScanOptions() (source.Options, error) {
	roots, l := p.realRoots()
	o := source.Options{Roots: roots, Ignore: p.Ignore}
	o.Exclude = append(p.builtFolders(), p.stateFolders()...)
	if len(l) > 0 {
		return o, l
	}
	return o, nil
}

// builtFolders are the folders of products, and stateFolders those of Kiln's state, under all their names (links
// resolved or not).
func (p *Workspace) builtFolders() []string {
	return allNames(p.OutputDir(), filepath.Join(p.Dir, filepath.FromSlash(p.Output)))
}

func (p *Workspace) stateFolders() []string {
	return allNames(filepath.Join(p.Dir, project.StateFolder), p.StatePlace())
}

// shippedFiles are the files that builds write outside the output folder.
func (p *Workspace) shippedFiles() (all []string) {
	for _, file := range p.ShippedOutside() {
		all = append(all, allNames(p.ShippedPath(file))...)
	}
	return all
}

func allNames(dirs ...string) (all []string) {
	for _, dir := range dirs {
		real := dir
		if folder, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil { // it may not exist yet
			real = filepath.Join(folder, filepath.Base(dir))
		}
		if to, err := filepath.EvalSymlinks(dir); err == nil {
			real = to
		}
		for _, name := range []string{dir, real} {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// RootNames are the source roots in the project file, absolute.
func (p *Workspace) RootNames() []string {
	var names []string
	for _, r := range p.Roots {
		names = append(names, r.Dir(p.Dir))
	}
	return names
}

// namedRoots are the folders of named source roots, absolute, by their prefixes.
func (p *Workspace) namedRoots() map[string]string {
	dirs := map[string]string{}
	for _, r := range p.Roots {
		if r.Name != "" {
			dirs[r.Prefix()] = filepath.ToSlash(r.Dir(p.Dir))
		}
	}
	return dirs
}

func (p *Workspace) ShippedPath(file string) string { return ship.Path(p.Project, p.OutputDir(), file) }

// ShippedOutside are the files that builds write outside the output folder.
func (p *Workspace) ShippedOutside() []string {
	files := []string{ids.FileName}
	for i := range p.Constants {
		if f := p.Constants[i].File; f != "" {
			files = append(files, f)
		}
	}
	return files
}

// Orders are the load orders of parcels, which `kiln parcel order` writes.
func (p *Workspace) Orders() (files []string) {
	for i := range p.Parcels {
		if f := p.Parcels[i].Order; f != "" && !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	return files
}

func (p *Workspace) ShippedStat(file string) source.Stat {
	st, mode, err := source.StatPath(p.ShippedPath(file))
	if err != nil || mode.IsDir() {
		return source.Stat{}
	}
	return st
}

// RemoveTemps deletes temporary files of outputs.
func (p *Workspace) RemoveTemps() error {
	var errs error
	filepath.WalkDir(p.OutputDir(), func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil // Kiln has not written where it has no access
		case err == nil && !e.IsDir() && strings.HasPrefix(e.Name(), disk.TempPrefix):
			err = os.Remove(path) // links are not followed
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, err)
		}
		return nil
	})
	for _, f := range p.ShippedOutside() {
		if in := p.Bounds(f); in.File(p.ShippedPath(f)) == nil {
			disk.RemoveLeft(p.ShippedPath(f))
		}
	}
	return errs
}

func RemoveAll(path string) error {
	err := os.RemoveAll(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
