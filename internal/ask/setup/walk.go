package setup

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

// tree is the content of a folder, without files that are not content.
type tree struct {
	dir      string
	output   string   // is skipped
	files    []string // relative, with forward slashes, sorted by folder
	folders  map[string]bool
	ignored  []found
	shaders  []string // shader files with an extension of source code
	lists    []string // MonoGame's lists of content
	pointers int
	lfs      bool
}

// found is an ignore pattern with the folder that needs it.
type found struct {
	Ignore
	folder string // the folder that it was found in
	here   bool   // the pattern is only for this folder
}

// walk lists a folder and everything in it, except the output folder. It skips entries inside the folder that cannot be
// read; the build reports those.
func walk(dir, output string) (*tree, error) {
	t := &tree{dir: dir, output: output, folders: map[string]bool{}}
	return t, t.list("")
}

func (t *tree) abs(file string) string { return filepath.Join(t.dir, filepath.FromSlash(file)) }

func (t *tree) list(folder string) error {
	entries, err := os.ReadDir(t.abs(folder))
	if err != nil && folder == "" {
		return err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	for _, e := range entries {
		rel := path.Join(folder, e.Name())
		isDir := e.IsDir()
		if isDir && rel == t.output {
			continue
		}
		if ig, is := t.junk(folder, e.Name(), isDir, names); is {
			if ig.Pattern != "" {
				t.ignored = append(t.ignored, ig)
			}
			continue
		}
		switch {
		case isDir:
			t.folders[rel] = true
			t.list(rel)
		case e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0:
			t.files = append(t.files, rel)
			if lfsPointer(t.head(rel, 64)) {
				t.pointers++
			}
		}
	}
	return nil
}

// head returns the beginning of a file, or nil if it cannot be read.
func (t *tree) head(file string, n int64) []byte {
	f, err := os.Open(t.abs(file))
	if err != nil {
		return nil
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, n))
	return data
}

func lfsPointer(head []byte) bool {
	return bytes.HasPrefix(head, []byte("version https://git-lfs.github.com/spec/"))
}

// always are names that Kiln ignores by default, and its own files.
var always = []string{".git", ".hg", ".svn", ".jj", ".sl", ".bzr", ".pijul", ".p4", ".DS_Store", "Thumbs.db", "desktop.ini", ".kiln", ".kilnignore", "kiln.ids"}

// leftovers are folders that tools make, by name. If beside is set, they are leftovers only next to a matching file or
// folder.
var leftovers = []struct {
	names  []string
	beside string // matches names in the same folder; "" matches any
	why    string
}{
	{[]string{"node_modules"}, "", "packages of JavaScript tools"},
	{[]string{"__MACOSX"}, "", "left by an archiver"},
	{[]string{"__pycache__"}, "", "Python's cache"},
	{[]string{"Library", "Temp", "Logs", "obj", "UserSettings", "MemoryCaptures"}, "ProjectSettings", "Unity's own"},
	{[]string{"Binaries", "Intermediate", "Saved", "DerivedDataCache"}, "*.uproject", "Unreal's own"},
	{[]string{"bin", "obj"}, "*.{csproj,sln,mgcb,contentproj}", "build output"},
	{[]string{"target"}, "Cargo.toml", "build output"},
	{[]string{"CMakeFiles"}, "CMakeCache.txt", "build output"},
}

// scraps are files that tools leave behind.
var scraps = []struct {
	name    *regexp.Regexp
	begins  string // the content begins with this
	pattern string
	why     string
}{
	{regexp.MustCompile(`\.blend\d+$`), "", "*.blend[0-9]*", "Blender's backups"},
	{regexp.MustCompile(`\.import$`), "[remap]", "*.import", "Godot's notes about imported files"},
	{regexp.MustCompile(`\.meta$`), "fileFormatVersion", "*.meta", "Unity's notes about imported files"},
	{regexp.MustCompile(`\.uid$`), "uid://", "*.uid", "Godot's identities of files"},
	{regexp.MustCompile(`\.mgcb$`), "", "*.mgcb", "MonoGame's lists of content"},
	{regexp.MustCompile(`\.bak$`), "", "*.bak", "backups"},
	{regexp.MustCompile(`\.tmp$`), "", "*.tmp", "temporary files"},
	{regexp.MustCompile(`\.(part|partial|crdownload|download)$`), "", "*.{EXT}", "unfinished downloads"},
	{regexp.MustCompile(`^~\$`), "", "~$*", "lock files of office programs"},
	{regexp.MustCompile(`~$|^\.#|^\..*\.sw[op]$`), "", "", ""}, // Kiln ignores these by default
}

// junk reports whether an entry is not content. The pattern is empty if Kiln ignores it by default.
func (t *tree) junk(folder, name string, isDir bool, siblings []string) (found, bool) {
	switch {
	case slices.Contains(always, name):
		return found{}, true
	case name == ".gitattributes":
		t.lfs = t.lfs || bytes.Contains(t.head(path.Join(folder, name), 1<<16), []byte("filter=lfs"))
	}
	if isDir {
		return leftover(folder, name, siblings)
	}
	for _, s := range scraps {
		if !s.name.MatchString(name) || s.begins != "" && !bytes.HasPrefix(t.head(path.Join(folder, name), 64), []byte(s.begins)) {
			continue
		}
		if s.pattern == "*.mgcb" {
			t.lists = append(t.lists, path.Join(folder, name))
		}
		pattern := strings.ReplaceAll(s.pattern, "{EXT}", strings.TrimPrefix(path.Ext(name), "."))
		return found{Ignore{pattern, s.why}, folder, false}, true
	}
	if strings.HasPrefix(name, ".") {
		return found{Ignore{name, "hidden"}, folder, false}, true
	}
	if ext := strings.ToLower(path.Ext(name)); slices.Contains(code, ext) {
		if slices.Contains(maybeShader, ext) && t.shader(folder, name, siblings) {
			t.shaders = append(t.shaders, path.Join(folder, name))
			return found{}, false
		}
		return found{Ignore{"*" + path.Ext(name), "source code"}, folder, false}, true
	}
	return found{}, false
}

