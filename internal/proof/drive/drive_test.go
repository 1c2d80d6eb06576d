//go:build linux

package drive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/kilnrt"
	"github.com/kiln-pipeline/kiln/kilnrt/live"
)

var (
	long     = flag.Duration("long", 0, "how long each mode of TestDrive goes on, from project to project; 0: as many projects as -projects says")
	projects = flag.Int("projects", 0, "how many projects each mode of TestDrive edits; 0: one, or two with KILN_TESTS=all")
	seed     = flag.Uint64("seed", 1, "where TestDrive's first project comes from; 0: the time")
	replay   = flag.String("replay", "", "a file of operations that TestDrive does in place of random ones")
	minimise = flag.Duration("minimise", time.Minute, "how long a list of operations that shows a fault is made shorter")
	verbose  = flag.Bool("verbose", false, "show what each comparison is about")
	keep     = flag.Bool("keep", false, "leave the folders of the fault that was found, and say where they are")
)

// modes are the commands that run concurrently with the builds.
var modes = []string{"alone", "watch", "serve"}

// beside makes TestDrive run beside watchers too. It is for long runs by hand: see docs/internals/proof.md.
var beside = flag.Bool("beside", false, "TestDrive also beside kiln watch and kiln serve")

// TestDrive edits projects at random, alone, beside kiln watch and beside kiln serve, and compares builds with clean
// ones. If there is a difference, it shortens the list of operations as far as possible and prints it.
func TestDrive(t *testing.T) {
	makeGuest()
	for i, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			if mode != "alone" && !*beside && *replay == "" {
				t.Skip("only with -beside")
			}
			if *replay != "" {
				replayed(t, mode)
				return
			}
			at := *seed
			if at == 0 {
				at = uint64(time.Now().UnixNano())*4 + uint64(i)
			}
			compared, whole, projects := 0, 0, *projects
			if projects == 0 {
				projects = thorough.Of(1, 2)
			}
			for n, until := 0, time.Now().Add(*long); n < projects && *long == 0 || time.Now().Before(until); n, at = n+1, at+1 {
				d, differs := run(t, mode, made(at))
				compared += d.compared
				whole += d.whole
				if differs == "" {
					continue
				}
				t.Errorf("seed %d: %s", at, differs)
				ops := shorter(t, mode, d.done)
				file := filepath.Join(os.TempDir(), fmt.Sprintf("kiln-drive-%s-%d", mode, at))
				os.WriteFile(file, []byte(written(ops)), 0o666)
				t.Fatalf("these do it (go test ./internal/proof/drive -run TestDrive/%s -replay %s):\n%s", mode, file, written(ops))
			}
			t.Logf("%d comparisons, up to seed %d", compared, at)
			if whole < compared/2 {
				t.Errorf("in %d of %d comparisons the project could not be built at all", compared-whole, compared)
			}
		})
	}
}

// made returns the list of operations for a seed.
func made(seed uint64) []op {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 14))}
	if m.IntN(10) == 0 {
		m.bits |= module
	}
	ops := []op{{verb: "project", n: m.bits}}
	for _, dir := range []string{"", "s/", "s/t/", "ui/"} {
		for _, ext := range []string{".txt", ".txt", ".acts", ".traced", ".png", ".team"} { // files that other assets ask for
			ops = append(ops, op{verb: "save", a: pick(m, "one/", "two/") + dir + pick(m, "a", "b") + ext, n: m.IntN(1 << 16)})
		}
	}
	for range 6 {
		ops = append(ops, op{verb: "save", a: m.file(), n: m.IntN(1 << 16)})
	}
	for range 12 {
		for range 1 + m.IntN(6) {
			ops = append(ops, m.next())
		}
		ops = append(ops, op{verb: "compare", n: m.IntN(2)})
	}
	return ops
}

func written(ops []op) string {
	var b strings.Builder
	for _, o := range ops {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%d\t%d\n", o.verb, o.a, o.b, o.n, o.more)
	}
	return b.String()
}

