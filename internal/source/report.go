package source

import (
	"fmt"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/diag"
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
	Unreadable: {diag.Error, diag.SourceUnreadable, "this folder cannot be listed", "check its permissions"},
}

// Report names all that is wrong with the table's entries: troubles, and names that differ only in case. prefix gives
// the part of a message's file that stands before the path, by root: "assets/".
func (t *Table) Report(prefix []string) diag.List {
	var l diag.List
	for i := range t.Folders {
		f := &t.Folders[i]
		lower := make(map[string]string, f.Count)
		for j := f.First; j < f.First+f.Count; j++ {
			file := &t.Files[j]
			name := prefix[f.Root] + path.Join(f.Path, file.Name)
			if file.Trouble == NotUTF8 {
				name = fmt.Sprintf("%s%+q", prefix[f.Root]+f.Path, file.Name)
			}
			if tr, ok := troubles[file.Trouble]; ok && file.Trouble != LFSPointer {
				m := &diag.Message{Severity: tr.severity, Code: tr.code, Pos: diag.Pos{File: name}, Text: tr.text, Hint: tr.hint}
				l = append(l, m)
			}
			l = append(l, collision(lower, prefix[f.Root]+f.Path, file)...)
		}
	}
	return append(l, t.folderCollisions(prefix)...)
}

// LFS is the message about a file that is a Git LFS pointer.
func LFS(file string) *diag.Message {
	tr := troubles[LFSPointer]
	return &diag.Message{Severity: tr.severity, Code: tr.code, Pos: diag.Pos{File: file}, Text: tr.text, Hint: tr.hint}
}

func collision(lower map[string]string, dir string, f *File) diag.List {
	if !f.visible() {
		return nil
	}
	low := strings.ToLower(f.Name)
	other, ok := lower[low]
	lower[low] = f.Name
	if !ok {
		return nil
	}
	return diag.List{CaseCollision(path.Join(dir, f.Name), other)}
}

// CaseCollision is the message about a file whose name another one has but for its case.
func CaseCollision(file, other string) *diag.Message {
	return diag.Errorf(diag.CaseCollision, diag.Pos{File: file}, "this name and %q differ only in case", other).
		WithHint("rename one of them: on Windows and macOS they are one file")
}

func (t *Table) folderCollisions(prefix []string) diag.List {
	var l diag.List
	lower := map[string]string{}
	for i := range t.Folders {
		f := &t.Folders[i]
		key := fmt.Sprint(f.Root, "/", strings.ToLower(f.Path))
		if other, ok := lower[key]; ok && path.Dir(other) == path.Dir(f.Path) {
			l = append(l, CaseCollision(prefix[f.Root]+f.Path, path.Base(other)))
		} else if !ok {
			lower[key] = f.Path
		}
	}
	return l
}
