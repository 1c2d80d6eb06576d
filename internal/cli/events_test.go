package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/processor"
)

// gate is a processor that fails, but for the asset b.gate, for which it waits until the test opens.
type gate struct{ open chan struct{} }

func (gate) Info() processor.Info {
	return processor.Info{Name: "gate", Version: 1, Summary: "waits", Extensions: []string{".gate"}, Products: []processor.ProductType{{Type: "gate", Extension: ".out"}}}
}

func (g gate) Process(ctx context.Context, job processor.Job) error {
	if job.Asset().ID != "b.gate" {
		job.Warn(processor.Problem{Text: "a warning"})
		return errors.New("it fails")
	}
	select {
	case <-g.open:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// TestEventsAsTheyHappen: what becomes of a job is printed when it ends, not when the build does.
func TestEventsAsTheyHappen(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  []string
		wants []string // before the other job may end; in this order
		rest  []string
	}{
		{"JSON", []string{"--json"}, []string{`{"type":"start","project":"test","platforms":["pc"]}`, `"text":"a warning"`, `"text":"processor \"gate\": it fails"`,
			`{"type":"job","asset":"a.gate","platform":"pc","processor":"gate","state":"failed"`}, []string{`"asset":"b.gate"`, `{"type":"summary"`}},
		{"text", nil, []string{`assets/a.gate: error[K0201]: processor "gate": it fails`}, []string{"warning[K0201]: a warning", "built 2, reused 0, failed 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"kiln.toml": "[project]\nname = \"test\"\n", "assets/a.gate": "a", "assets/b.gate": "b"} {
				file := filepath.Join(dir, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(text), 0o666)); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			g := gate{make(chan struct{})}
			r, w := io.Pipe()
			var other bytes.Buffer
			streams := Streams{In: strings.NewReader(""), Out: w, Err: &other, Getenv: func(string) string { return "" }}
			if len(c.args) == 0 {
				streams.Out, streams.Err = &other, w
			}
			go func() {
				Main(ctx, append(c.args, "build", "-j", "2", "-C", dir), streams, Config{Processors: []processor.Processor{g}})
				w.Close()
			}()
			lines := bufio.NewScanner(r)
			for _, want := range c.wants {
				for lines.Scan() && !strings.Contains(lines.Text(), want) {
				}
				if !strings.Contains(lines.Text(), want) {
					t.Errorf("not printed while another job ran: %s", want)
				}
			}
			close(g.open)
			var rest strings.Builder
			for lines.Scan() {
				rest.WriteString(lines.Text() + "\n")
			}
			at := 0
			for _, want := range c.rest {
				i := strings.Index(rest.String()[at:], want)
				if i < 0 {
					t.Fatalf("no %s in\n%s", want, rest.String())
				}
				at += i
			}
			if strings.Contains(rest.String(), "it fails") {
				t.Errorf("printed twice:\n%s", rest.String())
			}
		})
	}
}
