package command

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

func mustNew(t *testing.T, c Config) processor.Processor {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func runHelper(t *testing.T, c Config) processortest.Result {
	t.Helper()
	return processortest.Run(t, mustNew(t, c), helperCase(t))
}

// only is the one problem in an error.
func only(t *testing.T, err error, code diag.Code) *processor.Problem {
	t.Helper()
	ps := processortest.Problems(err)
	if len(ps) != 1 || ps[0].Code != string(code) {
		t.Fatalf("problems %v of %v, want one with code %s", ps, err, code)
	}
	if ps[0].Hint == "" {
		t.Errorf("no hint: %v", ps[0])
	}
	return ps[0]
}

func TestSuccess(t *testing.T) {
	c := helperConfig("copy", "{in}", "{out}", "{out:meta}", "{out:log}")
	c.Outputs = map[string]string{"meta": ".json", "log": ".txt"}
	r := runHelper(t, c)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	want := map[string]processortest.Product{
		"":     {Output: processor.Output{Type: "helped", Extension: ".bin"}, Data: []byte("water.bin: deep")},
		"meta": {Output: processor.Output{Name: "meta", Type: "meta", Extension: ".json"}, Data: []byte("water.meta.json: deep")},
		"log":  {Output: processor.Output{Name: "log", Type: "log", Extension: ".txt"}, Data: []byte("water.log.txt: deep")},
	}
	if d := cmp.Diff(want, r.Products); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"tool helper", "file a/water.txt"}, slices.DeleteFunc(r.Observations, isEnv)); d != "" {
		t.Error(d)
	}
	if len(r.Warnings) > 0 {
		t.Errorf("warnings %v", r.Warnings)
	}
}

// isEnv leaves out variables, and the libraries that the test's own binary may be linked with.
func isEnv(observation string) bool {
	return strings.HasPrefix(observation, "env ") || strings.HasPrefix(observation, "tool /lib") || strings.HasPrefix(observation, "tool /etc/ld.so.")
}

func TestKeepsTheNameWithoutAnOutputExtension(t *testing.T) {
	c := helperConfig("copy", "{in}", "{out}")
	c.Output = ""
	r := runHelper(t, c)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if p := r.Products[""]; p.Extension != "" || string(p.Data) != "water.txt: deep" {
		t.Errorf("extension %q, %q", p.Extension, p.Data)
	}
}

func TestArguments(t *testing.T) {
	c := helperConfig("args", "{out}", "{in}", "{name}", "{ext}", "{platform}", "{root}/lib", "-O{level}",
		"{{x}}", "{flags}", "{none}", "{empty}", "$HOME *; `ls`", "{dep}", "{tool:bin/two}")
	c.Settings = []Setting{
		{Name: "level", Default: 2}, {Name: "flags", Default: []string{"-a", "b c"}},
		{Name: "none", Default: []string{}}, {Name: "empty", Default: ""},
	}
	p := mustNew(t, c)
	one := helperCase(t)
	two := filepath.Join(t.TempDir(), "two")
	one.Tools["bin/two"] = two
	one.Asset = "-a b/@wa.ter.txt"
	one.Files = map[string][]byte{one.Asset: nil}
	r := processortest.Run(t, p, one)
	only(t, r.Err, diag.CommandDepfile) // for it writes none; without {dep}:
	c.Command = slices.DeleteFunc(c.Command, func(s string) bool { return s == "{dep}" })
	r = processortest.Run(t, mustNew(t, c), one)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	want := []string{
		"../out/@wa.ter.bin", "./-a b/@wa.ter.txt", "@wa.ter", ".txt", "pc", "./lib", "-O2",
		"{x}", "-a", "b c", "", "$HOME *; `ls`", two,
	}
	if d := cmp.Diff(want, strings.Split(string(r.Products[""].Data), "\n")); d != "" {
		t.Error(d)
	}
	if !slices.Contains(r.Observations, "tool bin/two") {
		t.Errorf("the second tool is not recorded: %q", r.Observations)
	}
}

func TestSettingWithZeroByte(t *testing.T) {
	c := helperConfig("args", "{out}", "{in}", "{x}")
	c.Settings = []Setting{{Name: "x", Default: "a\x00b"}}
	only(t, runHelper(t, c).Err, diag.CommandStart)
}

