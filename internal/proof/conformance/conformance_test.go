// Package conformance tests that every kind of processor keeps the same guarantees, by real builds of small projects.
// What a processor read, missed and listed is recorded. An edit of its code builds its own assets again, and nothing
// that depends on unchanged products. A fault fails only one job. The bytes do not depend on the number of workers.
//
// Each kind is a row of kinds. It has the same processor in its own language: `conf` executes the lines of its asset
// (see steps) in order, and writes their results.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

// The steps of the processor conf, one a line of its asset:
//
//	copy PATH    the content of a source file
//	maybe PATH   yes or no: does the source file exist?
//	list GLOB    the names of source files, a line each
//	use ID       the main product of another asset
//
// Other lines are faults: crash, loop, memory, outside (reads a file outside of the roots), after (writes to a product
// after its end), twice (a product with the name of another).

// code has the parts of the processor's code that tests change.
type code struct {
	Mark    string // written before all output
	Comment string // changes only the code
}

// kind is a way to implement a processor.
type kind struct {
	name string

	// install returns the code for a project: files, text for its kiln.toml, and processors to compile in.
	install func(t testing.TB, c code) (files map[string]string, toml string, compiled []processor.Processor)

	// without has the steps that it does not support, and the reasons.
	without map[string]string

	// sees converts recorded observations to those that other kinds make. It is nil if they are the same.
	sees func([]string) []string
}

var kinds = []kind{goKind, starlarkKind, goGuestKind, moduleKind, commandKind, tracedKind}

// project is a project on disk.
type project struct {
	t    *testing.T
	dir  string
	kind kind
	code code
	more []processor.Processor
}

// patience is the timeout of jobs on a busy machine; haste is that of a job that does not end.
const (
	patience = "timeout = \"60s\"\n"
	haste    = "timeout = \"3s\"\n"
)

func newProject(t *testing.T, k kind, files map[string]string) *project {
	p := &project{t: t, dir: t.TempDir(), kind: k}
	for name, text := range files {
		p.write("assets/"+name, text)
	}
	p.edit(code{})
	return p
}

