package build

import (
	"context"
	"os"
	"strings"
	"testing"
)

// A parcel that stays, because what it is made of failed, and is damaged, is told of as that, and not as a file that nobody made, by a
// build that knows of none before.
func TestKeptParcelIsNoStranger(t *testing.T) {
	p := newProject(t, `
-- kiln.toml --
[project]
name = "test"
[platforms.pc]
[[parcels]]
name = "one"
assets = ["a.s"]
-- assets/a.s --
text good
-- assets/b.txt --
b
`)
	p.build()
	p.write("assets/a.s", "fail now")
	p.unchecked = true // a clean build has no such parcel
	p.build()
	if _, err := os.Stat(p.path("build/parcels/pc/one.parcel")); err != nil {
		t.Fatal("the parcel went: ", err)
	}
	p.scribble("build/parcels/pc/one.parcel")
	p.write(".kiln/snapshot", "damaged")
	b, err := p.try(context.Background(), Request{})
	p.must(err)
	if strings.Contains(b.messages, "K0250") || !strings.Contains(b.messages, "the parcel was left as it is, and is damaged") {
		t.Errorf("%s", b.messages)
	}
}
