package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/processor"
)

// conf is the processor in Go.
type conf struct{ code code }

func (c conf) Info() processor.Info {
	version := 1 // a programmer raises it by hand
	for _, b := range []byte(c.code.Mark + c.code.Comment) {
		version = version*31%1_000_003 + int(b)
	}
	return processor.Info{Name: "conf", Version: version, Summary: "does as it is told", Extensions: []string{".conf"}, Products: []processor.ProductType{{Type: "conf", Extension: ".out"}}}
}

func (c conf) Process(_ context.Context, job processor.Job) error {
	text, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	out.WriteString(c.code.Mark)
	for line := range strings.Lines(string(text)) {
		step, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		s, err := goStep(job, step, arg)
		if err != nil {
			return err
		}
		out.WriteString(s + "\n")
	}
	return job.Write(processor.Output{Type: "conf", Extension: ".out"}, out.Bytes())
}

func goStep(job processor.Job, step, arg string) (string, error) {
	switch step {
	case "copy":
		data, err := job.ReadFile(arg)
		return string(data), err
	case "maybe":
		ok, err := job.Exists(arg)
		return map[bool]string{true: "yes", false: "no"}[ok], err
	case "list":
		names, err := job.Glob(arg)
		return strings.Join(append(names, ""), "\n"), err
	case "use":
		return product(job, arg)
	case "crash":
		panic("crash")
	case "outside":
		_, err := job.ReadFile("../outside")
		return "", err
	case "twice":
		return "", job.Write(processor.Output{Type: "conf", Extension: ".out"}, nil)
	}
	return "", fmt.Errorf("no step %q", step)
}

// product is the main product of another asset.
func product(job processor.Job, id string) (string, error) {
	ps, err := job.Products(id)
	if err != nil {
		return "", err
	}
	f, err := job.OpenProduct(ps[0][0])
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return string(data), err
}

var goKind = kind{
	name: "go",
	install: func(_ *testing.T, c code) (map[string]string, string, []processor.Processor) {
		return nil, "", []processor.Processor{conf{c}}
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
	install: func(_ *testing.T, c code) (map[string]string, string, []processor.Processor) {
		text := strings.NewReplacer("%COMMENT", c.Comment, "%MARK", fmt.Sprintf("%q", c.Mark)).Replace(starlarkConf)
		return map[string]string{"tools/conf.star": text}, "[[processors]]\nscript = \"tools/conf.star\"\ntimeout = \"2s\"\nmemory = \"64MiB\"\n", nil
	},
}

// The command is this test binary: TestMain runs it as one if it is called by this name.
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

// command is the processor as a program: IN OUT mark=MARK.
func command(args []string) error {
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
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
		case "crash":
			panic("crash")
		case "loop":
			for { // until it is ended
				time.Sleep(time.Second)
			}
		default:
			return errors.New("no step " + step)
		}
		out.WriteString("\n")
	}
	return os.WriteFile(args[1], out.Bytes(), 0o666)
}

var commandKind = kind{
	name: "command",
	install: func(t *testing.T, c code) (map[string]string, string, []processor.Processor) {
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
		t.Setenv("GORACE", "atexit_sleep_ms=0") // with the race detector, each program would end a second later
		version := 1
		if c.Comment != "" {
			version = 2
		}
		return nil, fmt.Sprintf(`[[processors]]
name       = "conf"
command    = [%q, "{in}", "{out}", %q]
extensions = [".conf"]
output     = ".out"
inputs     = ["parts/*"]
timeout    = "3s"
env        = ["GORACE"]
version    = %d
`, program, "mark="+c.Mark, version), nil
	},
	without: map[string]string{
		"ask":     "its inputs are declared",
		"use":     "it has no job to ask",
		"memory":  "it has the system's memory, and the system ends it",
		"outside": "it is held to its folder by package seal, and tested there",
		"twice":   "each product is a file",
	},
}