func TestViewHoldsExactlyTheInputs(t *testing.T) {
	c := helperConfig("tree", "{out}", "{in}")
	one := helperCase(t)
	one.Inputs = []string{"include/**/*.glsl", "a/*.txt", "gone/*"}
	one.Files = map[string][]byte{
		"a/water.txt":          []byte("deep"),
		"a/fire.txt":           []byte("hot"),
		"a/water.png":          []byte("no input"),
		"include/common.glsl":  []byte("1"),
		"include/x/light.glsl": []byte("12"),
		"include/readme.md":    []byte("no input"),
	}
	r := processortest.Run(t, mustNew(t, c), one)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	want := `. folder 1980-01-01
a folder 1980-01-01
a/fire.txt 3 1980-01-01
a/water.txt 4 1980-01-01
include folder 1980-01-01
include/common.glsl 1 1980-01-01
include/x folder 1980-01-01
include/x/light.glsl 2 1980-01-01
`
	if d := cmp.Diff(want, string(r.Products[""].Data)); d != "" {
		t.Error(d)
	}
	wantSeen := []string{
		"tool helper", "glob include/**/*.glsl", "glob a/*.txt", "glob gone/*",
		"file a/fire.txt", "file a/water.txt", "file include/common.glsl", "file include/x/light.glsl",
	}
	if d := cmp.Diff(wantSeen, slices.DeleteFunc(r.Observations, isEnv)); d != "" {
		t.Error(d)
	}
}

func TestFolder(t *testing.T) {
	c := helperConfig("tree", "{out}", "{in}", "{name}{ext}")
	c.Folder, c.Extensions = true, []string{".png"}
	p := mustNew(t, c)
	if !p.Info().Folder {
		t.Error("not a processor of folders")
	}
	one := helperCase(t)
	one.Asset, one.Inputs = "ui[1].d/", []string{"common/*"}
	one.Files = map[string][]byte{
		"ui[1].d/a.png": []byte("1"), "ui[1].d/deep/b.png": []byte("12"), "ui1.d/no.png": nil, "common/c.png": nil,
	}
	r := processortest.Run(t, p, one)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	want := `. folder 1980-01-01
common folder 1980-01-01
common/c.png 0 1980-01-01
ui[1].d folder 1980-01-01
ui[1].d/a.png 1 1980-01-01
ui[1].d/deep folder 1980-01-01
ui[1].d/deep/b.png 2 1980-01-01
`
	if d := cmp.Diff(want, string(r.Products[""].Data)); d != "" {
		t.Error(d)
	}
	one.Files = nil
	if r := processortest.Run(t, p, one); r.Err != nil || !strings.Contains(string(r.Products[""].Data), "ui[1].d folder") {
		t.Errorf("an empty folder: %v, %q", r.Err, r.Products[""].Data)
	}
	c = helperConfig("args", "{out}", "{in}", "{name}", "{ext}")
	c.Folder = true
	if r := processortest.Run(t, mustNew(t, c), one); string(r.Products[""].Data) != "../out/ui[1].d.bin\nui[1].d\nui[1].d\n" {
		t.Errorf("%v, %q", r.Err, r.Products[""].Data)
	}
}

func TestViewRefuses(t *testing.T) {
	t.Run("too many", func(t *testing.T) {
		c := helperConfig("tree", "{out}", "{in}")
		one := helperCase(t)
		one.Inputs = []string{"**"}
		for i := range maxViewFiles {
			one.Files[strings.Repeat("x", 1+i%90)+"/"+strings.Repeat("y", 1+i/90)] = nil
		}
		p := only(t, processortest.Run(t, mustNew(t, c), one).Err, diag.CommandView)
		if want := "`inputs` matches 10001 files, more than the 10000 that one run may be given"; p.Text != want {
			t.Errorf("%q, want %q", p.Text, want)
		}
	})
	t.Run("name", func(t *testing.T) {
		one := helperCase(t)
		one.Asset = "a/../../water.txt"
		only(t, processortest.Run(t, mustNew(t, helperConfig("tree", "{out}", "{in}")), one).Err, diag.CommandView)
	})
	t.Run("missing", func(t *testing.T) {
		one := helperCase(t)
		one.Asset = "gone.txt"
		if err := processortest.Run(t, mustNew(t, helperConfig("tree", "{out}", "{in}")), one).Err; !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
	})
}

func TestEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("KILN_TEST_UNDECLARED", "leaks")
	c := helperConfig("env", "{out}", "{in}")
	c.Env = append(c.Env, "GLSLC_FLAGS", "KILN_TEST_UNSET", "LC_ALL")
	one := helperCase(t)
	one.Env["GLSLC_FLAGS"] = "-g -w"
	one.Env["LC_ALL"] = "tlh" // declared, so it wins
	r := processortest.Run(t, mustNew(t, c), one)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	got := map[string]string{}
	for line := range strings.SplitSeq(string(r.Products[""].Data), "\n") {
		name, value, _ := strings.Cut(line, "=")
		got[name] = value
	}
	fixed := map[string]string{
		"GLSLC_FLAGS": "-g -w", helperEnv: "1", "LC_ALL": "tlh", "TZ": "UTC", "SOURCE_DATE_EPOCH": "0",
	}
	for name, want := range fixed {
		if got[name] != want {
			t.Errorf("%s=%q, want %q", name, got[name], want)
		}
	}
	folders := map[string]string{
		"HOME": "home", "USERPROFILE": "home", "APPDATA": "home", "LOCALAPPDATA": "home", "TMPDIR": "tmp", "TMP": "tmp", "TEMP": "tmp",
	}
	for name, want := range folders {
		if filepath.Base(got[name]) != want || filepath.Dir(got[name]) != filepath.Dir(got["HOME"]) {
			t.Errorf("%s=%q, want the scratch folder's %s", name, got[name], want)
		}
	}
	if first, _, _ := strings.Cut(got["PATH"], string(filepath.ListSeparator)); first != filepath.Dir(one.Tools["helper"]) {
		t.Errorf("PATH begins with %q, want the program's own folder", first)
	}
	more := []string{"PATH", "PWD", "SystemRoot", "ComSpec", "PATHEXT", "SYSTEMROOT", "GOCOVERDIR"} // PWD is exec's
	for name := range got {
		if _, ok := fixed[name]; !ok && folders[name] == "" && !slices.Contains(more, name) {
			t.Errorf("%s=%q is passed on", name, got[name])
		}
	}
	for _, name := range c.Env {
		if !slices.Contains(r.Observations, "env "+name) {
			t.Errorf("%s is not recorded", name)
		}
	}
}

func TestFailure(t *testing.T) {
	stdout := "compiling\na/water.txt:3:14: error: 'x' : undeclared\n    x = y;\n    ^\na/water.txt:9: warning: odd\n"
	r := runHelper(t, helperConfig("say", "{out}", stdout, "", "3", "{in}"))
	ps := processortest.Problems(r.Err)
	if len(ps) != 1 || r.Products != nil { // one mistake is one error
		t.Fatalf("problems %v, products %v", ps, r.Products)
	}
	first := *ps[0]
	if !strings.HasPrefix(first.Hint, "`") || !strings.Contains(first.Hint, "../out/water.bin") || !strings.Contains(first.Hint, "` failed with exit code 3") || !strings.Contains(first.Hint, `"helped"`) {
		t.Errorf("%+v", first)
	}
	first.Hint, first.Err = "", nil
	want := processor.Problem{
		Code: string(diag.CommandReported), Path: "a/water.txt", Line: 3, Column: 14,
		Text: "'x' : undeclared\n        x = y;\n        ^\n    compiling",
	}
	if d := cmp.Diff(want, first); d != "" {
		t.Error(d)
	}
	if errors.Is(r.Err, diag.ErrMoment) {
		t.Error("an exit code is taken for a thing of the moment")
	}
}

