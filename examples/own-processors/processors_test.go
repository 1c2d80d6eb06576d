// Package ownprocessors tests that the five processors of this example are equivalent: the same bytes, the same
// observations, the same errors.
package ownprocessors

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/examples/own-processors/tools/tilemap"
	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/farm"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/worker"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/make/written"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
	"github.com/kiln-pipeline/kiln/processor"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == written.Command { // this program is also the kiln of workers
		if err := worker.Run(context.Background(), config(".")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// example is a copy of the example.
type example struct {
	t     *testing.T
	dir   string
	kinds []string    // folders of assets
	farm  *farm.Place // other place where jobs run, or nil
}

func newExample(t *testing.T) *example {
	t.Helper()
	thorough.Only(t, "processors are compiled in five ways")
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool to compile the module with")
	}
	e := &example{t: t, dir: t.TempDir(), kinds: []string{"c", "go", "star", "wasm"}}
	for _, folder := range []string{"assets", "tools"} {
		if err := os.CopyFS(filepath.Join(e.dir, folder), os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const kiln = "github.com/kiln-pipeline/kiln"
	e.write("go.mod", "module copy\n\ngo 1.26.0\n\nrequire "+kiln+" v0.0.0\n\nreplace "+kiln+" => "+repository+"\n")
	text, err := os.ReadFile("kiln.toml")
	if err != nil {
		t.Fatal(err)
	}
	e.write("kiln.toml", string(text))
	if _, err := exec.LookPath("python3"); err != nil {
		t.Log("there is no python3: the command is left out")
		os.RemoveAll(filepath.Join(e.dir, "assets", "command"))
	} else {
		e.kinds = append(e.kinds, "command")
	}
	return e
}

func (e *example) write(name, text string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, filepath.FromSlash(name)), []byte(text), 0o666); err != nil {
		e.t.Fatal(err)
	}
}

func (e *example) read(name string) string {
	e.t.Helper()
	data, err := os.ReadFile(filepath.Join(e.dir, filepath.FromSlash(name)))
	if err != nil {
		e.t.Fatal(err)
	}
	return string(data)
}

func (e *example) open() *build.Project {
	e.t.Helper()
	cfg := config(e.dir)
	cfg.Execution = func(project.Execution) (*farm.Place, error) { return e.farm, nil }
	p, err := build.Open(cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	return p
}

func config(dir string) workspace.Config {
	return workspace.Config{Dir: dir, Version: "test", Processors: processors.All(), Team: []processor.Processor{tilemap.New()}}
}

func (e *example) build(workers int) *report.Report {
	e.t.Helper()
	p := e.open()
	if err := p.Lock(e.t.Context(), true, func() {}); err != nil {
		e.t.Fatal(err)
	}
	defer p.Unlock()
	r, err := p.Build(e.t.Context(), build.Request{Workers: workers, Reporter: build.Silent{}})
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

// same builds, and returns the bytes, which must be the same for all kinds.
func (e *example) same() string {
	e.t.Helper()
	if r := e.build(2); r.Summary.Failed > 0 {
		e.t.Fatal(r.Messages)
	}
	first := e.read("build/pc/star/clearing.map.tiles")
	for _, k := range e.kinds {
		if got := e.read("build/pc/" + k + "/clearing.map.tiles"); got != first {
			e.t.Errorf("%s made other bytes than star:\n% x\n% x", k, got, first)
		}
	}
	return first
}

// observed returns the observations of the job for each kind's map, without the folder of the map and without files of
// the system.
func (e *example) observed() map[string][]string {
	e.t.Helper()
	v, err := e.open().Look(context.Background(), nil, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	all := map[string][]string{}
	v.Traces(func(a *asset.Asset, _, _, _ string, tr *engine.Trace) {
		folder, file, _ := strings.Cut(a.ID, "/")
		if file != "clearing.map" {
			return
		}
		for _, o := range tr.Observations {
			kind, subject := explain.Kind(o), explain.Subject(o)
			if kind == "tool" || kind == "env" || kind == "roots" || filepath.IsAbs(subject) || subject[0] == '.' { // pyenv reads a version
				continue
			}
			s := fmt.Sprintf("%s %s %x", kind, strings.Replace(subject, folder+"/clearing", "KIND/clearing", 1), o.Value)
			if !slices.Contains(all[folder], s) {
				all[folder] = append(all[folder], s)
			}
		}
	})
	return all
}

func (e *example) sameObserved() {
	e.t.Helper()
	all := e.observed()
	if got := slices.Sorted(maps.Keys(all)); len(got) != len(e.kinds) {
		e.t.Fatalf("traces of %v, want of %v", got, e.kinds)
	}
	var subjects []string
	for _, s := range all["star"] {
		subjects = append(subjects, s[:strings.LastIndex(s, " ")])
	}
	if d := cmp.Diff([]string{"file KIND/clearing.map", "file tiles/forest.json", "file tiles/forest.png"}, subjects); d != "" {
		e.t.Errorf("star (-want +got):\n%s", d)
	}
	for _, k := range e.kinds {
		if d := cmp.Diff(all["star"], all[k]); d != "" {
			e.t.Errorf("%s saw something else (-star +%s):\n%s", k, k, d)
		}
	}
}

// TestSame checks that the kinds make the same bytes and the same observations, also with a setting, and after an edit
// of a file that the map names.
func TestSame(t *testing.T) {
	e := newExample(t)
	first := e.same()
	if want := "\x1c\x00\x10\x00\x10\x00\x04\x00\x02\x00"; !strings.HasPrefix(first, want) || len(first) != 8+2*28*16 {
		t.Errorf("%d bytes, % x", len(first), first[:10])
	}
	e.sameObserved()
	if r := e.build(1); r.Summary.Built != 0 {
		t.Errorf("built %d again", r.Summary.Built)
	}

	e.write("assets/rules.toml", "[[rules]]\nmatch = \"*/clearing.map\"\nsettings = { border = 3 }\n")
	framed := e.same()
	if want := "\x1e\x00\x12\x00\x10\x00\x04\x00" + strings.Repeat("\x03\x00", 31); !strings.HasPrefix(framed, want) || len(framed) != 8+2*30*18 {
		t.Errorf("%d bytes, % x", len(framed), framed[:40])
	}
	e.write("assets/tiles/forest.json", strings.Replace(e.read("assets/tiles/forest.json"), `"T": 2`, `"T": 5`, 1))
	if e.same() == framed {
		t.Error("another tile set makes the same map")
	}
	e.sameObserved()
}

// TestTraced checks that a program that does not declare what it reads has the same observations.
func TestTraced(t *testing.T) {
	if err := seal.Supported().Trace; err != nil {
		t.Skipf("what a program reads cannot be seen here: %v", err)
	}
	e := newExample(t)
	e.write("kiln.toml", strings.Replace(e.read("kiln.toml"), `inputs   = "depfile"`, `inputs   = "traced"`, 1))
	e.same()
	e.sameObserved()
}

// TestModule checks that the module in the project does what its source says.
func TestModule(t *testing.T) {
	for _, tool := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s to compile it with", tool)
		}
	}
	e := newExample(t)
	first := e.same()
	cmd := exec.Command("clang", "--target=wasm32", "-Wall", "-Wextra", "-Werror", "-O1", "-nostdlib", "-Wl,--no-entry", "-I", "../../processor/wasmguest/c",
		"-o", filepath.Join(e.dir, "tools", "tilemap.wasm"), "tools/tilemap.c")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if e.same() != first {
		t.Error("it makes something else")
	}
	e.wrongTile()
	for _, m := range mistakes {
		e.mistake(m)
	}
}

// mistake is a wrong map, with the expected message and its place.
type mistake struct {
	rows         string
	line, column int
	text         string
}

var mistakes = []mistake{
	{"TTT\nT?T\n", 3, 2, `letter "?" is not in the tile set`},
	{"TTT\nT.\n", 3, 0, "the row has 2 tiles, the first one 3"},
	{"T.x\n", 2, 3, `letter "x" is tile 8, and the sheet has 8`},
}

// wrongTile gives the tile set a letter whose tile is not on the sheet.
func (e *example) wrongTile() {
	e.t.Helper()
	e.write("assets/tiles/forest.json", strings.Replace(e.read("assets/tiles/forest.json"), `"T": 2`, `"T": 2, "x": 8`, 1))
}

func (e *example) mistake(m mistake) {
	e.t.Helper()
	for _, k := range e.kinds {
		e.write("assets/"+k+"/clearing.map", "tiles/forest.json\n"+m.rows)
	}
	r := e.build(2)
	said := map[string]*diag.Message{} // the first message of each map; the output of the command follows
	for _, got := range r.Messages {
		if said[got.Pos.File] == nil {
			said[got.Pos.File] = got
		}
	}
	if r.Summary.Failed != len(e.kinds) || len(said) != len(e.kinds) {
		e.t.Fatalf("%d failed: %v", r.Summary.Failed, r.Messages)
	}
	for _, got := range said {
		if got.Pos.Line != m.line || got.Pos.Column != m.column || got.Text != m.text {
			e.t.Errorf("got  %v\nwant line %d, column %d: %s", got, m.line, m.column, m.text)
		}
	}
}

// TestMistakes checks that errors in a map are reported with the same words and at the same place.
func TestMistakes(t *testing.T) {
	e := newExample(t)
	e.wrongTile()
	for _, m := range mistakes {
		e.mistake(m)
	}
}

// TestWorkers checks that one worker and eight make the same files.
func TestWorkers(t *testing.T) {
	var first []byte
	for _, workers := range []int{1, 8} {
		e := newExample(t)
		e.build(workers)
		var all bytes.Buffer
		for _, k := range e.kinds {
			all.WriteString(e.read("build/pc/" + k + "/clearing.map.tiles"))
		}
		if first == nil {
			first = all.Bytes()
		} else if !bytes.Equal(first, all.Bytes()) {
			t.Errorf("%d workers make something else", workers)
		}
	}
}

// TestFarm has workers run all five processors. Their products must be the same as those made here.
func TestFarm(t *testing.T) {
	e := newExample(t)
	here := e.same()
	f, err := reapitest.StartFarm(t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	f.Env = []string{"TMPDIR=" + t.TempDir(), "TEMP=" + os.Getenv("TEMP")}
	e.farm = &farm.Place{Remote: f.Address, Jobs: 4, Timeout: time.Minute, Only: true}
	for _, folder := range []string{"build", ".kiln/traces", ".kiln/snapshot", ".kiln/cas"} {
		if err := os.RemoveAll(filepath.Join(e.dir, filepath.FromSlash(folder))); err != nil {
			t.Fatal(err)
		}
	}
	r := e.build(2)
	if want := len(e.kinds); r.Summary.Failed > 0 || r.Summary.Remote < 4 || want < 4 { // a program runs here
		t.Errorf("%+v\n%s", r.Summary, r.Messages)
	}
	if there := e.same(); there != here {
		t.Error("workers make something else")
	}
}
