package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Passes reports what a scan skips, one entry at a time, for watchers of the roots. It reads an ignore file at the
// first question about something below its folder, and keeps it. It is for one goroutine at a time.
type Passes struct {
	o      Options
	base   []pattern
	ignore map[string]*ignores // by root
}

// ignores are the patterns of a folder's own ignore file, if it was read, and those of its subfolders.
type ignores struct {
	own   []pattern
	known bool
	sub   map[string]*ignores
}

func (i *ignores) in(name string) *ignores {
	next := i.sub[name]
	if next == nil {
		if next = (&ignores{}); i.sub == nil {
			i.sub = map[string]*ignores{}
		}
		i.sub[name] = next
	}
	return next
}

// NewPasses returns the Passes of scans with these options.
func NewPasses(o Options) *Passes {
	return &Passes{o: o, base: basePatterns(o.Ignore), ignore: map[string]*ignores{}}
}

// Over reports whether an entry is skipped, given that its folder is not. Paths below no root are skipped.
func (p *Passes) Over(path string, dir bool) bool {
	if slices.ContainsFunc(p.o.Exclude, func(x string) bool { return within(path, x) }) {
		return true
	}
	for _, r := range p.o.Roots {
		root := filepath.FromSlash(r)
		if path == root {
			return false
		}
		if !within(path, root) {
			continue
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path[len(root):], string(filepath.Separator)))
		if rel == IgnoreFile || strings.HasSuffix(rel, "/"+IgnoreFile) {
			return false
		}
		if !ignored(p.patterns(root, rel), rel, dir) {
			return false // another root may not skip it
		}
	}
	return true
}

// Forget makes Passes read the ignore files of a folder and those below again, because another folder may have its
// name.
func (p *Passes) Forget(dir string) {
	for root, at := range p.ignore {
		if within(root, dir) {
			delete(p.ignore, root)
			continue
		}
		rel, err := filepath.Rel(root, dir)
		if !within(dir, root) || err != nil {
			continue
		}
		above, name := filepath.Split(rel)
		for part := range strings.SplitSeq(filepath.ToSlash(above), "/") {
			if part != "" && at != nil {
				at = at.sub[part]
			}
		}
		if at != nil {
			delete(at.sub, name)
		}
	}
}

// patterns returns those of the project and of the ignore files from a root down to the folder of an
// entry.
func (p *Passes) patterns(root, rel string) []pattern {
	all := slices.Clip(p.base)
	at, ig := "", p.ignore[root]
	if ig == nil {
		ig = &ignores{}
		p.ignore[root] = ig
	}
	for {
		if folder := filepath.Join(root, filepath.FromSlash(at)); !ig.known {
			base := ""
			if at != "" {
				base = at + "/"
			}
			if data, err := os.ReadFile(filepath.Join(folder, IgnoreFile)); err == nil && len(data) <= maxIgnoreFile {
				ig.own = parsePatterns(string(data), base)
			}
			ig.known = true
		}
		all = append(all, ig.own...)
		name, _, more := strings.Cut(strings.TrimPrefix(rel[len(at):], "/"), "/")
		if !more {
			return all
		}
		at, ig = join(at, name), ig.in(name)
	}
}
