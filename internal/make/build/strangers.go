package build

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
)

// strangers are files in the output folder of which nothing is known: products of assets that went together with all that Kiln remembered,
// and what people put there. The former are told by being read-only, as all products are, or by being parcels; on a disk without modes they
// are taken for the latter.
type strangers struct {
	products []string // below the output folder, sorted
	others   []string
}

// strangers looks for them. What begins with a dot is never Kiln's: the files of a .git folder are read-only, too.
func (s *session) strangers() (found strangers) {
	known := map[string]bool{}
	for f := range s.knownOutputs() {
		known[asset.Fold(f)] = true
	}
	for _, f := range slices.Concat(s.shippedBefore(), s.shipment.made()) {
		known[asset.Fold(strings.TrimPrefix(f, s.p.Output+"/"))] = true
	}
	root := s.p.OutputDir()
	filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(root, file)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil || rerr != nil || rel == ".":
			return nil
		case strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case e.IsDir() || strings.HasPrefix(e.Name(), ".") || known[asset.Fold(rel)]:
			return nil
		}
		if info, err := e.Info(); err != nil {
			return nil // gone
		} else if info.Mode().IsRegular() && info.Mode()&0o222 == 0 || isParcel(rel) {
			found.products = append(found.products, rel)
		} else {
			found.others = append(found.others, rel)
		}
		return nil
	})
	return found
}

// isParcel tells whether a file below the output folder is called as a parcel or the list of them.
func isParcel(rel string) bool {
	return strings.HasPrefix(rel, path.Dir(ship.Folder("any"))+"/") && (strings.HasSuffix(rel, ".parcel") || path.Base(rel) == ship.ListName)
}

// made are the files that this build shipped.
func (g *shipment) made() []string {
	var files []string
	for _, f := range g.files {
		if f.Made {
			files = append(files, f.File)
		}
	}
	return files
}

// strangersOfOld are told of by a build that knows nothing of those before.
func (s *session) strangersOfOld() {
	if s.prev != nil || !s.complete() || s.p.cfg.Output != "" {
		return
	}
	found := slices.DeleteFunc(s.strangers().products, s.declared)
	if len(found) > 0 {
		s.notes = append(s.notes, diag.Warningf(diag.OutputStranger, diag.Pos{File: s.p.Output + "/" + found[0]}, "no asset makes this file%s", more(len(found)-1)).
			WithHint("what was in .kiln is lost, and so is what made them; `kiln verify --fix` removes them, after `kiln verify` has named them all"))
	}
}

// declared tells whether a file is a parcel that the project declares: one that cannot be packed now stays, and has a message of its own.
func (s *session) declared(rel string) bool {
	return slices.ContainsFunc(s.p.Parcels, func(p project.Parcel) bool {
		platform := path.Base(path.Dir(rel))
		return rel == ship.Folder(platform)+"/"+p.Name+".parcel" && p.On(platform)
	})
}

// more tells of how many there are besides one.
func more(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", nor another one"
	}
	return fmt.Sprintf(", nor %d others", n)
}

// messages tell of each product, and of all others at once.
func (found strangers) messages(output string) diag.List {
	var l diag.List
	for _, f := range found.products {
		l = append(l, diag.Warningf(diag.OutputStranger, diag.Pos{File: output + "/" + f}, "no asset makes this file").WithHint("`kiln verify --fix` removes it"))
	}
	if n := len(found.others); n > 0 {
		m := diag.Warningf(diag.OutputForeign, diag.Pos{File: output + "/" + found.others[0]}, "Kiln did not make this file%s", more(n-1)).
			WithHint("Kiln leaves such files alone; move them elsewhere if the output folder should hold nothing but products")
		m.Severity = diag.Note
		l = append(l, m)
	}
	return l
}

// removeStrangers removes the products among them, tells of each, and gives what could not be removed and what people put there.
func (s *session) removeStrangers(found strangers) (told diag.List) {
	for _, f := range found.products {
		if err := s.removeOutput(f); err != nil {
			told = append(told, s.outputError(f, "removed", err))
			continue
		}
		m := diag.Warningf(diag.OutputStranger, diag.Pos{File: s.p.Output + "/" + f}, "no asset makes this file; it was removed")
		m.Severity = diag.Note
		told = append(told, m)
	}
	return append(told, strangers{others: found.others}.messages(s.p.Output)...)
}
