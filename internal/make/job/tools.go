package job

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Programs, folders and other things outside of the source roots that jobs use by name.

// Tool is an external program, found by name.
type Tool struct {
	Path  string      // "" if it was not found
	seen  source.Stat // when it was found in this build
	Stat  source.Stat // equal to seen if it surely changes with the content; else zero
	Hash  digest.Hash
	Found bool // found in this build, not only in an earlier one
}

// tool finds a program and hashes it, once a build. If the program changes meanwhile, later jobs get the new one.
func (w *World) tool(name string) *Tool {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.Tools[name]
	if old != nil && old.Found && old.same(w.dir, name) {
		return old
	}
	now := time.Now()
	path := FindTool(w.dir, w.namedRoots, name)
	t := &Tool{Path: path, Found: true}
	if path == "" {
		t.Hash = Refused(w.dir, name)
	} else {
		st, err := StatTool(path)
		if t.seen = st; old != nil && !old.Found && old.Path == path && err == nil && old.Stat == st {
			old.Found, old.seen = true, st
			return old
		}
		if h, err := HashTool(path, w.hidden); err == nil {
			if t.Hash = h; !st.TooYoung(now) { // else the next build looks into it again
				t.Stat = st
			}
		} else {
			t.Path = ""
		}
	}
	if old != nil && old.Found && old.Hash != t.Hash {
		w.unsettled(name) // other jobs may have seen the old one: the next build must check all traces
	}
	w.Tools[name] = t
	return t
}

// same reports whether a program is unchanged since it was found in this build. If it was missing and
// appears on PATH meanwhile, the next build uses it.
func (t *Tool) same(dir, name string) bool {
	if t.Path == "" {
		return !strings.Contains(name, "/") || FindTool(dir, nil, name) == "" && Refused(dir, name) == t.Hash
	}
	st, err := StatTool(t.Path)
	return err == nil && st == t.seen
}

// StatTool returns the stat by which a change of a program is noticed, or of another file that jobs name like a program.
func StatTool(path string) (source.Stat, error) {
	if file, _, ok := command.CachedLibrary(path); ok {
		path = file
	}
	st, _, err := source.StatPath(path)
	return st, err
}

// sameTool reports whether a program is unchanged since it was found. If not, this build and the next one
// look it up again, because jobs may have run either version.
func (w *World) sameTool(name string, t *Tool) bool {
	same := false
	if strings.HasSuffix(t.Path, "/") { // its own times change with each name that comes and goes, also while nobody looks
		h, err := HashTool(t.Path, w.hidden)
		same = err == nil && h == t.Hash
	} else {
		same = t.same(w.dir, name) || w.relinked(t)
	}
	if !same {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.unsettled(name)
		if w.Tools[name] == t {
			delete(w.Tools, name)
		}
	}
	return same
}

// relinked reports whether only the change time of a program differs, for example because another name was
// linked to it, and the content is the same.
func (w *World) relinked(t *Tool) bool {
	if t.Path == "" {
		return false
	}
	st, err := StatTool(t.Path)
	if st.CTime = t.seen.CTime; err != nil || st != t.seen {
		return false
	}
	h, err := HashTool(t.Path, w.hidden)
	return err == nil && h == t.Hash
}

// HashTool is the hash of a program's content; that of a folder says no more than that it is one, unless the path ends in a slash: then it
// is of the names in it, and what they are names of, but for those that are hidden: Kiln's own.
func HashTool(path string, hidden []string) (digest.Hash, error) {
	if file, name, ok := command.CachedLibrary(path); ok {
		b := digest.Build("library")
		for _, p := range command.CachedPaths(file, name) {
			b.Str("path", p)
		}
		return b.Sum(), nil
	}
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		return source.HashFile(path)
	}
	b := digest.Build("folder")
	if !strings.HasSuffix(path, "/") {
		return b.Sum(), nil
	}
	entries, err := entriesOf(path, hidden)
	for _, e := range entries {
		b.Str("name", e.Name()).Str("type", e.Type().String())
	}
	return b.Sum(), err
}

