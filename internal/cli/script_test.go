package cli_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kiln-pipeline/kiln"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/processors/copy"
	"github.com/kiln-pipeline/kiln/processor"
)

var update = flag.Bool("update", false, "write expected output into the scripts")

// TestMain makes the test binary the kiln command too, and a tool for processors that projects declare.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kiln":     func() { kiln.Main() },
		"teamkiln": func() { kiln.Main(kiln.With(shout{}), kiln.With(teamCopy{copy.New()})) },
		"tool":     tool,
	})
}

// shout is a processor that a team wrote, and that does what a processor should not if the file says so: PANIC, FAIL, TWICE,
// READ path, NEED asset.
type shout struct{}

func (shout) Info() processor.Info {
	return processor.Info{
		Name: "shout", Version: 1, Summary: "shouts", Extensions: []string{".shout"},
		Products: []processor.ProductType{{Type: "text", Extension: ".txt"}},
	}
}

func (shout) Process(_ context.Context, job processor.Job) error {
	text, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	out := processor.Output{Type: "text", Extension: ".txt"}
	what, name, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	switch what {
	case "PANIC":
		panic("out of breath")
	case "FAIL":
		return errors.New("hoarse")
	case "TWICE":
		err = job.Write(out, nil)
	case "READ":
		_, err = job.ReadFile(name)
	case "NEED":
		_, err = job.Products(name)
	}
	if err != nil {
		return err
	}
	return job.Write(out, bytes.ToUpper(text))
}

// teamCopy takes the place of copy.
type teamCopy struct{ processor.Processor }

func (c teamCopy) Info() processor.Info {
	info := c.Processor.Info()
	info.Summary = "the team's copy"
	return info
}

// TestScripts runs the real command: a file a behaviour.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "1")
			e.Setenv("KILN_CACHE", "off")
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".caches")) // where compiled code is
			e.Setenv("LocalAppData", filepath.Join(e.WorkDir, ".caches"))
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			e.Setenv("EXAMPLES", examples)
			e.Setenv("COMMANDS", filepath.SplitList(os.Getenv("PATH"))[0]) // the folder of kiln, and of nothing that is not ours
			e.Setenv("GORACE", "atexit_sleep_ms=0")                        // with the race detector, each command would end a second later
			e.Values["snapshots"] = map[string]string{}
			e.Vars = append(e.Vars, goEnvironment()...)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Getuid() == 0, nil
			case "thorough":
				return thorough.Enabled(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "snapshot": snapshot, "unchanged": unchanged, "timeless": timeless, "touch": touch,
			"lock": lock, "png": writePNG, "wav": writeWAV, "gif": writeGIF, "fields": fields, "jsonlines": jsonLines, "await": await, "writable": writable,
			"fifo": fifo, "badname": badName, "cut": cut, "until": until, "claims": claims, "conformance": conformance,
			"farm": startFarm,
		},
	})
}

// goEnvironment lets scripts compile Go: offline, with the caches of whoever tests, and $KILN for this repository.
var goEnvironment = sync.OnceValue(func() []string {
	env := []string{"GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOFLAGS=-trimpath", "CGO_ENABLED=0"}
	if dir, err := filepath.Abs("../.."); err == nil {
		env = append(env, "KILN="+dir)
	}
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if dirs := strings.Fields(string(out)); err == nil && len(dirs) == 2 {
		env = append(env, "GOCACHE="+dirs[0], "GOMODCACHE="+dirs[1])
	}
	return env
})

// tool is what command processors of the scripts run:
//
//	tool join OUT IN...   writes the files one after the other
//	tool fail IN          says that line 2 of the file is wrong
//	tool hang OUT         makes the file, and waits to be killed
//	tool sleep            waits to be killed
//	tool idle             does nothing, and succeeds
//	tool loud OUT         writes the file and to standard error
//	tool folder OUT       makes a folder where a file should be
//	tool names OUT FOLDER...  lists folders, and writes the names in the first of them
//	tool dep OUT DEP FILE writes the file, and a depfile that says it read FILE of the project
//	tool play LOG         notes that it was started, and plays until it is asked to end, which it notes as well
//	tool game ARG...      says how it was started and what a.txt it sees, and ends with the exit code EXIT
func tool() {
	die := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	check := func(err error) {
		if err != nil {
			die(err)
		}
	}
	switch args := os.Args[2:]; os.Args[1] {
	case "join":
		var all []byte
		for _, in := range args[1:] {
			b, err := os.ReadFile(in)
			if err != nil {
				die(err)
			}
			all = append(all, b...)
		}
		if err := os.WriteFile(args[0], all, 0o666); err != nil {
			die(err)
		}
	case "fail":
		die(fmt.Errorf("%s:2:3: error: no such tile", args[0]))
	case "clock": // what a processor must not look at
		if err := os.WriteFile(args[0], []byte("made at "+time.Now().Format(time.RFC3339)), 0o666); err != nil {
			die(err)
		}
	case "hang":
		if err := os.WriteFile(args[0], nil, 0o666); err != nil {
			die(err)
		}
		time.Sleep(time.Hour)
	case "sleep":
		time.Sleep(time.Hour)
	case "loud":
		fmt.Fprintln(os.Stderr, "deprecated: use louder")
		check(os.WriteFile(args[0], nil, 0o666))
	case "folder":
		check(os.Mkdir(args[0], 0o777))
	case "names":
		var text string
		for i, folder := range args[1:] {
			entries, _ := os.ReadDir(folder) // of which one may be a file
			for _, e := range entries {
				if i == 0 {
					text += e.Name() + "\n"
				}
			}
		}
		check(os.WriteFile(args[0], []byte(text), 0o666))
	case "play":
		check(play(args[0]))
	case "game":
		check(startGame(args))
	case "dep":
		check(errors.Join(os.WriteFile(args[0], nil, 0o666), os.WriteFile(args[1], []byte("out: "+strings.ReplaceAll(filepath.Join(os.Getenv("WORK"), args[2]), " ", `\ `)+"\n"), 0o666)))
	}
}

