package outputs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

// Strangers are unknown files in the output folder: products of assets that were removed together with the
// state in .kiln, and files of users. Products are recognised because they are read-only or parcels. On a
// disk without modes, products count as files of users.
type Strangers struct {
	Products []string // below the output folder, sorted
	others   []string
}

// Strangers finds unknown files, except shipped ones. Names with a dot at the beginning are never Kiln's: the files of
// a .git folder are read-only too.
func (s *Tree) Strangers(shipped []string) (found Strangers) {
	known := s.knownOutputs()
	for _, f := range shipped {
		known[strings.TrimPrefix(f, s.P.Output+"/")] = true
	}
	var unknown []string
	seen := map[string]bool{}
	root := s.P.OutputDir()
	filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(root, file)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil || rerr != nil || rel == ".":
			return nil
		case strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case e.IsDir() || strings.HasPrefix(e.Name(), "."):
			return nil
		case known[rel]:
			seen[rel] = true
		default:
			unknown = append(unknown, rel)
		}
		return nil
	})
	for _, rel := range s.withoutSpellings(unknown, known, seen) {
		if info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(rel))); err != nil {
			continue // deleted meanwhile
		} else if info.Mode().IsRegular() && info.Mode()&0o222 == 0 || isParcel(rel) {
			found.Products = append(found.Products, rel)
		} else {
			found.others = append(found.others, rel)
		}
	}
	return found
}

// withoutSpellings takes out the files that are known by a name that differs in case or Unicode form only, on a disk for which both are
// one file: the listing does not have the known name, but a file can be found by it.
func (s *Tree) withoutSpellings(unknown []string, known, seen map[string]bool) []string {
	if len(unknown) == 0 {
		return nil
	}
	spelled := map[string]bool{}
	for f := range known {
		if seen[f] {
			continue
		}
		if _, err := os.Lstat(filepath.Join(s.P.OutputDir(), filepath.FromSlash(f))); err == nil {
			spelled[asset.Fold(f)] = true
		}
	}
	return slices.DeleteFunc(unknown, func(rel string) bool { return spelled[asset.Fold(rel)] })
}

// isParcel reports whether a file below the output folder has the name of a parcel or of the list of them.
func isParcel(rel string) bool {
	return strings.HasPrefix(rel, path.Dir(ship.Folder("any"))+"/") && (strings.HasSuffix(rel, ".parcel") || path.Base(rel) == ship.ListName)
}

// More is the text for n more files besides the named one.
func More(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", nor another one"
	}
	return fmt.Sprintf(", nor %d others", n)
}

// Messages returns one message for each product, and one for all other files.
func (found Strangers) Messages(output string) diag.List {
	var l diag.List
	for _, f := range found.Products {
		l = append(l, diag.Warningf(diag.OutputStranger, diag.Pos{File: output + "/" + f}, "no asset makes this file").
			WithHint("`kiln verify --fix` removes it"))
	}
	if n := len(found.others); n > 0 {
		m := diag.Warningf(diag.OutputForeign, diag.Pos{File: output + "/" + found.others[0]}, "Kiln did not make this file%s", More(n-1)).
			WithHint("Kiln leaves such files alone; move them elsewhere if the output folder should hold nothing but products")
		m.Severity = diag.Note
		l = append(l, m)
	}
	return l
}

// RemoveStrangers removes the products among them, and returns messages for these, for what could not be
// removed, and for files of users.
func (s *Tree) RemoveStrangers(found Strangers) (told diag.List) {
	for _, f := range found.Products {
		if err := s.removeOutput(f); err != nil {
			told = append(told, s.outputError(f, "removed", err))
			continue
		}
		m := diag.Warningf(diag.OutputStranger, diag.Pos{File: s.P.Output + "/" + f}, "no asset makes this file; it was removed")
		m.Severity = diag.Note
		told = append(told, m)
	}
	return append(told, Strangers{others: found.others}.Messages(s.P.Output)...)
}

// OfOld returns a message about the products among them, for a build without state of an earlier one.
func (found Strangers) OfOld(p *workspace.Workspace) diag.List {
	products := slices.DeleteFunc(slices.Clone(found.Products), func(rel string) bool { return declared(p, rel) })
	if len(products) == 0 {
		return nil
	}
	m := diag.Warningf(diag.OutputStranger, diag.Pos{File: p.Output + "/" + products[0]}, "no asset makes this file%s", More(len(products)-1))
	return diag.List{m.WithHint("what was in .kiln is lost, and so is what made them; `kiln verify --fix` removes them, after `kiln verify` has named them all")}
}

// declared reports whether a file is of a parcel that the project declares, one that it was split into, or the list of parcels: if
// it cannot be packed now, these stay, and it has a message of its own.
func declared(w *workspace.Workspace, rel string) bool {
	folder, file := path.Split(rel)
	platform := path.Base(folder)
	return folder == ship.Folder(platform)+"/" && slices.ContainsFunc(w.Parcels, func(p project.Parcel) bool {
		return p.On(platform) && (file == ship.ListName || file == p.Name+".parcel" || p.Split && strings.HasPrefix(file, p.Name+"+"))
	})
}
