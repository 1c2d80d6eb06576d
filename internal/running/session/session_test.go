package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/running/watch"
	"github.com/kiln-pipeline/kiln/processor"
)

// A line of a file that processor "test" reads: NEED asset, READ file, GLOB pattern, FAIL, MOMENT (fails the first three times), BLOCK
// (until the test says so, or the job is cancelled). Every other line is copied.
type lines struct{ gates *gates }

// gates hold jobs that block.
type gates struct {
	mu   sync.Mutex
	open map[string]chan struct{}
	in   chan string // jobs that came to a gate

	asked map[string]int
}

func newGates() *gates {
	return &gates{open: map[string]chan struct{}{}, in: make(chan string, 100), asked: map[string]int{}}
}

func (g *gates) gate(id string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[id] == nil {
		g.open[id] = make(chan struct{})
	}
	return g.open[id]
}

// early tells whether this is one of the first three times that it is asked for a job: a build may run a job twice.
func (g *gates) early(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked[id]++
	return g.asked[id] <= 3
}

func (lines) Info() processor.Info {
	return processor.Info{
		Name: "lines", Version: 1, Summary: "test", Extensions: []string{".t"},
		Products: []processor.ProductType{{Type: "text", Extension: ".out"}},
	}
}

func (l lines) Process(ctx context.Context, job processor.Job) error {
	id := job.Asset().ID
	text, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "NEED":
			products, err := job.Products(arg)
			if err != nil {
				return err
			}
			f, err := job.OpenProduct(products[0][0])
			if err != nil {
				return err
			}
			io.Copy(&out, f)
		case "READ":
			data, err := job.ReadFile(arg)
			if err != nil {
				return err
			}
			out.Write(data)
		case "GLOB":
			found, err := job.Glob(arg)
			if err != nil {
				return err
			}
			out.WriteString(strings.Join(found, " "))
		case "PART":
			if _, err := job.Parts(arg); err != nil {
				return err
			}
		case "CHANGED":
			if l.gates.early(id) {
				return fmt.Errorf("%w (%w)", diag.Errorf(diag.CommandChanged, diag.Pos{}, "it changed"), engine.ErrPassing)
			}
		case "MOMENT":
			if l.gates.early(id) {
				return fmt.Errorf("not now (%w)", engine.ErrPassing)
			}
		case "FAIL":
			return errors.New(arg)
		case "BLOCK":
			gate := l.gates.gate(id)
			l.gates.in <- id
			select {
			case <-gate:
			case <-ctx.Done():
				return ctx.Err()
			}
		default:
			out.WriteString(line)
		}
	}
	return job.Write(processor.Output{Type: "text", Extension: ".out"}, []byte(out.String()))
}

// Part makes a product that does not follow from the text of the asset.
func (lines) Part(_ context.Context, job processor.Job, part string) error {
	return job.Write(processor.Output{Name: part, Type: "text", Extension: ".part"}, []byte(part))
}

// stage is a project with a session at work.
type stage struct {
	*testing.T
	dir   string
	gates *gates
	s     *Session
	ended chan Ended
	stop  func()
	halts bool     // builds are halted by any change
	early func()   // is called when the session has read the project, and watches nothing yet; may be nil
	ran   []string // jobs that ended since a build was halted
}

func (t *stage) path(name string) string { return filepath.Join(t.dir, filepath.FromSlash(name)) }

// write writes a file beside all that is watched, and puts it in its place: of one that is written where it lies, half may be built if the
// machine is busy elsewhere for a moment, and that is what TestArrivals and TestSoak do.
func (t *stage) write(name, text string) {
	t.Helper()
	beside := t.path(".saved")
	if err := errors.Join(os.MkdirAll(filepath.Dir(t.path(name)), 0o777), write(beside, text), os.Rename(beside, t.path(name))); err != nil {
		t.Fatal(err)
	}
}

func (t *stage) read(name string) string {
	b, _ := os.ReadFile(t.path(name))
	return string(b)
}

func (t *stage) config() workspace.Config {
	return workspace.Config{Dir: t.dir, Version: "test", Processors: []processor.Processor{lines{t.gates}}}
}