// play is a game that notes that it was started, with what it saw, and plays until it is asked to end, unless what it saw makes it crash.
func play(log string) error {
	note := func(text string) error {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return err
		}
		fmt.Fprintln(f, text)
		return f.Close()
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	saw, err := os.ReadFile("build/pc/a.txt")
	if err != nil {
		return err
	}
	served := os.Getenv("KILN_LIVE_ADDRESS") != ""
	if err := note(fmt.Sprintf("started level=%s at %t with %s", os.Getenv("LEVEL"), served, strings.TrimSpace(string(saw)))); err != nil {
		return err
	}
	if strings.HasPrefix(string(saw), "crash") {
		os.Exit(3)
	}
	<-ended
	return note("ended")
}

// startGame is a game that says how it was started.
func startGame(args []string) error {
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	saw, err := os.ReadFile("../build/pc/a.txt")
	work := filepath.ToSlash(strings.Replace(wd, os.Getenv("WORK"), "WORK", 1))
	fmt.Printf("game %v level=%s in %s sees %s", args, os.Getenv("LEVEL"), work, saw)
	if code, _ := strconv.Atoi(os.Getenv("EXIT")); err == nil {
		os.Exit(code)
	}
	return err
}

// exits CODE COMMAND...: runs a command that must end with exactly that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if (got == want) == neg {
		ts.Fatalf("exit code %d", got)
	}
}

// look describes every file below a folder: name, size, modification time and identity.
func look(ts *testscript.TestScript, dir string) string {
	var b strings.Builder
	ts.Check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %d %s %s\n", path, info.Size(), info.ModTime().Format(time.RFC3339Nano), identity(info))
		return nil
	}))
	return b.String()
}

// snapshot DIR...: remembers the files below folders, for unchanged.
func snapshot(ts *testscript.TestScript, _ bool, dirs []string) {
	for _, dir := range dirs {
		ts.Value("snapshots").(map[string]string)[dir] = look(ts, ts.MkAbs(dir))
	}
}

// unchanged DIR...: none of the files was written, replaced, added or removed since the snapshot.
func unchanged(ts *testscript.TestScript, neg bool, dirs []string) {
	for _, dir := range dirs {
		before, ok := ts.Value("snapshots").(map[string]string)[dir]
		if !ok {
			ts.Fatalf("there is no snapshot of %s", dir)
		}
		if now := look(ts, ts.MkAbs(dir)); (now == before) == neg {
			ts.Fatalf("before:\n%s\nnow:\n%s", before, now)
		}
	}
}

var (
	times = regexp.MustCompile(`\bin \d+\.\d\d s`)
	took  = regexp.MustCompile(` +[0-9.]+ m?s  `)
	where = regexp.MustCompile(`_test\.go:\d+`)
	exact = regexp.MustCompile(`"seconds":[0-9.e-]+`)
	still = regexp.MustCompile(`(?m)^\d+ of \d+ done.*\n`) // what a build says that takes its time
)

// timeless STREAM FILE: writes a stream of the last command to a file, with all durations, and lines of these tests, as 0.
func timeless(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.ReadFile(args[0])
	s = strings.ReplaceAll(s, ts.Getenv("WORK"), "WORK")
	s = times.ReplaceAllString(s, "in 0.00 s")
	s = took.ReplaceAllString(s, "  0 ms  ")
	s = where.ReplaceAllString(s, "_test.go:0")
	s = exact.ReplaceAllString(s, `"seconds":0`)
	s = still.ReplaceAllString(s, "")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(s), 0o666))
}

// touch TIME FILE...: sets times; "now" is the present.
func touch(ts *testscript.TestScript, _ bool, args []string) {
	at := time.Now()
	if args[0] != "now" {
		var err error
		at, err = time.Parse(time.DateOnly, args[0])
		ts.Check(err)
	}
	for _, f := range args[1:] {
		ts.Check(os.Chtimes(ts.MkAbs(f), at, at))
	}
}

