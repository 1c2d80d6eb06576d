package build

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/make/farm"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/worker"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
	"github.com/kiln-pipeline/kiln/processor"
)

// In the environment of workers, workerVersion is that of the processor of scripts, and workerKinds has them run Kiln's own processors.
const (
	workerVersion = "KILN_TEST_VERSION"
	workerKinds   = "KILN_TEST_KINDS"
	workerKiln    = "KILN_TEST_KILN" // its version
)

// runJob is what this program is to the workers of a farm.
func runJob() int {
	cfg := workspace.Config{Version: cmp.Or(os.Getenv(workerKiln), "test"), Processors: processors.All()}
	if os.Getenv(workerKinds) == "" {
		version, _ := strconv.Atoi(os.Getenv(workerVersion))
		cfg.Processors = allTestProcessors(max(1, version))
	}
	if err := worker.Run(context.Background(), cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// allTestProcessors are those of a random project.
func allTestProcessors(version int) []processor.Processor {
	list := testProcessors(nil)
	s := list[0].(*script)
	s.version = version
	return append(list, bundle{}, gather{s})
}

// farmed has the jobs of a project run by workers.
func (p *fixture) farmed(workers int) *reapitest.Farm {
	p.Helper()
	f, err := reapitest.StartFarm(p.TempDir(), workers)
	p.must(err)
	p.Cleanup(f.Stop)
	f.Env = []string{"TMPDIR=" + p.TempDir(), "TEMP=" + os.Getenv("TEMP")}
	p.procs = allTestProcessors(1)
	p.farm = &farm.Place{Remote: f.Address, Jobs: 8, Timeout: time.Minute, Only: true}
	return f
}

// TestFarm builds a project of all that jobs can do, with 1, 2 and 4 workers. Every build is compared with a clean one without workers.
func TestFarm(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			t.Parallel()
			p := newProject(t, sharedProject)
			f := p.farmed(workers)
			b := p.build()
			if f.Ran() == 0 || b.Remote == 0 || b.Failed == 0 {
				t.Errorf("%d actions, %+v", f.Ran(), b.Summary)
			}
			p.nothing()
			// What equal actions came to is known: nothing runs, and what they made is fetched.
			ran := f.Ran()
			p.remove(".kiln")
			p.remove("build")
			if b := p.build(); b.Remote == 0 || f.Ran() > ran {
				t.Errorf("%d more actions, %+v", f.Ran()-ran, b.Summary)
			}
			p.write("assets/b.txt", "edited")
			if b := p.build(); b.Remote == 0 || f.Ran() == ran {
				t.Errorf("%+v", b.Summary)
			}
			p.wants("") // what ran there holds
		})
	}
}

// TestRandomFarm edits a project at random, and has workers run its jobs. Every build is compared with a clean one without workers.
func TestRandomFarm(t *testing.T) {
	t.Parallel()
	r := newRandom(t, randomSource(t))
	procs := r.p.procs // whose version it raises
	f := r.p.farmed(2)
	r.p.procs = procs
	remote := 0
	for r.n = range edits() {
		f.Env = append(f.Env[:2:2], fmt.Sprintf("%s=%d", workerVersion, r.p.procs[0].(*script).version))
		if r.step(); t.Failed() {
			t.Fatalf("after:\n%s", strings.Join(r.log[max(0, len(r.log)-25):], "\n"))
		}
	}
	if remote = int(f.Ran()); remote == 0 {
		t.Error("no worker ran anything")
	}
	t.Logf("%d actions", remote)
}

// manyScripts is a project of jobs that need each other.
func manyScripts(p *fixture, jobs int) {
	for i := range jobs {
		p.write(fmt.Sprintf("assets/%02d.s", i), fmt.Sprintf("text %d\nread common.txt\nuse %02d.s\npart x %d\n", i, (i+1)%jobs, i))
	}
	p.write(fmt.Sprintf("assets/%02d.s", jobs-1), "read common.txt\n")
	p.write("assets/common.txt", "common")
}

// TestFarmKills kills workers at random, 50 times in all. Every build comes to its end, and is compared with a clean one.
func TestFarmKills(t *testing.T) {
	t.Parallel()
	rng := randomSource(t)
	p := newProject(t, "")
	manyScripts(p, 12)
	f := p.farmed(4)
	var mu sync.Mutex
	kills, remote := 0, 0
	f.Started(func(int64) bool {
		mu.Lock()
		defer mu.Unlock()
		kill := rng.IntN(3) == 0
		if kill {
			kills++
		}
		return kill
	})
	for n := 0; kills < 50 && n < 100; n++ {
		p.write("assets/common.txt", fmt.Sprint("common ", n))
		b := p.build()
		if remote += b.Remote; t.Failed() {
			return
		}
	}
	t.Logf("%d kills; %d jobs ran there all the same", kills, remote)
	if kills < 50 || remote == 0 {
		t.Error("too few")
	}
}

