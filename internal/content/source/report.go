package source

import (
	"fmt"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// troubles says what each trouble is to people, and what to do.
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
	NotUTF8:    {diag.Error, diag.NameNotUTF8, "the name of this file is not valid UTF-8", "rename it; it was passed over"},
	Irregular:  {diag.Error, diag.NotARegularFile, "this is a pipe, a socket or a device, not a file", "remove it, or name it in " + IgnoreFile},
	Unseen:     {diag.Error, diag.SourceUnreadable, "this file cannot be looked at", "check its permissions and those of its folder"},
	Unreadable: {diag.Error, diag.SourceUnreadable, "this folder cannot be listed", "check its permissions"},
}

// Report names all that is wrong with the table's entries: troubles, names that differ only in case, and ignore files that are too large to
// be read. prefix gives the part of a message's file that stands before the path, by root: "assets/".
func (t *Table) Report(prefix []string) diag.List {
	var l diag.List
	names := make(map[caseless]string, len(t.Files))
	for i := range t.Folders {
		f := &t.Folders[i]
		if f.Path != "" {
			dir, name := split(f.Path)
			l = append(l, collision(names, f.Root, prefix[f.Root], dir, name)...)
		}
		for j := f.First; j < f.First+f.Count; j++ {
			file := &t.Files[j]
			if tr, ok := troubles[file.Trouble]; ok && file.Trouble != LFSPointer {
				name := prefix[f.Root] + place(f, file)
				l = append(l, &diag.Message{Severity: tr.severity, Code: tr.code, Pos: diag.Pos{File: name}, Text: tr.text, Hint: tr.hint})
			}
			if file.Trouble == IgnoreList && file.Stat.Size > maxIgnoreFile {
				l = append(l, diag.Warningf(diag.IgnoreTooLarge, diag.Pos{File: prefix[f.Root] + place(f, file)}, "this file has more than 1 MiB, so it ignores nothing").
					WithHint("say it with fewer patterns: ** stands for any folders, and a name without a slash is passed over at any depth"))
			}
			if p := join(f.Path, file.Name); file.visible() && t.hidden(p) {
				l = append(l, t.nameOfFolder(prefix, f.Root, p))
			} else if file.visible() {
				l = append(l, collision(names, f.Root, prefix[f.Root], f.Path, file.Name)...)
			}
		}
	}
	return l
}

// nameOfFolder is the message about a file of which the path is that of a folder in another root.
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

// place is an entry's path as people see it.
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

// caseless is a name in a folder to a system that does not tell upper case from lower.
type caseless struct {
	root      int
	dir, name string
}

// collision takes a file's or folder's name among those that were seen before.
func collision(names map[caseless]string, root int, prefix, dir, name string) diag.List {
	key := caseless{root, dir, strings.ToLower(name)}
	other, ok := names[key]
	if !ok {
		names[key] = name
		return nil
	}
	return diag.List{CaseCollision(prefix+join(dir, name), other)}
}

// CaseCollision is the message about a file whose name is that of another one but for its case, or for how its accents are
// composed. The latter names look the same, so they are told by their code points.
func CaseCollision(file, other string) *diag.Message {
	if name := path.Base(file); !strings.EqualFold(name, path.Base(other)) {
		return diag.Errorf(diag.CaseCollision, diag.Pos{File: file}, "this name, %+q, and %+q differ only in how accents are composed", name, other).
			WithHint("rename one of them: on macOS they are one file")
	}
	return diag.Errorf(diag.CaseCollision, diag.Pos{File: file}, "this name and %q differ only in case", other).
		WithHint("rename one of them: on Windows and macOS they are one file")
}