// entriesOf is what is in a folder, but for what is hidden.
func entriesOf(path string, hidden []string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(path)
	if real, rerr := filepath.EvalSymlinks(path); rerr == nil {
		path = real
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return slices.Contains(hidden, filepath.Join(path, e.Name())) }), err
}

// InProject is the prefix for what a program read in the project's folder or in a source root elsewhere; the path from
// the project's folder follows.
const InProject = "{project}/"

// inProject converts the absolute path of a file, or of a folder with a slash at the end, to its path from the
// project's folder if it is there or in a source root. So a project can be copied or moved together with Kiln's state.
func (w *World) inProject(name string) string {
	if rest, ok := strings.CutPrefix(name, InProject+"../"); ok { // a worker's name for something beside the project folder
		name = filepath.Join(filepath.Dir(w.realDir()), rest)
	}
	if !filepath.IsAbs(name) {
		return name
	}
	within := func(dir, is string) bool {
		rest, ok := strings.CutPrefix(filepath.ToSlash(name), strings.TrimSuffix(filepath.ToSlash(dir), "/")+"/")
		if ok {
			name = InProject + is + rest
		}
		return ok
	}
	for i, root := range w.Table.Roots {
		if within(root, w.prefixes[i]) {
			return name
		}
	}
	if real, err := filepath.EvalSymlinks(w.dir); !within(w.dir, "") && err == nil {
		within(real, "")
	}
	return name
}

// ProjectTool is where a worker puts a program, or a file that one is linked with, if that is of the project, and not of the machine: "" if
// it is of that. The name is as a job asks for it, or as it is recorded.
func ProjectTool(name string) string {
	if !strings.HasPrefix(name, InProject) && (!strings.ContainsAny(name, `/\`) || filepath.IsAbs(name)) {
		return ""
	}
	return strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(strings.TrimPrefix(name, InProject))), "/")
}

// FindTool looks in PATH, or, where the name has a slash, in the project folder.
// What a program read in a source root with a name is looked for there.
func FindTool(dir string, named map[string]string, name string) string {
	if rest, ok := strings.CutPrefix(name, InProject); ok {
		name = dir + "/" + rest
		for prefix, root := range named {
			if below, ok := strings.CutPrefix(rest, prefix); ok {
				name = root + "/" + below
			}
		}
	}
	if file, _, ok := command.CachedLibrary(name); ok {
		if _, err := os.Stat(file); err != nil {
			return ""
		}
		return name
	}
	if strings.ContainsAny(name, `/\`) {
		p := filepath.FromSlash(name)
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		if p, err := exec.LookPath(p); err == nil {
			return p
		}
		if st, err := os.Stat(p); err == nil && filepath.IsAbs(name) && (st.IsDir() || !strings.HasSuffix(name, "/")) {
			return name // a traced program read it (a library, a font, the names in a folder) or asked whether it exists
		}
		return ""
	}
	p, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	if p, err = filepath.Abs(p); err != nil {
		return ""
	}
	return p
}

// Refused is what is recorded of a program that FindTool does not find: that a file is at its path which may not be executed, or nothing.
func Refused(dir, name string) digest.Hash {
	p := filepath.FromSlash(name)
	if !filepath.IsAbs(p) {
		p = filepath.Join(dir, p)
	}
	if !strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, InProject) {
		return digest.Hash{}
	}
	_, err := exec.LookPath(p)
	if st, serr := os.Stat(p); !errors.Is(err, fs.ErrPermission) || serr != nil || st.IsDir() {
		return digest.Hash{}
	}
	return digest.Of([]byte("it may not be executed"))
}

func EnvHash(name string) digest.Hash {
	return valueHash(os.LookupEnv(name))
}

func valueHash(value string, ok bool) digest.Hash {
	if !ok {
		return digest.Hash{}
	}
	return digest.Build("env").Str("value", value).Sum()
}

// KnowTools sets the programs that the build before found.
func (w *World) KnowTools(tools []state.Tool) {
	for _, in := range tools {
		w.Tools[in.Name] = &Tool{Path: in.Path, Stat: in.Stat, Hash: in.Hash}
	}
}
