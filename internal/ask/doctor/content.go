package doctor

import (
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/media/whole"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// unfinished are names that programs give to files that are incomplete or open.
var unfinished = []struct {
	name *regexp.Regexp
	what string
}{
	{regexp.MustCompile(`(?i)\.(part|partial|crdownload|download|opdownload)$`), "a download that was not finished"},
	{regexp.MustCompile(`(?i)(\.tmp|\.temp)$|^tmp[0-9a-z]{6,}$`), "a temporary file"},
	{regexp.MustCompile(`^~\$|^\.~lock\..*#$`), "the lock of a program that has the file open"},
	{regexp.MustCompile(`(?i)\.(autosave|kra-autosave\.kra|rej|orig)$`), "left by a program or a merge"},
}

// content checks the content of a file.
func (r *Report) content(f *sourceFile) {
	name := path.Base(f.path)
	at := diag.Pos{File: f.shown}
	for _, u := range unfinished {
		if u.name.MatchString(name) {
			r.add(diag.Warningf(diag.FileTemporary, at, "this looks like %s", u.what).WithHint("remove it, or name it in %s", source.IgnoreFile))
			return
		}
	}
	if f.size == 0 {
		r.empty(f)
		return
	}
	file, err := os.Open(f.abs)
	if err != nil {
		r.add(diag.Errorf(diag.SourceUnreadable, at, "the file cannot be read").WithHint("check its permissions"))
		return
	}
	defer file.Close()
	head := make([]byte, 512)
	n, _ := file.ReadAt(head, 0)
	head = head[:n]
	if isLFS(head) {
		r.add(source.LFS(f.shown))
		return
	}
	switch {
	case zeros(head):
		r.add(&diag.Message{Severity: f.severity(file), Code: diag.FileZeros, Pos: at,
			Text: "the file begins with nothing but zeros, as after a crash or a broken copy", Hint: "put it back from version control"})
	case processors.Check(name, file, f.size) == whole.Cut:
		r.add(&diag.Message{Severity: f.severity(file), Code: diag.FileCutShort, Pos: at,
			Text: "the end of the file is missing", Hint: "export or copy it again"})
	}
}

// empty makes an error of the warning of the scan if a processor of Kiln's fails for an empty file; what others do is not known.
func (r *Report) empty(f *sourceFile) {
	if ok, known := processors.Reads(f.processor, f.path, strings.NewReader(""), 0); ok || !known {
		return
	}
	r.Messages = slices.DeleteFunc(r.Messages, func(m *diag.Message) bool { return m.Code == diag.EmptyFile && m.File == f.shown })
	r.add(diag.Errorf(diag.EmptyFile, diag.Pos{File: f.shown}, "the file is empty").WithHint("write it again, or name it in %s", source.IgnoreFile))
}

// severity of a damaged file: an error if its asset is not built.
func (f *sourceFile) severity(file io.ReaderAt) diag.Severity {
	if f.processor == "" || f.processor == "copy" {
		return diag.Warning
	}
	if ok, _ := processors.Reads(f.processor, f.path, file, f.size); ok {
		return diag.Warning
	}
	return diag.Error
}

func isLFS(head []byte) bool {
	return strings.HasPrefix(string(head), "version https://git-lfs.github.com/spec/")
}

func zeros(head []byte) bool {
	for _, c := range head {
		if c != 0 {
			return false
		}
	}
	return len(head) >= 64
}
