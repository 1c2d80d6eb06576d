package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/kiln-pipeline/kiln/processor"
)

// This file is compiled twice: into the tests, as the processor in Go, and into a WebAssembly module; see guestFiles.

// conf is the processor in Go.
type conf struct{ code code }

func (c conf) Info() processor.Info {
	return processor.Info{Name: "conf", Version: 1, Summary: "does as it is told", Extensions: []string{".conf"}, Products: []processor.ProductType{{Type: "conf", Extension: ".out"}}}
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
	case "loop":
		for n := 0; n >= 0; n = (n + 1) & 0xffff { // until it is killed
		}
	case "memory":
		for all := [][]byte{}; ; {
			all = append(all, bytes.Repeat([]byte("x"), 1<<20))
		}
	case "outside":
		_, err := job.ReadFile("../outside")
		return "", err
	case "after":
		w, err := job.Create(processor.Output{Name: "after", Type: "conf"})
		if err != nil {
			return "", err
		}
		if err := w.Close(); err != nil {
			return "", err
		}
		_, err = w.Write([]byte("more"))
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
