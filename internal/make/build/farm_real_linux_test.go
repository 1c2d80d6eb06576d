package build

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/internal/make/farm"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi"
)

// TestRealFarm: a server and workers that others wrote, if there are any. Programs that are traced are among what they run.
func TestRealFarm(t *testing.T) {
	address := os.Getenv("KILN_TESTBED_FARM")
	if address == "" {
		t.Skip("no workers: go run ./testbed buildbarn -- go test ./internal/make/build -run TestRealFarm")
	}
	getenv := func(name string) string { return map[string]string{reapi.FarmVariable: address}[name] }
	place, err := farm.Choose(project.Execution{All: true, Jobs: 8, Timeout: time.Minute}, "", getenv)
	if err != nil {
		t.Fatal(err)
	}
	p := newProject(t, sharedProject+"-- assets/unique.txt --\n"+t.TempDir()+"\n")
	p.procs, p.farm = allTestProcessors(1), place
	if b := p.build(); b.Remote == 0 {
		t.Errorf("%+v\n%s%s", b.Summary, b.messages, b.warned)
	}
	p.write("assets/b.txt", "edited")
	if b := p.build(); b.Remote == 0 {
		t.Errorf("%+v\n%s%s", b.Summary, b.messages, b.warned)
	}
	p.wants("")
	if seal.Supported().Trace != nil {
		return
	}
	p = newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n"+lookProcessor+"-- assets/a.look --\nnames .\nread d/b.txt\nask d\nreal assets/d\n"+
		"-- assets/d/b.txt --\nb\n-- tools/look --\n"+lookScript)
	p.must(chmodExecutable(p.path("tools/look")))
	p.procs, p.farm = allTestProcessors(1), place
	p.build()
	p.write("assets/d/b.txt", t.TempDir())
	p.write("assets/d/c.txt", "new")
	if b := p.build(); !strings.Contains(b.ran, "a.look") || b.Remote < 3 {
		t.Errorf("ran %q, %+v\n%s%s", b.ran, b.Summary, b.messages, b.warned)
	}
}
