package build

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/upkeep"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/kilnrt"
	"github.com/kiln-pipeline/kiln/processor"
)

const parcelProject = `
-- kiln.toml --
[project]
name = "test"

[platforms.pc]
[platforms.web]

[[parcels]]
name        = "one"
assets      = ["one/**"]
shared_with = "common"
order       = "game.order"

[[parcels]]
name        = "two"
assets      = ["two/**"]
shared_with = "common"
compression = "none"
align       = 64

[[parcels]]
name   = "common"
assets = ["x3.s"]

[[parcels]]
name   = "left"
assets = ["one/**"]
split  = true
order  = "game.order"

[[parcels]]
name      = "right"
assets    = ["two/**", "x1.s"]
split     = true
stored    = ["x*.s"]
platforms = ["pc"]

[[constants]]
language = "lua"
-- game.order --
x2.s
-- assets/one/a.s --
text a
ref x1.s
-- assets/two/a.s --
text b
ref x1.s
opt x4.s
-- assets/x1.s --
text x1
ref x2.s
-- assets/x2.s --
text x2
-- assets/x3.s --
text x3
-- assets/x4.s --
text x4
`

// TestParcels edits a project with parcels at random. After each step its parcels hold what those of a clean build do, whichever way the
// build went; those that could not be packed are as they were.
func TestParcels(t *testing.T) {
	seeds, steps := 5, 50
	if !thorough.Enabled() {
		seeds, steps = 2, 25
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			p := newProject(t, parcelProject)
			p.age()
			rnd, orders := rand.New(rand.NewPCG(uint64(seed), 5)), rand.New(rand.NewPCG(uint64(seed), 9))
			p.build()
			for i := range steps {
				p.editParcels(rnd, i)
				p.editOrder(orders)
				p.build()
				if t.Failed() {
					t.Fatalf("step %d", i)
				}
			}
			if p.shorts < steps/10 {
				t.Errorf("%d of %d builds looked at few tasks", p.shorts, p.builds)
			}
		})
	}
}

// editParcels changes a content mostly, at times what refers to what.
func (p *fixture) editParcels(rnd *rand.Rand, step int) {
	names := []string{"one/a.s", "one/b.s", "two/a.s", "two/b.s", "x1.s", "x2.s", "x3.s", "x4.s", "y/new.s"}
	name := "assets/" + names[rnd.IntN(len(names))]
	old := p.read(name)
	switch what := rnd.IntN(20); {
	case what < 14 && old != "":
		lines := strings.Split(strings.TrimSpace(old), "\n")
		lines[0] = fmt.Sprint("text ", strings.Repeat(fmt.Sprint(step), rnd.IntN(80)))
		p.write(name, strings.Join(lines, "\n")+"\n")
	case what == 14 && old != "":
		p.remove(name)
	case what == 15:
		p.write(name, "fail now\n")
	default:
		text := fmt.Sprintln("text", step)
		for range rnd.IntN(4) {
			text += []string{"ref ", "opt "}[rnd.IntN(2)] + names[rnd.IntN(len(names))] + "\n"
		}
		if rnd.IntN(3) == 0 {
			text += "part more of it\n"
		}
		p.write(name, text)
	}
}

// editOrder changes what is first in some parcels, at times.
func (p *fixture) editOrder(rnd *rand.Rand) {
	text := ""
	for range rnd.IntN(5) {
		text += []string{"one/a.s", "one/b.s#more", "x*.s", "y/", "# a comment", "nothing", "x2.s"}[rnd.IntN(7)] + "\n"
	}
	old := p.read("game.order")
	what := rnd.IntN(40)
	if wrong := old == "" || strings.Contains(old, "["); wrong && what < 30 { // builds look at all tasks as long as it is
		what, text = 1, text+"x1.s\n"
	}
	switch what {
	case 0:
		p.write("game.order", text+"one/[\n")
	case 1, 2:
		p.write("game.order", text)
	case 3:
		p.remove("game.order")
	}
}

