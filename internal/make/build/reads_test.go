package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/processor"
)

// TestFileChangesWhileRead has a program write to a file while a job reads it. Whatever the processor makes of it, the job runs again at
// once; it fails if the file is gone, and is tried again by the next build.
func TestFileChangesWhileRead(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", job.WholeFile/16+1)
	for _, c := range []struct {
		name string
		read func(p *fixture, job processor.Job) error
		fail bool
	}{
		{"streamed, error of Close not looked at", func(p *fixture, job processor.Job) error {
			f, err := job.Open("big.txt")
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := io.CopyN(io.Discard, f, 1000); err != nil {
				return err
			}
			p.write("assets/big.txt", big+"more")
			_, err = io.Copy(io.Discard, f)
			return err
		}, false},
		{"read here and there, never closed", func(p *fixture, job processor.Job) error {
			f, err := job.Open("big.txt")
			if err != nil {
				return err
			}
			p.write("assets/big.txt", strings.ToUpper(big))
			_, err = f.ReadAt(make([]byte, 100), 1000)
			return err
		}, false},
		{"failed for what was read", func(p *fixture, job processor.Job) error {
			f, err := job.Open("big.txt")
			if err != nil {
				return err
			}
			defer f.Close()
			p.write("assets/big.txt", strings.ToUpper(big))
			return &processor.Problem{Text: "this makes no sense"}
		}, false},
		{"changed before it was opened", func(p *fixture, job processor.Job) error {
			p.write("assets/big.txt", strings.ToUpper(big))
			f, err := job.Open("big.txt")
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(io.Discard, f)
			return err
		}, false},
		{"small, changed between two reads", func(p *fixture, job processor.Job) error {
			if _, err := job.ReadFile("small.txt"); err != nil {
				return err
			}
			p.write("assets/small.txt", "changed")
			_, err := job.ReadFile("small.txt")
			return err
		}, false},
		{"deleted before it was opened", func(p *fixture, job processor.Job) error {
			p.remove("assets/small.txt")
			_, err := job.ReadFile("small.txt")
			return err
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "-- assets/hook.s --\nhook read\n-- assets/small.txt --\nsmall\n-- assets/rules.toml --\n[[rules]]\nmatch = \"*.txt\"\nprocessor = \"none\"\n")
			p.write("assets/big.txt", big)
			old := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			p.must(os.Chtimes(p.path("assets/big.txt"), old, old))
			once := true
			p.procs = testProcessors(&hooks{call: func(_ context.Context, _ string, job processor.Job) error {
				if once {
					once = false
					return c.read(p, job)
				}
				f, err := job.Open("big.txt")
				if err != nil {
					return err
				}
				defer f.Close()
				out, err := job.Create(processor.Output{Name: "big", Type: "text"})
				if err != nil {
					return err
				}
				if _, err := io.Copy(out, f); err != nil {
					return err
				}
				if err := out.Close(); err != nil {
					return err
				}
				_, err = job.ReadFile("small.txt")
				if err != nil && c.name == "deleted before it was opened" {
					return nil
				}
				return err
			}})
			b, err := p.try(context.Background(), Request{})
			p.must(err)
			if failed := b.Failed == 1; failed != c.fail {
				t.Errorf("failed %d: %s", b.Failed, b.messages)
			}
			if c.fail && (!strings.Contains(b.messages, "error[K0109]") && !strings.Contains(b.messages, "K0106") || strings.Contains(b.messages, "no sense")) {
				t.Errorf("the message is %s", b.messages)
			}
			ran := ""
			if c.fail {
				ran = "hook.s"
			}
			if c.name == "changed before it was opened" {
				p.unchecked = true // a clean build has nothing in its way
			}
			p.wants(ran)
			p.nothing()
		})
	}
}

