package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/upkeep"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

const day = 24 * time.Hour

// gc clears up as the command does, some days from now.
func (p *fixture) gc(days int, req upkeep.GCRequest) *upkeep.Freed {
	p.Helper()
	f, err := p.tryGC(context.Background(), days, req)
	p.must(err)
	return f
}

func (p *fixture) tryGC(ctx context.Context, days int, req upkeep.GCRequest) (*upkeep.Freed, error) {
	pr, err := Open(workspace.Config{Dir: p.dir, Version: "test", Processors: p.procs})
	if err != nil {
		return nil, err
	}
	if !req.DryRun {
		if err := pr.Lock(ctx, true, func() {}); err != nil {
			return nil, err
		}
		defer pr.Unlock()
	}
	req.Now = time.Now().Add(time.Duration(days) * day)
	return pr.GC(ctx, req)
}

// wantsFreed compares what went.
func (p *fixture) wantsFreed(f *upkeep.Freed, traces, files int) {
	p.Helper()
	if f.Traces != traces || f.Files != files || f.Unsettled || len(f.Messages) > 0 {
		p.Errorf("%d traces and %d files went, want %d and %d; %+v", f.Traces, f.Files, traces, files, f)
	}
}

// stored are the sizes of all blobs.
func (p *fixture) stored() (files int, size int64) {
	filepath.WalkDir(p.path(".kiln/cas"), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			info, _ := e.Info()
			files, size = files+1, size+info.Size()
		}
		return nil
	})
	return files, size
}

// branches is a project that goes from main to feature and back.
const branches = `
-- assets/a.s --
text a on main
part more some of a
-- assets/b.s --
use a.s
-- assets/c.txt --
on main
-- assets/same.txt --
the same everywhere
`

func (p *fixture) checkout(branch string) {
	p.write("assets/a.s", "text a on "+branch+"\npart more some of a\n")
	p.write("assets/c.txt", "on "+branch+"\n")
}

func TestGCByAge(t *testing.T) {
	t.Parallel()
	p := newProject(t, branches)
	p.wants("a.s b.s c.txt same.txt")
	p.checkout("feature")
	p.wants("a.s b.s c.txt")

	p.wantsFreed(p.gc(29, upkeep.GCRequest{Unused: 30 * day}), 0, 0)
	p.wants("")
	p.checkout("main")
	p.wants("") // all is there still
	p.wantsFreed(p.gc(31, upkeep.GCRequest{Unused: 30 * day}), 3, 3)
	p.wants("")
	p.remove("build")
	p.wants("")
	p.checkout("feature")
	p.wants("a.s b.s c.txt")
	p.wantsFreed(p.gc(0, upkeep.GCRequest{}), 3, 3)
	p.wantsFreed(p.gc(0, upkeep.GCRequest{}), 0, 0)
	p.nothing()
}

// A dry run tells the same as the run after it, and writes nothing.
func TestGCDryRun(t *testing.T) {
	t.Parallel()
	p := newProject(t, branches)
	p.build()
	p.checkout("feature")
	p.build()
	p.write(".kiln/tmp/1/left", "left")
	p.write(".kiln/cas/tmp/1-1", "behind")
	p.write(".kiln/.kiln-1-traces", "half")
	p.write(".kiln/content.db.aside", "other")
	files, size := p.stored()
	files, size = files-1, size-int64(len("behind"))
	before := stamps(p.dir)
	told := p.gc(0, upkeep.GCRequest{DryRun: true})
	if d := cmp.Diff(before, stamps(p.dir)); d != "" {
		t.Errorf("a dry run wrote something:\n%s", d)
	}
	p.wantsFreed(told, 3, 3+4)
	if done := p.gc(0, upkeep.GCRequest{}); !cmp.Equal(done, told) {
		t.Errorf("%+v went, but %+v was told", done, told)
	}
	now, left := p.stored()
	if told.KeptFiles != now || told.KeptBytes != left || told.Bytes != size-left+int64(len("left"+"behind"+"half"+"other")) || now != files-3 || told.KeptTraces != 4 {
		t.Errorf("%+v, but %d files and %d bytes are there", told, now, left)
	}
	for _, f := range []string{".kiln/tmp", ".kiln/cas/tmp", ".kiln/.kiln-1-traces"} {
		if _, err := os.Lstat(p.path(f)); err == nil {
			t.Errorf("%s is there still", f)
		}
	}
	p.wants("")
}

// What is not needed goes in the order in which it was last used, until there is room.
func TestGCBySize(t *testing.T) {
	t.Parallel()
	p := newProject(t, "-- assets/same.txt --\nsmall")
	version := func(i int) { p.write("assets/big.txt", strings.Repeat(fmt.Sprint(i), 10_000)) }
	for i := range 5 {
		version(i)
		p.build()
	}
	version(1)
	p.wants("") // used again: now 1, 4, 3, 2, 0
	size := func(bytes int64) upkeep.GCRequest { return upkeep.GCRequest{Unused: 100 * day, MaxBytes: bytes} }
	p.wantsFreed(p.gc(0, size(50_006)), 0, 0)
	p.wantsFreed(p.gc(0, size(50_005)), 1, 1)
	f := p.gc(0, size(25_000))
	p.wantsFreed(f, 2, 2)
	if f.KeptBytes != 20_006 || f.KeptTraces != 3 {
		t.Errorf("%+v", f)
	}
	version(4)
	p.wants("")
	version(3)
	p.wants("big.txt")
	p.wantsFreed(p.gc(0, size(1)), 2, 2) // what is needed stays, whatever its size
	p.wants("")
}

