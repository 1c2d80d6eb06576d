package session

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

// TestNames lists changed files for display: a file that Kiln writes beside another one to replace it is not among them.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	r := &run{p: &build.Project{Workspace: &workspace.Workspace{Project: &project.Project{Dir: dir}}}}
	for _, c := range []struct{ changed, want []string }{
		{[]string{in("assets"), in("assets/rules.toml"), disk.Temp(in("assets/rules.toml")), in("assets/.kiln-4711-rules.toml")}, []string{"assets/rules.toml"}},
		{[]string{in("assets/.kiln-notes"), in("assets/.kiln-47x-a"), in("kiln-4711-a")}, []string{"assets/.kiln-47x-a", "assets/.kiln-notes", "kiln-4711-a"}},
	} {
		r.sources = map[string]bool{}
		for _, name := range c.changed {
			r.sources[name] = true
		}
		if got := r.names(); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.changed, got, c.want)
		}
	}
}
