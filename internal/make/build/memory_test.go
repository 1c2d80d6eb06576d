package build

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	media "github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/internal/processors/atlas"
	"github.com/kiln-pipeline/kiln/internal/processors/gltf"
	"github.com/kiln-pipeline/kiln/internal/processors/texture"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/processor"
)

var fullMemory = flag.Bool("full-memory", false, "TestMemoryLimit with forty jobs of 200 MB under 1 GB, not of 40 MiB under 200 MB")

// holdAt makes this program a tool that holds memory until it may let go: see hold. It names an address, in the environment.
const holdAt = "KILN_TEST_HOLD"

// hold takes as many MiB as a file says, tells the test how much it has, and keeps it until the test hangs up.
func hold(address, out, in string) int {
	text, err := os.ReadFile(in)
	n, nerr := strconv.Atoi(strings.TrimSpace(string(text)))
	c, cerr := net.Dial("tcp", address)
	if err != nil || nerr != nil || cerr != nil {
		fmt.Fprintln(os.Stderr, err, nerr, cerr)
		return 1
	}
	b := make([]byte, n<<20)
	for i := 0; i < len(b); i += 4 << 10 {
		b[i] = 1
	}
	fmt.Fprintln(c, residentMemory())
	io.Copy(io.Discard, c)
	runtime.KeepAlive(b)
	if err := os.WriteFile(out, text, 0o666); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// residentMemory of this process, in bytes.
func residentMemory() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			n, _ := strconv.ParseInt(strings.Fields(string(rest))[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// aloud tells when jobs begin and end, a line each.
type aloud struct{ job.Silent }

func (aloud) JobStarted(job string)                           { fmt.Println("begins", job) }
func (aloud) JobFinished(job string, _ bool, _ time.Duration) { fmt.Println("ends", job) }

// holding is one build of a project whose jobs hold memory, by a process of its own: a small one, so that its jobs are larger.
type holding struct {
	events []string // as aloud tells them
	each   int64    // most bytes that one program had
	peak   int64    // most bytes that programs had at once
	most   int      // of them at once
}

// buildHolding builds. A program is let go only when so many are there at once.
func (p *fixture) buildHolding(jobs, atOnce int) holding {
	p.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	p.must(err)
	defer l.Close()
	exe, err := os.Executable()
	p.must(err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childDir+"="+p.dir, holdAt+"="+l.Addr().String(), "GORACE=atexit_sleep_ms=0")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	p.must(cmd.Start())
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		l.Close()
	}()
	var h holding
	var held []net.Conn
	var sizes []int64
	for let := 0; let < jobs; {
		c, err := l.Accept()
		if err != nil {
			p.Fatalf("the build ended after %d jobs: %v\n%s%s", let, <-ended, &out, &errs)
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		p.must(err)
		size, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		p.must(err)
		held, sizes = append(held, c), append(sizes, size)
		sum := int64(0)
		for _, s := range sizes {
			sum += s
		}
		h.each = max(h.each, size)
		h.peak, h.most = max(h.peak, sum), max(h.most, len(held))
		for len(held) > 0 && len(held) == min(atOnce, jobs-let) {
			held[0].Close()
			held, sizes = held[1:], sizes[1:]
			let++
		}
	}
	if err := <-ended; err != nil {
		p.Fatalf("%v\n%s", err, &errs)
	}
	h.events = strings.Split(strings.TrimSpace(out.String()), "\n")
	return h
}

// learned is the memory that each job is known to need, by its name.
func (p *fixture) learned() map[string]int64 {
	p.Helper()
	v, err := p.open().Look(context.Background(), nil, nil)
	p.must(err)
	all := map[string]int64{}
	for _, a := range v.Assets {
		for _, j := range a.Jobs {
			all[task.FullName(a.ID, j.Platform)] = j.Last.Memory
		}
	}
	return all
}

// check adds up what running jobs were promised, as the engine does, at each beginning of one.
func (h *holding) check(t *testing.T, weights map[string]int64, limit int64) {
	t.Helper()
	var sum int64
	running := 0
	for _, e := range h.events {
		what, job, _ := strings.Cut(e, " ")
		if weights[job] == 0 {
			t.Fatalf("%q: nothing is known of it", e)
		}
		if what == "ends" {
			sum, running = sum-weights[job], running-1
			continue
		}
		sum, running = sum+weights[job], running+1
		if sum > limit && running > 1 {
			t.Errorf("%d jobs run that need %d bytes; the limit is %d", running, sum, limit)
		}
	}
}

// TestMemoryLimit has forty jobs of an external program: once it is known what they need, those that run at once stay below the limit,
// and are as many as fit.
func TestMemoryLimit(t *testing.T) {
	thorough.Only(t, "a hundred and twenty programs hold 40 MiB each")
	requireLinux(t, "telling how much memory a process has")
	jobs, size, limit := 40, 40, int64(200e6)
	if *fullMemory {
		size, limit = 190, 1e9 // 199 MB
	}
	p := newProject(t, "")
	exe, err := os.Executable()
	p.must(err)
	project := func(limit int64) {
		p.write("kiln.toml", fmt.Sprintf("[project]\nname = \"test\"\n[build]\nworkers = 8\nmemory = %d\n[[processors]]\nname = \"hold\"\nextensions = [\".hold\"]\n"+
			"command = [%q, \"{out}\", \"{in}\"]\nnetwork = true\nenv = [%q, \"GORACE\"]\n", limit, exe, holdAt))
	}
	project(limit)
	for i := range jobs {
		p.write(fmt.Sprintf("assets/%02d.hold", i), fmt.Sprint(size))
	}
	first := p.buildHolding(jobs, 1)
	weights := p.learned()
	var largest int64
	for job, w := range weights {
		largest = max(largest, w)
		if w < int64(size)<<20 || w > first.each+16<<20 {
			t.Errorf("%s is taken to need %d bytes, and none had more than %d", job, w, first.each)
		}
	}
	fit := int(limit / largest)
	second := p.buildHolding(jobs, fit)
	second.check(t, weights, limit)
	if second.peak > limit || second.most < fit {
		t.Errorf("%d programs at once had %d bytes; the limit is %d, and %d fit", second.most, second.peak, limit, fit)
	}
	t.Logf("%d jobs that need at most %d MB each: %d at once had %d MB, below %d MB", jobs, largest/1e6, second.most, second.peak/1e6, limit/1e6)

	// Jobs that are larger than the limit run one by one.
	for i := range jobs {
		if i >= 5 {
			p.remove(fmt.Sprintf("assets/%02d.hold", i))
		}
	}
	project(largest / 2)
	alone := p.buildHolding(5, 1)
	alone.check(t, weights, 0)
	if alone.most != 1 {
		t.Errorf("%d ran at once", alone.most)
	}
}

// TestProgramsAtOnce: as many as there are cores and one more, unless somebody says how many.
func TestProgramsAtOnce(t *testing.T) {
	t.Setenv("GOMAXPROCS", "2") // of the process that builds
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		workers string
		want    int
	}{{"", 3}, {"workers = 1", 1}, {"workers = 2", 2}} {
		p := newProject(t, fmt.Sprintf("-- kiln.toml --\n[project]\nname = \"test\"\n[build]\n%s\n[[processors]]\nname = \"hold\"\nextensions = [\".hold\"]\n"+
			"command = [%q, \"{out}\", \"{in}\"]\nnetwork = true\nenv = [%q, \"GORACE\"]\n", test.workers, exe, holdAt))
		const jobs = 8
		for i := range jobs {
			p.write(fmt.Sprintf("assets/%d.hold", i), "1")
		}
		running, most := 0, 0
		for _, e := range p.buildHolding(jobs, test.want).events {
			if strings.HasPrefix(e, "begins ") {
				running++
			} else {
				running--
			}
			most = max(most, running)
		}
		if most != test.want || running != 0 {
			t.Errorf("%q: %d jobs at once, not %d; %d at the end", test.workers, most, test.want, running)
		}
	}
}

// What a command is declared to need counts until it was measured; without a word it is what the contract says.
func TestDeclaredMemory(t *testing.T) {
	t.Parallel()
	const command = "command = [\"sh\", \"{in}\", \"{out}\"]\n"
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n[[processors]]\nname = \"much\"\nextensions = [\".much\"]\nmemory = \"2GB\"\n"+command+
		"[[processors]]\nname = \"some\"\nextensions = [\".some\"]\n"+command+"-- assets/a.much --\n-- assets/b.some --\n")
	v, err := p.open().Look(context.Background(), nil, nil)
	p.must(err)
	got := map[string]int64{}
	for _, a := range v.Assets {
		for _, j := range a.Jobs {
			got[a.ID] = v.Task(engine.Key(j.Key)).Memory
		}
	}
	if want := map[string]int64{"a.much": 2e9, "b.some": 64 << 20}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Jobs that wait for others hold what they have: more than there is. The build ends all the same.
func TestMemoryOfSuspendedJobs(t *testing.T) {
	t.Parallel()
	const jobs, needs = 12, int64(60e6)
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n[build]\nworkers = 4\nmemory = \"100MB\"\n")
	p.procs = testProcessors(&hooks{call: func(_ context.Context, _ string, job processor.Job) error {
		job.UsedMemory(needs)
		job.UsedMemory(needs / 2) // a second program
		return nil
	}})
	edit := func(word string) (all []string) {
		for i := range jobs {
			text := "hook\ntext " + word
			if i < jobs-1 {
				text += fmt.Sprintf("\nuse %02d.s", i+1)
			}
			p.write(fmt.Sprintf("assets/%02d.s", i), text)
			p.write(fmt.Sprintf("assets/alone%02d.s", i), "hook\ntext "+word)
			all = append(all, fmt.Sprintf("%02d.s", i), fmt.Sprintf("alone%02d.s", i))
		}
		slices.Sort(all)
		return all
	}
	p.wants(strings.Join(edit("one"), " "))
	for job, w := range p.learned() {
		if w != needs {
			t.Errorf("%s is taken to need %d bytes", job, w)
		}
	}
	db, err := contentdb.OpenReadOnly(p.path(".kiln/content.db"))
	p.must(err)
	defer db.Close()
	slowest, err := db.Run(context.Background(), "slowest", nil, 1)
	p.must(err)
	if at := slices.Index(slowest.Columns, "peak_memory"); at < 0 || slowest.Rows[0][at] != needs {
		t.Errorf("%v: %v", slowest.Columns, slowest.Rows)
	}
	p.wants(strings.Join(edit("two"), " "))
	if got, want := p.read("build/pc/00.s.txt"), strings.Repeat("two\n", jobs); got != want {
		t.Errorf("%q", got)
	}

	// A run that fails says nothing about the memory of the next one.
	p.write("assets/alone00.s", "hook\nfail")
	p.wants("alone00.s")
	if got := p.learned()["alone00.s [pc]"]; got != 0 {
		t.Errorf("a run that failed needs %d bytes", got)
	}
}

// asking is a processor whose jobs are listened to as they ask for memory.
type asking struct {
	processor.Parter
	asked func(j *job.Job, bytes int64)
}

// askingJob is one of them.
type askingJob struct {
	*job.Job
	asked func(j *job.Job, bytes int64)
}

func (a asking) Process(ctx context.Context, j processor.Job) error {
	return a.Parter.Process(ctx, askingJob{j.(*job.Job), a.asked})
}

func (a asking) Part(ctx context.Context, j processor.Job, name string) error {
	return a.Parter.Part(ctx, askingJob{j.(*job.Job), a.asked}, name)
}

func (j askingJob) NeedMemory(bytes int64) error {
	j.asked(j.Job, bytes)
	return j.Job.NeedMemory(bytes)
}

// whole is a processor without parts as one that has them.
type whole struct{ processor.Processor }

func (whole) Part(context.Context, processor.Job, string) error { return errors.ErrUnsupported }

// Whoever decodes pictures asks for the memory of all of them together.
func TestPicturesAskForMemory(t *testing.T) {
	const side, eight = 64, 4 * 64 * 64
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n-- assets/rules.toml --\n[[rules]]\nmatch = \"px.png\"\nsettings = { cube = \"faces\" }\n"+
		"[[rules]]\nmatch = \"packed.png\"\nsettings = { r = \"one.png\", g = \"px.png:g\", a = \"nx.png\" }\n"+
		"[[rules]]\nmatch = \"layers.png\"\nsettings = { layers = [\"?x.png\", \"one.png\"] }\n[[rules]]\nmatch = \"ui/\"\nprocessor = \"atlas\"\n")
	for _, name := range []string{"one", "px", "nx", "py", "ny", "pz", "nz", "packed", "layers", "ui/a"} {
		p.picture("assets/"+name+".png", side)
	}
	png := p.read("assets/one.png")
	p.write("assets/model.gltf", `{"asset": {"version": "2.0"}, "images": [{"uri": "data:image/png;base64,`+base64.StdEncoding.EncodeToString([]byte(png))+`"}]}`)
	var mu sync.Mutex
	most := map[string]int64{}
	calls := map[*job.Job]int{} // several of each asset: the builds are compared with clean ones
	asked := func(j *job.Job, bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		name := j.Asset().Path
		if strings.HasPrefix(name, "~") { // a request for the picture inside the model
			name = "in model.gltf"
		}
		most[name] = max(most[name], bytes)
		if calls[j]++; calls[j] > 1 && name != "ui" {
			t.Errorf("%s asks %d times", name, calls[j])
		}
	}
	p.procs = []processor.Processor{asking{whole{texture.New()}, asked}, asking{atlas.New().(processor.Parter), asked}, asking{gltf.New().(processor.Parter), asked}}
	build := func() {
		t.Helper()
		if b := p.buildWith(Request{}); b.Failed > 0 {
			t.Fatal(b.messages)
		}
	}
	build()
	p.write("assets/textures/a.ktx2", p.read("build/pc/one.png.ktx2"))
	p.write("assets/textures/a.dds", string(ddsOf(t, side)))
	p.write("assets/rules.toml", p.read("assets/rules.toml")+"[[rules]]\nmatch = \"textures/*\"\nsettings = { max_size = 16 }\n")
	build()
	one := most["one.png"]
	if need := media.Defaults().Need("one.png", []byte(png)).Made; one != need || one < 4*eight {
		t.Errorf("one picture of %d bytes asks for %d, and not %d", eight, one, need)
	}
	for asset, least := range map[string]int64{"px.png": 6 * one, "packed.png": one + 3*eight, "layers.png": 3 * one, "in model.gltf": one, "ui": 5 * eight,
		"textures/a.ktx2": 5 * eight, "textures/a.dds": 5 * eight} {
		if most[asset] < least {
			t.Errorf("%s asks for %d bytes, which is less than %d", asset, most[asset], least)
		}
	}
}

// ddsOf is a texture of four channels.
func ddsOf(t *testing.T, side int) []byte {
	t.Helper()
	data, err := dds.Encode(&dds.Texture{Format: dds.RGBA8, Width: side, Height: side, Levels: [][]byte{make([]byte, 4*side*side)}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}