// set makes a project of files by name.
func set(tt *testing.T, files map[string]string) *stage {
	t := &stage{T: tt, dir: tt.TempDir(), gates: newGates(), ended: make(chan Ended, 1000)}
	t.write("kiln.toml", "[project]\nname = \"test\"\n")
	for name, text := range files {
		t.write(name, text)
	}
	return t
}

// start has a session at work.
func (t *stage) start(c Config) *stage {
	t.Helper()
	if c.Build = t.config(); c.Workers == 0 {
		c.Workers = 2
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	s.retryAfter = 10 * time.Millisecond
	if t.halts {
		s.leastBuild, s.mostWait = 0, 0
	}
	s.Follow(func(e Event) {
		switch e := e.(type) {
		case Began:
			t.ran = nil
		case JobFinished:
			t.ran = append(t.ran, e.Job)
		case Ended:
			t.ended <- e
		}
	})
	if t.early != nil {
		t.early()
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	t.s = s
	var once sync.Once
	t.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-over; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	t.Cleanup(t.stop)
	return t
}

// told skips a test that needs to be told of changes at once, where the system does not: other programs may use up what it gives.
func told(t *testing.T) {
	t.Helper()
	w, err := watch.New(watch.Options{Trees: []watch.Tree{{Path: t.TempDir()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if notes := w.Flush(t.Context()).Notes; len(notes) > 0 {
		t.Skip(notes[0].Text)
	}
}

// patience is how long something may take. A machine may be busy; what is lost takes for ever.
const patience = time.Minute

// halted waits until the build under way starts nothing more.
func (t *stage) halted() {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if t.control().Halted() {
			return
		}
	}
	t.Fatal("the build was not halted")
}

// control waits until one can reach into a build.
func (t *stage) control() *control.Control {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		t.s.wants.mu.Lock()
		c := t.s.wants.control
		t.s.wants.mu.Unlock()
		if c != nil {
			return c
		}
	}
	t.Fatal("no build is under way")
	panic("")
}

func (t *stage) next() Ended {
	t.Helper()
	select {
	case e := <-t.ended:
		return e
	case <-time.After(patience):
		t.Fatal("no build ended")
		panic("")
	}
}

// until waits for a build after which something is so.
func (t *stage) until(what string, is func(Ended) bool) Ended {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case e := <-t.ended:
			if is(e) {
				return e
			}
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

// names of products: "asset", "-asset" for one that is gone.
func names(ps []Product) string {
	var all []string
	for _, p := range ps {
		if p.Gone {
			p.Asset = "-" + p.Asset
		}
		all = append(all, p.Asset)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// compareWithClean stops the session, builds a copy of the sources elsewhere, and compares the outputs, but for the last good ones of what
// fails. And it has the project built as by a process that knows nothing of the session, which must find nothing to do.
func (t *stage) compareWithClean() {
	t.Helper()
	t.stop()
	fresh := &stage{T: t.T, dir: t.T.TempDir(), gates: t.gates}
	if err := errors.Join(os.CopyFS(fresh.path("assets"), os.DirFS(t.path("assets"))), os.CopyFS(fresh.dir, only{os.DirFS(t.dir)})); err != nil {
		t.Fatal(err)
	}
	p, err := build.Open(fresh.config())
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Build(context.Background(), build.Request{Reporter: build.Silent{}, Outcomes: report.AllOutcomes})
	if err != nil {
		t.Fatal(err)
	}
	have, want := outputs(t.path("build")), outputs(fresh.path("build"))
	for _, o := range r.Outcomes {
		if o.Failed {
			delete(have, o.Platform+"/"+o.Asset+".out")
		}
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("a clean build has (-), this one has (+):\n%s", d)
	}
	if p, err = build.Open(t.config()); err != nil {
		t.Fatal(err)
	}
	again := build.Request{Reporter: build.Silent{}, OnError: results.LastGood}
	if r, err := p.Build(context.Background(), again); err != nil || r.Summary.Built != 0 {
		t.Errorf("a build after it: %+v, %v", r, err)
	}
}

// only shows kiln.toml.
type only struct{ fs.FS }

func (o only) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(o.FS, name)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool { return e.Name() != "kiln.toml" }), err
}

func outputs(dir string) map[string]string {
	all := map[string]string{}
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != ".gitignore" && e.Name() != ".made-by-kiln" { // which no job makes
			data, _ := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			all[filepath.ToSlash(rel)] = string(data)
		}
		return nil
	})
	return all
}

// TestChanges goes through kinds of changes, and what is told of each.
func TestChanges(t *testing.T) {
	for name, c := range map[string]Config{"told": {}, "polled": {Poll: 10 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set(t, map[string]string{"assets/a.t": "a", "assets/b.t": "NEED a.t\n", "assets/g.t": "GLOB *.t\n"}).start(c)
			if e := s.next(); e.Err != nil || e.Report.Summary.Built != 3 || e.Products != nil || e.Total != 0 {
				t.Fatalf("%+v", e)
			}
			for _, step := range []struct {
				name     string
				do       func()
				products string
			}{
				{"an edit", func() { s.write("assets/a.t", "other") }, "a.t b.t"},
				{"a new file", func() { s.write("assets/c.t", "c") }, "c.t g.t"},
				{"one in a new folder", func() { s.write("assets/deep/er/d.t", "d") }, "deep/er/d.t"},
				{"an edit there", func() { s.write("assets/deep/er/d.t", "dd") }, "deep/er/d.t"},
				{"a folder is moved", func() { os.Rename(s.path("assets/deep"), s.path("assets/moved")) }, "-deep/er/d.t moved/er/d.t"},
				{"a folder goes", func() { os.RemoveAll(s.path("assets/moved")) }, "-moved/er/d.t"},
				{"a file goes", func() { os.Remove(s.path("assets/c.t")) }, "-c.t g.t"},
				{"rules", func() {
					s.write("assets/rules.toml", "[[rules]]\nmatch = \"g.t\"\nid = \"other\"\n")
				}, "-g.t other"},
				{"the project file", func() { s.write("kiln.toml", "[project]\nname = \"test\"\nignore = [\"g.t\"]\n") }, "-other"},
				{"an ignore file", func() { s.write("assets/.kilnignore", "b.t\n") }, "-b.t"},
				{"which goes", func() { os.Remove(s.path("assets/.kilnignore")) }, "b.t"},
			} {
				step.do()
				var got []Product
				s.until(step.name+": "+step.products, func(e Ended) bool {
					for _, p := range e.Products { // of a change that came in several batches
						got = slices.DeleteFunc(got, func(o Product) bool { return o.Asset == p.Asset })
						got = append(got, p)
					}
					return names(got) == step.products
				})
			}
			s.compareWithClean()
		})
	}
}

// TestPlaced: new contents are told of once all of them are in place, and before that is written down; anything else waits for the end of
// the build.
func TestPlaced(t *testing.T) {
	told(t)
	s := set(t, map[string]string{"assets/a.t": "a", "assets/b.t": "NEED a.t\n", "assets/c.t": "c"}).start(Config{})
	s.next()
	var placed []string
	s.s.Follow(func(e Event) {
		if e, ok := e.(Placed); ok {
			placed = append(placed, names(e.Products)+": "+s.read("build/pc/a.t.out")+" "+s.read("build/pc/b.t.out"))
			if len(e.Products) == 2 && len(s.read(".kiln/snapshot")) != len(s.read("before")) {
				t.Error("the snapshot was written first")
			}
		}
	})
	for _, step := range []struct{ file, text, placed string }{
		{"assets/a.t", "other", "a.t b.t: other other"},
		{"assets/b.t", "FAIL now\n", ""},            // a failure
		{"assets/b.t", "mended\n", ""},              // is mended
		{"assets/c.t", "cc", "c.t: other mended\n"}, // and no concern of others
		{"assets/d.t", "d", ""},                     // a new one
	} {
		placed = nil
		s.write("before", s.read(".kiln/snapshot"))
		s.write(step.file, step.text)
		s.until(step.file, func(e Ended) bool { return len(e.Products)+len(e.Failed)+len(e.Mended) > 0 })
		if got := strings.Join(placed, "|"); got != step.placed {
			t.Errorf("%s: placed %q, want %q", step.file, got, step.placed)
		}
	}
	s.compareWithClean()
}

// TestPutBack: an output that somebody edits or deletes is put back.
func TestPutBack(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "a", "assets/b.t": "b"}).start(Config{})
	s.next()
	if err := os.Remove(s.path("build/pc/a.t.out")); err != nil {
		t.Fatal(err)
	}
	s.until("it is put back", func(Ended) bool { return s.read("build/pc/a.t.out") == "a" })
	os.Remove(s.path("build/pc/b.t.out"))
	s.write("build/pc/b.t.out", "somebody else's")
	s.until("it is put back", func(Ended) bool { return s.read("build/pc/b.t.out") == "b" })
	s.compareWithClean()
}