// TestFarmFaults: whatever becomes of the server, builds end right. In the middle of a build workers are lost and nobody notices, so that
// jobs end with their deadlines; or the server lies from then on, or forgets what it stored, or is restarted, or stops.
func TestFarmFaults(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	manyScripts(p, 12)
	f := p.farmed(2)
	lie := func(l reapitest.Lie) func() bool { return func() bool { f.Tell(l); return false } }
	var kill bool
	var done chan error // of what a call of the server cannot wait for, as the server waits for its calls
	aside := func(do func() error) func() bool {
		return func() bool {
			done = make(chan error, 1)
			go func() { done <- do() }()
			return false
		}
	}
	p.build() // the server has this program from now on
	for _, c := range []struct {
		name    string
		fault   func() (kill bool)
		timeout time.Duration
	}{
		{"unnoticed", func() bool { f.Mute(true); kill = true; return true }, 5 * time.Second},
		{"delays", lie(reapitest.Delays), 5 * time.Second},
		{"flips", lie(reapitest.FlipsBlobs), time.Minute},
		{"cuts", lie(reapitest.CutsBlobs), time.Minute},
		{"others", lie(reapitest.GivesOtherBlobs), time.Minute},
		{"loses", lie(reapitest.LosesBlobs), time.Minute},
		{"claims", lie(reapitest.ClaimsAll), time.Minute},
		{"refuses", lie(reapitest.Refuses), time.Minute},
		{"full", lie(reapitest.Full), time.Minute},
		{"wiped", func() bool { f.Wipe(); return false }, time.Minute},
		{"restarted", aside(f.Restart), time.Minute},
		{"stopped", aside(func() error { f.Server.Stop(); return nil }), time.Minute},
	} {
		if quick := []string{"unnoticed", "flips", "wiped", "restarted"}; !thorough.Enabled() && !slices.Contains(quick, c.name) {
			continue
		}
		p.write("assets/common.txt", c.name)
		p.farm.Timeout, kill, done = c.timeout, false, nil
		f.Tell(reapitest.Honest)
		f.Mute(false)
		started := 0
		var mu sync.Mutex
		f.Started(func(int64) bool {
			mu.Lock()
			defer mu.Unlock()
			if started++; started == 5 {
				return c.fault()
			}
			return kill
		})
		b := p.build()
		mu.Lock()
		if b.Failed != 0 || started < 5 || b.Built != 13 {
			t.Errorf("%s: %d started, %+v\n%s%s", c.name, started, b.Summary, b.messages, b.warned)
		}
		mu.Unlock()
		if done != nil {
			p.must(<-done)
		}
		p.wants("")
	}
}

// TestFarmCancel: a build that is interrupted cancels what it has there, and the next one goes on.
func TestFarmCancel(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	manyScripts(p, 12)
	f := p.farmed(2)
	ctx, cancel := context.WithCancel(context.Background())
	f.Started(func(n int64) bool {
		if n == 4 {
			cancel()
		}
		return false
	})
	if b, _ := p.try(ctx, Request{}); !b.stopped {
		t.Errorf("%+v", b.Summary)
	}
	for until := time.Now().Add(20 * time.Second); f.Operations() > 0; {
		if time.Now().After(until) {
			t.Fatalf("%d operations are still there", f.Operations())
		}
		runtime.Gosched()
	}
	f.Started(func(int64) bool { return false })
	if b := p.build(); b.Remote == 0 {
		t.Errorf("%+v", b.Summary)
	}
}

// TestFarmNone: a project whose farm is not there, or whose workers have another kiln, is built here, and says so once.
func TestFarmNone(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*reapitest.Farm){
		"cannot be reached": func(f *reapitest.Farm) { f.Server.Stop() },
		"workers run Kiln test; this is the same version, with other processors": func(f *reapitest.Farm) {
			f.Env = append(f.Env, workerVersion+"=2")
		},
		"workers run Kiln 9.8; this is Kiln test": func(f *reapitest.Farm) { f.Env = append(f.Env, workerKiln+"=9.8") },
	} {
		p := newProject(t, sharedProject)
		spoil(p.farmed(1))
		pr := p.open()
		p.must(pr.Lock(context.Background(), true, func() {}))
		r, err := pr.Build(context.Background(), Request{Reporter: job.Silent{}})
		pr.Unlock()
		p.must(err)
		said, code := 0, diag.FarmFails
		if strings.HasPrefix(name, "workers run") {
			code = diag.FarmOther
		}
		for _, m := range r.Messages {
			if m.Code == code && m.Severity == diag.Warning && strings.Contains(m.Text, name) {
				said++
			}
		}
		if said != 1 || r.Summary.Remote != 0 {
			t.Errorf("%s: said %d times, %+v", name, said, r.Summary)
		}
		p.wants("")
	}
}