// lock DIR: holds the project in DIR, as another kiln would, until the script ends.
func lock(ts *testscript.TestScript, _ bool, args []string) {
	dir := filepath.Join(ts.MkAbs(args[0]), ".kiln")
	ts.Check(os.MkdirAll(dir, 0o777))
	l := flock.New(filepath.Join(dir, "lock"))
	ok, err := l.TryLock()
	ts.Check(err)
	if !ok {
		ts.Fatalf("the lock is held already")
	}
	ts.Defer(func() { l.Close() })
}

// png FILE WIDTH HEIGHT [BLUE]: draws a small image.
func writePNG(ts *testscript.TestScript, _ bool, args []string) {
	w, err := strconv.Atoi(args[1])
	ts.Check(err)
	h, err := strconv.Atoi(args[2])
	ts.Check(err)
	blue := 128
	if len(args) > 3 {
		blue, err = strconv.Atoi(args[3])
		ts.Check(err)
	}
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.NRGBA{uint8(x * 16), uint8(y * 16), uint8(blue), 255})
		}
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(png.Encode(f, m))
	ts.Check(f.Close())
}

// gif FILE SIDE FRAMES: draws an animation of squares, each redder than the one before.
func writeGIF(ts *testscript.TestScript, _ bool, args []string) {
	side, err := strconv.Atoi(args[1])
	ts.Check(err)
	frames, err := strconv.Atoi(args[2])
	ts.Check(err)
	g := gif.GIF{}
	for i := range frames {
		c := color.NRGBA{uint8(40 * (i + 1)), 9, 9, 255}
		g.Image, g.Delay = append(g.Image, image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{c})), append(g.Delay, 10)
	}
	var b bytes.Buffer
	ts.Check(gif.EncodeAll(&b, &g))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o666))
}

// cut FILE BYTES: keeps only the beginning of a file.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}

// claims FILE WIDTH HEIGHT: makes the header of a PNG claim another size.
func claims(ts *testscript.TestScript, _ bool, args []string) {
	b := []byte(ts.ReadFile(args[0]))
	for i, at := range []int{16, 20} {
		n, err := strconv.ParseUint(args[1+i], 10, 32)
		ts.Check(err)
		binary.BigEndian.PutUint32(b[at:], uint32(n))
	}
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o666))
}

// writable FILE...: takes the write protection off.
func writable(ts *testscript.TestScript, _ bool, args []string) {
	for _, f := range args {
		ts.Check(os.Chmod(ts.MkAbs(f), 0o666))
	}
}

// badname DIR: makes a file whose name is not UTF-8.
func badName(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[0]), "b\xff.txt"), []byte("x"), 0o666))
}

// patience is how long something in the background may take, on a busy machine, before it is taken not to come.
const patience = 2 * time.Minute

// await GLOB: waits for a file that a background command makes.
func await(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if found, _ := filepath.Glob(ts.MkAbs(args[0])); len(found) > 0 {
			return
		}
	}
	ts.Fatalf("%s never came", args[0])
}

// until REGEXP COMMAND...: runs a command again and again until its standard output matches.
func until(ts *testscript.TestScript, _ bool, args []string) {
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	last := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		ts.Exec(args[1], args[2:]...) // whether it succeeds is not the question
		if last = ts.ReadFile("stdout"); want.MatchString(last) {
			return
		}
	}
	ts.Fatalf("%q never came: %s", args[0], last)
}

// objects are the lines of standard output as JSON, each with its fields in order.
func objects(ts *testscript.TestScript) (lines []map[string]any, names [][]string) {
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			ts.Fatalf("%v in %s", err, line)
		}
		dec := json.NewDecoder(bytes.NewReader([]byte(line)))
		var keys []string
		dec.Token()
		for dec.More() {
			k, err := dec.Token()
			ts.Check(err)
			keys = append(keys, k.(string))
			var skip json.RawMessage
			ts.Check(dec.Decode(&skip))
		}
		if _, err := dec.Token(); err != nil && err != io.EOF {
			ts.Check(err)
		}
		lines, names = append(lines, m), append(names, keys)
	}
	return lines, names
}

// jsonlines TYPE...: standard output is JSON, an object a line, of these types in this order; several in a row count once.
func jsonLines(ts *testscript.TestScript, _ bool, want []string) {
	lines, _ := objects(ts)
	var types []string
	for _, l := range lines {
		types = append(types, fmt.Sprint(l["type"]))
	}
	if types = slices.Compact(types); !slices.Equal(types, want) {
		ts.Fatalf("objects of type %v", types)
	}
}

// fields TYPE NAME...: there is an object of that type, and all that there are have exactly these fields, in this order.
func fields(ts *testscript.TestScript, _ bool, args []string) {
	lines, names := objects(ts)
	found := false
	for i, l := range lines {
		if l["type"] != args[0] {
			continue
		}
		found = true
		if !slices.Equal(names[i][1:], args[1:]) {
			ts.Fatalf("fields of %s: %v", args[0], names[i])
		}
	}
	if !found {
		ts.Fatalf("no object of type %s", args[0])
	}
}