func TestStandardErrorIsAWarning(t *testing.T) {
	t.Run("with position", func(t *testing.T) {
		stderr := "note\na/water.txt:3: warning: odd\nsome/other.c:1: warning: theirs\n"
		r := runHelper(t, helperConfig("say", "{out}", "to stdout", stderr, "0", "{in}"))
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		want := []processor.Problem{
			{Code: string(diag.CommandReported), Path: "a/water.txt", Line: 3, Text: "odd\n    some/other.c:1: warning: theirs"},
			{Code: string(diag.CommandStderr), Text: "helper wrote to standard error:\n    note", Hint: "if it always does, look for its option to be quiet"},
		}
		if d := cmp.Diff(want, r.Warnings); d != "" {
			t.Error(d)
		}
	})
	t.Run("long", func(t *testing.T) {
		r := runHelper(t, helperConfig("say", "{out}", "", strings.Repeat("line\n", 50), "0", "{in}"))
		if r.Err != nil || len(r.Warnings) != 1 {
			t.Fatal(r.Err, r.Warnings)
		}
		text := r.Warnings[0].Text
		if strings.Count(text, "    line") != maxWarning || !strings.HasSuffix(text, "    ... 30 lines more") {
			t.Errorf("%s", text)
		}
	})
}

func TestHugeOutputIsBounded(t *testing.T) {
	p := only(t, runHelper(t, helperConfig("spam", "67108864", "{in}", "{out}")).Err, diag.CommandFailed)
	if len(p.Text) > 2*maxOutput { // each line is indented
		t.Errorf("%d bytes of text", len(p.Text))
	}
	for _, want := range []string{"the first line", "the last line", "bytes left out"} {
		if !strings.Contains(p.Text, want) {
			t.Errorf("no %q in the text", want)
		}
	}
}

