package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/make/farm"
)

// TestFarmShared: what workers made is stored in the cache, and fetched from it by a checkout without a farm. Of what the cache has,
// workers run nothing.
func TestFarmShared(t *testing.T) {
	t.Parallel()
	p, far, bare := newProject(t, ""), newProject(t, ""), newProject(t, "")
	manyScripts(p, 12)
	far.mirror(p)
	bare.mirror(p)
	f := p.farmed(2)
	far.procs, far.farm, bare.procs = p.procs, p.farm, p.procs
	sharingFolder(t, p, far, bare)
	for n := range 3 {
		if b := p.build(); b.Remote == 0 || b.FromCache > 0 {
			t.Errorf("%d: %+v", n, b.Summary)
		}
		ran := f.Ran()
		for _, other := range []*fixture{far, bare} {
			other.mirror(p)
			if b := other.build(); b.ran != "" || b.FromCache == 0 || f.Ran() > ran {
				t.Errorf("%d: ran %q and %d actions, %+v", n, b.ran, f.Ran()-ran, b.Summary)
			}
		}
		p.write("assets/common.txt", fmt.Sprint("edit ", n))
	}
	// A damaged cache is no hindrance to workers, and the other way round.
	far.place.Folder = filepath.Join(t.TempDir(), "empty")
	f.Wipe()
	far.write("assets/common.txt", "for itself")
	if b := far.build(); b.Remote == 0 || b.Failed > 0 {
		t.Errorf("%+v", b.Summary)
	}
}

// TestFarmRoots: with several source roots a worker sees the file of the root that counts, also after it came and went.
func TestFarmRoots(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	p.write("kiln.toml", "[project]\nname = \"test\"\nroots = [\"assets\", \"mod\"]\n")
	p.write("assets/a.s", "read x.txt\nglob *.txt\nexists y.txt\n")
	p.write("assets/x.txt", "first")
	p.mkdir("mod")
	f := p.farmed(2)
	ran := int64(0)
	for _, edit := range []func(){
		func() {},
		func() { p.write("mod/x.txt", "second") },
		func() { p.write("mod/y.txt", "new") },
		func() { p.write("mod/a.s", "read x.txt\ntext of the second root\n") },
		func() { p.remove("mod/x.txt") },
		func() { p.remove("mod/a.s") },
	} {
		edit()
		if b := p.build(); b.Remote == 0 && f.Ran() == ran {
			t.Errorf("nothing ran on a worker: %+v", b.Summary)
		}
		ran = f.Ran()
	}
}

// TestFarmKiln: workers run the kiln that [execution] names, at whatever path.
func TestFarmKiln(t *testing.T) {
	t.Parallel()
	p := newProject(t, sharedProject)
	p.farmed(2)
	exe, err := os.Executable()
	p.must(err)
	data, err := os.ReadFile(exe)
	p.must(err)
	p.farm.Kiln = filepath.Join(t.TempDir(), "another kiln.exe")
	p.must(os.WriteFile(p.farm.Kiln, data, 0o777))
	if b := p.build(); b.Remote == 0 {
		t.Errorf("%+v", b.Summary)
	}
	p.farm = &farm.Place{Remote: p.farm.Remote, Jobs: 8, Timeout: p.farm.Timeout, Only: true, Kiln: p.farm.Kiln + " that is not there"}
	p.write("assets/b.txt", "edited")
	if b := p.build(); b.Remote > 0 {
		t.Errorf("%+v", b.Summary)
	}
}

// TestFarmHangs: jobs that workers do not come back with are built here, long before their timeouts. Nobody is told: it may be a slow
// worker.
func TestFarmHangs(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	manyScripts(p, 12)
	f := p.farmed(2)
	p.build() // the server has this program from now on
	p.remove(".kiln")
	p.remove("build")
	p.write("assets/common.txt", "edited")
	p.farm.Only, p.farm.Timeout = false, time.Hour
	p.workers = 2
	var lost atomic.Int64
	f.Mute(true)
	f.Started(func(int64) bool { lost.Add(1); return true })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	b, err := p.try(ctx, Request{})
	p.must(err)
	if b.stopped || b.Built != 13 || b.Remote > 0 || b.warned != "" || lost.Load() == 0 {
		t.Errorf("%d lost, %+v\n%s%s", lost.Load(), b.Summary, b.messages, b.warned)
	}
	p.compareWithClean(b)
	for f.Operations() > 0 { // those that wait are cancelled; the workers have lost the others
		runtime.Gosched()
	}
	f.Mute(false)
	f.Started(func(int64) bool { return false })
	p.write("assets/common.txt", "edited again")
	if b := p.build(); b.warned != "" {
		t.Error(b.warned)
	}
}

// TestFarmKilled kills the kiln that builds while its jobs run on workers. What workers still do then harms nothing: the next build is
// right.
func TestFarmKilled(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := newProject(t, "")
	manyScripts(p, 12)
	f := p.farmed(2)
	times := 4
	if thorough.Enabled() {
		times = 20
	}
	rng := randomSource(t)
	for n := range times {
		p.write("assets/common.txt", fmt.Sprint("common ", n))
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childDir+"="+p.dir, childFarm+"="+f.Address)
		var said strings.Builder
		cmd.Stderr = &said
		var once sync.Once
		var left atomic.Int64
		left.Store(1 + rng.Int64N(8))
		started := make(chan struct{})
		f.Started(func(int64) bool {
			if left.Add(-1) <= 0 {
				once.Do(func() {
					<-started
					cmd.Process.Kill()
				})
			}
			return false
		})
		p.must(cmd.Start())
		close(started)
		if err := cmd.Wait(); err == nil {
			t.Logf("%d: it was quicker", n)
		} else if said.Len() > 0 {
			t.Errorf("it was not killed, but ended with %v: %s", err, said.String())
		}
		f.Started(func(int64) bool { return false })
		if p.build(); t.Failed() {
			return
		}
	}
	if f.Ran() == 0 {
		t.Error("no worker ran anything")
	}
}
