package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// call runs a command line without a process.
func call(t *testing.T, cfg Config, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(t.Context(), args, Streams{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: func(string) string { return "" }}, cfg)
	return code, o.String(), e.String()
}

// broken is a processor that brings Kiln itself down, before any job runs.
type broken struct{}

func (broken) Info() processor.Info                         { panic("no info today") }
func (broken) Process(context.Context, processor.Job) error { return nil }

func TestInternalError(t *testing.T) {
	cfg := Config{Processors: []processor.Processor{broken{}}, Version: Version{Number: "1.2.3"}}
	code, out, errs := call(t, cfg, "processors")
	if code != 4 || out != "" {
		t.Errorf("exit code %d, standard output %q", code, out)
	}
	for _, want := range []string{"kiln: internal error: no info today\n", "please report it", "kiln 1.2.3, called with: processors\n", "main_test.go"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in\n%s", want, errs)
		}
	}
	code, out, _ = call(t, cfg, "processors", "--json")
	if code != 4 || !strings.HasPrefix(out, `{"type":"error","text":"internal error: no info today"`) {
		t.Errorf("exit code %d, standard output %q", code, out)
	}
}

func TestExitCodes(t *testing.T) {
	_, disk := os.Open(filepath.Join(t.TempDir(), "none"))
	cases := []struct {
		name string
		err  error
		want int
	}{
		{"nothing", nil, 0},
		{"said already", exitFailed, 1},
		{"usage", wrongUsage("", "no"), 2},
		{"project file", diag.List{diag.Errorf(diag.UnknownKey, diag.Pos{}, "x")}, 2},
		{"busy", diag.Errorf(diag.ProjectBusy, diag.Pos{}, "x"), 3},
		{"disk", disk, 1},
		{"not put into words", context.DeadlineExceeded, 4},
		{"interrupted", context.Canceled, 130},
	}
	for _, c := range cases {
		var e bytes.Buffer
		a := &app{errs: &e, getenv: func(string) string { return "" }}
		if got := a.fail(c.err); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, got, c.want)
		}
		if said := e.Len() > 0; said != (c.want != 0 && c.name != "said already") {
			t.Errorf("%s: said %q", c.name, e.String())
		}
	}
}

func TestHelpOfEveryCommand(t *testing.T) {
	_, all, _ := call(t, Config{}, "help")
	root := newRootCommand(&app{})
	for _, c := range root.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if c.GroupID == "" || c.Example == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: group %q, example %q, short %q", c.Name(), c.GroupID, c.Example, c.Short)
		}
		if !strings.Contains(all, "\n  "+c.Name()+" ") {
			t.Errorf("%s is not in the list of commands", c.Name())
		}
		code, text, errs := call(t, Config{}, "help", c.Name())
		if code != 0 || errs != "" || !strings.Contains(text, "Usage:\n  kiln "+c.Name()) || !strings.Contains(text, "Examples:") {
			t.Errorf("help of %s: exit code %d, %s%s", c.Name(), code, errs, text)
		}
	}
}

func TestIdentity(t *testing.T) {
	v := Version{Number: "1.0.0"}
	if v.Identity() != "1.0.0" || v.Text() != "1.0.0" {
		t.Error(v.Identity(), v.Text())
	}
	v.Revision, v.Modified = "0123456789abcdef", true
	if v.Identity() != "1.0.0+0123456789abcdef.modified" || v.Text() != "1.0.0 (0123456789ab, modified)" {
		t.Error(v.Identity(), v.Text())
	}
}
