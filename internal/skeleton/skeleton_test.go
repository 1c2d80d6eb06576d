package skeleton

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/diag"
)

func TestGoName(t *testing.T) {
	for name, want := range map[string]string{"words": "words", "tile-map": "tilemap", "2d-map": "p2dmap", "map": "mapproc", "main": "mainproc", "range": "rangeproc"} {
		if got := goName(name); got != want {
			t.Errorf("goName(%q) is %q, want %q", name, got, want)
		}
	}
}

// TestGoModule: code in Go belongs to the module that is there, or to a new one; what that needs is told.
func TestGoModule(t *testing.T) {
	tests := map[string]struct {
		mod, project, kiln string // the go.mod above the project folder
		path               string
		written            string
		next               []string
	}{
		"none":          {project: "My Game!", path: "my-game", written: "module my-game\n\ngo 1.26.0\n", next: []string{"go get " + kilnModule, "go mod tidy"}},
		"without name":  {project: "", path: "game", written: "module game\n\ngo 1.26.0\n", next: []string{"go get " + kilnModule, "go mod tidy"}},
		"with sources":  {project: "a", kiln: "/kiln", path: "a", written: "module a\n\ngo 1.26.0\n", next: []string{"go mod edit -replace " + kilnModule + "=/kiln", "go mod tidy"}},
		"above":         {mod: "// us\nmodule example.org/us // here\n", path: "example.org/us/content", next: []string{"go get " + kilnModule, "go mod tidy"}},
		"above, quoted": {mod: "module \"example.org/us\"\n\nrequire " + kilnModule + " v1.0.0\n", path: "example.org/us/content"},
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
			r := Request{Dir: dir, Project: test.project, Kiln: test.kiln}
			m, err := r.goModule()
			if err != nil {
				t.Fatal(err)
			}
			var written string
			for _, f := range m.files {
				written += f.text
			}
			if d := cmp.Diff([]any{test.path, test.written, test.next}, []any{m.path, written, m.next}); d != "" {
				t.Error(d)
			}
		})
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("go 1.26\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Request{Dir: dir, Name: "a", Lang: "go"}); diag.Messages(err, diag.Internal)[0].Code != diag.BadValue {
		t.Error(err)
	}
}
