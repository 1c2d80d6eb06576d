package build

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
)

var (
	faultPart = flag.String("faults-part", "1/1", "with -faults 0, which part of them, of how many: whoever has no two hours runs one after the other")
	faults    = flag.Int("faults", 40, "how many builds TestFaults disturbs, picked at random; 0: each call of each kind, which takes more than an hour")
	rooms     = flag.Int64("room", 1600<<10, "TestSmallDisk: up to how much room in bytes there is")
	roomStep  = flag.Int64("room-step", 320<<10, "TestSmallDisk: from 0 in steps of so many bytes")
	faultOnly = flag.String("fault", "", "TestFaults: only disturbances whose name contains this, such as \"edit write error=EIO\"")
)

// disturbances are what strace does to one system call of a build: it fails, or the process is killed as it enters it. Calls that a
// machine does not have are passed over.
var disturbances = func() (all []string) {
	for what, calls := range map[string]string{
		"error=EIO": "openat open read pread64 write pwrite64 fsync fdatasync renameat renameat2 rename linkat link mkdirat mkdir unlinkat unlink rmdir " +
			"ftruncate fallocate fchmod fchmodat close newfstatat fstat stat lstat statx access faccessat2 getdents64 readlinkat lseek flock fcntl " +
			"copy_file_range ioctl",
		"error=ENOSPC": "openat write pwrite64 mkdirat linkat renameat renameat2 fsync ftruncate copy_file_range",
		"error=EMFILE": "openat open",
		"error=EACCES": "openat open unlinkat newfstatat",
		"error=EPERM":  "linkat",
		"error=EMLINK": "linkat",
		"signal=KILL":  "write pwrite64 fsync renameat renameat2 linkat mkdirat unlinkat unlink fchmod ftruncate",
	} {
		for call := range strings.FieldsSeq(calls) {
			all = append(all, call+" "+what)
		}
	}
	slices.Sort(all)
	return all
}()

// faulty is the example as a project on disk that a disturbed kiln builds.
type faulty struct {
	*fixture
	kiln   string
	before map[string]string // outputs of a clean build of the sources as they are at first
	after  map[string]string // and once they were edited
	db     map[string]map[string][]string
	config func() // makes the project file another; may be nil
}

// buildKiln makes the real kiln.
func buildKiln(t testing.TB) string {
	t.Helper()
	kiln := filepath.Join(t.TempDir(), "kiln")
	cmd := exec.Command("go", "build", "-o", kiln, "github.com/kiln-pipeline/kiln/cmd/kiln")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it ships, and without the C library's own calls
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("the real kiln cannot be built here: %v\n%s", err, out)
	}
	return kiln
}

// sources makes the sources what they are at first.
func (p *faulty) sources() {
	p.Helper()
	p.remove("assets")
	p.must(copyTree("../../../examples/knights/assets", p.path("assets")))
	p.must(copyTree("../../../examples/knights/game/web", p.path("game/web"))) // a template of constants is there
	p.write("kiln.toml", plainKnights(p))
	if p.config != nil {
		p.config()
	}
}

// edit changes what models, an atlas and data are made of, adds an asset and removes others.
func (p *faulty) edit() {
	p.Helper()
	p.write("assets/characters/shared/page.png", p.read("assets/sprites/ui/shield.png"))
	p.remove("assets/sprites/ui/sword.png")
	p.write("assets/data/items.csv", p.read("assets/data/items.csv")+"\n")
	p.write("assets/data/dialogue.json", `{"greeting": "halt"}`)
	p.write("assets/text/more/new.txt", "new\n")
	p.remove("assets/text/credits.txt")
	p.remove("assets/textures/title")
	p.write("assets/textures/.kilnignore", "*_n.png\n")
}

// run builds with the real kiln, below a program that watches it if there is one.
func (p *faulty) run(watcher ...string) (exit int, said string) {
	p.Helper()
	args := append(slices.Clone(watcher), p.kiln, "build", "-j", "1", "-C", p.dir)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		p.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// well builds undisturbed.
func (p *faulty) well() string {
	p.Helper()
	exit, said := p.run()
	if exit != 0 {
		p.Errorf("exit %d:\n%s", exit, said)
	}
	return said
}

// needStrace skips a test that disturbs builds where that cannot be, and where it takes too long.
func needStrace(t *testing.T) {
	t.Helper()
	thorough.Only(t, "the real kiln is built, and builds the example many times")
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed")
	}
}

