package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// runs is a processor in Go that has programs run, and keeps what they did.
type runs struct {
	do    func(ctx context.Context, run toRun) error
	roots []string
}

// toRun is Job.Run.
type toRun = func(processor.Command) (processor.Result, error)

func (*runs) Info() processor.Info {
	return processor.Info{Name: "runs", Version: 1, Products: []processor.ProductType{{Type: "x"}}}
}

func (r *runs) Process(ctx context.Context, job processor.Job) error {
	programs := NewPrograms(Kiln{})
	j := rootedJob{job, r.roots, r.roots}
	return r.do(ctx, func(c processor.Command) (processor.Result, error) {
		c.Env = append(c.Env, helperEnv, "GOCOVERDIR")
		return programs.Run(ctx, j, "runs", c)
	})
}

// running runs one program in a case, and gives what it did, and what was observed.
func running(t *testing.T, one processortest.Case, c processor.Command) (r processor.Result, seen []string, err error) {
	t.Helper()
	res := processortest.Run(t, &runs{do: func(_ context.Context, run toRun) (err error) {
		r, err = run(c)
		return err
	}}, one)
	return r, slices.DeleteFunc(res.Observations, isEnv), res.Err
}

func TestRun(t *testing.T) {
	one := helperCase(t)
	one.Files["inc/a.h"], one.Files["inc/b.h"], one.Files["other/c.h"] = []byte("A"), []byte("B"), []byte("C")
	one.Inputs = []string{"inc/b.*"}
	r, seen, err := running(t, one, processor.Command{
		Args: []string{"helper", "cat", "../out/deep", "a/water.txt", "inc/a.h", "inc/b.h", "other/c.h", "made/d.h"}, Inputs: []string{"inc/a.*"},
		Files: map[string][]byte{"made/d.h": []byte("D")},
	})
	if err != nil || string(r.Files["deep"]) != "deepABD" || len(r.Files) != 1 || r.Code != 0 {
		t.Errorf("%v, %+v", err, r)
	}
	want := "tool helper, glob inc/b.*, glob inc/a.*, file a/water.txt, file inc/a.h, file inc/b.h"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("observed %s", got)
	}
	helper := func(c processor.Command, args ...string) processor.Result {
		t.Helper()
		c.Args = append([]string{"helper"}, args...)
		r, _, err := running(t, one, c)
		if err != nil {
			t.Error(err)
		}
		return r
	}
	r = helper(processor.Command{}, "say", "../out/x", "printed", "said", "0")
	if string(r.Stdout) != "printed" || string(r.Stderr) != "said" || string(r.Files["x"]) != "" || len(r.Files) != 1 {
		t.Errorf("%+v", r)
	}
	if r := helper(processor.Command{Codes: []int{3, 7}}, "say", "../out/x", "p", "", "7"); r.Code != 7 {
		t.Errorf("%+v", r)
	}
	env := string(helper(processor.Command{}, "env", "../out/x").Files["x"])
	if !strings.Contains(env, "LC_ALL=C\n") || strings.Contains(env, "GOPATH") {
		t.Error(env)
	}
	if r := helper(processor.Command{Stdin: []byte("given")}, "stdin", "../out/x"); string(r.Files["x"]) != "given" {
		t.Errorf("%+v", r)
	}
	if r := helper(processor.Command{}, "stdin", "../out/x"); string(r.Files["x"]) != "" {
		t.Errorf("%+v", r)
	}
	res := processortest.Run(t, &scratches{}, one)
	if got := string(res.Products[""].Data); res.Err != nil || got != "from scratch" {
		t.Errorf("%q, %v", got, res.Err)
	}
	if slices.Contains(res.Observations, "file a/water.txt") {
		t.Errorf("observed %v", res.Observations) // it is not in the view
	}
	r = helper(processor.Command{Tools: []string{"helper"}}, "args", "../out/x", "helper", "-helper")
	if !strings.HasSuffix(string(r.Files["x"]), one.Tools["helper"]+"\n-helper") {
		t.Errorf("%+v", r)
	}
}

// scratches gives a program a file of its scratch folder in place of its source.
type scratches struct{ runs }

func (scratches) Process(ctx context.Context, job processor.Job) error {
	dir, err := job.Scratch()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "large"), []byte("from scratch"), 0o666); err != nil {
		return err
	}
	r, err := NewPrograms(Kiln{}).Run(ctx, rootedJob{job, nil, nil}, "runs", processor.Command{
		Args: []string{"helper", "cat", "../out/x", job.Asset().Path}, Env: []string{helperEnv, "GOCOVERDIR"},
		Scratch: map[string]string{job.Asset().Path: "large"},
	})
	if err != nil {
		return err
	}
	return job.Write(processor.Output{Type: "x"}, r.Files["x"])
}