func parsed(text string) ([]op, error) {
	var ops []op
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 5 {
			return nil, fmt.Errorf("not an operation: %q", line)
		}
		o := op{verb: f[0], a: f[1], b: f[2]}
		if _, err := fmt.Sscan(f[3]+" "+f[4], &o.n, &o.more); err != nil {
			return nil, err
		}
		ops = append(ops, o)
	}
	return ops, nil
}

func replayed(t *testing.T, mode string) {
	text, err := os.ReadFile(*replay)
	if err != nil {
		t.Fatal(err)
	}
	ops, err := parsed(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, differs := run(t, mode, ops); differs != "" {
		t.Error(differs)
	}
}

// shorter removes operations while the rest still shows a difference. Each list is tried three times, because some
// differences depend on time.
func shorter(t *testing.T, mode string, ops []op) []op {
	end := time.Now().Add(*minimise)
	fails := func(ops []op) []op {
		for range 3 {
			if d, differs := run(t, mode, ops); differs != "" {
				return d.done
			}
		}
		return nil
	}
	for size := len(ops) / 2; size > 0; size /= 2 {
		for i := len(ops) - size - 1; i >= 0; i -= size {
			if time.Now().After(end) {
				return ops
			}
			if less := fails(slices.Delete(slices.Clone(ops), i, i+size)); less != nil {
				ops = less
				i = min(i, len(ops)-size)
			}
		}
	}
	return ops
}

// driver is a project with the kiln that watches it.
type driver struct {
	testing.TB
	project
	mode     string
	bits     int
	late     bool // builds name the stage, if the project has it
	watcher  *exec.Cmd
	ended    chan error
	said     *saying // output of the watcher
	done     []op
	compared int
	whole    int  // number of comparisons where the clean build was not aborted
	deep     bool // a blob was edited and its times were restored; only a check of the content finds this
	litter   bool // there may be unknown outputs: their sources were removed while there was no state
}

// saying is the output of a running program.
type saying struct {
	mu  sync.Mutex
	all []byte
}

func (s *saying) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, b...)
	return len(b), nil
}

func (s *saying) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.all)
}

// settle waits until the first build of a watcher has ended. That build keeps last good products, even if another kiln
// that found no watcher has just built without them.
func (d *driver) settle() (fault string) {
	for end := time.Now().Add(20 * time.Second); d.watcher != nil && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(d.said.String(), "watching; ") {
			break
		}
		if fault := d.watcherFault(); fault != "" {
			return fault
		}
	}
	return ""
}

// run executes a list of operations in a new project, and returns the first difference.
func run(t testing.TB, mode string, ops []op) (*driver, string) {
	dir, err := os.MkdirTemp("", "kiln drive ")
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{TB: t, project: project{filepath.Join(dir, "project")}, mode: mode}
	if err := d.begin(0); err != nil {
		t.Fatal(err)
	}
	if !*keep {
		defer os.RemoveAll(dir)
	}
	defer d.kill()
	for _, o := range ops {
		d.done = append(d.done, o)
		if differs := d.step(o); differs != "" {
			if *keep {
				t.Logf("in %s", dir)
			}
			return d, differs
		}
	}
	return d, ""
}

func (d *driver) step(o op) string {
	d.follow()
	switch o.verb {
	case "project":
		d.bits = o.n
		d.do(o)
	case "kill":
		d.kill()
	case "stage":
		d.late = o.n%2 == 0
	case "state":
		d.litter = d.litter || o.a == "" || o.a == "snapshot"
		d.do(o)
	case "ask":
		d.kiln(d.dir, [][]string{{"ls", "--json"}, {"why", "a.txt"}, {"impact", "one/a.txt"}, {"settings", "s/a.txt"}}[o.more]...)
	case "build":
		d.kiln(d.dir, [][]string{{"build"}, {"build", "s/**"}, {"build", "--on-error", "fail"}, {"build", "-p", "pc", "--force"}}[o.more]...)
	case "blob":
		d.deep = true
		d.do(o)
	case "flicker":
		d.flicker(o)
	case "compare":
		return d.compare(o.n%2 == 0)
	default:
		d.do(o)
	}
	return d.watcherFault()
}

