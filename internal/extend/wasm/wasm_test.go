package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// heights is what both examples take, and columns what they make of it with a scale of 2.
const heights = "012\n345\n"

var columns = []byte{3, 0, 2, 0, 0, 2, 4, 6, 8, 10}

// repository is Kiln's own folder.
func repository(t testing.TB) string {
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// sharedCache is one folder for all tests of a run: what is compiled once is compiled for all.
var sharedCache = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "kiln-wasm-test-*")
	if err != nil {
		panic(err)
	}
	return dir
})

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(sharedCache())
	os.Exit(code)
}

// load is Load that must succeed.
func load(t testing.TB, c Config) processor.Processor {
	t.Helper()
	if c.Cache == "" {
		c.Cache = sharedCache()
	}
	p, fingerprint, err := Load(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(fingerprint) != 64 {
		t.Fatalf("fingerprint %q", fingerprint)
	}
	return p
}

func goExample(t testing.TB) processor.Processor {
	t.Helper()
	notShort(t)
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool")
	}
	return load(t, Config{Dir: repository(t), Go: "processor/wasmguest/example", Name: "voxel"})
}

// notShort is for tests of modules in Go: under the race detector wazero takes 15 s to compile one. TestOneWorld has one all the same.
func notShort(t testing.TB) {
	t.Helper()
	thorough.Only(t, "a module in Go takes long to compile")
}

func goGuest(t testing.TB) processor.Processor {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool")
	}
	return load(t, Config{Dir: repository(t), Go: "internal/extend/wasm/testdata/guest", Name: "guest"})
}