// newFaulty makes a project of its own for a goroutine.
func newFaulty(t testing.TB, kiln string) *faulty {
	t.Helper()
	p := &faulty{fixture: &fixture{TB: t, dir: t.TempDir()}, kiln: kiln, db: map[string]map[string][]string{}}
	p.learn()
	return p
}

// learn finds out what clean builds give, and leaves the project built and as it was at first.
func (p *faulty) learn() {
	p.Helper()
	p.remove(".kiln")
	p.remove("build")
	p.sources()
	p.well()
	p.before = p.files()
	p.edit()
	p.remove(".kiln")
	p.remove("build")
	p.well()
	p.after = p.files()
	p.db["after"] = p.database()
	p.remove(".kiln")
	p.remove("build")
	p.sources()
	p.well()
	p.db["before"] = p.database()
	if len(p.before) < 40 || cmp.Equal(p.before, p.after) {
		p.Fatalf("%d outputs", len(p.before))
	}
}

// prepare brings the project to where the disturbed build begins, and tells the outputs and the content database that this is to give.
func (p *faulty) prepare(build string) (map[string]string, map[string][]string) {
	p.Helper()
	switch build {
	case "first":
		p.remove(".kiln")
		p.remove("build")
		p.sources()
	case "edit":
		p.remove(".kiln")
		p.remove("build")
		p.sources()
		p.well()
		p.edit()
		return p.after, p.db["after"]
	case "restore":
		p.remove("build")
	}
	return p.before, p.db["before"]
}

// disturbed is a build in which the nth system call of a kind is disturbed in each thread that makes so many.
type disturbed struct {
	build string // first, edit, restore or nothing
	what  string // one of disturbances, which may be of several calls: a,b
	nth   int    // 0: all
	file  string // relative to the project folder: only calls that are about this file, or about the one that replaces it
}

func (d disturbed) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s when=%d %s", d.build, d.what, d.nth, d.file))
}

// strace is the command line that disturbs a build. Its log goes to a file.
func (d disturbed) strace(dir, log string) []string {
	calls, what, _ := strings.Cut(d.what, " ")
	calls = "?" + strings.ReplaceAll(calls, ",", ",?")
	inject := "inject=" + calls + ":" + what
	if d.nth > 0 {
		inject += fmt.Sprintf(":when=%d", d.nth)
	}
	args := []string{"strace", "-f", "-qq", "--seccomp-bpf", "-o", log, "-e", "signal=none", "-e", "trace=" + calls, "-e", inject}
	if d.file != "" {
		abs := filepath.Join(dir, filepath.FromSlash(d.file))
		dir, base := filepath.Split(abs)
		// Below -D, kiln has the shell's number, which is in the name of the file that replaces the other.
		sh := `dir=$1 base=$2; shift 2; exec strace -D -P "$dir$base" -P "$dir.kiln-$$-$base" "$@"`
		args = append([]string{"sh", "-c", sh, "sh", dir, base}, args[1:]...)
	}
	return args
}

// try makes one disturbed build and looks at what it leaves. It tells whether there was a call to disturb.
func (p *faulty) try(d disturbed) bool {
	p.Helper()
	want, db := p.prepare(d.build)
	log := filepath.Join(p.TempDir(), "strace")
	exit, said := p.run(d.strace(p.dir, log)...)
	b, _ := os.ReadFile(log)
	var hits []string
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "INJECTED") || strings.Contains(line, "killed by SIGKILL") {
			hits = append(hits, line)
		}
	}
	broken := false
	bad := func(format string, args ...any) {
		p.Helper()
		broken = true
		p.Errorf("%v: exit %d, %s\n%s%s", d, exit, fmt.Sprintf(format, args...), strings.Join(hits, ""), said)
	}
	if len(hits) > 0 {
		p.judge(d, exit, said, want, bad)
	}
	exit, said = p.run()
	if got := p.files(); exit != 0 || !maps.Equal(got, want) {
		bad("and the next build ends with %d and these outputs are not those of a clean one: %s\n%s", exit, differ(want, got), said)
	}
	if diff := cmp.Diff(db, p.database()); diff != "" {
		bad("and after the next build the content database is not that of a clean one (-clean +this):\n%s", diff)
	}
	if left, _ := filepath.Glob(p.path(".kiln/tmp/*")); left != nil {
		bad("and left behind: %v", left)
	}
	if said := p.well(); !strings.Contains("\n"+said, "\n0 assets built, ") {
		bad("and the build after the next one:\n%s", said)
	}
	if broken {
		p.remove(".kiln")
		p.remove("build")
	}
	if d.build == "edit" || broken {
		p.sources()
		p.well()
		p.well()
	}
	return len(hits) > 0
}