// flicker changes a file while a build runs, and restores it.
func (d *driver) flicker(o op) {
	built := make(chan bool)
	go func() {
		defer close(built)
		if d.mode == "alone" {
			d.kiln(d.dir, "build")
		}
	}()
	for i := range 3 {
		d.do(op{verb: "save", a: o.a, n: o.n + i%2})
		time.Sleep(time.Duration(o.n%40) * time.Millisecond)
	}
	<-built
}

// follow starts a watcher if the mode needs one and there is none.
func (d *driver) follow() {
	if d.mode == "alone" || d.watcher != nil {
		return
	}
	d.watcher = exec.Command("kiln", d.mode, "-C", d.dir, "--listen", "127.0.0.1:0")
	d.said = &saying{}
	d.watcher.Stderr = d.said
	d.watcher.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.watcher.Start(); err != nil {
		d.Fatal(err)
	}
	d.ended = make(chan error, 1)
	go func(c *exec.Cmd, ended chan<- error) { ended <- c.Wait() }(d.watcher, d.ended)
}

func (d *driver) kill() {
	if d.watcher != nil {
		d.watcher.Process.Kill()
		<-d.ended
		d.watcher = nil
	}
}

// watcherFault returns a text if the watcher has ended although the project file is valid.
func (d *driver) watcherFault() string {
	if d.watcher == nil {
		return ""
	}
	select {
	case err := <-d.ended:
		d.watcher = nil
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 2 {
			return "" // the project file was wrong when it started
		}
		return fmt.Sprintf("the watcher ended: %v\n%s", err, d.said.String())
	default:
		return ""
	}
}

// answer is the output of a command.
type answer struct {
	code int
	out  string
	errs string
}

func (d *driver) kiln(dir string, args ...string) answer {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kiln", append(args, "-C", dir)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		return answer{code: -1, errs: "it hangs: " + strings.Join(args, " ")}
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.Fatal(err)
	}
	return answer{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// outcome is the part of a result that is compared.
type outcome struct {
	Code     int
	Messages []string
	Summary  map[string]any
	Assets   []string
	Outputs  map[string]string
	IDs      string
	Game     string // constants that are committed
}

// stage is the flag for builds, which all of them have: a watcher has none.
func (d *driver) stage() []string {
	if !d.late || d.bits&staged == 0 || d.bits&broken != 0 || d.mode != "alone" {
		return nil
	}
	return []string{"--stage", "late"}
}

// historic are messages that depend on the history of a project: damaged state, an order of a removed asset, blobs that
// were made again, last good products, outputs of sources that were removed with the state.
var historic = []string{"K0211", "K0212", "K0250", "K0279", "K1614"}

func (d *driver) outcome(dir string, fail bool) (*outcome, string) {
	args := append([]string{"build", "--json"}, d.stage()...)
	if fail {
		args = append(args, "--on-error", "fail")
	}
	a := d.kiln(dir, args...)
	o := &outcome{Code: a.code}
	if a.code < 0 || a.code > 2 {
		return nil, fmt.Sprintf("exit code %d: %s%s", a.code, a.out, a.errs)
	}
	var passing []string // paths of source files
	for line := range strings.Lines(a.out) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return nil, fmt.Sprintf("%v: %q", err, line)
		}
		switch m["type"] {
		case "message":
			if m["code"] == "K1513" { // a temporary failure leaves no trace: the product is new, or the last one
				_, path, _ := strings.Cut(m["file"].(string), "/")
				passing = append(passing, path)
			}
			old := slices.Contains(historic, m["code"].(string)) || strings.Contains(line, "the parcel was left as it is, and is damaged")
			if !old {
				o.Messages = append(o.Messages, strings.ReplaceAll(line, dir, "DIR"))
			}
		case "summary":
			o.Summary = map[string]any{}
			for _, k := range []string{"assets", "jobs", "failed", "products", "bytes"} {
				o.Summary[k] = m[k]
			}
		}
	}
	slices.Sort(o.Messages)
	if fail && a.code < 2 {
		for line := range strings.Lines(d.kiln(dir, append([]string{"ls", "--json"}, d.stage()...)...).out) {
			var m map[string]any
			if json.Unmarshal([]byte(line), &m) == nil && slices.ContainsFunc(passing, func(path string) bool { return path == m["path"] }) {
				continue
			}
			o.Assets = append(o.Assets, line)
		}
	}
	if a.code < 2 {
		o.Outputs = outputs(filepath.Join(dir, "build"))
		ids, _ := os.ReadFile(filepath.Join(dir, "kiln.ids"))
		o.IDs = string(ids)
		game, _ := os.ReadFile(filepath.Join(dir, "game/ids.lua"))
		o.Game = string(game)
	}
	return o, ""
}