func TestRunFails(t *testing.T) {
	one := helperCase(t)
	for name, test := range map[string]struct {
		c    processor.Command
		args string
		code diag.Code
		want string
	}{
		"code":    {processor.Command{}, "helper say ../out/x - bad 3", diag.CommandFailed, "helper failed with exit code 3"},
		"missing": {processor.Command{}, "nowhere", diag.ToolMissing, `processor "runs" needs the program "nowhere", which is not on PATH`},
		"time":    {processor.Command{Timeout: 1}, "helper hang 127.0.0.1:1", diag.CommandTimeout, "helper took longer than 1ns and was ended"},
		"link":    {processor.Command{}, "helper link ../out/x y", diag.CommandOutputKind, "helper wrote out/x, which is a symbolic link"},
		"spam": {processor.Command{Codes: []int{1}}, fmt.Sprint("helper spam ", maxStdout), diag.CommandTooMuch,
			"helper wrote more than 64 MiB to standard output, more than a processor can be given"},
	} {
		test.c.Args = strings.Fields(test.args)
		_, _, err := running(t, one, test.c)
		all := processortest.Problems(err)
		if len(all) == 0 || all[len(all)-1].Code != string(test.code) || !strings.HasPrefix(all[len(all)-1].Text, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]processor.Command{
		"no program":      {},
		"empty program":   {Args: []string{""}},
		"zero":            {Args: []string{"helper", "a\x00b"}},
		"variable":        {Args: []string{"helper"}, Env: []string{"A=b"}},
		"out of the view": {Args: []string{"helper"}, Files: map[string][]byte{"../x": nil}},
		"absolute":        {Args: []string{"helper"}, Files: map[string][]byte{"/x": nil}},
		"in two":          {Args: []string{"helper"}, Files: map[string][]byte{"x": nil}, Scratch: map[string]string{"x": "x"}},
		"no such scratch": {Args: []string{"helper"}, Scratch: map[string]string{"x": "../x"}},
		"file and folder": {Args: []string{"helper"}, Files: map[string][]byte{"x": nil, "x/y/z": nil}},
		"both":            {Args: []string{"helper"}, Traced: true, Inputs: []string{"*"}},
		"time":            {Args: []string{"helper"}, Timeout: -1},
	} {
		if _, _, err := running(t, one, c); err == nil || errors.Is(err, diag.ErrMoment) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRunSideBySide: programs of one job have folders of their own, which are gone afterwards.
func TestRunSideBySide(t *testing.T) {
	r := processortest.Run(t, &runs{do: func(_ context.Context, run toRun) error {
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				name := fmt.Sprint("file", i)
				r, err := run(processor.Command{Args: []string{"helper", "cat", "../out/" + name, name}, Files: map[string][]byte{name: []byte(name)}})
				if errs[i] = err; err == nil && (len(r.Files) != 1 || string(r.Files[name]) != name) {
					errs[i] = fmt.Errorf("%d: %v", i, r.Files)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}}, helperCase(t))
	if r.Err != nil {
		t.Error(r.Err)
	}
}

// TestRunEnds: a program ends with its job, and what it started does.
func TestRunEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("stopped")
	var held []net.Conn
	go func() {
		for range 2 { // the program, and its child
			c, err := l.Accept()
			if err != nil {
				return
			}
			held = append(held, c)
		}
		cancel(stopped)
	}()
	r := processortest.RunContext(t, ctx, &runs{do: func(_ context.Context, run toRun) error {
		_, err := run(processor.Command{Args: []string{"helper", "hang", l.Addr().String()}, Network: true})
		return err
	}}, helperCase(t))
	if !errors.Is(r.Err, stopped) {
		t.Errorf("%v", r.Err)
	}
	for _, c := range held { // both are at their ends
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		b := make([]byte, 64)
		for {
			if _, err := c.Read(b); err != nil {
				if os.IsTimeout(err) {
					t.Error("something still runs")
				}
				break
			}
		}
		c.Close()
	}
}

func TestRunTraced(t *testing.T) {
	if seal.Supported().Trace != nil {
		p := runTracedHere(t)
		if len(p) != 1 || p[0].Code != string(diag.CommandUntraced) || !strings.Contains(p[0].Hint, "have the processor") {
			t.Errorf("%+v", p)
		}
		return
	}
	root := t.TempDir()
	one := helperCase(t)
	for name, text := range map[string]string{"a/water.txt": "deep", "b/c.txt": "c", "b/d.txt": "d"} {
		one.Files[name] = []byte(text)
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var made processor.Result
	r := processortest.Run(t, &runs{roots: []string{root}, do: func(_ context.Context, run toRun) (err error) {
		made, err = run(processor.Command{Traced: true, Files: map[string][]byte{"b/d.txt": []byte("given"), "new/made.txt": []byte("e")},
			Args: []string{"helper", "cat", "../out/x", "b/c.txt", "b/d.txt", "new/made.txt", "b/none.txt"}})
		return err
	}}, one)
	if r.Err != nil || string(made.Files["x"]) != "cgivene" {
		t.Fatalf("%v, %+v", r.Err, made)
	}
	seen := strings.Join(r.Observations, ", ")
	for name, want := range map[string]bool{"file b/c.txt": true, "exists b/none.txt: false": true, "file b/d.txt": false, "made.txt": false} {
		if strings.Contains(seen, name) != want {
			t.Errorf("%s: observed %s", name, seen)
		}
	}
}

func runTracedHere(t *testing.T) []*processor.Problem {
	_, _, err := running(t, helperCase(t), processor.Command{Args: []string{"helper", "nothing"}, Traced: true})
	return processortest.Problems(err)
}
