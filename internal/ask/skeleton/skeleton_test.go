package skeleton

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

func TestGoName(t *testing.T) {
	for name, want := range map[string]string{"words": "words", "tile-map": "tilemap", "2d-map": "p2dmap", "map": "mapproc", "main": "mainproc", "range": "rangeproc"} {
		if got := goName(name); got != want {
			t.Errorf("goName(%q) is %q, want %q", name, got, want)
		}
	}
}

// kilnSource replaces Kiln's sources in these tests.
var kilnSource = fstest.MapFS{
	"go.mod": {Data: []byte("module " + kilnModule + "\n\ngo 1.26.0\n\nrequire (\n\ta.example/x v1.0.0\n\tb.example v2.0.0+incompatible\n)\n\nreplace a.example/x => a.example/y v1.0.0\n")},
	"go.sum": {Data: []byte("a.example/x v1.0.0 h1:a\nb.example v2.0.0+incompatible h1:b\n")}, "kiln.go": {Data: []byte("package kiln\n")}, "LICENSE": {},
	"processor/processor.go": {}, "processor/pack/pack.go": {}, "processor/wasmguest/c/kiln_guest.h": {}, "internal/base/digest/digest.go": {},
}

// TestGoModule checks that code in Go belongs to the existing module, or to a new one, and that this module requires
// Kiln's packages and the modules that they need.
func TestGoModule(t *testing.T) {
	const here = "\nrequire " + kilnModule + " v0.0.0\n\nreplace " + kilnModule + " => ./"
	const indirect = "\nrequire (\n\ta.example/x v1.0.0 // indirect\n\tb.example v2.0.0+incompatible // indirect\n)\n"
	tests := map[string]struct {
		lang, mod, project string // the go.mod above the project folder
		path, wantMod, sum string
		sources            int
		next               []string
	}{
		"none":    {lang: "wasm", project: "My Game!", path: "my-game", wantMod: "module my-game\n\ngo 1.26.0\n" + here + "tools/kiln-go\n", sources: 4},
		"no name": {lang: "wasm", project: "", path: "game", wantMod: "module game\n\ngo 1.26.0\n" + here + "tools/kiln-go\n", sources: 4},
		"all": {
			lang: "go", project: "a", path: "a", wantMod: "module a\n\ngo 1.26.0\n" + here + "tools/kiln-go\n" + indirect,
			sum: "a.example/x v1.0.0 h1:a\nb.example v2.0.0+incompatible h1:b\n", sources: 8,
		},
		"above": {
			lang: "wasm", mod: "// us\nmodule example.org/us // here\n\ngo 1.26\n", path: "example.org/us/content",
			wantMod: "// us\nmodule example.org/us // here\n\ngo 1.26\n" + here + "content/tools/kiln-go\n", sources: 4, next: []string{"go mod edit -go=1.26.0"},
		},
		"other versions": {
			lang: "go", mod: "module us\n\ngo 1.27.0\n\nrequire b.example v1.0.0\n", path: "us/content",
			wantMod: "module us\n\ngo 1.27.0\n\nrequire b.example v1.0.0\n" + here + "content/tools/kiln-go\n\nrequire (\n\ta.example/x v1.0.0 // indirect\n)\n",
			sum:     "a.example/x v1.0.0 h1:a\nb.example v2.0.0+incompatible h1:b\n", sources: 8, next: []string{"go mod tidy"},
		},
		"from elsewhere": {lang: "go", mod: "module \"example.org/us\"\n\nrequire " + kilnModule + " v1.0.0\n", path: "example.org/us/content"},
		"for guests so far": {
			lang: "go", mod: "module us\n\ngo 1.26.0\n" + here + "content/tools/kiln-go\n", path: "us/content",
			wantMod: "module us\n\ngo 1.26.0\n" + here + "content/tools/kiln-go\n" + indirect,
			sum:     "a.example/x v1.0.0 h1:a\nb.example v2.0.0+incompatible h1:b\n", sources: 8,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "content")
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			if test.mod != "" {
				if err := os.WriteFile(filepath.Join(dir, "..", "go.mod"), []byte(test.mod), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			r := Request{Dir: dir, Project: test.project, Lang: test.lang, Source: kilnSource}
			m, err := r.goModule()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]any{test.path, test.wantMod, test.sum, test.sources, test.next}, []any{m.path, m.mod, m.sum, len(m.sources), m.next}); d != "" {
				t.Error(d)
			}
		})
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("go 1.26\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Request{Dir: dir, Name: "a", Lang: "go", Source: kilnSource}); diag.Messages(err, diag.Internal)[0].Code != diag.BadValue {
		t.Error(err)
	}
}

// TestDeclare checks that kiln.toml gets the project's own kiln in its table, and a processor at its end.
func TestDeclare(t *testing.T) {
	for old, want := range map[string]string{
		"[project]\nname = \"a\"":                   "[project]\nkiln = \"tools/kiln\"\nname = \"a\"",
		"# us\n[project] # it\nname = \"a\"\n":      "# us\n[project] # it\nkiln = \"tools/kiln\"\nname = \"a\"\n",
		"[project]\nname = \"a\"\nkiln = \"own\"\n": "",
		"project.name = \"a\"\n":                    "",
	} {
		file := filepath.Join(t.TempDir(), "kiln.toml")
		if err := os.WriteFile(file, []byte(old), 0o666); err != nil {
			t.Fatal(err)
		}
		named, err := nameKiln(file)
		if err != nil || named != (want != "") {
			t.Errorf("%q: %v, %v", old, named, err)
		}
		if !named {
			continue
		}
		if err := declare(disk.NewBounds(filepath.Dir(file), nil), "", named); err != nil {
			t.Error(err)
		}
		if got, _ := os.ReadFile(file); string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