// compare builds, and compares the result with a clean build of a copy. If last good products are allowed, differences
// caused by them do not count.
func (d *driver) compare(fail bool) string {
	d.compared++
	if d.deep {
		d.deep = d.kiln(d.dir, "build", "--changed", "hash").code > 1 // a build that could not begin has checked nothing
	}
	if d.litter { // an unknown output may be in the way of a folder; do what the message says
		d.kiln(d.dir, "build")
		d.kiln(d.dir, "verify", "--fix")
	}
	if fail {
		if fault := d.settle(); fault != "" {
			return fault
		}
	}
	got, wrong := d.outcome(d.dir, fail)
	if wrong != "" {
		return wrong
	}
	elsewhere := d.dir + " elsewhere"
	defer os.RemoveAll(elsewhere)
	if err := copyTree(d.dir, elsewhere); err != nil {
		return err.Error()
	}
	want, wrong := d.outcome(elsewhere, fail)
	if *verbose {
		d.Logf("exit code %d, %v, %d messages, %d outputs", got.Code, got.Summary, len(got.Messages), len(got.Outputs))
		for _, m := range got.Messages {
			d.Log(m)
		}
	}
	if wrong != "" {
		return "the clean build: " + wrong
	}
	if !fail && want.Code == 1 && d.mode != "alone" {
		lastGood(got, want)
	}
	if want.Code < 2 {
		d.whole++
	}
	if d.mode == "serve" && got.Code == 0 {
		if differs := d.play(got); differs != "" {
			return differs
		}
	}
	held(got, want)
	if fault := d.ends(got); fault != "" {
		return fault
	}
	if d.litter {
		maps.DeleteFunc(got.Outputs, func(f, _ string) bool { _, ok := want.Outputs[f]; return !ok })
	}
	diff := cmp.Diff(want, got)
	if diff == "" {
		return ""
	}
	if *keep {
		copyTree(d.dir, elsewhere+" kept")
	}
	diff = fmt.Sprintf("comparison %d (--on-error fail: %v) differs (-clean +this):\n%s", d.compared, fail, diff)
	if d.mode != "alone" {
		diff += fmt.Sprintf("the watcher said at last:\n%s", tail(d.said.String(), 2000))
	}
	return diff
}

// ends wants that --locked accepts what a build wrote, and verify finds nothing wrong with it.
func (d *driver) ends(got *outcome) string {
	if got.Code > 1 || d.mode != "alone" || d.compared%3 > 0 {
		return ""
	}
	locked := append([]string{"build", "--locked", "--on-error", "fail"}, d.stage()...)
	if a := d.kiln(d.dir, locked...); strings.Contains(a.errs, "K0272") || a.code > 1 {
		return fmt.Sprintf("--locked after a build: exit code %d\n%s", a.code, a.errs)
	}
	d.kiln(d.dir, append([]string{"build", "--on-error", "fail"}, d.stage()...)...)
	if a := d.kiln(d.dir, append([]string{"verify"}, d.stage()...)...); strings.Contains(a.errs, "K0278") {
		return "verify after a build:\n" + a.errs
	}
	return ""
}

