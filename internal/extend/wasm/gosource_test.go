package wasm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// goProject is a project with a processor in Go: the example, which takes its scale's name from a package of its own.
func goProject(t *testing.T) (dir string, write func(name, text string)) {
	dir = t.TempDir()
	write = func(name, text string) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	example, err := os.ReadFile(filepath.Join(repository(t), "processor/wasmguest/example/voxel.go"))
	if err != nil {
		t.Fatal(err)
	}
	kiln := "github.com/kiln-pipeline/kiln"
	write("tools/go.mod", "module mygame/tools\n\ngo 1.26.0\n\nrequire "+kiln+" v0.0.0\n\nreplace "+kiln+" => "+repository(t)+"\n")
	text := strings.Replace(string(example), "import (", "import (\n\t\"mygame/tools/words\"", 1)
	write("tools/voxel/voxel.go", strings.Replace(text, `"A map of heights to columns of blocks"`, "words.Summary", 1))
	write("tools/words/words.go", "package words\n\nconst Summary = \"first\"\n")
	return dir, write
}

// TestGoSources: what a package is compiled of is its fingerprint, whatever else lies there; an edit compiles it again, the older state
// does not.
func TestGoSources(t *testing.T) {
	goExample(t) // skips without Go, and fills the compiler's cache
	dir, write := goProject(t)
	c := Config{Dir: dir, Go: "tools/voxel", Name: "voxel", Cache: filepath.Join(dir, "cache")}
	modules := func() int {
		found, _ := filepath.Glob(filepath.Join(c.Cache, "module-*.wasm"))
		return len(found)
	}
	get := func() (summary, fingerprint string) {
		t.Helper()
		p, f, err := Load(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		return p.Info().Summary, f
	}
	summary, first := get()
	if summary != "first" || modules() != 1 {
		t.Fatal(summary, modules())
	}
	write("tools/voxel/notes.txt", "no source")
	write("tools/words/words_test.go", "package words\n")
	write("tools/other/other.go", "package other\n")
	if _, again := get(); again != first || modules() != 1 {
		t.Error("what is no source of it changed it")
	}
	write("tools/words/words.go", "package words\n\nconst Summary = \"second\"\n")
	summary, second := get()
	if summary != "second" || second == first || modules() != 2 {
		t.Error("an edit of an imported package changed nothing", summary, modules())
	}
	write("tools/words/more.go", "package words\n\nfunc init() {}\n")
	if _, third := get(); third == second || modules() != 3 {
		t.Error("a new file changed nothing")
	}
	os.Remove(filepath.Join(dir, "tools/words/more.go"))
	write("tools/words/words.go", "package words\n\nconst Summary = \"first\"\n")
	if summary, f := get(); summary != "first" || f != first || modules() != 3 {
		t.Error("the first state is not known any more")
	}

	write("tools/words/words.go", "package words\n\nconst Summary = first\n")
	_, _, err := Load(context.Background(), c)
	if p := problemOf(t, err); p.Code != string(diag.WasmGoBuild) || p.Path != "tools/words/words.go" || p.Line != 3 || p.Column != 17 || p.Text != "undefined: first" {
		t.Errorf("%+v", p)
	}
}

// TestGoProblems: what keeps a package from being compiled is said.
func TestGoProblems(t *testing.T) {
	goExample(t)
	dir, write := goProject(t)
	write("tools/library/library.go", "package library\n")
	write("tools/syntax/main.go", "package main\n\nfunc main( {\n")
	write("tools/needy/main.go", "package main\n\nimport \"github.com/kiln-pipeline/kiln/none\"\n\nfunc main() { none.F() }\n")
	for _, c := range []struct {
		folder, path string
		code         diag.Code
		text         string
	}{
		{"tools/needy", "tools/needy/main.go", diag.WasmGoBuild, "kiln/none"},
		{"tools/none", "", diag.WasmModule, "there is no folder"},
		{"tools/library", "", diag.WasmGoBuild, "main"},
		{"tools/syntax", "tools/syntax/main.go", diag.WasmGoBuild, "syntax error"},
		{"tools", "", diag.WasmGoBuild, "no Go files"},
	} {
		_, _, err := Load(context.Background(), Config{Dir: dir, Go: c.folder, Name: "x", Cache: filepath.Join(dir, "cache")})
		if err == nil {
			t.Errorf("%s is compiled", c.folder)
			continue
		}
		p := processortest.Problems(err)[0]
		if want := max(c.path, c.folder); p.Code != string(c.code) || !strings.Contains(p.Text, c.text) || p.Path != want {
			t.Errorf("%s: %+v", c.folder, p)
		}
	}
	t.Setenv("PATH", t.TempDir())
	_, _, err := Load(context.Background(), Config{Dir: dir, Go: "tools/voxel", Name: "x", Cache: filepath.Join(dir, "cache")})
	if p := problemOf(t, err); p.Code != string(diag.WasmGoMissing) || p.Path != "tools/voxel" {
		t.Errorf("%+v", p)
	}
}