// judge looks at what a disturbed build said and left.
func (p *faulty) judge(d disturbed, exit int, said string, want map[string]string, bad func(string, ...any)) {
	p.Helper()
	got := p.files()
	killed := strings.HasSuffix(d.what, "signal=KILL")
	switch {
	case killed && exit == -1, strings.Contains(said, "netpollBreak write failed"): // Go's runtime cannot go on if it cannot wake itself
	case exit < 0 || exit > 2 || strings.Contains(said, "goroutine "):
		bad("which no fault of the disk should lead to")
	case exit == 0 && !maps.Equal(got, want):
		bad("but these outputs are not those of a clean build: %s", differ(want, got))
	}
	var written map[digest.Hash]bool
	for f, content := range got {
		if content == p.before[f] || content == p.after[f] || strings.HasPrefix(filepath.Base(f), disk.TempPrefix) {
			continue
		}
		if exit != 0 && strings.HasPrefix(f, "parcels/") {
			// A build in which something failed packs what it has, and leaves what lacks something: other parcels than those of before
			// and after, but whole.
			if strings.HasSuffix(f, ".parcel") && ship.Verify(p.path("build/"+f)) != nil {
				bad("and %s is damaged: %.60q", f, content)
			}
			continue
		}
		if written == nil {
			written = p.written()
		}
		// A folder with a file that cannot be looked at is built of the others, and the build fails.
		if exit == 0 || !written[digest.Of([]byte(p.read("build/"+f)))] {
			bad("and %s is not whole: %.60q", f, content)
		}
	}
}

// files are the outputs. An empty folder may stay behind where one could not be removed.
func (p *faulty) files() map[string]string {
	all := outputFiles(p.dir, "build")
	maps.DeleteFunc(all, func(_, content string) bool { return content == "folder" })
	return all
}

// differ names the files that are not the same.
func differ(a, b map[string]string) string {
	var names []string
	for _, f := range slices.Sorted(maps.Keys(a)) {
		if got, ok := b[f]; !ok {
			names = append(names, f+" is missing")
		} else if got != a[f] {
			names = append(names, f)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[f]; !ok {
			names = append(names, f+" is one too many")
		}
	}
	return strings.Join(names, ", ")
}

// calls tells how many calls of a kind the busiest thread of an undisturbed build makes.
func (p *faulty) calls(build string) map[string]int {
	p.Helper()
	p.prepare(build)
	var names []string
	for _, what := range disturbances {
		call, _, _ := strings.Cut(what, " ")
		if names = append(names, "?"+call); slices.Contains(names[:len(names)-1], "?"+call) {
			names = names[:len(names)-1]
		}
	}
	log := filepath.Join(p.TempDir(), "strace")
	if exit, said := p.run("strace", "-f", "-qq", "-o", log, "-e", "signal=none", "-e", "trace="+strings.Join(names, ",")); exit != 0 {
		p.Skipf("strace does not work here:\n%s", said)
	}
	b, err := os.ReadFile(log)
	p.must(err)
	count, most := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(b)) {
		thread, rest, _ := strings.Cut(line, " ")
		call, _, ok := strings.Cut(strings.TrimSpace(rest), "(")
		if !ok || strings.ContainsAny(call, " <+") {
			continue
		}
		count[thread+call]++
		most[call] = max(most[call], count[thread+call])
	}
	return most
}