// TestMended: failures are told once, the last good product stays, and when it is mended that is told.
func TestMended(t *testing.T) {
	told(t)
	s := set(t, map[string]string{"assets/a.t": "a", "assets/b.t": "NEED a.t\n"}).start(Config{})
	s.next()
	s.write("assets/a.t", "FAIL hoarse\n")
	e := s.until("it fails", func(e Ended) bool { return e.Total == 2 })
	if len(e.Failed) != 2 || e.Failed[0].Asset != "a.t" || !strings.Contains(e.Failed[0].Messages[0].Text, "hoarse") || len(e.Mended) > 0 {
		t.Errorf("%+v", e)
	}
	if s.read("build/pc/a.t.out") != "a" || s.read("build/pc/b.t.out") != "a" {
		t.Error("the last good products did not stay")
	}
	if !e.Report.Short {
		t.Error("a failure made the build look at all tasks")
	}
	s.write("assets/c.t", "c")
	if e = s.until("another asset", func(e Ended) bool { return names(e.Products) == "c.t" }); len(e.Failed)+len(e.Mended) > 0 || e.Total != 2 {
		t.Errorf("%+v", e)
	}
	s.write("assets/a.t", "better")
	e = s.until("it is mended", func(e Ended) bool { return e.Total == 0 })
	if len(e.Mended) != 2 || e.Mended[0].Asset != "a.t" || names(e.Products) != "a.t b.t" {
		t.Errorf("%+v", e)
	}
	s.compareWithClean()
}

