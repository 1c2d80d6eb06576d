package build

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/kilnrt"
)

// orderProject has one parcel of forty resources, in files that would lie one after the other by number, one that has the same order,
// and one that has none.
func orderProject(t *testing.T) *fixture {
	t.Helper()
	text := "-- kiln.toml --\n[project]\nname = \"test\"\n" + parcelTables("")
	for i := range 40 {
		text += fmt.Sprintf("-- assets/a/%02d.s --\ntext %s\n", i, strings.Repeat(fmt.Sprintf("content %d ", i), 50))
	}
	return newProject(t, text)
}

func parcelTables(keys string) string {
	return fmt.Sprintf("\n[[parcels]]\nname = \"level\"\nassets = [\"a/**\"]\ncompression = \"none\"\n%s\n[[parcels]]\nname = \"other\"\nassets = [\"a/0*\"]\n", keys)
}

// lies are the names of a parcel's resources by where their contents lie.
func (p *fixture) lies(file string) []string {
	p.Helper()
	r, err := kilnrt.Open(p.path(file))
	p.must(err)
	defer r.Close()
	type place struct {
		name string
		at   int64
	}
	var all []place
	for i := range r.Len() {
		x, err := r.At(i)
		p.must(err)
		all = append(all, place{x.Name(), x.Offset})
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	var names []string
	for _, x := range all {
		names = append(names, x.name)
	}
	return names
}

// ranges is how many runs of neighbouring bytes loading resources by their names reads: what follows within one unit of alignment is the
// same run.
func (p *fixture) ranges(file string, load []string) int {
	p.Helper()
	r, err := kilnrt.Open(p.path(file))
	p.must(err)
	defer r.Close()
	n, end := 0, int64(-1)
	for _, name := range load {
		x, err := r.ByName(name)
		p.must(err)
		if gap := x.Offset - end; gap < 0 || gap >= int64(x.Align) {
			n++
		}
		end = x.Offset + x.Stored
	}
	return n
}

// TestOrder: resources are in the order of the file that lists what is loaded first. An edit of that file packs again only the parcels
// that use it. Without the file, a parcel is as it was before.
func TestOrder(t *testing.T) {
	p := orderProject(t)
	p.age()
	p.build()
	const level, other = "build/parcels/pc/level.parcel", "build/parcels/pc/other.parcel"
	plain, beside := p.read(level), p.read(other)
	load := []string{"a/33.s", "a/05.s", "a/17.s", "a/18.s", "a/02.s", "a/39.s"}
	before := p.ranges(level, load)

	p.write("kiln.toml", "[project]\nname = \"test\"\n"+parcelTables("order = \"level.order\""))
	b := p.wants("")
	if !strings.Contains(b.messages, `kiln.toml:`) || !strings.Contains(b.messages, `there is no file "level.order"`) || p.read(level) != plain {
		t.Errorf("without the file: %s", b.messages)
	}
	p.write("level.order", "# what the game loads\na/33.s\na/05.s\na/1[78].s\n\na/02.s\na/gone.s\na/39.s\n")
	b = p.wants("")
	if got, want := b.messages, "level.order:7:1: warning[K1608]: no resource is called \"a/gone.s\"\n"; !strings.HasPrefix(got, want) || b.Failed != 0 {
		t.Errorf("%s", got)
	}
	if got := p.lies(level); !slices.Equal(got[:6], load) || !slices.IsSorted(got[6:]) || len(got) != 40 {
		t.Errorf("they lie as %v", got)
	}
	if after := p.ranges(level, load); before != 5 || after != 1 { // 17 and 18 were neighbours
		t.Errorf("a load reads %d ranges, %d before", after, before)
	}
	ordered := p.read(level)

	p.write("level.order", p.read("level.order")+"# the same, with a comment\n")
	p.wants("")
	if p.read(level) != ordered {
		t.Error("a comment changed the parcel")
	}
	p.write("level.order", "a/3?.s\n")
	p.wants("")
	if got := p.lies(level); got[0] != "a/30.s" || got[9] != "a/39.s" || got[10] != "a/00.s" {
		t.Errorf("they lie as %v", got)
	}
	p.write("level.order", "a/01.s\na/[\n")
	if b := p.wants(""); !strings.Contains(b.messages, "level.order:2:1: error[K1607]: \"a/[\" is not a glob\n") || p.lies(level)[0] != "a/01.s" {
		t.Errorf("%s", b.messages)
	}
	if p.read(other) != beside {
		t.Error("a parcel without the order changed")
	}
	p.write("kiln.toml", "[project]\nname = \"test\"\n"+parcelTables(""))
	p.wants("")
	if p.read(level) != plain {
		t.Error("without the order the parcel is not what it was")
	}
}

// TestOrderKept: contents that change in builds of few tasks are appended, and a compacted parcel is that of a clean build, byte for byte.
func TestOrderKept(t *testing.T) {
	p := orderProject(t)
	p.write("kiln.toml", "[project]\nname = \"test\"\n"+parcelTables("order = \"level.order\""))
	p.write("level.order", "a/39.s\na/05.s\na/17.s\n")
	p.age()
	p.build()
	p.write("assets/a/05.s", "text another content\n")
	if b := p.wants("a/05.s"); !b.short {
		t.Error("it did not look at few tasks")
	}
	const level = "build/parcels/pc/level.parcel"
	if got := p.lies(level); got[0] != "a/39.s" || got[39] != "a/05.s" {
		t.Errorf("they lie as %v", got)
	}
	p.buildWith(Request{Compact: true})
	if got := p.lies(level); got[0] != "a/39.s" || got[1] != "a/05.s" || got[2] != "a/17.s" {
		t.Errorf("compacted, they lie as %v", got)
	}
	clean := &fixture{TB: t, dir: t.TempDir(), procs: p.procs, unchecked: true}
	for _, f := range []string{"kiln.toml", "level.order"} {
		clean.write(f, p.read(f))
	}
	files, err := filepath.Glob(p.path("assets/a/*"))
	p.must(err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		p.must(err)
		clean.write("assets/a/"+filepath.Base(f), string(b))
	}
	clean.build()
	if a, b := p.read(level), clean.read(level); !bytes.Equal([]byte(a), []byte(b)) {
		t.Errorf("%d bytes, a clean build makes %d others", len(a), len(b))
	}
}