// TestFaults lets one system call of the real kiln fail, or kills kiln there: whatever becomes of that build, its outputs are whole, the
// next build gives what a clean one gives, and the one after has nothing to do.
//
// strace counts calls by thread. Kiln runs on one processor here, but has several threads, and which of them makes a call is not the
// same each time: a few calls may be disturbed in no run, and in some runs two calls are.
func TestFaults(t *testing.T) {
	t.Parallel()
	needStrace(t)
	rng := randomSource(t)
	kiln := buildKiln(t)
	first := newFaulty(t, kiln)
	var plan []disturbed
	for _, build := range []string{"first", "edit", "restore", "nothing"} {
		most := first.calls(build)
		first.well()
		first.sources()
		first.well()
		first.well()
		for _, what := range disturbances {
			call, _, _ := strings.Cut(what, " ")
			for n := range most[call] {
				if d := (disturbed{build: build, what: what, nth: n + 1}); strings.Contains(d.String(), *faultOnly) {
					plan = append(plan, d)
				}
			}
		}
	}
	all := len(plan)
	var part, parts int
	if _, err := fmt.Sscanf(*faultPart, "%d/%d", &part, &parts); err != nil || part < 1 || part > parts {
		t.Fatalf("-faults-part %q is not one such as 1/8", *faultPart)
	}
	plan = slices.DeleteFunc(plan, func(d disturbed) bool { return d.nth%parts != part-1 })
	if *faults > 0 {
		plan = sample(rng, plan, *faults)
	}
	t.Logf("%d of %d disturbed builds", len(plan), all)
	var next, hits atomic.Int64
	var wg sync.WaitGroup
	for _, p := range []*faulty{first, newFaulty(t, kiln)} {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(plan)); i = next.Add(1) - 1 {
				if p.try(plan[i]) {
					hits.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d of them met a call", hits.Load())
	if *faultOnly == "" && int(hits.Load()) < len(plan)/2 {
		t.Errorf("only %d of %d builds met what was to disturb them", hits.Load(), len(plan))
	}
}

// TestShippedFaults lets all calls of a kind fail that are about one of the files that ids, parcels and constants are made of, or that
// they are: the build after it looks at that file again although nothing changed.
func TestShippedFaults(t *testing.T) {
	t.Parallel()
	needStrace(t)
	p := newFaulty(t, buildKiln(t))
	text := strings.Replace(p.read("kiln.toml"), `name   = "title"`, "name   = \"title\"\norder = \"load.order\"\ndictionary = \"words.dict\"", 1)
	if text == p.read("kiln.toml") {
		t.Fatal("the example has no parcel title")
	}
	p.config = func() {
		p.write("kiln.toml", text)
		p.write("load.order", "# kiln.load 1\nsprites/ui\n")
		p.write("words.dict", "what most of them have in common, and more of it")
	}
	p.learn()
	for _, file := range []string{"kiln.ids", "load.order", "words.dict", "game/web/assets.tmpl", "game/web/assets.mjs", "game/assets/assets.go",
		"build/parcels/pc/parcels.json", "build/parcels/pc/title.parcel"} {
		hits := 0
		for _, what := range []string{"openat", "read,pread64", "write,pwrite64", "renameat", "newfstatat,fstat", "unlinkat"} {
			if p.try(disturbed{build: "edit", what: what + " error=EIO", file: file}) {
				hits++
			}
		}
		if hits < 3 {
			t.Errorf("only %d builds met a call about %s", hits, file)
		}
	}
}

// TestRootGoes: a source root that goes once a build has found it there, and is back after it, is not taken for an empty one.
func TestRootGoes(t *testing.T) {
	t.Parallel()
	needStrace(t)
	p := newFaulty(t, buildKiln(t))
	d := disturbed{build: "edit", what: "openat error=ENOENT", file: "assets"}
	if !p.try(d) {
		t.Skip("strace does not work here")
	}
	p.prepare("edit")
	if exit, said := p.run(d.strace(p.dir, filepath.Join(t.TempDir(), "strace"))...); exit != 2 || !strings.Contains(said, "error[K0010]: source root \"assets\" is not a folder") {
		t.Errorf("exit %d:\n%s", exit, said)
	}
}

// TestNoRights builds as somebody who may not see all source files: a folder that cannot be entered, ignore files that cannot be read, at
// first and later on. It fails, and once the rights are there the next build is right.
func TestNoRights(t *testing.T) {
	t.Parallel()
	thorough.Only(t, "the real kiln is built, and builds the example many times")
	var watcher []string
	if os.Geteuid() == 0 { // root without its rights to all files
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("setpriv is not installed")
		}
		watcher = []string{"setpriv", "--bounding-set=-dac_override,-dac_read_search"}
	}
	p := newFaulty(t, buildKiln(t))
	p.edit()
	for _, c := range []struct {
		path, want string
		mode       os.FileMode
	}{
		{"assets/textures/.kilnignore", "assets/textures/.kilnignore: error[K0106]: this file cannot be looked at", 0},
		{"assets/.kilnignore", "assets/.kilnignore: error[K0106]: this file cannot be looked at", 0},
		{"assets/textures/ground", "assets/textures/ground/stone.png: error[K0106]: this file cannot be looked at", 0o444},
		{"assets/textures/ground", "assets/textures/ground: error[K0106]: this folder cannot be listed", 0},
		{"assets/sprites/ui/key.png", "assets/sprites/ui/key.png: error[K0106]: the file cannot be read", 0},
	} {
		info, err := os.Stat(p.path(c.path))
		p.must(err)
		for _, first := range []bool{true, false} {
			if first {
				p.remove(".kiln")
				p.remove("build")
			}
			p.must(os.Chmod(p.path(c.path), c.mode))
			for range 2 {
				if exit, said := p.run(watcher...); exit != 1 || !strings.Contains(said, c.want) {
					t.Errorf("%s with mode %o: exit %d, without %q:\n%s", c.path, c.mode, exit, c.want, said)
				}
			}
			p.must(os.Chmod(p.path(c.path), info.Mode()))
			for range 2 {
				if exit, said := p.run(watcher...); exit != 0 || !maps.Equal(p.files(), p.after) {
					t.Errorf("%s may be read again: exit %d, outputs that differ: %s\n%s", c.path, exit, differ(p.after, p.files()), said)
				}
			}
		}
	}
}

// TestKilnsAtOnce starts several kilns in one project at the same moment. All end well, and each job runs in one of them only.
func TestKilnsAtOnce(t *testing.T) {
	t.Parallel()
	thorough.Only(t, "the real kiln is built, and builds the example many times")
	p := newFaulty(t, buildKiln(t))
	count := func(said string) (n int) {
		t.Helper()
		if _, err := fmt.Sscanf(said[strings.LastIndex(strings.TrimSpace(said), "\n")+1:], "%d asset", &n); err != nil {
			t.Error(said)
		}
		return n
	}
	p.prepare("edit")
	_, said := p.run()
	alone := count(said)
	for range 3 {
		p.prepare("edit")
		exits, saids := make([]int, 4), make([]string, 4)
		var wg sync.WaitGroup
		for i := range exits {
			wg.Go(func() { exits[i], saids[i] = p.run() })
		}
		wg.Wait()
		built := 0
		for i, said := range saids {
			if exits[i] != 0 {
				t.Errorf("exit %d:\n%s", exits[i], said)
			}
			built += count(said)
		}
		if got := p.files(); built != alone || alone < 5 || !maps.Equal(got, p.after) {
			t.Errorf("built %d, alone %d; outputs that are not those of a clean build: %s", built, alone, differ(p.after, got))
		}
	}
}

// TestSmallDisk builds on disks of many sizes. What does not fit is an error that says so, and when there is room the next build is right.
func TestSmallDisk(t *testing.T) {
	thorough.Only(t, "the real kiln is built, and builds the example many times")
	if !inOwnMounts(t) {
		return
	}
	p := newFaulty(t, buildKiln(t))
	p.fixture = &fixture{TB: t, dir: t.TempDir()}
	p.mount(".", "size=64m")
	size := func(bytes int64) {
		t.Helper()
		p.must(unix.Mount("", p.dir, "", unix.MS_REMOUNT, fmt.Sprintf("size=%d", bytes)))
	}
	full := 0
	for _, build := range []string{"first", "edit"} {
		for room := int64(0); room <= *rooms; room += *roomStep {
			want, db := p.prepare(build)
			var st unix.Statfs_t
			p.must(unix.Statfs(p.dir, &st))
			size((int64(st.Blocks)-int64(st.Bfree))*int64(st.Bsize) + room)
			exit, said := p.run()
			bad := func(format string, args ...any) {
				t.Helper()
				t.Errorf("%s with room for %d bytes: exit %d, %s\n%s", build, room, exit, fmt.Sprintf(format, args...), said)
			}
			p.judge(disturbed{build: build}, exit, said, want, bad)
			told := strings.Contains(said, "no space left on device") || strings.Contains(said, "disk is full")
			if told {
				full++
			}
			if exit > 1 || exit == 1 && !told {
				bad("but the disk is full")
			}
			size(64 << 20)
			exit, said = p.run()
			if got := p.files(); exit != 0 || !maps.Equal(got, want) || !cmp.Equal(db, p.database()) {
				bad("once there is room; outputs that are not those of a clean build: %s", differ(want, got))
			}
			if said := p.well(); !strings.Contains("\n"+said, "\n0 assets built, ") {
				bad("and then it builds again:\n%s", said)
			}
		}
	}
	if full < 4 {
		t.Errorf("only %d builds had too little room", full)
	}
	t.Logf("%d builds had too little room", full)
}

// sample picks disturbed builds so that each build and each disturbance has its share, however many calls there are of it.
func sample(rng *rand.Rand, plan []disturbed, n int) []disturbed {
	rng.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	seen := map[string]int{}
	rank := map[disturbed]int{}
	for _, d := range plan {
		seen[d.build+d.what]++
		rank[d] = seen[d.build+d.what]
	}
	slices.SortStableFunc(plan, func(a, b disturbed) int { return rank[a] - rank[b] })
	return plan[:min(n, len(plan))]
}