// Two traces that share a blob, and traces without any.
func TestGCSharedBlobs(t *testing.T) {
	t.Parallel()
	p := newProject(t, "-- assets/a.txt --\nshared\n-- assets/b.txt --\nshared\n-- assets/c.s --\nfail first\n")
	p.build()
	p.write("assets/a.txt", "changed")
	p.write("assets/c.s", "fail second")
	p.build()
	p.wantsFreed(p.gc(0, upkeep.GCRequest{Unused: day, MaxBytes: 1}), 0, 0) // neither would free anything
	p.wantsFreed(p.gc(0, upkeep.GCRequest{}), 2, 0)
	p.wants("")
	p.write("assets/a.txt", "shared\n")
	p.wants("a.txt")
}

// The last good products of what fails now stay.
func TestGCLastGood(t *testing.T) {
	t.Parallel()
	p := newProject(t, "-- assets/a.s --\ntext older\n-- assets/b.s --\nuse a.s\n")
	p.build()
	p.write("assets/a.s", "text good")
	p.build()
	p.write("assets/a.s", "text good\nfail one")
	p.build()
	p.write("assets/a.s", "text good\nfail two")
	p.build()
	p.wantsFreed(p.gc(0, upkeep.GCRequest{}), 3, 1) // older of both, and the failure in between
	p.wants("")
	b := p.buildWith(Request{OnError: results.LastGood})
	if b.Built != 0 || p.read("build/pc/a.s.txt") != "good\n" || p.read("build/pc/b.s.txt") != "good\n" {
		t.Errorf("built %d; %q and %q", b.Built, p.read("build/pc/a.s.txt"), p.read("build/pc/b.s.txt"))
	}
}

// What would hold now stays, although it is not what was built last.
func TestGCBeforeTheBuild(t *testing.T) {
	t.Parallel()
	p := newProject(t, branches)
	p.build()
	p.checkout("feature")
	p.build()
	p.checkout("main")
	p.wantsFreed(p.gc(0, upkeep.GCRequest{}), 0, 0)
	p.wants("")
	p.wantsFreed(p.gc(0, upkeep.GCRequest{}), 3, 3)
	p.wants("")
}

// Assets and platforms that are gone were used until they went.
func TestGCOfWhatIsGone(t *testing.T) {
	t.Parallel()
	p := newProject(t, twoPlatforms)
	p.build()
	made := p.lastUse()
	p.remove("assets/b.txt")
	p.wantsFreed(p.gc(29, upkeep.GCRequest{Unused: 30 * day}), 0, 0) // not built since
	p.build()
	if left := p.lastUse(); !left.After(made) {
		t.Errorf("used at %v, and at %v when it went", made, left)
	}
	p.write("kiln.toml", "[project]\nname = \"test\"\n[platforms.web]\n")
	p.build()
	p.wantsFreed(p.gc(29, upkeep.GCRequest{Unused: 30 * day}), 0, 0)
	p.wantsFreed(p.gc(31, upkeep.GCRequest{Unused: 30 * day}), 2+2, 1) // all of pc, b.txt of web; a.txt and join.s are the same on web
	p.wants("")
	p.write("assets/b.txt", "beta\n")
	p.wants("b.txt@web")
}

// lastUse is when any trace was used last.
func (p *fixture) lastUse() (last time.Time) {
	p.Helper()
	log, _, err := state.OpenTraces(p.path(".kiln/traces"), true)
	p.must(err)
	log.Each(func(_ engine.Key, _ *engine.Trace, used time.Time) {
		if used.After(last) {
			last = used
		}
	})
	return last
}

func TestGCOfNothing(t *testing.T) {
	t.Parallel()
	p := newProject(t, "-- assets/a.txt --\na")
	p.wantsFreed(p.gc(0, upkeep.GCRequest{DryRun: true}), 0, 0)
	if _, err := os.Lstat(p.path(".kiln")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a dry run made a folder")
	}
	p.wantsFreed(p.gc(0, upkeep.GCRequest{}), 0, 0)
	p.wants("a.txt")
	p.write("kiln.toml", "[project]\nnmae = \"test\"\n")
	if _, err := Open(workspace.Config{Dir: p.dir}); err == nil {
		t.Error("a broken project opens")
	}
}

