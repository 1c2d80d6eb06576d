package kiln

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSource: the source that is in the program is all that the packages for users are compiled of, on each system, and has no tests.
func TestSource(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"linux/amd64", "darwin/amd64", "darwin/arm64", "windows/amd64"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Module,GoFiles,SFiles,EmbedFiles", ".", "./processor/...")
		cmd.Env = append(os.Environ(), "GOOS="+path.Dir(system), "GOARCH="+path.Base(system), "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		files := 0
		for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p struct {
				Dir                         string
				Module                      *struct{ Main bool }
				GoFiles, SFiles, EmbedFiles []string
			}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Module == nil || !p.Module.Main {
				continue
			}
			for _, f := range slices.Concat(p.GoFiles, p.SFiles, p.EmbedFiles) {
				rel, err := filepath.Rel(here, filepath.Join(p.Dir, f))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := fs.Stat(source, filepath.ToSlash(rel)); err != nil {
					t.Errorf("%s: a pattern in source.go is to name %s", system, rel)
				}
				files++
			}
		}
		if files < 400 {
			t.Errorf("%s: only %d files", system, files)
		}
	}
	fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(name, "_test.go") || err != nil {
			t.Errorf("%s is there: %v", name, err)
		}
		return nil
	})
}