// maybeShader are extensions of source code that shaders also have: .fs is F#, .h is included by C and by shaders.
var maybeShader = []string{".fs", ".h"}

// shader reports whether a file with an extension of source code is a shader. Its content decides, or else the files
// beside it.
func (t *tree) shader(folder, name string, siblings []string) bool {
	head := t.head(path.Join(folder, name), 64<<10)
	if shaderText().Match(head) {
		return true
	}
	if programText().Match(head) {
		return false
	}
	return slices.ContainsFunc(siblings, func(s string) bool {
		k, _ := processors.Of(s)
		return k != nil && k.Name == "shader"
	})
}

// Text that occurs only in shaders, and text that occurs only in programs.
var (
	shaderText = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*#version\s+\d|\bgl_(FragColor|FragCoord|FragData|Position|PointCoord)\b|^\s*void\s+main\s*\(|^\s*(uniform|varying|precision)\s+\w+|\b(float|half)[234](x[234])?\s+\w+`)
	})
	programText = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*(module|namespace|open|let|type)\s+\w+|^\s*#\s*(include\s*<|pragma\s+once\b.*C\+\+)|\bextern\s+"C"|\bstd::|^\s*(class|template)\b`)
	})
)

func leftover(folder, name string, siblings []string) (found, bool) {
	for _, l := range leftovers {
		if !slices.Contains(l.names, name) {
			continue
		}
		if l.beside == "" {
			return found{Ignore{name + "/", l.why}, folder, false}, true
		}
		if slices.ContainsFunc(siblings, func(s string) bool { return besides(l.beside, s) }) {
			return found{Ignore{"/" + processor.QuoteGlob(path.Join(folder, name)) + "/", l.why}, folder, true}, true
		}
	}
	if strings.HasPrefix(name, ".") {
		why := map[string]string{".godot": "Godot's cache", ".import": "Godot's cache", ".vs": "Visual Studio's own"}[name]
		if why == "" {
			why = "hidden"
		}
		return found{Ignore{processor.QuoteGlob(name) + "/", why}, folder, false}, true
	}
	return found{}, false
}

// besides matches "*.{a,b}" or a plain name.
func besides(pattern, name string) bool {
	exts, ok := strings.CutPrefix(pattern, "*.")
	if !ok {
		return name == pattern
	}
	exts = strings.Trim(exts, "{}")
	return slices.Contains(strings.Split(exts, ","), strings.TrimPrefix(path.Ext(name), "."))
}

// branch is the part of a tree in a source root. Its paths are relative to the root.
type branch struct {
	t       *tree
	root    string // "" is the whole tree
	files   []string
	ignored []Ignore
}

func (t *tree) below(root string) *branch {
	b := &branch{t: t, root: strings.TrimPrefix(root, ".")}
	prefix := b.prefix()
	for _, f := range t.files {
		if rel, ok := strings.CutPrefix(f, prefix); ok {
			b.files = append(b.files, rel)
		}
	}
	for _, ig := range t.ignored {
		if !strings.HasPrefix(ig.folder+"/", prefix) {
			continue
		}
		if ig.here {
			ig.Pattern = "/" + strings.TrimPrefix(ig.Pattern, "/"+processor.QuoteGlob(prefix))
		}
		b.ignored = append(b.ignored, ig.Ignore)
	}
	b.keepShaders()
	return b
}

// keepShaders excludes shaders from the patterns that ignore source code. It excludes a whole folder if the folder has
// no source code with their extension.
func (b *branch) keepShaders() {
	for _, f := range b.t.shaders {
		rel, below := strings.CutPrefix(f, b.prefix())
		all := func(ig found) bool {
			return ig.Pattern == "*"+path.Ext(f) && strings.HasPrefix(ig.folder+"/", b.prefix())
		}
		if !below || !slices.ContainsFunc(b.t.ignored, all) {
			continue
		}
		keep := "!/" + path.Join(processor.QuoteGlob(path.Dir(rel)), "*"+processor.QuoteGlob(path.Ext(f)))
		if slices.ContainsFunc(b.t.ignored, func(ig found) bool { return all(ig) && ig.folder == path.Dir(f) }) {
			keep = "!/" + processor.QuoteGlob(rel)
		}
		if ig := (Ignore{keep, keptWhy}); !slices.Contains(b.ignored, ig) {
			b.ignored = append(b.ignored, ig)
		}
	}
}

const keptWhy = "not these: shaders"

// Keeps reports whether the pattern cancels earlier ones.
func (i Ignore) Keeps() bool { return i.Why == keptWhy }

func (b *branch) prefix() string {
	if b.root == "" {
		return ""
	}
	return b.root + "/"
}

func (b *branch) abs(file string) string { return b.t.abs(path.Join(b.root, file)) }

// inside reports whether a file is in one of several folders.
func inside(file string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return f == "." || strings.HasPrefix(file, f+"/") })
}
