package cli

import (
	"testing"

	"github.com/kiln-pipeline/kiln/internal/running/session"
)

// TestMayRelay: the kiln that watches a project writes and reads no file that a caller names, who may be a program in a sandbox.
func TestMayRelay(t *testing.T) {
	for _, c := range []struct {
		line []string
		may  bool
	}{
		{[]string{"build"}, true}, {[]string{"build", "--force"}, true}, {[]string{"impact"}, true}, {[]string{"clean"}, false},
		{[]string{"build", "--trace", "file"}, false}, {[]string{"build", "--changed-from", "file"}, false},
	} {
		for _, turn := range []*session.Turn{nil, {}} {
			a := &app{turn: turn}
			cmd, rest, err := newRootCommand(a).Find(c.line)
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Fatal(err)
			}
			if err := a.mayRelay(cmd); (err == nil) != (c.may || turn == nil) {
				t.Errorf("%q, for others %v: %v", c.line, turn != nil, err)
			}
		}
	}
}