// TestTwoValues has something change between two looks of one job at it. What is made of both is never kept, and never served when the
// first value is back.
func TestTwoValues(t *testing.T) {
	big := func(b string) string { return strings.Repeat(b, job.WholeFile+1) }
	open := func(job processor.Job, n int) (string, error) {
		f, err := job.Open("f.txt")
		if err != nil {
			return "", err
		}
		defer f.Close()
		b := make([]byte, 1)
		_, err = f.ReadAt(b, int64(n))
		return string(b), err
	}
	whole := func(job processor.Job, _ int) (string, error) {
		b, err := job.ReadFile("f.txt")
		if len(b) > 4 {
			b = b[:1]
		}
		return string(b), err
	}
	for _, c := range []struct {
		name, a, b string
		change     func(p *fixture, to string)
		looks      [2]func(job processor.Job, n int) (string, error)
	}{
		{"a file", "AAAA", "BBBB", nil, [2]func(processor.Job, int) (string, error){whole, whole}},
		{"a large file", big("A"), big("B"), nil, [2]func(processor.Job, int) (string, error){open, open}},
		{"a large file, read whole", big("A"), big("B"), nil, [2]func(processor.Job, int) (string, error){open, whole}},
		{"a large file, read whole before", big("A"), big("B"), nil, [2]func(processor.Job, int) (string, error){whole, open}},
		{"a variable", "A", "B", func(p *fixture, to string) { p.must(os.Setenv("KILN_TEST_TWO_VALUES", to)) }, [2]func(processor.Job, int) (string, error){lookEnv, lookEnv}},
		{"a program", "#!/bin/sh\necho A\n", "#!/bin/sh\necho B\n", func(p *fixture, to string) {
			p.write("tool", to)
			p.must(chmodExecutable(p.path("tool")))
		}, [2]func(processor.Job, int) (string, error){runTool, runTool}},
	} {
		for _, always := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, always %t", c.name, always), func(t *testing.T) {
				if c.name == "a program" {
					requireLinux(t, "a script that is a program")
				}
				p := newProject(t, "-- assets/hook.s --\nhook read\n-- assets/rules.toml --\n[[rules]]\nmatch = \"*.txt\"\nprocessor = \"none\"\n")
				change := func(to string) {
					if c.change != nil {
						c.change(p, to)
					} else {
						p.write("assets/f.txt", to)
					}
				}
				if c.name == "a variable" {
					t.Setenv("KILN_TEST_TWO_VALUES", "")
				}
				change(c.a)
				meddle := true
				p.procs = testProcessors(&hooks{call: func(_ context.Context, _ string, job processor.Job) error {
					if meddle {
						change(c.a)
					}
					x, err := c.looks[0](job, 0)
					if err != nil {
						return err
					}
					if meddle {
						change(c.b)
					}
					y, err := c.looks[1](job, 1)
					if err != nil {
						return err
					}
					meddle = meddle && always
					return job.Write(processor.Output{Name: "both", Type: "text"}, []byte(x+y))
				}})
				b := p.build0()
				if failed := b.Failed == 1; failed != always || failed != strings.Contains(b.messages, "error[K0109]") {
					t.Errorf("failed %d: %s", b.Failed, b.messages)
				}
				meddle = false
				p.unchecked = c.name == "a program" // a copy of the project has none
				change(c.a)
				b = p.build()
				if got := p.read("build/pc/hook.s.both"); len(got) != 2*len(got[:len(got)/2]) || got[:len(got)/2] != got[len(got)/2:] || b.Failed > 0 {
					t.Errorf("made of both: %q: %s", got, b.messages)
				}
				p.nothing()
			})
		}
	}
}

func lookEnv(job processor.Job, _ int) (string, error) {
	v, _ := job.Env("KILN_TEST_TWO_VALUES")
	return v, nil
}

func runTool(job processor.Job, _ int) (string, error) {
	path, err := job.Tool("./tool")
	if err != nil {
		return "", err
	}
	out, err := exec.Command(path).Output()
	return string(out), err
}

// TestQuotedLine: a line that a message quotes is of the content that the job read, or the job runs again, though the file changes while
// the job runs and changes back before it ends.
func TestQuotedLine(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("fails ", fails), func(t *testing.T) {
			p := newProject(t, "-- assets/hook.s --\nhook read\n-- assets/rules.toml --\n[[rules]]\nmatch = \"*.txt\"\nprocessor = \"none\"\n-- assets/f.txt --\nAAAA\n")
			meddle := true
			p.procs = testProcessors(&hooks{call: func(_ context.Context, _ string, job processor.Job) error {
				if meddle {
					p.write("assets/f.txt", "AAAA\n")
				}
				if _, err := job.ReadFile("f.txt"); err != nil {
					return err
				}
				problem := processor.Problem{Path: "f.txt", Line: 1, Column: 1, Text: "wrong"}
				if meddle {
					p.write("assets/f.txt", "BBBB\n")
				}
				if fails {
					return &problem
				}
				job.Warn(problem)
				if meddle {
					p.write("assets/f.txt", "AAAA\n")
				}
				meddle = false
				return job.Write(processor.Output{Name: "none", Type: "text"}, nil)
			}})
			if b := p.build0(); strings.Contains(b.messages, "BBBB") {
				t.Errorf("it read AAAA: %s", b.messages)
			}
			meddle = false
			p.write("assets/f.txt", "AAAA\n")
			if b := p.build(); !strings.Contains(b.messages, "AAAA") || strings.Contains(b.messages, "BBBB") {
				t.Errorf("%s", b.messages)
			}
		})
	}
}