// TestBroken: a wrong project file or rule is told, and when it is mended all that changed meanwhile is built.
func TestBroken(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "a"}).start(Config{})
	s.next()
	for _, file := range []string{"kiln.toml", "assets/rules.toml"} {
		good := s.read(file)
		s.write(file, "]")
		if e := s.until("an error", func(e Ended) bool { return e.Err != nil }); e.Report != nil {
			t.Errorf("%+v", e)
		}
		s.write("assets/a.t", "edited while "+file+" was wrong")
		s.write(file, good)
		s.until("all is well", func(e Ended) bool { return e.Err == nil && names(e.Products) == "a.t" })
	}
	s.compareWithClean()
}

// TestTouched: a job that runs while what it read changes is cancelled and runs again; one that did not read it goes on.
func TestTouched(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "a", "assets/b.t": "b"}).start(Config{})
	s.next()
	s.write("assets/a.t", "BLOCK\nfirst\n")
	<-s.gates.in
	s.write("assets/b.t", "BLOCK\nfirst\n")
	s.write("assets/a.t", "second\n") // not blocked any more: only a cancelled run can end
	s.until("the second edit is built", func(Ended) bool { return s.read("build/pc/a.t.out") == "second\n" })
	if <-s.gates.in != "b.t" {
		t.Fatal("b.t did not run")
	}
	close(s.gates.gate("b.t"))
	s.until("b.t is built", func(Ended) bool { return s.read("build/pc/b.t.out") == "first\n" })
	s.compareWithClean()
}

