package build

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/processor"
)

// TestFileChangesWhileRead has a program write to a file while a job reads it. The job fails, whatever the processor makes of it,
// and is tried again.
func TestFileChangesWhileRead(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", wholeFile/16+1)
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
		}, true},
		{"read here and there, never closed", func(p *fixture, job processor.Job) error {
			f, err := job.Open("big.txt")
			if err != nil {
				return err
			}
			p.write("assets/big.txt", strings.ToUpper(big))
			_, err = f.ReadAt(make([]byte, 100), 1000)
			return err
		}, true},
		{"failed for what was read", func(p *fixture, job processor.Job) error {
			f, err := job.Open("big.txt")
			if err != nil {
				return err
			}
			defer f.Close()
			p.write("assets/big.txt", strings.ToUpper(big))
			return &processor.Problem{Text: "this makes no sense"}
		}, true},
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
			if c.fail && (!strings.Contains(b.messages, "K0109") && !strings.Contains(b.messages, "K0106") || strings.Contains(b.messages, "no sense")) {
				t.Errorf("the message is %s", b.messages)
			}
			ran := "hook.s"
			if c.name == "changed before it was opened" {
				ran = "" // what was read is what is there
			}
			if ran == "" {
				p.unchecked = true
			}
			p.wants(ran)
			p.nothing()
		})
	}
}
