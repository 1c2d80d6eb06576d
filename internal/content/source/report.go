package source

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// troubles has the messages and hints of each trouble.
var troubles = map[Trouble]struct {
	severity diag.Severity
	code     diag.Code
	text     string
	hint     string
}{
	LFSPointer: {diag.Error, diag.LFSPointer, "this is a Git LFS pointer, not the content", "run `git lfs pull` to fetch it"},
	Loop:       {diag.Error, diag.SymlinkLoop, "this symbolic link leads to itself or to a folder above it", "remove the link; it was not followed"},
	Escapes:    {diag.Error, diag.SymlinkEscapes, "this symbolic link leads out of the source roots", "copy what it points to, or add that folder to `roots` in kiln.toml"},
	Dangling:   {diag.Error, diag.SourceUnreadable, "this symbolic link leads to nothing", "remove the link, or put back what it pointed to"},
	NotUTF8:    {diag.Error, diag.NameNotUTF8, "the name of this file is not valid UTF-8", "rename it; it was ignored"},
	Irregular:  {diag.Error, diag.NotARegularFile, "this is a pipe, a socket or a device, not a file", "remove it, or name it in " + IgnoreFile},
	Unseen:     {diag.Error, diag.SourceUnreadable, "this file cannot be looked at", "check its permissions and those of its folder"},
	Unreadable: {diag.Error, diag.SourceUnreadable, "this folder cannot be listed", "check its permissions"},
}

// Remark is a problem with an entry of a folder.
type Remark struct {
	Root   int    `json:"root"`
	Folder string `json:"folder"`
	*diag.Message
}

// Messages returns the messages of remarks.
func Messages(remarks []Remark) diag.List {
	var l diag.List
	for _, r := range remarks {
		l = append(l, r.Message)
	}
	return l
}

// Report returns all problems of the table's entries: troubles, names that differ only in case, and ignore files that
// are too large. prefix is the prefix of displayed paths, by root: "assets/". changed are the numbers of the folders
// that differ from an earlier table with the same folders, and before is its report; if changed is nil, all folders are
// checked.
func (t *Table) Report(prefix []string, before []Remark, changed []int) []Remark {
	if changed == nil {
		for i := range t.Folders {
			changed = append(changed, i)
		}
	}
	t.index()
	differs, again, near := make([]bool, len(t.Folders)), make([]bool, len(t.Folders)), make([]bool, len(t.Folders))
	for _, i := range changed {
		differs[i] = true
	}
	for i, f := range t.Folders { // problems of a folder's name depend on the names beside it
		dir, _ := split(f.Path)
		above, ok := t.folders[f.Root][dir]
		if ok = ok && f.Path != ""; differs[i] || ok && differs[above] {
			again[i], near[i] = true, true
			if ok {
				near[above] = true
			}
		}
	}
	var l []Remark
	for _, r := range before {
		if i, ok := t.folders[r.Root][r.Folder]; ok && !again[i] {
			l = append(l, r)
		}
	}
	names := map[caseless]string{}
	for i := range t.Folders {
		for _, m := range t.remarks(i, prefix, names, near[i]) {
			if again[i] {
				l = append(l, Remark{t.Folders[i].Root, t.Folders[i].Path, m})
			}
		}
	}
	slices.SortStableFunc(l, func(a, b Remark) int { return cmp.Compare(t.folders[a.Root][a.Folder], t.folders[b.Root][b.Folder]) })
	return l
}

// remarks returns the problems of a folder's name and, with entries, of its entries. It adds their names to names.
func (t *Table) remarks(folder int, prefix []string, names map[caseless]string, entries bool) (l diag.List) {
	f := &t.Folders[folder]
	if f.Path != "" {
		dir, name := split(f.Path)
		l = append(l, collision(names, f.Root, prefix[f.Root], dir, name)...)
	}
	if !entries {
		return l
	}
	for j := f.First; j < f.First+f.Count; j++ {
		file := &t.Files[j]
		if tr, ok := troubles[file.Trouble]; ok && file.Trouble != LFSPointer {
			name := prefix[f.Root] + place(f, file)
			l = append(l, &diag.Message{Severity: tr.severity, Code: tr.code, Pos: diag.Pos{File: name}, Text: tr.text, Hint: tr.hint})
		}
		if file.Trouble == IgnoreList && file.Stat.Size > maxIgnoreFile {
			at := diag.Pos{File: prefix[f.Root] + place(f, file)}
			l = append(l, diag.Warningf(diag.IgnoreTooLarge, at, "this file has more than 1 MiB, so it ignores nothing").
				WithHint("say it with fewer patterns: ** stands for any folders, and a name without a slash is ignored at any depth"))
		}
		if p := join(f.Path, file.Name); file.visible() && t.hidden(p) {
			l = append(l, t.nameOfFolder(prefix, f.Root, p))
		} else if file.visible() {
			l = append(l, collision(names, f.Root, prefix[f.Root], f.Path, file.Name)...)
		}
	}
	return l
}

// nameOfFolder is the message about a file whose path is a folder in another root.
func (t *Table) nameOfFolder(prefix []string, root int, p string) *diag.Message {
	other := ""
	for r := range t.folders {
		if _, ok := t.folders[r][p]; ok {
			other = prefix[r] + p + "/"
		}
	}
	return diag.Errorf(diag.NameOfFolder, diag.Pos{File: prefix[root] + p}, "a folder in another source root has the path of this file: %s", other).
		WithHint("rename one of them; until then the folder counts, and this file does not")
}

// place is an entry's path for display.
func place(f *Folder, file *File) string {
	switch file.Trouble {
	case NotUTF8:
		return join(f.Path, fmt.Sprintf("%+q", file.Name))
	case Unreadable:
		return f.Path
	}
	return join(f.Path, file.Name)
}

// LFS is the message about a file that is a Git LFS pointer.
func LFS(file string) *diag.Message {
	tr := troubles[LFSPointer]
	return &diag.Message{Severity: tr.severity, Code: tr.code, Pos: diag.Pos{File: file}, Text: tr.text, Hint: tr.hint}
}

// caseless is a name in a folder on a system that ignores case.
type caseless struct {
	root      int
	dir, name string
}

// collision adds the name of a file or folder to names, and reports an equal one.
func collision(names map[caseless]string, root int, prefix, dir, name string) diag.List {
	key := caseless{root, dir, strings.ToLower(name)}
	other, ok := names[key]
	if !ok {
		names[key] = name
		return nil
	}
	return diag.List{CaseCollision(prefix+join(dir, name), other)}
}

// CaseCollision is the message about a file whose name differs from another one only in case, or in the composition of
// accents. Names of the latter kind look the same, so the message shows their code points.
func CaseCollision(file, other string) *diag.Message {
	if name := path.Base(file); !strings.EqualFold(name, path.Base(other)) {
		return diag.Errorf(diag.CaseCollision, diag.Pos{File: file}, "this name, %+q, and %+q differ only in how accents are composed", name, other).
			WithHint("rename one of them: on macOS they are one file")
	}
	return diag.Errorf(diag.CaseCollision, diag.Pos{File: file}, "this name and %q differ only in case", other).
		WithHint("rename one of them: on Windows and macOS they are one file")
}
