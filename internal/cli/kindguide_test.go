package cli_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

const kindGuide = "../../docs/contributing-a-kind.md"

// TestContributingAKind compiles the files of docs/contributing-a-kind.md as an overlay of the tree: they fit what is there today.
func TestContributingAKind(t *testing.T) {
	text := readGuide(t)
	repository := repositoryOf(t)
	g := &guide{t: t, dir: t.TempDir(), tree: repository, silent: true}
	g.follow(text)
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file := range filesOf(t, g.dir) {
		overlay.Replace[filepath.Join(repository, file)] = filepath.Join(g.dir, file)
	}
	if len(overlay.Replace) < 10 {
		t.Fatalf("only %d files", len(overlay.Replace))
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(list, data, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-overlay="+list, "./internal/processors/...")
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), goEnvironment()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestContributingAKindInFull does all that the page says in a copy of the tree.
func TestContributingAKindInFull(t *testing.T) {
	thorough.Only(t, "Kiln is compiled from nothing in another folder")
	if runtime.GOOS == "windows" {
		t.Skip("the page names programs without .exe")
	}
	text := readGuide(t)
	repository := repositoryOf(t)
	g := &guide{t: t, dir: t.TempDir()}
	for file, mode := range filesOf(t, repository) {
		data, err := os.ReadFile(filepath.Join(repository, file))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(g.dir, file)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, mode.Perm()|0o200); err != nil {
			t.Fatal(err)
		}
	}
	g.follow(text)
	if g.commands < 8 {
		t.Errorf("only %d commands were run", g.commands)
	}
	made, err := os.ReadFile(filepath.Join(g.dir, "project", "build", "pc", "dusk.gpl.pal"))
	if err != nil || !bytes.Equal(made, []byte{2, 0, 255, 0, 255, 0, 0, 0}) {
		t.Errorf("the placeholder's product is %v, %v", made, err)
	}
}

func readGuide(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go")
	}
	text, err := os.ReadFile(kindGuide)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

func repositoryOf(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// filesOf are the files below a folder, but for those of hidden folders, by their names in it.
func filesOf(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	files := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if file != dir && (strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() {
			rel, _ := filepath.Rel(dir, file)
			files[rel] = info.Mode()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