func writeFile(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func (p *project) write(name, text string) {
	p.t.Helper()
	writeFile(p.t, filepath.Join(p.dir, filepath.FromSlash(name)), text)
}

func (p *project) remove(name string) {
	p.t.Helper()
	if err := os.Remove(filepath.Join(p.dir, filepath.FromSlash(name))); err != nil {
		p.t.Fatal(err)
	}
}

// edit changes the code of the processor.
func (p *project) edit(c code) {
	files, toml, compiled := p.kind.install(p.t, c)
	for name, text := range files {
		p.write(name, text)
	}
	p.write("kiln.toml", "[project]\nname = \"conformance\"\n[[rules]]\nmatch = \"parts/**\"\nprocessor = \"none\"\n"+toml)
	p.code, p.more = c, compiled
}

// hurry changes the timeout of the processor. This builds nothing again.
func (p *project) hurry(from, to string) {
	p.t.Helper()
	toml, err := os.ReadFile(filepath.Join(p.dir, "kiln.toml"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("kiln.toml", strings.Replace(string(toml), from, to, 1))
}

// built is the result of a build.
type built struct {
	report.Summary
	ran      []string // ids of assets, sorted
	messages diag.List
}

type reporter struct {
	build.Silent
	mu  sync.Mutex
	ran []string
}

func (r *reporter) JobFinished(job string, _ bool, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = append(r.ran, strings.TrimSuffix(job, " [pc]"))
}

func (p *project) open() *build.Project {
	p.t.Helper()
	all := append(slices.Clip(processors.All()), shout{})
	bp, err := build.Open(workspace.Config{Dir: p.dir, Version: "test", Processors: all, Team: p.more})
	if err != nil {
		p.t.Fatal(err)
	}
	return bp
}

func (p *project) build(workers int) built {
	p.t.Helper()
	bp, r := p.open(), &reporter{}
	ctx := context.Background()
	if err := bp.Lock(ctx, true, func() {}); err != nil {
		p.t.Fatal(err)
	}
	defer bp.Unlock()
	report, err := bp.Build(ctx, build.Request{Workers: workers, Reporter: r})
	if err != nil {
		p.t.Fatal(err)
	}
	slices.Sort(r.ran)
	return built{report.Summary, r.ran, report.Messages}
}

// good builds, and fails the test if a job fails.
func (p *project) good() []string {
	p.t.Helper()
	b := p.build(2)
	if b.Failed > 0 {
		p.t.Fatalf("failed: %v", b.messages)
	}
	return b.ran
}

// ran compares the jobs that a build ran.
func (p *project) ran(got []string, want ...string) {
	p.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		p.t.Errorf("other jobs ran (-want +got):\n%s", d)
	}
}

// products returns all files in the output folder.
func (p *project) products() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	root := filepath.Join(p.dir, "build", "pc")
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		rel, _ := filepath.Rel(root, file)
		all[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// observed returns the observations of an asset's job in its last run, in order.
func (p *project) observed(id string) []string {
	p.t.Helper()
	v, err := p.open().Look(context.Background(), nil, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	var seen []string
	v.Traces(func(a *asset.Asset, _, _, _ string, tr *engine.Trace) {
		if a.ID != id {
			return
		}
		for _, o := range tr.Observations {
			if s := explain.Kind(o) + " " + explain.Subject(o); !slices.Contains(seen, s) {
				seen = append(seen, s)
			}
		}
	})
	return seen
}

// shout uses the product of the asset that its file names.
type shout struct{}

func (shout) Info() processor.Info {
	return processor.Info{Name: "shout", Version: 1, Summary: "shouts", Extensions: []string{".shout"}, Products: []processor.ProductType{{Type: "text", Extension: ".txt"}}}
}

func (shout) Process(_ context.Context, job processor.Job) error {
	id, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	data, err := product(job, strings.TrimSpace(string(id)))
	if err != nil {
		return err
	}
	return job.Write(processor.Output{Type: "text", Extension: ".txt"}, []byte(strings.ToUpper(data)))
}

// each runs a test for every kind that supports the steps.
func each(t *testing.T, steps []string, behaviour func(t *testing.T, k kind)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			if !thorough.Enabled() && (k.name == goGuestKind.name || k.name == moduleKind.name) {
				t.Skip("modules are compiled for each edit, twice")
			}
			for _, s := range steps {
				if why := k.without[s]; why != "" {
					t.Skipf("%s: %s", s, why)
				}
			}
			behaviour(t, k)
		})
	}
}

var sources = map[string]string{
	"a.conf":      "copy parts/one.part\nmaybe parts/two.part\n",
	"b.conf":      "list parts/*.part\n",
	"a.shout":     "a.conf",
	"parts/.keep": "",
	"other.txt":   "other",
}

func with(more map[string]string) map[string]string {
	all := maps.Clone(sources)
	all["parts/one.part"] = "one"
	maps.Copy(all, more)
	return all
}

func TestBytes(t *testing.T) {
	want := map[string]string{"a.conf.out": "one\nno\n", "a.shout.txt": "ONE\nNO\n", "other.txt": "other"}
	each(t, nil, func(t *testing.T, k kind) {
		for _, workers := range []int{1, 2, 8} {
			files := with(nil)
			for i := range 20 {
				files[fmt.Sprintf("n%d.conf", i)] = fmt.Sprintf("copy parts/%d.part\nlist parts/*[0-9].part\n", i)
				files[fmt.Sprintf("parts/%d.part", i)] = strings.Repeat("x", i)
			}
			p := newProject(t, k, files)
			if b := p.build(workers); b.Failed > 0 {
				t.Fatal(b.messages)
			}
			all := p.products()
			var list []string
			for i := range 20 {
				list = append(list, fmt.Sprintf("parts/%d.part", i))
			}
			slices.Sort(list)
			for i := range 20 {
				if got := all[fmt.Sprintf("n%d.conf.out", i)]; got != strings.Repeat("x", i)+"\n"+strings.Join(list, "\n")+"\n\n" {
					t.Errorf("%d workers: n%d.conf.out is %q", workers, i, got)
				}
			}
			for name, text := range want {
				if all[name] != text {
					t.Errorf("%d workers: %s is %q, want %q", workers, name, all[name], text)
				}
			}
		}
	})
}

// TestObserved checks that the record has what was read, missed and listed, in the same order for every kind that makes
// the requests itself.
func TestObserved(t *testing.T) {
	each(t, []string{"ask"}, func(t *testing.T, k kind) {
		want := map[string][]string{
			"a.conf": {"file a.conf", "file parts/one.part", "no file parts/two.part"},
			"b.conf": {"file b.conf", "glob parts/*.part"},
		}
		files := with(nil)
		if k.without["use"] == "" {
			files["c.conf"] = "use other.txt\n"
			want["c.conf"] = []string{"file c.conf", "asset other.txt", "products other.txt", "product other.txt"}
		}
		p := newProject(t, k, files)
		p.good()
		for id, list := range want {
			got := p.observed(id)
			for i := range got {
				got[i] = strings.NewReplacer("missing ", "no file ", "not exists ", "no file ", "absent ", "no file ", "list ", "glob ").Replace(got[i])
			}
			if k.sees != nil {
				got = k.sees(got)
			}
			if d := cmp.Diff(list, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", id, d)
			}
		}
	})
}

func TestReads(t *testing.T) {
	each(t, nil, func(t *testing.T, k kind) {
		p := newProject(t, k, with(nil))
		p.good()
		p.ran(p.good())

		p.write("assets/parts/one.part", "1")
		ran := p.good()
		if !slices.Contains(ran, "a.conf") || !slices.Contains(ran, "a.shout") {
			t.Errorf("a file that was read changed; ran %v", ran)
		}
		if k.without["ask"] == "" && slices.Contains(ran, "b.conf") {
			t.Error("the one that only lists ran, too")
		}
		if got := p.products()["a.shout.txt"]; got != "1\nNO\n" {
			t.Errorf("got %q", got)
		}

		p.write("assets/parts/two.part", "2") // a asked for it and missed it; b's list did not contain it
		p.ran(p.good(), "a.conf", "a.shout", "b.conf")
		if got := p.products()["b.conf.out"]; got != "parts/one.part\nparts/two.part\n\n" {
			t.Errorf("got %q", got)
		}
		p.write("assets/other.txt", "another")
		p.ran(p.good(), "other.txt")
		p.remove("assets/parts/two.part")
		for _, id := range p.good() { // both have unchanged products, and may come from the cache
			if id == "other.txt" {
				t.Error("an asset ran that has nothing to do with it")
			}
		}
		if got := p.products()["a.shout.txt"]; got != "1\nNO\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestUse(t *testing.T) {
	each(t, []string{"use"}, func(t *testing.T, k kind) {
		p := newProject(t, k, with(map[string]string{"c.conf": "use a.shout\n"}))
		p.good()
		if got := p.products()["c.conf.out"]; got != "ONE\nNO\n\n" {
			t.Errorf("got %q", got)
		}
		p.write("assets/parts/one.part", "1")
		if ran := p.good(); !slices.Contains(ran, "c.conf") {
			t.Errorf("ran %v", ran)
		}
		if got := p.products()["c.conf.out"]; got != "1\nNO\n\n" {
			t.Errorf("got %q", got)
		}
	})
}

// TestCode checks that an edit of the code runs its assets, and nothing that depends on unchanged products.
func TestCode(t *testing.T) {
	each(t, nil, func(t *testing.T, k kind) {
		p := newProject(t, k, with(nil))
		p.good()
		p.edit(code{Comment: "the same in other words"})
		p.ran(p.good(), "a.conf", "b.conf")
		p.edit(code{Comment: "the same in other words", Mark: "> "})
		p.ran(p.good(), "a.conf", "a.shout", "b.conf")
		if got := p.products()["a.shout.txt"]; got != "> ONE\nNO\n" {
			t.Errorf("got %q", got)
		}
		p.ran(p.good())
	})
}

// TestFaults checks that the job fails with a message, and that all else is built.
func TestFaults(t *testing.T) {
	for _, f := range []struct{ fault, says string }{
		{"crash", "crash|out of range"},
		{"loop", "took (too long|longer than)"},
		{"memory", "of memory|MiB of memory"},
		{"outside", `\.\./outside`},
		{"after", "closed"},
		{"twice", "twice"},
		{"copy parts/none.part", `"?parts/none\.part"?(, which|: no such file)`},
		{"copy ../kiln.toml", `\.\./kiln\.toml`},
	} {
		fault, says := f.fault, regexp.MustCompile(f.says)
		t.Run(fault, func(t *testing.T) {
			step, _, _ := strings.Cut(fault, " ")
			each(t, []string{step}, func(t *testing.T, k kind) {
				p := newProject(t, k, with(nil))
				if fault == "loop" { // the others still have their normal timeout
					p.good()
					p.hurry(patience, haste)
				}
				p.write("assets/bad.conf", fault+"\n")
				p.write("assets/bad.shout", "bad.conf")
				b := p.build(2)
				p.hurry(haste, patience)
				if b.Failed != 2 || len(b.messages) == 0 {
					t.Fatalf("failed %d: %v", b.Failed, b.messages)
				}
				m := b.messages[0]
				if m.Code == diag.Internal || !says.MatchString(m.Text) || strings.Count(m.Text, "\n") > 40 || !strings.Contains(m.String(), "conf") {
					t.Errorf("got %v", m)
				}
				all := p.products()
				if all["a.shout.txt"] != "ONE\nNO\n" || all["other.txt"] != "other" {
					t.Errorf("others were not built: %q", all)
				}
				if _, ok := all["bad.conf.out"]; ok {
					t.Error("it has a product")
				}
				p.write("assets/bad.conf", "copy parts/one.part\n")
				p.ran(p.good(), "bad.conf", "bad.shout")
			})
		})
	}
}

// late is a processor that still writes after it has returned, when its job has ended.
type late struct {
	ended chan struct{}
	said  chan error
}

func (late) Info() processor.Info {
	return processor.Info{Name: "late", Version: 1, Extensions: []string{".late"}, Products: []processor.ProductType{{Type: "text"}}}
}

func (l late) Process(_ context.Context, job processor.Job) error {
	half, err := job.Create(processor.Output{Name: "half", Type: "text"})
	if err != nil {
		return err
	}
	go func() {
		<-l.ended
		_, err := half.Write([]byte("late"))
		l.said <- err
		l.said <- half.Close()
		l.said <- job.Write(processor.Output{Name: "all", Type: "text"}, []byte("late"))
	}()
	return job.Write(processor.Output{Type: "text"}, []byte("in time"))
}

// TestLate checks that compiled-in code cannot write after its job has ended.
func TestLate(t *testing.T) {
	l := late{make(chan struct{}), make(chan error)}
	p := &project{t: t, dir: t.TempDir(), more: []processor.Processor{l}}
	p.write("kiln.toml", "[project]\nname = \"late\"\n")
	p.write("assets/a.late", "")
	p.good()
	close(l.ended)
	for i := range 3 {
		if err := <-l.said; !errors.Is(err, fs.ErrClosed) {
			t.Errorf("write %d after the end: %v", i, err)
		}
	}
	p.ran(p.good())
	if d := cmp.Diff(map[string]string{"a.late": "in time"}, p.products()); d != "" {
		t.Error(d)
	}
}
