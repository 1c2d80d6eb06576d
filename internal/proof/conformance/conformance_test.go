// Package conformance holds every kind of processor to the same promises, by real builds of small projects: what a processor read,
// missed and listed is recorded, an edit of its code builds its own assets again and nothing above what came out the same, a
// fault fails one job and nothing else, and the bytes are the same at any number of workers.
//
// Each kind is a row of kinds. It brings the same processor in its own language: `conf` does what the lines of its
// asset say (see steps), one after the other, and writes what they gave.
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
//	maybe PATH   yes or no: is there such a source file?
//	list GLOB    the names of source files, a line each
//	use ID       the main product of another asset
//
// and faults: crash, loop, memory, outside (a read out of the roots), after (bytes for a product that has ended), twice (a product with
// the name of another).

// code is what the processor's code says beside its steps.
type code struct {
	Mark    string // stands before all output
	Comment string // changes nothing but the code itself
}

// kind is a way to write a processor.
type kind struct {
	name string

	// install puts the code into a project: files, more of its kiln.toml, and processors to compile in.
	install func(t testing.TB, c code) (files map[string]string, toml string, compiled []processor.Processor)

	// without are steps that it cannot do, and why.
	without map[string]string

	// sees turns recorded observations into those that the other kinds make; nil if they are these.
	sees func([]string) []string
}

var kinds = []kind{goKind, starlarkKind, goGuestKind, moduleKind, commandKind, tracedKind}

// project is one on disk.
type project struct {
	t    *testing.T
	dir  string
	kind kind
	code code
	more []processor.Processor
}

// patience is the time that jobs have on a busy machine, haste that of one which does not come to an end.
const (
	patience = "timeout = \"60s\"\n"
	haste    = "timeout = \"3s\"\n"
)

func newProject(t *testing.T, k kind, files map[string]string) *project {
	p := &project{t: t, dir: t.TempDir(), kind: k}
	for name, text := range files {
		p.write("assets/"+name, text)
	}
	shareModules(t, p.dir)
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

// edit gives the processor other code.
func (p *project) edit(c code) {
	files, toml, compiled := p.kind.install(p.t, c)
	for name, text := range files {
		p.write(name, text)
	}
	p.write("kiln.toml", "[project]\nname = \"conformance\"\n[[rules]]\nmatch = \"parts/**\"\nprocessor = \"none\"\n"+toml)
	p.code, p.more = c, compiled
}

// hurry gives the processor another timeout. Nothing is built again for it.
func (p *project) hurry(from, to string) {
	p.t.Helper()
	toml, err := os.ReadFile(filepath.Join(p.dir, "kiln.toml"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("kiln.toml", strings.Replace(string(toml), from, to, 1))
}

// built is what a build did.
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

// good builds, and nothing may fail.
func (p *project) good() []string {
	p.t.Helper()
	b := p.build(2)
	if b.Failed > 0 {
		p.t.Fatalf("failed: %v", b.messages)
	}
	return b.ran
}

// ran compares which jobs a build ran.
func (p *project) ran(got []string, want ...string) {
	p.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		p.t.Errorf("other jobs ran (-want +got):\n%s", d)
	}
}

// products are all that is in the output folder.
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

// observed is what the job of an asset looked at in its last run, in order.
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

// each runs a behaviour for every kind that can do the steps.
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

// TestObserved: what was read, missed and listed is what the record says, in the same order for every kind that asks for it by itself.
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

		p.write("assets/parts/two.part", "2") // was missed by a, and not in the list of b
		p.ran(p.good(), "a.conf", "a.shout", "b.conf")
		if got := p.products()["b.conf.out"]; got != "parts/one.part\nparts/two.part\n\n" {
			t.Errorf("got %q", got)
		}
		p.write("assets/other.txt", "another")
		p.ran(p.good(), "other.txt")
		p.remove("assets/parts/two.part")
		for _, id := range p.good() { // both came out as before, and the cache may know it
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

// TestCode: an edit of the code runs its assets, and nothing above where they come out the same.
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

// TestFaults: the job fails with a message, and all else is built.
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
				if fault == "loop" { // while all others have time
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

// late is a processor that goes on writing when it has come back: its job ends first.
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

// TestLate: what code that is compiled in writes when its job has ended is refused, and nowhere.
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
