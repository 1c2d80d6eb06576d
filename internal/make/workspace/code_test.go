package workspace

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/kiln-pipeline/kiln/internal/base/fingerprint"
	"github.com/kiln-pipeline/kiln/internal/base/local"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/processor"
)

type words struct{ processor.Processor }

func (words) Source() fs.FS {
	return fstest.MapFS{"words.go": {}, "words_test.go": {}, "grid/grid.go": {}, "table.txt": {}}
}

// TestTeamCode finds what a team's processor is made of: the source that it embeds, or the files of the whole program.
func TestTeamCode(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	type files map[string]struct{}
	record, err := json.Marshal(map[string]any{
		"Key":   "0000000000000000000000000000000000000000000000000000000000000000",
		"Files": files{filepath.Join(dir, "tools", "kiln", "main.go"): {}, filepath.Join(dir, "lib", "a.go"): {}, filepath.Join(dir, "..", "b.go"): {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"XDG_CACHE_HOME", "LocalAppData", "HOME"} {
		t.Setenv(name, t.TempDir())
	}
	made := local.Folder(dir, "kiln")
	if err := errors.Join(os.MkdirAll(made, 0o700), os.WriteFile(filepath.Join(made, "made.json"), record, 0o600)); err != nil {
		t.Fatal(err)
	}
	write("go.mod", "module github.com/kiln-pipeline/kiln/internal/make\n")
	write("tools/kiln/main.go", "package main\n")
	own := func(kiln string, way fingerprint.Way) *Workspace {
		p := &Workspace{Project: &project.Project{Dir: dir, Kiln: kiln}, TeamInfos: []processor.Info{{Name: "words"}}}
		p.Procs = map[string]*job.Installed{"words": {Processor: &words{}, Code: way}}
		p.teamCode = p.findTeamCode
		return p
	}
	for _, c := range []struct {
		p      *Workspace
		listed []string
		yes    []string
		no     []string
	}{
		{own("tools/kiln", fingerprint.Source), []string{"workspace/grid/grid.go", "workspace/table.txt", "workspace/words.go"},
			[]string{"workspace/words.go", "workspace/grid/grid.go", "workspace/table.txt", "workspace/new.go", "workspace", "tools/kiln/main.go"},
			[]string{"workspace/words_test.go", "workspace/new.txt", "words.go", "lib/a.go", "workspace/more/new.go"}},
		{own("", fingerprint.Source), []string{"workspace/grid/grid.go", "workspace/table.txt", "workspace/words.go"},
			[]string{"workspace/words.go"}, []string{"main.go", "tools/kiln/main.go"}},
		{own("tools/kiln", fingerprint.Program), []string{"tools/kiln", "workspace"},
			[]string{"tools/kiln/main.go", "lib/a.go", "lib/new.go", "lib"}, []string{"../b.go", "lib/a_test.go", "assets/a.txt"}},
		{own("tools/kiln", fingerprint.Module), nil, []string{"tools/kiln/main.go"}, []string{"workspace/words.go", "lib/a.go"}},
	} {
		var listed []string
		for _, pair := range c.p.OwnCode() {
			listed = append(listed, pair[1])
		}
		if way := c.p.Code("words"); !reflect.DeepEqual(listed, c.listed) {
			t.Errorf("%s: lists %q, want %q", way, listed, c.listed)
		}
		for _, name := range c.yes {
			if got := c.p.ProcessorsOf(name); !reflect.DeepEqual(got, []string{"words"}) {
				t.Errorf("%s: processors of %s: %q", c.p.Code("words"), name, got)
			}
		}
		for _, name := range c.no {
			if got := c.p.ProcessorsOf(name); got != nil {
				t.Errorf("%s: processors of %s: %q, want none", c.p.Code("words"), name, got)
			}
		}
	}
}