// TestHalted: a change does not wait for all that is left to do in a long build. That is halted, and the next one begins with the change.
func TestHalted(t *testing.T) {
	told(t)
	s := set(t, map[string]string{"assets/a.t": "a", "assets/0.t": "BLOCK\n", "assets/1.t": "1", "assets/2.t": "2", "assets/3.t": "3"})
	s.halts = true
	s.start(Config{Workers: 1})
	<-s.gates.in // one runs, and the others wait
	s.write("assets/3.t", "other")
	s.halted()
	close(s.gates.gate("0.t"))
	if e := s.next(); !e.Report.Stopped || e.Report.Summary.Built != 1 {
		t.Errorf("%+v", e.Report.Summary)
	}
	if e := s.next(); e.Report.Stopped || e.Report.Summary.Built != 4 {
		t.Errorf("%+v", e.Report.Summary)
	}
	if s.ran[0] != "3.t [pc]" {
		t.Errorf("ran %v after the change of 3.t", s.ran)
	}
	s.compareWithClean()
}

// TestWantPart: who waits for an asset in the first build gets the products of its parts too, also of those that hold and do not run.
func TestWantPart(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "PART x\n", "assets/slow.t": "slow"})
	s.start(Config{})
	s.next()
	s.stop()
	for _, text := range []string{"PART x\nother\n", "PART x\n"} { // its job runs, and then nothing of it does
		s.write("assets/a.t", text)
		s.write("assets/slow.t", "BLOCK\n"+text)
		s.gates = newGates()
		s.start(Config{})
		<-s.gates.in
		ps, err := s.s.Want(t.Context(), "pc", "a.t")
		if err != nil || names(ps) != "a.t a.t" {
			t.Errorf("%q, %v", names(ps), err)
		}
		close(s.gates.gate("slow.t"))
		s.next()
		s.stop()
	}
}

// TestWant: an asset that is wanted is built before others, and is there before the build ends.
func TestWant(t *testing.T) {
	files := map[string]string{"assets/z.t": "NEED y.t\n", "assets/y.t": "y", "assets/bad.t": "FAIL hoarse\n"}
	for _, id := range []string{"0", "1", "2", "3", "4", "5"} {
		files["assets/"+id+".t"] = "BLOCK\n"
	}
	s := set(t, files)
	s.start(Config{})
	<-s.gates.in
	<-s.gates.in // both slots are taken
	type answer struct {
		ps  []Product
		err error
	}
	got := make(chan answer, 1)
	ctx := context.Background()
	go func() {
		ps, err := s.s.Want(ctx, "pc", "z.t")
		got <- answer{ps, err}
	}()
	control := s.control()
	if done, jobs := control.Prioritise("pc", "z.t"); len(done) > 0 || jobs != 1 { // as Want does, which may not have come that far
		t.Fatal(done, jobs)
	}
	a := <-got // in a slot more
	if a.err != nil || names(a.ps) != "z.t" || s.read("build/pc/z.t.out") != "y" {
		t.Fatalf("%+v", a)
	}
	for _, id := range []string{"0", "1", "2", "3", "4", "5"} {
		close(s.gates.gate(id + ".t"))
	}
	s.next()
	if ps, err := s.s.Want(ctx, "pc", a.ps[0].UUID); err != nil || names(ps) != "z.t" {
		t.Errorf("%v, %v", ps, err)
	}
	if _, err := s.s.Want(ctx, "pc", "none.t"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	var failed *FailedError
	if _, err := s.s.Want(ctx, "pc", "bad.t"); !errors.As(err, &failed) || !strings.Contains(err.Error(), "hoarse") {
		t.Error(err)
	}
	c, err := s.s.Content(ctx, "pc")
	if err != nil || len(c.Products) != 8 || len(c.Failures) != 1 || c.Number != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestOthers: what another kiln does in the project is seen.
func TestOthers(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "a", "assets/b.t": "b"}).start(Config{})
	s.next()
	p, err := build.Open(s.config())
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := p.Lock(ctx, true, func() {}); err != nil {
		t.Fatal(err)
	}
	s.write("assets/a.t", "other")
	r, err := p.Build(ctx, build.Request{Reporter: build.Silent{}})
	if err != nil || r.Summary.Built != 1 {
		t.Fatal(r, err)
	}
	p.Unlock()
	s.until("it is seen", func(e Ended) bool { return names(e.Products) == "a.t" })
	s.write("assets/b.t", "another")
	s.until("an edit after it", func(e Ended) bool { return names(e.Products) == "b.t" })
	s.compareWithClean()
}

