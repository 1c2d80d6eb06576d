package build

import (
	"testing"
)

func TestRequests(t *testing.T) {
	p := newProject(t, `
-- assets/a.s --
request one x.txt
seed 7
-- assets/b.s --
request one x.txt
-- assets/x.txt --
setting
text from x
-- assets/c.s --
text alone
`)
	b := p.build()
	if b.ran != "a.s b.s c.s script of x.txt {\"say\":\"one\"} seed {\"say\":\"7\"} x.txt" || b.Requests != 2 || b.RequestsRun != 2 || b.Jobs != 4 {
		t.Errorf("first: %+v", b)
	}
	if got := p.read("build/pc/a.s.txt"); got != "one\nfrom x\nseed 7\n" {
		t.Errorf("%q", got)
	}
}