func TestOutputs(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	canLink := os.Symlink(secret, secret+".link") == nil
	for name, test := range map[string]struct {
		args  []string
		links bool
		code  diag.Code
		text  string
	}{
		"missing": {args: []string{"nothing", "{in}", "{out}"}, code: diag.CommandOutputMissing, text: "helper succeeded, but did not write {out}"},
		"folder":  {args: []string{"folder", "{out}", "{in}"}, code: diag.CommandOutputKind, text: "helper wrote no file for {out}: it is a folder"},
		"link": {args: []string{"link", "{out}", secret, "{in}"}, links: true, code: diag.CommandOutputKind,
			text: "helper wrote no file for {out}: it is a symbolic link"},
		"link to an input": {args: []string{"link", "{out}", "../in/a/water.txt", "{in}"}, links: true, code: diag.CommandOutputKind,
			text: "helper wrote no file for {out}: it is a symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.links && !canLink {
				t.Skip("this system lets no ordinary user make symbolic links")
			}
			p := only(t, runHelper(t, helperConfig(test.args...)).Err, test.code)
			if p.Text != test.text {
				t.Errorf("%q, want %q", p.Text, test.text)
			}
		})
	}
	t.Run("folder is a link", func(t *testing.T) {
		if !canLink {
			t.Skip("this system lets no ordinary user make symbolic links")
		}
		outside := t.TempDir()
		if err := os.WriteFile(filepath.Join(outside, "water.bin"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := runHelper(t, helperConfig("elsewhere", "{out}", outside, "{in}"))
		if r.Err == nil || r.Products != nil {
			t.Errorf("error %v, products %v", r.Err, r.Products)
		}
	})
}

func TestMissingTool(t *testing.T) {
	for program, want := range map[string][2]string{
		"glslc":     {`processor "helped" needs the program "glslc", which is not on PATH`, `install "glslc", or correct`},
		"pack.py":   {`processor "helped" needs the program "pack.py", which is not on PATH`, `if it lies in the project folder, write "./pack.py"; else install it, or correct`},
		"tools/x":   {`processor "helped" needs the program "tools/x", which is not in the project`, "put it there and make it executable, or correct"},
		"tools/y.x": {`processor "helped" needs the program "tools/y.x", which is not in the project`, "put it there and make it executable, or correct"},
	} {
		c := helperConfig("{in}", "{out}")
		c.Command[0] = program
		r := runHelper(t, c)
		p := only(t, r.Err, diag.ToolMissing)
		if p.Text != want[0] || !strings.HasPrefix(p.Hint, want[1]) || !errors.Is(r.Err, fs.ErrNotExist) {
			t.Errorf("%+v", p)
		}
	}
}

func TestNoProgram(t *testing.T) {
	one := helperCase(t)
	one.Tools["helper"] = filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(one.Tools["helper"], []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := only(t, processortest.Run(t, mustNew(t, helperConfig("{in}", "{out}")), one).Err, diag.CommandStart)
	if !strings.HasPrefix(p.Text, "helper does not start: ") || !errors.Is(p, diag.ErrMoment) {
		t.Errorf("%+v", p)
	}
}

func TestCrash(t *testing.T) {
	p := only(t, runHelper(t, helperConfig("crash", "{in}", "{out}")).Err, diag.CommandFailed)
	if !strings.HasPrefix(p.Text, "helper failed with exit code 2\n") || !strings.Contains(p.Text, "panic: crash") {
		t.Errorf("%s", p.Text)
	}
}

// onDisk is a processor whose jobs are of source roots on disk.
type onDisk struct {
	Config
	Roots []string
}

func (c onDisk) new(t *testing.T) processor.Processor {
	t.Helper()
	return inRoots{Processor: mustNew(t, c.Config), roots: c.Roots}
}

type inRoots struct {
	processor.Processor
	roots []string
	where []string // those that the job knows; nil: all
}

func (p inRoots) Process(ctx context.Context, job processor.Job) error {
	if p.where == nil {
		p.where = p.roots
	}
	return p.Processor.Process(ctx, rootedJob{job, p.roots, p.where})
}

type rootedJob struct {
	processor.Job
	roots, where []string
}

func (j rootedJob) Roots() []string { return j.roots }

// Where finds files alone, as jobs do: where some root has a folder, that counts.
func (j rootedJob) Where(source string) (file string) {
	for _, root := range j.where {
		at := filepath.Join(root, source)
		if st := seal.StateOf(at); st.Dir {
			return ""
		} else if st.Exists {
			file = at
		}
	}
	return file
}

func (j rootedJob) Shelf() string { return shelf(j.Job) }

func (j rootedJob) Inputs() []string                    { return j.Job.(byHand).Inputs() }
func (j rootedJob) Needs() ([]processor.Product, error) { return j.Job.(byHand).Needs() }

func TestDepfile(t *testing.T) {
	root := t.TempDir()
	hidden := filepath.ToSlash(filepath.Join(root, "include", "hidden.glsl"))
	system := filepath.ToSlash(filepath.Join(t.TempDir(), "stdio.h"))
	run := func(dep string) error {
		c := onDisk{helperConfig("dep", "{out}", "{dep}", dep, "{in}"), []string{root}}
		one := helperCase(t)
		one.Inputs = []string{"include/*"}
		one.Files["include/a.glsl"] = nil
		return processortest.Run(t, c.new(t), one).Err
	}
	for name, dep := range map[string]string{
		"declared":             "x: a/water.txt include/a.glsl ./include/../include/a.glsl",
		"made by itself":       "x: a/water.txt generated.h ../tmp/cc123.s",
		"of the system":        "x: " + system,
		"nothing":              "",
		"by way of the parent": "x: ../in/a/water.txt",
	} {
		if err := run(dep); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Run("undeclared", func(t *testing.T) {
		p := only(t, run("x: a/water.txt "+hidden+" "+hidden), diag.CommandUndeclared)
		if want := "helper read include/hidden.glsl where it lies and not in its input view, so that a change of it would go unseen"; p.Text != want {
			t.Errorf("%q, want %q", p.Text, want)
		}
		if want := `add "include/hidden.glsl" to ` + "`inputs`" + ` of the processor "helped", and name it by a relative path`; p.Hint != want {
			t.Errorf("%q, want %q", p.Hint, want)
		}
	})
	t.Run("no depfile", func(t *testing.T) {
		p := only(t, run("a b c"), diag.CommandDepfile)
		if want := "what helper wrote is not a depfile: line 1 has no `target: prerequisite`"; p.Text != want {
			t.Errorf("%q, want %q", p.Text, want)
		}
	})
	t.Run("not written", func(t *testing.T) {
		p := only(t, runHelper(t, helperConfig("args", "{out}", "{in}", "{dep}")).Err, diag.CommandDepfile)
		if want := "helper succeeded, but did not write {dep}"; p.Text != want {
			t.Errorf("%q, want %q", p.Text, want)
		}
	})
	t.Run("a folder", func(t *testing.T) {
		c := helperConfig("folder", "{dep}", "{in}", "{out}")
		p := only(t, runHelper(t, c).Err, diag.CommandDepfile)
		if want := "what helper wrote is not a depfile: it is a folder"; p.Text != want {
			t.Errorf("%q, want %q", p.Text, want)
		}
	})
}

// alive is a program that has told the test that it runs.
type alive struct {
	net.Conn
	says string
}

// listener hears from programs as they start.
func listener(t *testing.T) (address string, next func() alive) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), func() alive {
		t.Helper()
		l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		says, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return alive{c, strings.TrimSpace(says)}
	}
}

// gone waits until a program has ended: then the system closes its connection. Unlike its number, that
// cannot be another program's, and a zombie has none.
func (a alive) gone(t *testing.T) {
	t.Helper()
	a.SetReadDeadline(time.Now().Add(time.Minute))
	var timeout net.Error
	if _, err := a.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("process %s still runs: %v", a.says, err)
	}
}