// TestOtherNames: a file that has several names is edited in place by one of them. The system tells of that name alone; the others are
// looked at all the same.
func TestOtherNames(tt *testing.T) {
	told(tt)
	t := set(tt, map[string]string{"assets/a.t": "same", "assets/b/b.t": "same", "assets/c.t": "linked"})
	if err := errors.Join(os.MkdirAll(t.path("assets/d"), 0o777), os.Link(t.path("assets/c.t"), t.path("assets/d/d.t"))); err != nil {
		t.Skip(err)
	}
	t.start(Config{})
	t.next()
	edit := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.Chmod(t.path(name), 0o666), os.WriteFile(t.path(name), []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	good := func() bool {
		return t.read("build/pc/a.t.out") == "same" && t.read("build/pc/b/b.t.out") == "same"
	}
	edit("build/pc/a.t.out", "EDITED")
	t.until("both products are right again", func(Ended) bool { return good() })
	edit("build/pc/b/b.t.out", "EDITED")
	if err := os.Remove(t.path("build/pc/b/b.t.out")); err != nil {
		t.Fatal(err)
	}
	t.until("both products are right again", func(Ended) bool { return good() })
	edit("assets/c.t", "by one name")
	t.until("both sources are built", func(Ended) bool {
		return t.read("build/pc/c.t.out") == "by one name" && t.read("build/pc/d/d.t.out") == "by one name"
	})
	edit("assets/d/d.t", "by the other")
	t.until("both sources are built", func(Ended) bool {
		return t.read("build/pc/c.t.out") == "by the other" && t.read("build/pc/d/d.t.out") == "by the other"
	})
	t.compareWithClean()
}

// TestWantSoon: what is wanted before the first build has begun waits for what it needs, and not for the whole build; what was saved during
// a build or just before it is wanted is known.
func TestWantSoon(tt *testing.T) {
	t := set(tt, map[string]string{"assets/slow.t": "BLOCK\n", "assets/a.t": "a"})
	want := func(name, content string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if ps, err := t.s.Want(ctx, "pc", name); err != nil || names(ps) != name || t.read("build/pc/"+name+".out") != content {
			t.Fatalf("%v, %v: %q", ps, err, t.read("build/pc/"+name+".out"))
		}
	}
	t.start(Config{})
	want("a.t", "a") // slow.t is at work
	<-t.gates.in
	t.write("assets/b.t", "b")
	close(t.gates.gate("slow.t"))
	want("b.t", "b")
	for i := range 10 {
		name := fmt.Sprint("c", i, ".t")
		t.write("assets/"+name, name)
		want(name, name)
	}
	if _, err := t.s.Want(context.Background(), "pc", "none.t"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	t.compareWithClean()
}

// TestChangedMeanwhile: a job that fails because a file changed just when it was read is no answer for who asks the session to build: it
// runs again.
func TestChangedMeanwhile(tt *testing.T) {
	t := set(tt, map[string]string{"assets/a.t": "a", "assets/b.t": "b"})
	t.start(Config{})
	t.next()
	t.write("assets/a.t", "CHANGED\nother")
	t.write("assets/b.t", "other, too")
	var r *report.Report
	var err error
	t.s.Turn(context.Background(), func(turn *Turn) {
		r, err = turn.Build(context.Background(), build.Request{OnError: results.LastGood, Reporter: build.Silent{}})
	})
	if err != nil || r.Failed() || t.read("build/pc/a.t.out") != "other" {
		t.Fatalf("%+v, %v", r, err)
	}
	t.compareWithClean()
}

// TestAskedWithLink: a build that is asked for and finds a link to something that nobody watches is all there is to be done. The session
// does not build once more after the answer, and in its own way, with last good products.
func TestAskedWithLink(tt *testing.T) {
	t := set(tt, map[string]string{"assets/a.t": "a", "assets/hidden/b.t": "b", "assets/.kilnignore": "hidden\n"})
	t.start(Config{})
	t.next()
	t.write("assets/a.t", "FAIL now")
	if err := os.Symlink(t.path("assets/hidden"), t.path("assets/link")); err != nil {
		t.Skip(err)
	}
	ask := func(do func(*Turn)) {
		if err := t.s.Turn(context.Background(), do); err != nil {
			t.Fatal(err)
		}
	}
	ask(func(turn *Turn) {
		r, err := turn.Build(context.Background(), build.Request{OnError: results.Fail, Reporter: build.Silent{}})
		if err != nil || r.Summary.Failed != 1 || r.Summary.Built != 2 || t.read("build/pc/link/b.t.out") != "b" {
			t.Errorf("%+v, %v", r, err)
		}
	})
	ask(func(*Turn) {}) // after all that the session does by itself
	if got := t.read("build/pc/a.t.out"); got != "" {
		t.Errorf("there is %q", got)
	}
	t.write("assets/hidden/b.t", "other")
	t.until("what the link leads to is watched", func(Ended) bool { return t.read("build/pc/link/b.t.out") == "other" })
}

// TestAskedWhileParcelsWait: a parcel is not as it was, and cannot be packed yet. What a build that is asked for removes is no reason for
// the session to build once more, in its own way.
func TestAskedWhileParcelsWait(tt *testing.T) {
	t := set(tt, map[string]string{"assets/a.t": "a", "kiln.toml": "[project]\nname = \"test\"\n[[parcels]]\nname = \"all\"\nassets = [\"**\"]\n"})
	t.start(Config{})
	t.next()
	if err := os.Symlink("nowhere", t.path("assets/link")); err != nil {
		t.Skip(err)
	}
	t.until("the message about the link", func(e Ended) bool { return e.Report.Messages.Err() != nil })
	if err := os.Remove(t.path("build/parcels/pc/all.parcel")); err != nil {
		t.Fatal(err)
	}
	t.write("assets/a.t", "FAIL now")
	ask := func(do func(*Turn)) {
		if err := t.s.Turn(context.Background(), do); err != nil {
			t.Fatal(err)
		}
	}
	ask(func(turn *Turn) {
		r, err := turn.Build(context.Background(), build.Request{OnError: results.Fail, Reporter: build.Silent{}})
		if err != nil || r.Summary.Failed != 1 || t.read("build/pc/a.t.out") != "" {
			t.Errorf("%+v, %v", r, err)
		}
	})
	for range 2 {
		ask(func(*Turn) {}) // after all that the session does by itself
	}
	if got := t.read("build/pc/a.t.out"); got != "" {
		t.Errorf("there is %q", got)
	}
}

// TestAskedStands: what comes of a build that was asked for stands while the session has to look at everything again, as where the system
// cannot tell what changed. Once a file changes, the session builds in its own way.
func TestAskedStands(tt *testing.T) {
	t := set(tt, map[string]string{"assets/a.t": "a", "assets/b.t": "b"})
	t.start(Config{})
	t.next()
	t.write("assets/a.t", "FAIL now")
	ask := func(do func(*Turn)) {
		if err := t.s.Turn(context.Background(), do); err != nil {
			t.Fatal(err)
		}
	}
	ask(func(turn *Turn) {
		r, err := turn.Build(context.Background(), build.Request{OnError: results.Fail, Reporter: build.Silent{}})
		if err != nil || r.Summary.Failed != 1 || t.read("build/pc/a.t.out") != "" {
			t.Errorf("%+v, %v", r, err)
		}
		turn.r.full = true
	})
	for range 2 {
		ask(func(*Turn) {}) // after all that the session does by itself
	}
	if got := t.read("build/pc/a.t.out"); got != "" {
		t.Errorf("there is %q", got)
	}
	t.write("assets/b.t", "other")
	t.until("the last good product", func(Ended) bool { return t.read("build/pc/a.t.out") == "a" })
}

// TestFirstBuildFails: the first build of a session can do nothing. Whoever asks for all products is told that there are none, and so has
// to be told of those that the next build makes.
func TestFirstBuildFails(tt *testing.T) {
	t := set(tt, map[string]string{"assets/a.t": "a"})
	if err := os.Rename(t.path("assets"), t.path("away")); err != nil {
		t.Fatal(err)
	}
	t.start(Config{})
	if e := t.next(); e.Err == nil {
		t.Fatal("it has built without a source root")
	}
	c, err := t.s.Content(context.Background(), "pc")
	if err != nil || len(c.Products) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := os.Rename(t.path("away"), t.path("assets")); err != nil {
		t.Fatal(err)
	}
	t.until("what is new is told", func(e Ended) bool { return e.Err == nil && e.Number > c.Number && len(e.Products) == 1 })
}

// TestBlobOfOutput: a product whose blob is lost is had of the output.
func TestBlobOfOutput(tt *testing.T) {
	t := set(tt, map[string]string{"assets/a.t": "alpha"})
	t.start(Config{})
	t.next()
	h := digest.Of([]byte("alpha"))
	if err := os.RemoveAll(t.path(".kiln/cas")); err != nil {
		t.Fatal(err)
	}
	f, err := t.s.Blob(h)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); string(got) != "alpha" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := t.s.Blob(digest.Of([]byte("beta"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what nobody has: %v", err)
	}
}

// TestOtherUUID: an asset is given another UUID, by kiln.toml and by a rule of its folder. The products of the old one are told to be gone.
func TestOtherUUID(tt *testing.T) {
	t := set(tt, map[string]string{"assets/a.t": "a", "assets/b.t": "NEED a.t\n"})
	t.start(Config{})
	t.next()
	old := ""
	for n, file := range []string{"kiln.toml", "assets/rules.toml", "assets/rules.toml"} {
		c, err := t.s.Content(context.Background(), "pc")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range c.Products {
			if p.Asset == "a.t" {
				old = p.UUID
			}
		}
		next := fmt.Sprintf("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeee%d", n)
		text := "[[rules]]\nmatch = \"a.t\"\nuuid = \"" + next + "\"\n"
		if file == "kiln.toml" {
			text = t.read(file) + text
		}
		if n == 1 { // two rules that say it are one too many
			t.write("kiln.toml", "[project]\nname = \"test\"\n")
		}
		t.write(file, text)
		var told []string
		t.until("the UUID is another", func(e Ended) bool {
			for _, p := range e.Products {
				if p.Asset == "a.t" {
					told = append(told, fmt.Sprint(p.UUID, " ", p.Gone))
				}
			}
			return slices.Contains(told, next+" false")
		})
		if !slices.Contains(told, old+" true") {
			t.Errorf("%s: of %s it is told: %q", file, old, told)
		}
		if _, err := t.s.Want(context.Background(), "pc", old); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the old UUID: %v", file, err)
		}
	}
}

// TestEarlyEdit: kiln.toml is edited when the session has just read it, and does not watch it yet.
func TestEarlyEdit(tt *testing.T) {
	for name, c := range map[string]Config{"told": {}, "polled": {Poll: 10 * time.Millisecond}} {
		tt.Run(name, func(tt *testing.T) {
			tt.Parallel()
			t := set(tt, map[string]string{"assets/a.t": "a"})
			t.early = func() {
				t.write("kiln.toml", t.read("kiln.toml")+"[[rules]]\nmatch = \"a.t\"\nid = \"other\"\n")
				old := time.Now().Add(-time.Minute)
				if err := os.Chtimes(t.path("kiln.toml"), old, old); err != nil {
					t.Fatal(err)
				}
			}
			t.start(c)
			t.next()
			if got := t.read("build/pc/other.out"); got != "a" {
				t.Errorf("there is %q", got)
			}
			t.compareWithClean()
		})
	}
}