// After a build that was killed, and if the snapshot is lost, only traces tell which outputs are Kiln's.
func TestGCUnsettled(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(p *fixture, snapshot string){
		"killed":        func(p *fixture, snapshot string) { p.write(".kiln/snapshot", snapshot); p.write(".kiln/underway", "") },
		"snapshot lost": func(p *fixture, _ string) { p.remove(".kiln/snapshot") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, "-- assets/a.txt --\na")
			p.build()
			snapshot := p.read(".kiln/snapshot")
			p.write("assets/b.txt", "b")
			p.build()
			kill(p, snapshot)
			p.remove("assets/b.txt")
			if f := p.gc(1000, upkeep.GCRequest{}); !f.Unsettled || f.Traces != 0 || f.Files != 0 {
				t.Errorf("%+v", f)
			}
			p.wants("") // and b.txt is gone
			p.wantsFreed(p.gc(1000, upkeep.GCRequest{}), 1, 1)
		})
	}
}

// dying is a context that ends after so many looks at it.
type dying struct {
	context.Context
	looks int
}

func (d *dying) Err() error {
	if d.looks--; d.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestGCCutShort stops at each step, and takes back the log after all blobs went: the next build is right, and so are those of
// other branches.
func TestGCCutShort(t *testing.T) {
	t.Parallel()
	p := newProject(t, branches)
	p.unchecked = true
	want := map[string]map[string]string{}
	for _, branch := range []string{"main", "other", "feature"} {
		p.checkout(branch)
		p.build()
		want[branch] = outputFiles(p.dir, "build")
	}
	before := p.freeze(".kiln")
	after := func(what string) {
		t.Helper()
		for i, branch := range []string{"feature", "main", "feature", "other"} {
			p.checkout(branch)
			b := p.build()
			if i == 0 && b.Built > 0 {
				t.Errorf("%s: built %s", what, b.ran)
			}
			if d := cmp.Diff(want[branch], outputFiles(p.dir, "build")); d != "" || b.Failed > 0 {
				t.Errorf("%s: %s:\n%s", what, branch, d)
			}
		}
		p.checkout("feature")
		p.build()
		p.gc(0, upkeep.GCRequest{}) // takes away what was left
		if files, _ := p.stored(); files != 5 {
			t.Errorf("%s: %d blobs are left", what, files)
		}
		p.remove("build")
		if b := p.build(); b.Built != 0 || !cmp.Equal(want["feature"], outputFiles(p.dir, "build")) {
			t.Errorf("%s: built %s", what, b.ran)
		}
		p.thaw(before)
	}
	cuts, traces := 0, 0
	for ; ; cuts++ {
		f, err := p.tryGC(&dying{context.Background(), cuts}, 0, upkeep.GCRequest{})
		if err == nil {
			p.wantsFreed(f, 6, 6)
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if p.read(".kiln/traces") != before[".kiln/traces"] {
			traces++ // are gone, and the blobs are there
		}
		after(fmt.Sprintf("cut short at step %d", cuts))
	}
	if traces == 0 || traces == cuts {
		t.Errorf("of %d cuts, %d were after the traces went", cuts, traces)
	}
	p.write(".kiln/traces", before[".kiln/traces"])
	after("blobs before traces")
}

// freeze remembers the files below a folder; thaw makes it hold these and no others, links left apart.
func (p *fixture) freeze(dir string) map[string]string {
	p.Helper()
	all := map[string]string{}
	p.must(filepath.WalkDir(p.path(dir), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(p.dir, path)
		all[filepath.ToSlash(rel)] = p.read(rel)
		return err
	}))
	return all
}

func (p *fixture) thaw(files map[string]string) {
	p.Helper()
	for name := range files {
		dir, _, _ := strings.Cut(name, "/")
		p.remove(dir)
	}
	for name, content := range files {
		p.write(name, content)
		if strings.HasPrefix(name, ".kiln/cas/") {
			p.must(os.Chmod(p.path(name), 0o444))
		}
	}
}

// TestGCBesideBuilds has builds and collections of one project at once: they take turns, and every build is right.
func TestGCBesideBuilds(t *testing.T) {
	t.Parallel()
	p := newProject(t, branches)
	p.unchecked = true
	p.build()
	var wg sync.WaitGroup
	errs := make(chan error, 100)
	for range 2 {
		wg.Go(func() {
			for range 10 {
				_, err := p.tryGC(context.Background(), 0, upkeep.GCRequest{})
				errs <- err
			}
		})
	}
	for i := range 10 {
		p.checkout(fmt.Sprint(i % 3))
		b, err := p.try(context.Background(), Request{})
		if err != nil || b.Failed > 0 {
			t.Fatalf("%v\n%s", err, b.messages)
		}
		if got := p.read("build/pc/b.s.txt"); got != fmt.Sprintf("a on %d\nsome of a", i%3) {
			t.Errorf("%q", got)
		}
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	p.unchecked = false
	p.wants("")
}

// TestGCKeepsParts: a job that is to be built again needs those of its parts that are not.
func TestGCKeepsParts(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\ntake x.txt y.txt\n-- assets/x.txt --\nx\n-- assets/y.txt --\ny\n")
	p.wants("a.s a.s#x.txt a.s#y.txt x.txt y.txt")
	p.write("assets/x.txt", "other\n")
	p.wantsFreed(p.gc(365, upkeep.GCRequest{}), 0, 0)
	p.wants("a.s a.s#x.txt x.txt")
}