func TestTimeout(t *testing.T) {
	address, _ := listener(t)
	c := helperConfig("hang", address, "{in}", "{out}")
	c.Timeout = 100 * time.Millisecond
	problem := only(t, runHelper(t, c).Err, diag.CommandTimeout)
	if !strings.HasPrefix(problem.Text, "helper took longer than 100ms and was ended\n    $ ") || !errors.Is(problem, diag.ErrMoment) {
		t.Errorf("%+v", problem)
	}
}

// TestTimeoutKillsChildren: the time is over when all of them run, however long that takes.
func TestTimeoutKillsChildren(t *testing.T) {
	address, next := listener(t)
	p := mustNew(t, helperConfig("hang", address, "{in}", "{out}"))
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- processortest.RunContext(t, ctx, p, helperCase(t)).Err }()
	one, two := next(), next()
	cancel(errTimeout)
	only(t, <-done, diag.CommandTimeout)
	one.gone(t)
	two.gone(t)
}

func TestCancelKillsChildren(t *testing.T) {
	address, next := listener(t)
	p := mustNew(t, helperConfig("hang", address, "{in}", "{out}"))
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- processortest.RunContext(t, ctx, p, helperCase(t)).Err }()
	one, two := next(), next()
	why := errors.New("interrupted")
	cancel(why)
	if err := <-done; !errors.Is(err, why) || len(processortest.Problems(err)) > 0 {
		t.Errorf("error %v", err)
	}
	one.gone(t)
	two.gone(t)
}

func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := processortest.RunContext(t, ctx, mustNew(t, helperConfig("copy", "{in}", "{out}")), helperCase(t))
	if !errors.Is(r.Err, context.Canceled) {
		t.Errorf("error %v", r.Err)
	}
}

func TestChildLeftBehindIsKilled(t *testing.T) {
	address, next := listener(t)
	p := mustNew(t, helperConfig("leave", address, "{out}", "{in}"))
	done := make(chan error, 1)
	go func() { done <- processortest.Run(t, p, helperCase(t)).Err }()
	one, two := next(), next()
	child, parent := one, two
	if one.says == "waits" {
		child, parent = two, one
	}
	parent.Close() // let it end
	if err := <-done; err != nil {
		t.Error(err)
	}
	child.gone(t)
}

// TestShortOfSomething: a program that fails for want of what may be there the next time fails for the moment, as it says.
func TestShortOfSomething(t *testing.T) {
	for said, want := range map[string]bool{
		"cp: error writing 'a': No space left on device\n": true, "write: disk quota exceeded": true, "There is not enough space on the disk.": true,
		"sh: 1: Cannot fork: Resource temporarily unavailable": true, "open: Too many open files": true, "malloc: Cannot allocate memory": true,
		"a.png: no such file": false, "there is no space in this name": false, "": false,
	} {
		r := runHelper(t, helperConfig("say", "{out}", "", said, "3", "{in}"))
		if r.Err == nil || errors.Is(r.Err, diag.ErrMoment) != want {
			t.Errorf("%q: of the moment %v, want %v: %v", said, !want, want, r.Err)
		}
		if r := runHelper(t, helperConfig("say", "{out}", "", said, "0", "{in}")); r.Err != nil { // there is room
			t.Errorf("%q: %v", said, r.Err)
		}
	}
}
