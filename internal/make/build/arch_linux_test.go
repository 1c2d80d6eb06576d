package build

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// machine is a kiln of another processor, and what runs it here.
type machine struct {
	name   string
	env    []string
	runner string // "" is this processor
}

// TestArchitectures: the example comes out the same byte for byte from kilns of other processors, and what one of them built is taken from
// a shared cache by the others.
func TestArchitectures(t *testing.T) {
	thorough.Only(t, "kilns are built for other processors, and run there or in an emulator")
	here := buildKiln(t)
	f := &fixture{TB: t, dir: t.TempDir()}
	shared := "KILN_CACHE=" + f.path("cache")
	build := func(folder, cache string, command ...string) (files map[string]string, said string) {
		t.Helper()
		dir := f.path(folder)
		f.must(copyTree("../../../examples/knights", dir))
		cmd := exec.Command(command[0], append(command[1:], "build", "-C", dir)...)
		cmd.Env = append(os.Environ(), cache)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", folder, err, out)
		}
		return outputFiles(dir, "build"), string(out)
	}
	want, _ := build("here", "KILN_CACHE=off", here)
	if len(want) < 50 {
		t.Fatalf("the example has %d outputs", len(want))
	}
	build("first", shared, here)
	for _, m := range []machine{
		{"arm64", []string{"GOARCH=arm64"}, "qemu-aarch64"},
		{"v3", []string{"GOARCH=amd64", "GOAMD64=v3"}, ""},
	} {
		t.Run(m.name, func(t *testing.T) {
			command := []string{filepath.Join(t.TempDir(), "kiln")}
			cmd := exec.Command("go", "build", "-o", command[0], "github.com/kiln-pipeline/kiln/cmd/kiln")
			cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), m.env...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if m.runner != "" {
				runner, err := exec.LookPath(m.runner)
				if err != nil {
					t.Skip(m.runner, " is not installed (Debian package qemu-user)")
				}
				command = append([]string{runner}, command...)
			}
			if out, err := exec.Command(command[0], append(command[1:], "version")...).CombinedOutput(); err != nil {
				t.Skipf("it does not run here: %v\n%s", err, out)
			}
			if got, _ := build(m.name, "KILN_CACHE=off", command...); !maps.Equal(got, want) {
				t.Errorf("other outputs: %s", differ(want, got))
			}
			got, said := build(m.name+"-shared", shared, command...)
			if !maps.Equal(got, want) || !strings.Contains("\n"+said, "\n0 assets built, ") {
				t.Errorf("from the cache: %s\n%s", differ(want, got), said)
			}
		})
	}
}