// cModule compiles the example in C.
func cModule(t testing.TB) string {
	t.Helper()
	clang, err := exec.LookPath("clang")
	if err != nil {
		t.Skip("there is no clang")
	}
	out := filepath.Join(t.TempDir(), "heights.wasm")
	source := filepath.Join(repository(t), "processor/wasmguest/c/heights.c")
	said, err := exec.Command(clang, "--target=wasm32", "-Wall", "-Wextra", "-Werror", "-O2", "-nostdlib", "-Wl,--no-entry", "-o", out, source).CombinedOutput()
	if err != nil {
		if strings.Contains(string(said), "wasm-ld") {
			t.Skip("there is no wasm-ld")
		}
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// scale2 sets the one setting of a module's struct.
func scale2(t testing.TB, p processor.Processor) any {
	t.Helper()
	d := p.(*proc).about
	d.Settings = slices.Clone(d.Settings)
	if len(d.Settings) != 1 || d.Settings[0].Name != "scale" {
		t.Fatalf("settings %v", d.Settings)
	}
	d.Settings[0].Default = []byte("2")
	if err := d.Settings[0].check(); err != nil {
		t.Fatal(err)
	}
	return d.structOf()
}

// TestExamples: the processors in Go and in C make the same of a map, see the same, and say the same of a mistake.
func TestExamples(t *testing.T) {
	for name, make := range map[string]func(testing.TB) processor.Processor{
		"go": goExample,
		"c": func(t testing.TB) processor.Processor {
			file := cModule(t)
			return load(t, Config{Dir: filepath.Dir(file), Path: filepath.Base(file), Name: "voxel"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := make(t)
			info := p.Info()
			if info.Name != "voxel" || info.Version != 1 || !slices.Equal(info.Extensions, []string{".heights"}) ||
				len(info.Products) != 1 || info.Products[0].Type != "voxel" || info.Products[0].Extension != ".vox" {
				t.Errorf("info %+v", info)
			}
			c := processortest.Case{Files: map[string][]byte{"a.heights": []byte(heights)}, Asset: "a.heights", Settings: scale2(t, p)}
			r := processortest.Run(t, p, c)
			if r.Err != nil || !slices.Equal(r.Products[""].Data, columns) || r.Products[""].Type != "voxel" || r.Products[""].Extension != ".vox" {
				t.Errorf("%v: %v", r.Err, r.Products)
			}
			if !slices.Equal(r.Observations, []string{"file a.heights"}) {
				t.Errorf("observations %v", r.Observations)
			}
			c.Files["a.heights"] = []byte("012\n3x5\n")
			r = processortest.Run(t, p, c)
			ps := processortest.Problems(r.Err)
			if len(ps) != 1 || ps[0].Line != 2 || ps[0].Column != 2 || ps[0].Length != 1 || !strings.HasPrefix(ps[0].Hint, "heights are digits") {
				t.Errorf("problems %+v", ps)
			}
		})
	}
}

// problemOf is the one problem in an error.
func problemOf(t testing.TB, err error) *processor.Problem {
	t.Helper()
	ps := processortest.Problems(err)
	if len(ps) != 1 {
		t.Fatalf("%d problems in %v", len(ps), err)
	}
	return ps[0]
}

func runOn(t testing.TB, p processor.Processor, asset, content string) processortest.Result {
	t.Helper()
	return processortest.Run(t, p, processortest.Case{Files: map[string][]byte{asset: []byte(content), "other.txt": []byte("other")}, Asset: asset,
		Meta: map[string]map[string]any{"b.png": {"status": "final"}}, ResourceIDs: map[string]uint32{"refs": 7},
		Others: map[string][]processortest.OtherProduct{"b.png": {{Product: processor.Product{Type: "texture", File: "b.png.ktx2"}, Data: []byte("pixels")},
			{Product: processor.Product{Type: "texture", File: "b.png.tv", Platform: "tv"}, Data: []byte("tv pixels")}}}})
}

// TestGuest: the Go kit's Job is Job.
func TestGuest(t *testing.T) {
	notShort(t)
	p := goGuest(t)
	r := runOn(t, p, "dir/all.guest", "all")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	processortest.Golden(t, "testdata/guest.txt", r.Products[""].Data, *update)
	want := []string{
		"file dir/all.guest", "missing missing.txt", "exists other.txt: true", "exists missing.txt: false", "glob *.txt", "products b.png", "product b.png ",
		"assets *.png", "try products nobody.png  ", "try products b.png  other", "try products b.png tv ", "product b.png ",
		"asset b.png", "asset nobody.png", `resource id ""`, `resource id "refs"`,
	}
	if !slices.Equal(r.Observations, want) {
		t.Errorf("observations %q", r.Observations)
	}
	if len(r.Warnings) != 1 || r.Warnings[0] != (processor.Problem{Path: "other.txt", Line: 1, Column: 2, Length: 3, Text: "careful", Hint: "or not"}) {
		t.Errorf("warnings %+v", r.Warnings)
	}
	if refs := r.Products["refs"].References; !slices.Equal(refs, []processor.Reference{{UUID: "<b.png>", Required: true}, {UUID: "<dir/all.guest>", SubID: processor.SubID("x")}}) {
		t.Errorf("references %+v", refs)
	}
}

// echo is a processor that a guest asks.
type echo struct{}

type echoSettings struct {
	Say string `toml:"say" doc:"Words."`
}

func (echo) Info() processor.Info {
	return processor.Info{
		Name: "echo", Version: 1, Summary: "for tests", Settings: &echoSettings{}, Products: []processor.ProductType{{Type: "text"}},
	}
}

func (echo) Process(_ context.Context, job processor.Job) error {
	text := "nothing"
	if job.Asset().Path != "" {
		f, err := job.Source()
		if err != nil {
			return err
		}
		b, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		text = string(b)
	}
	return job.Write(processor.Output{Type: "text", Extension: ".echo"}, []byte(processor.SettingsOf[echoSettings](job).Say+" "+text))
}

// TestRequests: a guest asks another processor, on each kind of source.
func TestRequests(t *testing.T) {
	p := goGuest(t)
	r := processortest.Run(t, p, processortest.Case{
		Files: map[string][]byte{"a.guest": []byte("requests"), "other.txt": []byte("other")}, Asset: "a.guest",
		Processors: []processor.Processor{echo{}},
	})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := string(r.Products[""].Data); got != " nothing\nso other\n \xff bytes\nso so other\n" {
		t.Errorf("%q", got)
	}
	if twin := r.Products["twin"]; string(twin.Data) != " \xff bytes" || twin.Type != "text" || twin.Extension != ".echo" {
		t.Errorf("%+v", twin)
	}
}

// TestRuns: a guest has a program run, and gets all that it did.
func TestRuns(t *testing.T) {
	p := goGuest(t)
	var got processor.Command
	r := processortest.Run(t, p, processortest.Case{
		Files: map[string][]byte{"a.guest": []byte("runs"), "inc/a.h": []byte("h")}, Asset: "a.guest",
		Programs: map[string]processortest.Program{
			"echo": func(c processor.Command) (processor.Result, error) {
				got = c
				made := map[string][]byte{"deep/x": []byte("X"), "empty": {}}
				return processor.Result{Code: 3, Stdout: []byte("\xff out"), Stderr: []byte("err"), Files: made}, nil
			},
			"nobody": func(processor.Command) (processor.Result, error) {
				return processor.Result{}, &processor.Problem{Text: "it is gone"}
			},
		},
	})
	if problemOf(t, r.Err).Text != "it is gone" {
		t.Errorf("%v", r.Err)
	}
	want := processor.Command{
		Args: []string{"echo", "a", "b"}, Inputs: []string{"inc/*"}, Stdin: []byte("in"), Codes: []int{3}, Timeout: 1500 * time.Millisecond,
		Env: []string{"A"}, Tools: []string{"tool"},
		Files: map[string][]byte{"made.txt": []byte("made"), "none": {}, "inc/a.h": []byte("h"), "a.guest": []byte("runs")},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	if seen := strings.Join(r.Observations, ", "); !strings.Contains(seen, "run echo a b") || !strings.Contains(seen, "file inc/a.h") {
		t.Errorf("observed %s", seen)
	}
}

// TestHandedBack: an error of the host that a guest returns is to the host what it was.
func TestHandedBack(t *testing.T) {
	p := goGuest(t)
	if r := runOn(t, p, "a.guest", "refused"); r.Err == nil || !strings.HasPrefix(r.Err.Error(), `read of "../x" refused`) {
		t.Errorf("%v", r.Err)
	}
	if r := runOn(t, p, "a.guest", "wrapped"); problemOf(t, r.Err).Text != `while it looked: asset "no.png": file does not exist` || !isNotExist(r.Err) {
		t.Errorf("%v", r.Err)
	}
	if r := runOn(t, p, "a.guest", "two"); len(processortest.Problems(r.Err)) != 2 {
		t.Errorf("%v", r.Err)
	}
}

// TestBadGuest: what goes wrong in a Go guest is told, and the next job knows nothing of it.
func TestBadGuest(t *testing.T) {
	notShort(t)
	p := goGuest(t)
	for _, c := range []struct {
		content string
		code    diag.Code
		text    string
	}{
		{"panic", diag.WasmTrap, "it printed:\n  panic: too bad"},
		{"exit", diag.WasmTrap, "ended itself with exit code 7"},
		{"nil", diag.WasmTrap, "nil pointer"},
		{"deadlock", diag.WasmTrap, "deadlock"},
		{"recursion", diag.WasmTrap, "stack"},
		{"unclosed", diag.WasmAbuse, `did not close the product "half"`},
	} {
		r := runOn(t, p, "a.guest", c.content)
		problem := problemOf(t, r.Err)
		if problem.Code != string(c.code) || !strings.Contains(problem.Text, c.text) || problem.Path != "" {
			t.Errorf("%s: %s %s", c.content, problem.Code, problem.Text)
		}
		if r := runOn(t, p, "a.guest", "state"); string(r.Products[""].Data) != "1" {
			t.Errorf("after %s: %q %v", c.content, r.Products[""].Data, r.Err)
		}
	}
}

// TestOneWorld: clock, random numbers, the order of maps and what is in memory are the same in each job, at any number of workers.
func TestOneWorld(t *testing.T) {
	p := goGuest(t)
	first := ""
	for _, workers := range []int{1, 2, 7} {
		got := make([]string, 40)
		var wait sync.WaitGroup
		for w := range workers {
			wait.Add(1)
			go func() {
				defer wait.Done()
				for i := w; i < len(got); i += workers {
					content := []string{"world", "world", "state", "grow"}[i%4]
					r := runOn(t, p, fmt.Sprintf("a%02d.guest", i%3), content)
					got[i] = fmt.Sprintf("%s %s %v", content, r.Products[""].Data, r.Err)
				}
			}()
		}
		wait.Wait()
		slices.Sort(got)
		got = slices.Compact(got)
		if all := strings.Join(got, "\n"); first == "" {
			first = all
			if len(got) != 3 || !strings.HasPrefix(got[1], "state 1 ") {
				t.Errorf("not one outcome for each kind of job:\n%s", all)
			}
		} else if all != first {
			t.Errorf("with %d workers:\n%s\nwith one:\n%s", workers, all, first)
		}
	}
}

// TestFingerprint: it is of the code, and of nothing else.
func TestFingerprint(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("a.wasm", guest().module())
	write("b.wasm", guest().module())
	other := guest()
	other.process = append(other.process, 0x01)
	write("c.wasm", other.module())
	prints := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		_, f, err := Load(context.Background(), Config{Dir: dir, Path: name + ".wasm", Name: name, Cache: filepath.Join(dir, "cache")})
		if err != nil {
			t.Fatal(err)
		}
		prints[name] = f
	}
	if prints["a"] != prints["b"] || prints["a"] == prints["c"] {
		t.Error(prints)
	}
}

// TestLazy: what is in the cache is not compiled to know what it is, and a damaged cache is made anew.
func TestLazy(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.wasm"), guest().module(), 0o666); err != nil {
		t.Fatal(err)
	}
	c := Config{Dir: dir, Path: "a.wasm", Name: "a", Cache: filepath.Join(dir, "cache")}
	if p := load(t, c); p.(*proc).engine == nil {
		t.Error("the first time, it must be asked")
	}
	p := load(t, c)
	if p.(*proc).engine != nil {
		t.Error("compiled without need")
	}
	if r := runOn(t, p, "a.x", "x"); r.Err != nil {
		t.Error(r.Err)
	}
	damaged := 0
	err := filepath.WalkDir(c.Cache, func(file string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			damaged++
			return os.WriteFile(file, []byte("damaged, and not a little but all of it"), 0o666)
		}
		return err
	})
	if err != nil || damaged < 2 {
		t.Fatal(damaged, err)
	}
	p = load(t, c)
	if r := runOn(t, p, "a.x", "x"); r.Err != nil {
		t.Error(r.Err)
	}
}

// TestCancelled: the end of the build is not the module's fault.
func TestCancelled(t *testing.T) {
	m := guest()
	m.process = []byte{0x03, 0x40, 0x0c, 0, 0x0b, 0x41, 0} // loop br 0 end
	p := loadModule(t, m, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := processortest.RunContext(t, ctx, p, processortest.Case{Files: map[string][]byte{"a": nil}, Asset: "a"})
	if !errors.Is(r.Err, context.Canceled) {
		t.Error(r.Err)
	}
}

// TestDocs: the page shows the examples as they are.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository(t), "docs/wasm.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"processor/wasmguest/example/voxel.go", "processor/wasmguest/c/heights.c"} {
		code, err := os.ReadFile(filepath.Join(repository(t), file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "\n"+string(code)+"```\n") {
			t.Errorf("docs/wasm.md does not have %s as it is", file)
		}
	}
}