// play connects like a game, and compares what it gets with the output folder.
func (d *driver) play(o *outcome) string {
	_, address, ok := strings.Cut(d.said.String(), "serving ")
	if !ok {
		return "" // the watcher has not started serving
	}
	address, _, _ = strings.Cut(address, "\n")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	lib, err := live.Connect(ctx, live.Options{Address: address, Game: "drive", Platform: "pc"})
	if err != nil {
		return fmt.Sprintf("a game cannot connect: %v", err)
	}
	defer lib.Close()
	differs := ""
	for ctx.Err() == nil { // the build does not wait for games to get its changes
		if differs = d.playing(lib, o); differs == "" {
			return ""
		}
		lib.Poll()
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Sprintf("%s\nthe watcher said at last:\n%s", differs, tail(d.said.String(), 2000))
}

// playing compares the products of a game with the output folder.
func (d *driver) playing(lib *live.Library, o *outcome) string {
	wanted := map[string]bool{} // by content
	for f, c := range o.Outputs {
		if strings.HasPrefix(f, "pc/") {
			wanted[c] = false
		}
	}
	for _, r := range lib.Resources() {
		b, err := r.Bytes()
		c := fmt.Sprintf("%q %v", b, err)
		if _, ok := wanted[c]; !ok {
			return fmt.Sprintf("a game gets for %s what no output is: %s", r.Name(), c)
		}
		wanted[c] = true
	}
	for f, c := range o.Outputs {
		if strings.HasPrefix(f, "pc/") && !wanted[c] {
			return "a game does not get " + f
		}
	}
	return ""
}

// held removes from both what a build leaves unchanged: a parcel that could not be packed, and everything shipped while
// a source root is partly unreadable, because the contents of parcels are then unknown.
func held(got, want *outcome) {
	without := func(folders ...string) {
		for _, o := range []*outcome{got, want} {
			maps.DeleteFunc(o.Outputs, func(f, _ string) bool {
				return slices.ContainsFunc(folders, func(d string) bool { return strings.HasPrefix(f, d) })
			})
		}
	}
	for _, m := range want.Messages {
		switch {
		case strings.Contains(m, `"severity":"error","code":"K01`):
			without("parcels/", "gen/")
		case strings.Contains(m, "was not packed"), strings.Contains(m, "was left as it is"):
			without("parcels/", "gen/")
		}
	}
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// lastGood removes from both what may differ if a job failed and its last good products are used: products that the
// clean build does not have, parcels, and their counts.
func lastGood(got, want *outcome) {
	older := func(m string) bool { return strings.Contains(m, `"K16`) || strings.Contains(m, `"K17`) }
	for _, o := range []*outcome{got, want} {
		o.IDs, o.Game = "", ""
		delete(o.Summary, "products")
		delete(o.Summary, "bytes")
		o.Messages = slices.DeleteFunc(o.Messages, older)
		maps.DeleteFunc(o.Outputs, func(f, _ string) bool { return strings.HasPrefix(f, "parcels") || strings.HasPrefix(f, "gen") })
	}
	maps.DeleteFunc(got.Outputs, func(f, _ string) bool { _, ok := want.Outputs[f]; return !ok })
}

// outputs returns all files in the output folder with their content. For parcels it returns their resources, because a
// parcel that was changed in place is larger than a new one.
func outputs(root string) map[string]string {
	all := map[string]string{}
	for _, f := range files(root) {
		rel, _ := filepath.Rel(root, f)
		switch {
		case filepath.Base(rel) == ship.ListName:
			l, err := ship.ReadList(f)
			if err != nil {
				all[rel] = err.Error()
				continue
			}
			for _, e := range l.Parcels {
				all[rel+" "+e.File] = fmt.Sprint(e.Name, e.Needs, e.Resources, e.Digest)
			}
		case strings.HasSuffix(rel, ".parcel"):
			all[rel] = parcelText(f)
		default:
			b, err := os.ReadFile(f)
			all[rel] = fmt.Sprintf("%q %v", b, err)
		}
	}
	return all
}

func parcelText(file string) string {
	p, err := kilnrt.Open(file)
	if err != nil {
		return err.Error()
	}
	defer p.Close()
	return fmt.Sprintf("%x %v", p.Digest(), parcel.Verify(p))
}

// copyTree copies a project without state and outputs. Links stay links.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		dst := filepath.Join(to, rel)
		switch {
		case rel == ".kiln" || rel == "build":
			return fs.SkipDir
		case e.IsDir():
			return os.MkdirAll(dst, 0o777)
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, dst)
		case !e.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(dst, b, info.Mode())
	})
}
