package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor"
)

// sourced is conf with a source. Code in this test binary cannot change while it runs, so the source has what changed.
// The tests of package fingerprint check that a processor's real source counts.
type sourced struct{ conf }

func (s sourced) Source() fs.FS {
	return fstest.MapFS{"conf.go": {Data: fmt.Appendf(nil, "package conformance\n\n// sourced writes %q. %s\ntype sourced struct{}\n", s.code.Mark, s.code.Comment)}}
}

var goKind = kind{
	name: "go",
	install: func(_ testing.TB, c code) (map[string]string, string, []processor.Processor) {
		return nil, "", []processor.Processor{sourced{conf{c}}}
	},
	without: map[string]string{
		"loop":   "code that is compiled in cannot be ended; it is the team's own",
		"memory": "code that is compiled in has Kiln's own memory",
	},
}

const starlarkConf = `# %COMMENT
processor("conf", extensions = [".conf"], products = {"conf": ".out"})

def step(job, step, arg):
    if step == "copy":
        return job.read_text(arg)
    if step == "maybe":
        return "yes" if job.exists(arg) else "no"
    if step == "list":
        return "\n".join(job.glob(arg) + [""])
    if step == "use":
        return str(job.open(job.products(arg)[0][0]))
    if step == "crash":
        return [][0]
    if step == "loop":
        while True:
            pass
    if step == "memory":
        list = []
        while True:
            list.append("x" * 10000000)
    if step == "outside":
        job.read("../outside")
    if step == "twice":
        job.write("")
    return ""

def process(job):
    out = [%MARK]
    for line in job.read_text().splitlines():
        name, _, arg = line.partition(" ")
        out.append(step(job, name, arg) + "\n")
    job.write("".join(out))
`

var starlarkKind = kind{
	name: "starlark",
	install: func(_ testing.TB, c code) (map[string]string, string, []processor.Processor) {
		text := strings.NewReplacer("%COMMENT", c.Comment, "%MARK", fmt.Sprintf("%q", c.Mark)).Replace(starlarkConf)
		return map[string]string{"tools/conf.star": text}, "[[processors]]\nscript = \"tools/conf.star\"\nmemory = \"64MiB\"\n" + patience, nil
	},
	without: map[string]string{"after": "a product is written at once"},
}

// program is the name of the command. The command is this test binary: TestMain runs it if it is called by this name.
const program = "confprogram"

func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), program) {
		if err := command(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// command is the processor as a program: IN OUT mark=MARK, or IN OUT invert.
func command(args []string) error {
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	if args[2] == "invert" { // like invert_test.go
		for i := 0; i+3 < len(text); i += 4 {
			p := text[i : i+4]
			p[0], p[1], p[2] = 255-p[0], 255-p[1], 255-p[2]
		}
		return os.WriteFile(args[1], text, 0o666)
	}
	var out bytes.Buffer
	out.WriteString(strings.TrimPrefix(args[2], "mark="))
	for line := range strings.Lines(string(text)) {
		step, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch step {
		case "copy":
			data, err := os.ReadFile(arg)
			if err != nil {
				return err
			}
			out.Write(data)
		case "maybe":
			_, err := os.Stat(arg)
			out.WriteString(map[bool]string{true: "yes", false: "no"}[err == nil])
		case "list":
			names, err := fs.Glob(os.DirFS("."), arg)
			if err != nil {
				return err
			}
			slices.Sort(names)
			out.WriteString(strings.Join(append(names, ""), "\n"))
		case "outside":
			data, err := os.ReadFile("../outside")
			if err != nil {
				return err
			}
			out.Write(data)
		case "crash":
			panic("crash")
		case "loop":
			for { // until it is killed
				time.Sleep(time.Second)
			}
		default:
			return errors.New("no step " + step)
		}
		out.WriteString("\n")
	}
	return os.WriteFile(args[1], out.Bytes(), 0o666)
}

// commandToml installs the program and declares it, with a line about what it reads.
func commandToml(t testing.TB, c code, inputs string) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, program)
	if filepath.Ext(exe) == ".exe" {
		file += ".exe"
	}
	if err := os.Link(exe, file); err != nil {
		data, err := os.ReadFile(exe)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("GORACE", "atexit_sleep_ms=0") // with the race detector, each program would otherwise end a second later
	version := 1
	if c.Comment != "" {
		version = 2
	}
	return fmt.Sprintf(`[[processors]]
name       = "conf"
command    = [%q, "{in}", "{out}", %q]
extensions = [".conf"]
output     = ".out"
inputs     = %s
env        = ["GORACE"]
version    = %d
`, program, "mark="+c.Mark, inputs, version) + patience
}

var commandKind = kind{
	name: "command",
	install: func(t testing.TB, c code) (map[string]string, string, []processor.Processor) {
		return nil, commandToml(t, c, `["parts/*"]`), nil
	},
	without: map[string]string{
		"ask":    "its inputs are declared",
		"use":    "it has no job to ask",
		"memory": "it has the system's memory, and the system ends it",
		"after":  "each product is a file, and what the program leaves behind is ended with it",
		"twice":  "each product is a file",
	},
}

// tracedKind is the same program without a declaration of what it reads.
var tracedKind = kind{
	name: "command, traced",
	install: func(t testing.TB, c code) (map[string]string, string, []processor.Processor) {
		if err := seal.Supported().Trace; err != nil {
			t.Skipf("what a program reads cannot be seen here: %v", err)
		}
		return nil, commandToml(t, c, `"traced"`), nil
	},
	without: map[string]string{
		"use":     commandKind.without["use"],
		"memory":  commandKind.without["memory"],
		"outside": "what it reads elsewhere is recorded",
		"after":   commandKind.without["after"],
		"twice":   commandKind.without["twice"],
	},
	// The recorded observations differ as follows. The program is a tool that runs with variables, and in a view of the
	// source roots. System files have absolute paths. A folder is listed with all names, and is not a file. A missing
	// path might have been a folder.
	sees: func(all []string) (seen []string) {
		for _, s := range all {
			kind, subject, _ := strings.Cut(s, " ")
			switch {
			case kind == "tool", kind == "env", kind == "roots", filepath.IsAbs(strings.TrimPrefix(subject, "file ")), s == "glob parts/two.part/**", s == "no file parts":
			case s == "glob parts/**":
				seen = append(seen, "glob parts/*.part")
			default:
				seen = append(seen, s)
			}
		}
		return seen
	},
}
