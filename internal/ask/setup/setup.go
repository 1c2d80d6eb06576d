// Package setup examines a folder of game content, and writes a kiln.toml that builds it.
//
// The file contains only what the files in the folder show. Matters of taste are comments in it. The package changes
// nothing on disk, except in [Plan.Write].
package setup

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// Plan is the result of examining a folder.
type Plan struct {
	Dir     string // absolute
	Name    string // of the project
	Roots   []string
	Output  string
	Ignore  []Ignore
	Rules   []Rule
	Atlases []string // folders of small images, relative to their root, with a slash at the end

	Left []string // settings of other engines that Kiln has nothing for: "MakeSquare=True of a.png"

	Files    int      // number of content files in the roots
	Outside  []string // content files outside of the roots
	Pointers int      // number of files that are Git LFS pointers
	LFS      bool     // .gitattributes has files in Git LFS
	MakeRoot bool     // the root does not exist: the folder has no content
	Allowed  []string // folders elsewhere into which links may lead
	Git      bool     // the folder is in a working tree of git, and .gitattributes in it does not say how kiln.ids is merged
}

// Ignore is a pattern for files that are not content.
type Ignore struct{ Pattern, Why string }

// Rule is a rule that the content needs. Does is its TOML without the match.
type Rule struct{ Match, Does, Why string }

// Look examines a folder. Errors for users are messages K0240 and K0241.
func Look(dir string) (*Plan, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(abs); errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Errorf(diag.SetupFolder, diag.Pos{File: dir}, "there is no such folder").WithHint("make it first, or name another one")
	} else if err != nil {
		return nil, diag.Errorf(diag.SetupFolder, diag.Pos{File: dir}, "the folder cannot be read: %v", errors.Unwrap(err))
	} else if !info.IsDir() {
		return nil, diag.Errorf(diag.SetupFolder, diag.Pos{File: dir}, "this is a file, not a folder").WithHint("name the folder of the project")
	}
	file := filepath.Join(abs, project.File)
	if _, err := os.Lstat(file); err == nil {
		return nil, diag.Errorf(diag.ProjectExists, diag.Pos{File: filepath.Join(dir, project.File)}, "there is one already; it was left as it is").
			WithHint("remove it first to have it written again")
	}
	out := output(abs)
	t, err := walk(abs, out)
	if err != nil {
		return nil, diag.Errorf(diag.SetupFolder, diag.Pos{File: dir}, "the folder cannot be listed: %v", err)
	}
	p := &Plan{Dir: abs, Name: filepath.Base(abs), Output: out, Pointers: t.pointers, LFS: t.lfs}
	if p.Name == string(filepath.Separator) || p.Name == "." {
		p.Name = "game"
	}
	p.Roots = t.roots()
	p.MakeRoot = len(t.content()) == 0 && !t.folders[p.Roots[0]]
	p.below(t)
	p.Git = unmerged(abs)
	return p, nil
}

// Attributes is the file, and AttributesLine its line, with which git keeps the lines of both sides of a merge of kiln.ids.
const (
	Attributes     = ".gitattributes"
	AttributesLine = "kiln.ids merge=union"
)

// unmerged reports whether a folder is in a working tree of git, or has a file of attributes, and nothing says how kiln.ids is merged.
func unmerged(dir string) bool {
	text, err := disk.ReadFile(filepath.Join(dir, Attributes))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err == nil && !bytes.Contains(text, []byte("kiln.ids"))
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || dir == filepath.Dir(dir) {
			return err == nil
		}
	}
}

// writeAttributes adds the line to the file of attributes.
func (p *Plan) writeAttributes() error {
	file := filepath.Join(p.Dir, Attributes)
	if err := disk.NewBounds(p.Dir, nil).File(file); err != nil {
		return err // a link that came with the repository
	}
	text, err := disk.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	end := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		end = "\r\n"
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, end...)
	}
	return disk.Save(file, append(text, AttributesLine+end...))
}

// below sets the fields that depend on the roots.
func (p *Plan) below(t *tree) {
	seen := map[string]bool{}
	c := p.union(t)
	for _, root := range p.Roots {
		b := t.below(root)
		p.Files += len(b.files)
		for _, ig := range b.ignored {
			if !seen[ig.Pattern] {
				seen[ig.Pattern] = true
				p.Ignore = append(p.Ignore, ig)
			}
		}
		p.Rules = append(p.Rules, b.guessed(c)...)
		p.Atlases = append(p.Atlases, b.atlases(c)...)
	}
	p.Rules = append(unique(p.Rules), p.engines(t)...)
	kept := slices.DeleteFunc(slices.Clone(p.Ignore), func(ig Ignore) bool { return !ig.Keeps() })
	p.Ignore = append(slices.DeleteFunc(p.Ignore, Ignore.Keeps), kept...) // the last matching pattern decides
	for _, f := range t.content() {
		if !inside(f, p.Roots) {
			p.Outside = append(p.Outside, f)
		}
	}
}

func unique(rules []Rule) []Rule {
	seen := map[Rule]bool{}
	var out []Rule
	for _, r := range rules {
		if !seen[r] {
			seen[r] = true
			out = append(out, r)
		}
	}
	return out
}

// output returns a folder for the products that is not used for anything else. If Kiln has already built here and only
// its kiln.toml is missing, it returns the earlier output folder, which is not content.
func output(dir string) string {
	is := func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.IsDir()
	}
	if names := []string{"kiln-output", "kiln-build", "build"}; is(project.StateFolder) {
		if i := slices.IndexFunc(names, is); i >= 0 {
			return names[i]
		}
	}
	for _, name := range []string{"build", "kiln-build"} {
		entries, err := os.ReadDir(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
			return name
		}
	}
	return "kiln-output"
}

// Write writes the kiln.toml, adds a line to .gitattributes, and makes the source root if none was found. It does not overwrite a file.
func (p *Plan) Write() error {
	file := filepath.Join(p.Dir, project.File)
	_, err := os.Lstat(file)
	switch {
	case err == nil:
		err = fs.ErrExist
	case errors.Is(err, fs.ErrNotExist):
		err = disk.Save(file, p.Text())
	}
	if err != nil {
		return diag.Errorf(diag.OutputUnwritable, diag.Pos{File: project.File}, "cannot be written: %v", err).WithHint("check the folder's permissions")
	}
	if p.Git {
		err := p.writeAttributes()
		if m := project.LinkMessage(p.Dir, err); m != nil {
			return m
		}
		if err != nil {
			return diag.Errorf(diag.OutputUnwritable, diag.Pos{File: Attributes}, "cannot be written: %v", err).
				WithHint("check its permissions, and add the line: %s", AttributesLine)
		}
	}
	if p.MakeRoot {
		return os.MkdirAll(filepath.Join(p.Dir, p.Roots[0]), 0o777)
	}
	return nil
}
