// Package skeleton writes the first files of a processor of a project's own: one that works, and its golden test.
//
// It overwrites nothing, and adds to kiln.toml at its end only.
package skeleton

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/internal/project"
)

// Languages that there are skeletons in.
var Languages = []string{"star"}

// file is one to write.
type file struct{ name, text string }

// New writes a processor's first files into a project and names it in kiln.toml. It gives the files, relative to the project folder.
func New(dir, name, lang string) ([]string, error) {
	if lang != "star" {
		return nil, diag.Errorf(diag.BadValue, diag.Pos{}, "there is no skeleton in %q", lang).WithHint("one of: %s", strings.Join(Languages, ", "))
	}
	folder := path.Join("tools", name)
	text := func(s string) string { return strings.NewReplacer("NAME", name).Replace(s) }
	files := []file{
		{path.Join(folder, name+".star"), text(starScript)},
		{path.Join(folder, "testdata/in/example."+name), "hello\nworld\n"},
		{path.Join(folder, "testdata/in/wrong."+name), "hello\n\n"},
		{path.Join(folder, "testdata/want/example."+name+".bin"), "\x02\x00\x05hello\x05world"},
		{path.Join(folder, "testdata/want", "messages.txt"), text(starMessage)},
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f.name))); !errors.Is(err, fs.ErrNotExist) {
			return nil, diag.Errorf(diag.ProjectExists, diag.Pos{File: f.name}, "the file is there already").WithHint("take another name, or remove it")
		}
	}
	var written []string
	for _, f := range files {
		file := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return written, err
		}
		if err := os.WriteFile(file, []byte(f.text), 0o666); err != nil {
			return written, err
		}
		written = append(written, f.name)
	}
	return append(written, project.File), declare(filepath.Join(dir, project.File), fmt.Sprintf("[[processors]]\nscript = %q\n", files[0].name))
}

// declare adds text at the end of a file.
func declare(file, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.HasSuffix(old, []byte("\n")) {
		old = append(old, '\n')
	}
	return os.WriteFile(file, append(old, "\n"+text...), 0o666)
}

const starScript = `# What a script can do stands in docs/scripts.md. ` + "`kiln test`" + ` compares what it makes of testdata/in with testdata/want.

processor(
    "NAME",
    summary = "Lines to a table of strings",
    extensions = [".NAME"],
    settings = {
        "upper": setting(False, doc = "Make all letters large."),
    },
    products = {"NAME": (".bin", "number of lines as 16 bits; each as a length of 8 bits and its text")},
)

def process(job):
    lines = job.read_text().splitlines()
    w = writer()
    w.u16(len(lines))
    for number, line in enumerate(lines):
        if line == "":
            fail("the line is empty", line = number + 1, hint = "write something there")
        if job.settings.upper:
            line = line.upper()
        w.u8(len(line))
        w.str(line)
    job.write(w)
`

const starMessage = `tools/NAME/testdata/in/wrong.NAME:2: error[K1454]: the line is empty
  write something there
`
