package asset

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// Suggest returns what a pattern that matches no asset may mean: an asset with that file name in another
// folder, the pattern with typing errors in its names corrected (swapped, missing or additional letters),
// or the most similar id. It returns "" if nothing is similar.
func (t *Table) Suggest(pattern string) string {
	paths := make([]string, len(t.Assets))
	for i := range t.Assets {
		paths[i] = t.Assets[i].Path
	}
	slices.Sort(paths)
	pattern = strings.TrimSuffix(pattern, "/")
	if !project.IsGlob(pattern) {
		if hit := sameName(paths, path.Base(pattern)); hit != "" {
			return hit
		}
	}
	if hit := t.corrected(pattern, paths); hit != "" {
		return hit
	}
	return cmp.Or(likeName(paths, pattern), t.Nearest(pattern))
}

// likeName is the path with the name that is most similar to one that was given without its folder.
func likeName(paths []string, name string) string {
	if strings.Contains(name, "/") {
		return ""
	}
	names := make([]string, len(paths))
	for i := range paths {
		names[i] = path.Base(paths[i])
	}
	if hit := diag.Nearest(name, names); hit != "" {
		return paths[slices.Index(names, hit)]
	}
	return ""
}

// corrected is the pattern with each name that does not exist replaced by the most similar one, if that matches
// something.
func (t *Table) corrected(pattern string, paths []string) string {
	names := strings.Split(pattern, "/")
	entries := append(foldersOf(paths), paths...)
	slices.Sort(entries)
	at := ""
	for i, name := range names {
		if project.IsGlob(name) {
			if ext := t.extension(name, names[:i]); ext != "" {
				names[i] = ext
			}
			break
		}
		full := path.Join(at, name)
		if _, there := slices.BinarySearch(entries, full); !there {
			var near []string
			for _, e := range siblings(entries, at) {
				near = append(near, path.Base(e))
			}
			hit := diag.Nearest(name, near)
			if hit == "" {
				return ""
			}
			names[i] = hit
		}
		at = path.Join(at, names[i])
	}
	better := strings.Join(names, "/")
	if better == pattern || !slices.ContainsFunc(t.Assets, func(a Asset) bool { return a.MeantBy(better) }) {
		return ""
	}
	return better
}

// extension is a glob with the extension most similar to that of a glob such as "*.pgn", or "".
func (t *Table) extension(glob string, folder []string) string {
	stem, ext := strings.TrimSuffix(glob, path.Ext(glob)), path.Ext(glob)
	if project.IsGlob(ext) || len(ext) < 2 {
		return ""
	}
	var all []string
	below := strings.Join(folder, "/")
	for i := range t.Assets {
		a := &t.Assets[i]
		if below != "" && !project.IsGlob(below) && !strings.HasPrefix(a.Path, below+"/") {
			continue
		}
		if e := path.Ext(a.Path); e != "" && !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	if slices.Contains(all, ext) {
		return ""
	}
	if hit := diag.Nearest(ext, all); hit != "" {
		return stem + hit
	}
	return ""
}
