package build

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/farm"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/make/written"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

var (
	kills = flag.Int("kills", 30, "how often TestKill kills a build")
)

// In the environment childDir names the project that this program is to build in place of running tests. With childHolds, its first job
// says so and waits for the end of standard input. childBoot is what disk.BootID is to it. childFarm is the address of a server whose
// workers run its jobs.
const (
	childDir   = "KILN_TEST_CHILD"
	childHolds = "KILN_TEST_HOLDS"
	childBoot  = "KILN_TEST_BOOT"
	childFarm  = "KILN_TEST_FARM"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	if len(os.Args) > 1 && os.Args[1] == written.Command {
		os.Exit(runJob())
	}
	if address := os.Getenv(holdAt); address != "" {
		os.Exit(hold(address, os.Args[1], os.Args[2]))
	}
	os.Exit(m.Run())
}

// child builds a project as another process would.
func child(dir string) int {
	if boot := os.Getenv(childBoot); boot != "" {
		disk.BootID = func() string { return boot }
	}
	call := slowly
	if os.Getenv(childHolds) != "" {
		call = func(ctx context.Context, line string, job processor.Job) error {
			fmt.Println("holds")
			io.Copy(io.Discard, os.Stdin)
			return slowly(ctx, line, job)
		}
	}
	cfg := workspace.Config{Dir: dir, Version: "test", Processors: testProcessors(&hooks{call: call})}
	if address := os.Getenv(childFarm); address != "" {
		cfg.Processors = allTestProcessors(1)
		cfg.Execution = func(project.Execution) (*farm.Place, error) {
			return &farm.Place{Remote: address, Jobs: 8, Timeout: time.Minute, Only: true}, nil
		}
	}
	p, err := Open(cfg)
	if err == nil {
		err = p.Lock(context.Background(), true, func() { fmt.Println("waits") })
	}
	if err == nil {
		_, err = p.Build(context.Background(), Request{Reporter: aloud{}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// slowly is a hook that takes a while, so that there is something to kill, and writes a product that is not written at once.
func slowly(_ context.Context, _ string, job processor.Job) error {
	scratch, err := job.Scratch()
	if err != nil {
		return err
	}
	var out strings.Builder
	for i := range 20 {
		fmt.Fprintln(&out, job.Asset().ID, i)
		if err := os.WriteFile(filepath.Join(scratch, fmt.Sprint("left", i)), []byte(out.String()), 0o666); err != nil {
			return err
		}
	}
	return job.Write(processor.Output{Name: "hook", Type: "text"}, []byte(strings.Repeat(out.String(), 1_000)))
}

func randomSource(t testing.TB) *rand.Rand {
	t.Helper()
	s := thorough.Seed(t)
	return rand.New(rand.NewPCG(s, s))
}

// TestKill kills builds at random moments, edits in between, and looks at what is left: every output is whole at any moment, and
// the build that is not killed gives what a clean one gives.
func TestKill(t *testing.T) {
	t.Parallel()
	requireLinux(t, "killing at once")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rng := randomSource(t)
	p := newProject(t, "-- assets/use.s --\nuse 1.s 2.s\n-- assets/glob.s --\nglob **\n")
	for i := range 40 {
		p.write(fmt.Sprintf("assets/%d.s", i), fmt.Sprintf("text %d\nscratch\nhook", i))
		p.write(fmt.Sprintf("assets/sub/%d.txt", i), fmt.Sprintf("text %d", i))
	}
	p.procs = testProcessors(&hooks{call: slowly})
	longest := 400 * time.Millisecond
	times := *kills
	if !thorough.Enabled() {
		times /= 4
	}
	for n := range times {
		mess(p, rng, n)
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childDir+"="+p.dir)
		p.must(cmd.Start())
		start := time.Now()
		timer := time.AfterFunc(time.Duration(rng.Int64N(int64(longest))), func() { cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil { // it was quicker: next time it has less time
			longest = time.Since(start)
			continue
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Exited() {
			t.Fatalf("the build ended by itself: %v", err)
		}
		wholeOutputs(p)
		if n%5 == 4 {
			p.build()
			if left, _ := filepath.Glob(p.path(".kiln/tmp/*")); left != nil {
				t.Errorf("left behind: %v", left)
			}
		}
		if t.Failed() {
			t.Fatalf("after %d kills", n+1)
		}
	}
	p.build()
	p.nothing()
}

// mess edits a few files of the project of TestKill, and does things to its outputs.
func mess(p *fixture, rng *rand.Rand, n int) {
	for range 1 + rng.IntN(6) {
		i := rng.IntN(40)
		script, text := fmt.Sprintf("assets/%d.s", i), fmt.Sprintf("assets/sub/%d.txt", i)
		switch rng.IntN(8) {
		case 0, 1:
			p.write(script, fmt.Sprintf("text %d\nscratch\nhook", n))
		case 2:
			p.write(script, fmt.Sprintf("text %d\nscratch\nhook", i)) // as it was at first
		case 3:
			p.write(text, fmt.Sprintf("text %d", rng.IntN(3)))
		case 4:
			p.remove(text)
		case 5:
			p.remove(script)
		case 6:
			p.remove(fmt.Sprintf("build/pc/%d.s.txt", i))
		case 7:
			if f := fmt.Sprintf("build/pc/%d.s.hook", i); p.read(f) != "" {
				p.scribble(f)
			}
		}
	}
}

// written are the hashes of all that jobs wrote, as far as traces tell.
func (p *fixture) written() map[digest.Hash]bool {
	p.Helper()
	traces, _, err := state.OpenTraces(p.path(".kiln/traces"), true)
	p.must(err)
	written := map[digest.Hash]bool{}
	for _, k := range traces.Keys() {
		for _, tr := range traces.Traces(k) {
			for i := range tr.Products {
				written[tr.Products[i].Hash] = true
			}
		}
	}
	return written
}

// wholeOutputs tells of outputs that are none: what is in the output folder must be what some job wrote.
func wholeOutputs(p *fixture) {
	p.Helper()
	written := p.written()
	err := filepath.WalkDir(p.path("build"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), disk.TempPrefix) || e.Name() == ".gitignore" || e.Name() == workspace.Mark {
			return nil
		}
		b, err := os.ReadFile(path)
		if err == nil && !written[digest.Of(b)] && !strings.HasPrefix(string(b), "somebody else's ") {
			p.Errorf("%s holds %d bytes that nobody wrote", path, len(b))
		}
		return err
	})
	p.must(err)
}

// TestKilledLate leaves a project as a build does that is killed after its last output and before its snapshot.
func TestKilledLate(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\na\n-- assets/sub/b.txt --\nb\n")
	p.build()
	p.rename("assets/sub", "assets/.sub")
	p.write("assets/.kilnignore", ".sub\n")
	p.build()
	snapshot := p.read(".kiln/snapshot")
	p.rename("assets/.sub", "assets/sub")
	p.wants("") // its trace of old holds
	p.write(".kiln/snapshot", snapshot)
	p.write(".kiln/underway", "")
	p.write("build/pc/.kiln-123-4", "an output on its way")
	p.mkdir("build/pc/empty")
	p.rename("assets/sub", "assets/.sub")
	p.remove("build/pc/empty")
	p.wants("")
	p.nothing()
}

// TestStartedAnew leaves a project as a power cut may: what a build removed is there again, what it was about to name lies about, and the
// mark that it was under way is gone. A start of the system in between is enough to look.
func TestStartedAnew(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\na\n-- assets/sub/b.txt --\nb\n")
	p.build()
	p.remove("assets/sub/b.txt")
	p.build()
	p.write(".kiln/boot", "another start")
	p.write("build/pc/sub/b.txt", "b\n")
	p.write("build/pc/.kiln-123-4", "an output on its way")
	if b, err := p.try(context.Background(), Request{Detect: workspace.ByList}); err != nil || !strings.Contains(b.messages, "the system was started since") {
		t.Errorf("%v, %s", err, b.messages)
	}
	p.wants("")
	p.nothing()
}

// TestOlderSnapshot goes on from the snapshot of an older build, as somebody does who restores half of a backup.
func TestOlderSnapshot(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\na\n-- assets/b.txt --\nb\n-- assets/c.s --\nuse a.txt\n")
	p.build()
	snapshot := p.read(".kiln/snapshot")
	p.write("assets/a.txt", "A")
	p.write("assets/d.txt", "d")
	p.remove("assets/b.txt")
	p.wants("a.txt c.s d.txt")
	p.write(".kiln/snapshot", snapshot)
	p.remove("assets/d.txt")
	p.wants("")
	p.nothing()
	p.write(".kiln/snapshot", snapshot)
	p.wants("")
	p.nothing()
}

// TestOlderTraces goes on from the traces of an older build.
func TestOlderTraces(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\na\n-- assets/c.s --\nuse a.txt\n")
	p.build()
	traces := p.read(".kiln/traces")
	p.write("assets/a.txt", "A")
	p.wants("a.txt c.s")
	p.write(".kiln/traces", traces)
	p.wants("a.txt c.s") // and else kiln ls would tell what these say
	p.write("assets/a.txt", "AA")
	p.wants("a.txt c.s")
	p.nothing()
}

// TestClean cleans, with and without what Kiln remembers.
func TestClean(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\na\n-- assets/sub/b.txt --\nb\n")
	p.build()
	p.write("build/pc/mine", "mine")
	clean := func(state bool, files int) {
		t.Helper()
		pr := p.open()
		p.must(pr.Lock(context.Background(), false, nil))
		defer pr.Unlock()
		if n, _, err := pr.Clean(state, false); n != files || err != nil {
			t.Errorf("removed %d files, not %d: %v", n, files, err)
		}
		if got := names(outputFiles(p.dir, "build")); got != "pc/mine" {
			t.Errorf("left %s", got)
		}
	}
	clean(false, 2)
	p.litter = true
	p.wants("")
	clean(true, 2)
	if left, _ := filepath.Glob(p.path(".kiln/*")); len(left) != 1 {
		t.Errorf("left %s", left)
	}
	p.wants("a.txt sub/b.txt")
	p.write(".kiln/underway", "")
	clean(false, 2)
}

// TestScratchOfItsOwn: no build has a scratch folder where one before had it. What outlived a kiln that was killed, as a program that a
// command had started, may still write there.
func TestScratchOfItsOwn(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\nhook\n-- assets/b.s --\nhook\n")
	var mu sync.Mutex
	seen := map[string]bool{}
	p.procs = testProcessors(&hooks{call: func(_ context.Context, _ string, job processor.Job) error {
		dir, err := job.Scratch()
		mu.Lock()
		defer mu.Unlock()
		if seen[dir] {
			t.Errorf("%s was another job's before", dir)
		}
		seen[dir] = true
		return err
	}})
	p.unchecked = true
	for range 3 {
		p.buildWith(Request{Force: true})
	}
	if left, _ := filepath.Glob(p.path(".kiln/tmp/*")); len(seen) != 6 || left != nil {
		t.Errorf("%d folders; left behind: %v", len(seen), left)
	}
}