// TestTouchSplit: a content that more split parcels share than the name of their parcel has is changed there by a build of few tasks, in
// the first one's manner.
func TestTouchSplit(t *testing.T) {
	text := "-- kiln.toml --\n[project]\nname = \"test\"\n[platforms.pc]\n[[parcels]]\nname = \"shared\"\nassets = [\"other.s\"]\n"
	for i, align := range []int{512, 16, 16, 16} {
		text += fmt.Sprintf("[[parcels]]\nname = \"p%d\"\nassets = [\"a%d.s\"]\nsplit = true\nalign = %d\ncompression = \"none\"\n", i, i, align)
	}
	text += "-- assets/x.s --\ntext all\n-- assets/other.s --\ntext other\n"
	for i := range 4 {
		text += fmt.Sprintf("-- assets/a%d.s --\ntext a\nref x.s\n", i)
	}
	p := newProject(t, text)
	p.age()
	p.build()
	p.write("assets/x.s", "text of all four\n")
	if b := p.build(); !b.short {
		t.Error("it looked at all tasks")
	}
	files, err := filepath.Glob(filepath.Join(p.dir, "build/parcels/pc/p0+3+*.parcel"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the parcel of four: %v %v", files, err)
	}
	c, err := kilnrt.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.ByName("x.s")
	if err != nil || r.Align != 512 {
		t.Fatalf("aligned to %d, %v", r.Align, err)
	}
	if content, err := r.Bytes(); err != nil || !strings.Contains(string(content), "of all four") {
		t.Errorf("%q %v", content, err)
	}
}

// TestDamagedParcel: a parcel that somebody changed is made anew; one that rotted without a trace in its times is found by Verify.
func TestDamagedParcel(t *testing.T) {
	p := newProject(t, parcelProject)
	p.build()
	const file = "build/parcels/pc/one.parcel"
	whole := p.read(file)
	at := strings.LastIndex(whole, "one/a.s")
	p.write(file, whole[:at]+"ONE"+whole[at+3:])
	p.build()
	if p.read(file) != whole {
		t.Error("it was not made anew")
	}
	p.write(file, whole[:at]+"ONE"+whole[at+3:])
	pr := p.open()
	rotten := []state.Shipped{{File: file, Made: true, Stat: pr.ShippedStat(file)}, {File: "kiln.ids", Stat: pr.ShippedStat("kiln.ids")}}
	var v upkeep.Verified
	if left := v.Shipped(t.Context(), pr.Workspace, rotten); left[0].Stat != (source.Stat{}) || left[1] != rotten[1] || len(v.Messages) != 1 || v.Messages[0].Code != diag.ProductWrong {
		t.Errorf("%v, %v", left, v.Messages)
	}
}

// TestDamagedAndLeft: a parcel that somebody changed is made anew although builds that left it as it is came between: of another
// platform, and while one of its assets fails, which tells of it.
func TestDamagedAndLeft(t *testing.T) {
	const file = "build/parcels/pc/one.parcel"
	p := newProject(t, parcelProject)
	p.unchecked = true
	p.build()
	whole := p.read(file)
	at := strings.LastIndex(whole, "one/a.s")
	damage := func() { p.write(file, whole[:at]+"ONE"+whole[at+3:]) }
	isWhole := func(after string) {
		t.Helper()
		if p.read(file) != whole {
			t.Error("it was not made anew after", after)
		}
	}

	damage()
	p.buildWith(Request{Platforms: []string{"web"}})
	p.build()
	isWhole("a build of another platform")

	damage()
	text := p.read("assets/x1.s")
	p.write("assets/x1.s", "fail now\n")
	for range 2 {
		if b := p.build(); !strings.Contains(b.messages, file+": error[K1606]: the parcel was left as it is, and is damaged: ") {
			t.Error("nothing of it was told:\n", b.messages)
		}
	}
	p.write(file, "mine")
	if b := p.build(); !strings.Contains(b.messages, file+": error[K1606]: the parcel was left as it is, and is damaged: ") {
		t.Error("nothing of it was told:\n", b.messages)
	}
	p.write("assets/x1.s", text)
	p.build()
	isWhole("an asset failed")

	damage()
	ids := p.read("kiln.ids")
	p.write("kiln.ids", "no ids\n")
	p.build()
	p.write("kiln.ids", ids)
	p.build()
	isWhole("kiln.ids was wrong")
}

// TestStaleBesideDamaged: a parcel that is not declared any more is deleted although another one, which is left as it is because one of its
// assets fails, is damaged; that one stays.
func TestStaleBesideDamaged(t *testing.T) {
	const head = "-- kiln.toml --\n[project]\nname = \"test\"\n"
	const one, two = "[[parcels]]\nname = \"one\"\nassets = [\"a.s\"]\n", "[[parcels]]\nname = \"two\"\nassets = [\"b.s\"]\n"
	for _, whole := range []bool{false, true} {
		p := newProject(t, head+one+two+"-- assets/a.s --\ntext 1\n-- assets/b.s --\ntext 2\n")
		p.unchecked = true // a clean build has no parcel that is left as it is
		p.build()
		left := p.read("build/parcels/pc/one.parcel")
		if !whole {
			left = left[:20]
			p.write("build/parcels/pc/one.parcel", left)
		}
		p.write("assets/a.s", "fail now\n")
		p.write("kiln.toml", strings.TrimPrefix(head, "-- kiln.toml --\n")+one)
		p.build()
		if got := names(outputFiles(p.dir, "build")); strings.Contains(got, "two.parcel") || !strings.Contains(got, "one.parcel") {
			t.Errorf("whole %v: %s", whole, got)
		}
		if p.read("build/parcels/pc/one.parcel") != left {
			t.Errorf("whole %v: the parcel that is left as it is changed", whole)
		}
	}
}

// TestNothingToShip: when a project wants no parcels any more, these go, and nobody writes kiln.ids, whatever it was.
func TestNothingToShip(t *testing.T) {
	for _, ids := range []string{"", "no ids\n"} {
		p := newProject(t, parcelProject)
		p.build()
		p.write("kiln.toml", "[project]\nname = \"test\"\n")
		if p.remove("kiln.ids"); ids != "" {
			p.write("kiln.ids", ids)
		}
		if b := p.buildWith(Request{Locked: true}); b.Failed > 0 || b.list.Err() != nil {
			t.Error(b.messages)
		}
		if got := p.read("kiln.ids"); got != ids {
			t.Errorf("kiln.ids: %q", got)
		}
		p.nothing()
	}
}

// TestTouchedAndLeft: a parcel that is left as it is, because one of its assets fails, and whose times are others, is looked at once and
// then known.
func TestTouchedAndLeft(t *testing.T) {
	p := newProject(t, parcelProject)
	p.unchecked = true
	p.build()
	p.write("assets/x1.s", "fail now\n")
	p.build()
	p.touch("build/parcels/pc/one.parcel", -1)
	p.build()
	p.nothing()
}

// TestMadeWhileBuilding: what is made of products and changed by somebody while jobs run, or while parcels are packed, is not what the
// build left.
func TestMadeWhileBuilding(t *testing.T) {
	const constants = "build/gen/kiln.lua"
	p := newProject(t, parcelProject+"-- assets/x5.s --\nhook edit\ntext x5\n-- assets/one/c.s --\ntext c\nref x5.s\n")
	edited := ""
	p.procs = testProcessors(&hooks{call: func(context.Context, string, processor.Job) error {
		if edited != "" {
			p.write(edited, "-- somebody's\n"+p.read(edited))
		}
		return nil
	}})
	p.unchecked = true
	p.age()
	p.build()
	for i, file := range []string{constants, "build/parcels/web/parcels.json", "build/parcels/pc/two.parcel", "build/parcels/pc/one.parcel"} {
		want := p.read(file)
		if want == "" {
			t.Fatal(file, "was not made")
		}
		edited = file
		p.write("assets/x5.s", fmt.Sprintf("hook edit\ntext of build %d\n", i))
		p.build()
		edited = ""
		p.build()
		if got := p.read(file); strings.HasPrefix(got, "-- somebody's") || got == "" {
			t.Errorf("%s is still what somebody made of it", file)
		}
		p.nothing()
	}
}

// lateContext ends when it has been asked for its error so many times.
type lateContext struct {
	context.Context
	left atomic.Int64
}

func (c *lateContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestStoppedPacking ends builds at all moments, most of them while parcels are packed: what is there is whole and nothing is removed,
// none of it is told as a failure, and the next build is right.
func TestStoppedPacking(t *testing.T) {
	p := newProject(t, parcelProject)
	p.build()
	packing := 0
	for n := int64(0); ; n++ {
		if n%2 == 0 { // else from nothing: parcels that were not there
			p.write("assets/x2.s", fmt.Sprintf("text of build %d\n", n))
		} else {
			p.remove("build")
		}
		ctx := &lateContext{Context: context.Background()}
		ctx.left.Store(n)
		b, err := p.try(ctx, Request{Workers: 1})
		p.must(err)
		if strings.Contains(b.messages, "error") {
			t.Errorf("ended at %d:\n%s", n, b.messages)
		}
		for _, platform := range []string{"pc", "web"} {
			for _, name := range []string{"one", "two", "common", "left"} {
				file := "build/parcels/" + platform + "/" + name + ".parcel"
				if err := ship.Verify(p.path(file)); err != nil || n%2 == 0 && p.read(file) == "" {
					t.Errorf("ended at %d: %s: %v", n, file, err)
				}
			}
		}
		if b.stopped && b.Reused+b.Built == b.Jobs {
			packing++
		}
		p.build()
		if !b.stopped && n > 20 {
			break
		}
		if t.Failed() {
			return
		}
	}
	if packing < 10 {
		t.Errorf("only %d builds were ended while parcels were packed", packing)
	}
}

// TestNoMoreParcels: what was packed goes when the project declares no parcels any more, even while a source file is in error.
func TestNoMoreParcels(t *testing.T) {
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n[[parcels]]\nname = \"one\"\nassets = [\"**\"]\n-- assets/a.txt --\na\n")
	p.build()
	p.remove("build/parcels/pc/one.parcel")
	p.remove("build/parcels/pc/parcels.json")
	p.write("kiln.toml", "[project]\nname = \"test\"\n")
	p.build()
	p.write("kiln.toml", "[project]\nname = \"test\"\n[[parcels]]\nname = \"one\"\nassets = [\"**\"]\n")
	p.build()
	p.write("assets/A.TXT", "another")
	p.write("kiln.toml", "[project]\nname = \"test\"\n")
	if b := p.build(); !strings.Contains(b.messages, "K0107") && !strings.Contains(b.messages, "differ only in case") {
		t.Error(b.messages)
	}
	if got := p.read("build/parcels/pc/one.parcel"); got != "" {
		t.Error("the parcel is still there")
	}
}

// TestParcelsNameOfFolder: a file that a folder in another root hides is an error, and what there is to be packed is known all the same:
// parcels are those of a clean build, whatever was there before.
func TestParcelsNameOfFolder(t *testing.T) {
	p := newProject(t, "-- one/s --\na file\n-- one/z.txt --\nz\n-- two/y.txt --\ny\n")
	p.write("kiln.toml", "[project]\nname = \"test\"\nroots = [\"one\", \"two\"]\n[[parcels]]\nname = \"all\"\nassets = [\"**\"]\n"+
		"[[parcels]]\nname = \"s\"\nassets = [\"s\"]\n")
	holds := func(name string, ids ...string) {
		t.Helper()
		text, want := parcelText(p.path("build/parcels/pc/"+name+".parcel")), " "+strings.Join(ids, " ")+" "
		for _, id := range []string{"s", "s/a.txt", "y.txt", "z.txt"} {
			if strings.Contains(text, " "+id+" file ") != strings.Contains(want, " "+id+" ") {
				t.Errorf("parcel %s: %s\n%s", name, id, text)
			}
		}
	}
	p.wants("s y.txt z.txt")
	holds("all", "s", "y.txt", "z.txt")
	p.write("two/s/a.txt", "in a folder")
	p.wants("s/a.txt")
	holds("all", "s/a.txt", "y.txt", "z.txt")
	holds("s", "s/a.txt")
	p.write("two/y.txt", "another y")
	p.wants("y.txt")
	p.remove("two/s")
	p.build()
	holds("all", "s", "y.txt", "z.txt")
	holds("s", "s")
	p.link("one/link", "nowhere") // what it means is not known, and may be there tomorrow
	before := parcelText(p.path("build/parcels/pc/all.parcel"))
	p.write("two/y.txt", "y again")
	p.unchecked = true // a clean build has no parcel that stays
	if p.build(); parcelText(p.path("build/parcels/pc/all.parcel")) != before {
		t.Error("a parcel was packed although a file cannot be read")
	}
}
