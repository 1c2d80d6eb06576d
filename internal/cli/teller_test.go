package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/processor"
)

// stepper is a processor of which a job waits until something was written of the one before it.
type stepper struct{ told chan struct{} }

func (stepper) Info() processor.Info {
	return processor.Info{Name: "stepper", Version: 1, Summary: "for tests", Extensions: []string{".step"}, Products: []processor.ProductType{{Type: "file"}}}
}

func (s stepper) Process(ctx context.Context, job processor.Job) error {
	switch name := job.Asset().Path; name {
	case "a.step":
		job.Warn(processor.Problem{Text: "of a"})
	case "b.step":
		return &processor.Problem{Text: "b is wrong"}
	default: // it needs the others, which have been told of when it goes on
		if _, err := job.Products("a.step"); err != nil {
			return err
		}
		job.Products("b.step")
		select {
		case <-s.told:
		case <-time.After(time.Minute):
			return fmt.Errorf("nothing was told of the jobs before")
		}
	}
	return job.Write(processor.Output{Type: "file"}, nil)
}

// until closes a channel once all of some texts were written.
type until struct {
	bytes.Buffer
	wants []string
	done  chan struct{}
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if u.wants != nil && !slices.ContainsFunc(u.wants, func(w string) bool { return !strings.Contains(u.String(), w) }) {
		u.wants = nil
		close(u.done)
	}
	return n, err
}

// TestToldAtOnce: what happens to a job is told when it happens, while others run.
func TestToldAtOnce(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"kiln.toml": "[project]\nname = \"steps\"\n", "assets/a.step": "a", "assets/b.step": "b", "assets/c.step": "c"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	build := func(out, errs *until, done chan struct{}, args ...string) exitCode {
		t.Helper()
		streams := Streams{In: strings.NewReader(""), Out: out, Err: errs, Getenv: func(string) string { return "" }}
		cfg := Config{Processors: []processor.Processor{stepper{done}}, Version: ReadVersion("test")}
		return exitCode(Main(context.Background(), append([]string{"-C", dir, "build", "--force"}, args...), streams, cfg))
	}

	done := make(chan struct{})
	out, errs := &until{wants: []string{`"state":"built"`, `"state":"failed"`, "of a", "b is wrong"}, done: done}, &until{}
	if code := build(out, errs, done, "--json"); code != exitFailed {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		var l struct{ Type, Project, Asset, State, Text string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(strings.Join([]string{l.Type, l.Project, l.Asset, l.State, l.Text}, " ")))
	}
	text := strings.Join(got, "\n")
	for _, order := range [][]string{
		{"start steps", "message    of a", "job  a.step built", "job  c.step built", "summary"},
		{"start steps", "message    b is wrong", "job  b.step failed", "job  c.step built", "summary"},
	} {
		at := -1
		for _, line := range order {
			i := slices.Index(got, strings.TrimSpace(line))
			if i <= at {
				t.Errorf("%q does not follow\n%s", line, text)
			}
			at = i
		}
	}
	if got[0] != "start steps" || got[len(got)-1] != "summary" || len(got) != 7 {
		t.Errorf("told\n%s", text)
	}

	done = make(chan struct{})
	out, errs = &until{}, &until{wants: []string{"b is wrong"}, done: done}
	if code := build(out, errs, done); code != exitFailed {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if s := errs.String(); strings.Count(s, "b is wrong") != 1 || strings.Count(s, "of a") != 1 || strings.Index(s, "of a") < strings.Index(s, "b is wrong") {
		t.Errorf("told\n%s", s)
	}
}

// TestAbove: a message is written above what is drawn, which is drawn again.
func TestAbove(t *testing.T) {
	var errs bytes.Buffer
	p := newTestProgress()
	p.w, p.fancy, p.size = &errs, true, func() (int, int) { return 80, 24 }
	p.Planned(2)
	p.JobStarted("x [pc]")
	p.tick(p.start.Add(time.Second))
	p.above(func() error { errs.WriteString("wrong\n"); return nil })
	p.tick(p.start.Add(2 * time.Second))
	lines := strings.Split(screen(t, errs.String()), "\n")
	if len(lines) < 3 || lines[0] != "wrong" || !strings.Contains(lines[1], "0 of 2 done") || !strings.Contains(lines[2], "x [pc]") {
		t.Errorf("%q", lines)
	}
}
