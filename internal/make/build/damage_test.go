package build

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

var damages = flag.Int("damages", 16, "in how many places TestDamagedState flips a bit of each file of state, and cuts it; 0: at every byte, which takes hours")

// TestDamagedState flips a bit of each file of state of the example, or cuts the file there, sometimes after an edit of a source file
// that no build has seen. The next build is right whatever was hit, says so in a line, and what it leaves is sound.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	thorough.Only(t, "the example is built 150 times")
	for _, file := range []string{"traces", "snapshot", "content.db"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			d := newDamaged(t, file)
			rng := randomSource(t)
			n := *damages
			if n == 0 {
				n = 2 * len(d.read(d.file))
			}
			for i := range n {
				at, edit := i/2, i%16 < 12
				if *damages > 0 {
					at = rng.IntN(len(d.read(d.file)))
				}
				d.try(at, i%2 == 1, edit)
				if t.Failed() {
					break
				}
			}
			t.Logf("%d damages, %d were told of", n, d.told)
		})
	}
}

// damaged is the example, in one of two states that differ in a model, data and an atlas.
type damaged struct {
	*fixture
	file    string
	edits   [2]map[string]string // source files that differ
	outputs [2]map[string]string // of clean builds
	db      [2]map[string][]string
	state   int
	told    int
}

func newDamaged(t *testing.T, file string) *damaged {
	d := &damaged{fixture: &fixture{TB: t, dir: t.TempDir(), procs: processors.All()}, file: ".kiln/" + file}
	d.must(copyTree("../../../examples/knights", d.dir))
	d.write("kiln.toml", plainKnights(d))
	page, dialogue := "assets/characters/shared/page.png", "assets/data/dialogue.json"
	icon := "assets/sprites/ui/sword.png"
	d.edits[0] = map[string]string{page: d.read(page), dialogue: d.read(dialogue), icon: d.read(icon)}
	d.edits[1] = map[string]string{page: d.read("assets/sprites/ui/shield.png"), dialogue: "{}", icon: ""}
	for i := range d.edits {
		d.toggle()
		d.remove(".kiln")
		d.remove("build")
		d.build0()
		d.outputs[d.state], d.db[d.state] = outputFiles(d.dir, "build"), d.database()
		if i == 1 && (cmp.Equal(d.outputs[0], d.outputs[1]) || len(d.outputs[0]) < 50) {
			t.Fatal("the edit changes nothing")
		}
	}
	return d
}

// toggle edits the sources.
func (d *damaged) toggle() {
	d.state = 1 - d.state
	for f, content := range d.edits[d.state] {
		if content == "" {
			d.remove(f)
		} else {
			d.write(f, content)
		}
	}
}

// try damages the file, after an edit if wanted, and builds twice.
func (d *damaged) try(at int, cut, edit bool) {
	d.Helper()
	d.meet()
	if edit {
		d.toggle()
	}
	data := []byte(d.read(d.file))
	at = min(at, len(data)-1)
	name := fmt.Sprintf("%s of %d bytes, bit %d of byte %d flipped, edit %t", d.file, len(data), at%8, at, edit)
	if cut {
		name = fmt.Sprintf("%s of %d bytes, cut at %d, edit %t", d.file, len(data), at, edit)
		data = data[:at]
	} else {
		data[at] ^= 1 << (at % 8)
	}
	d.write(d.file, string(data))
	d.look(name, cut)
	for i := range 3 {
		b, err := d.try0()
		if err != nil {
			d.Fatalf("%s: build %d: %v", name, i, err)
		}
		if got := outputFiles(d.dir, "build"); !maps.Equal(got, d.outputs[d.state]) {
			d.Errorf("%s: build %d: other outputs than a clean build:\n%s", name, i, cmp.Diff(d.outputs[d.state], got))
		}
		if b.Failed > 0 || i > 0 && b.Built > 0 {
			d.Errorf("%s: build %d: %d failed, %d built", name, i, b.Failed, b.Built)
		}
		d.judge(fmt.Sprintf("%s: build %d", name, i), b, i > 0)
	}
}

// meet lets a build with more to do meet damage that the builds before passed over, so that there is one at a time.
func (d *damaged) meet() {
	d.Helper()
	if d.file == ".kiln/content.db" || !d.saysDamaged() {
		return
	}
	d.toggle()
	b, err := d.try0()
	d.must(err)
	d.judge("damage that was passed over", b, false)
	if got := outputFiles(d.dir, "build"); !maps.Equal(got, d.outputs[d.state]) {
		d.Errorf("damage that was passed over: other outputs than a clean build:\n%s", cmp.Diff(d.outputs[d.state], got))
	}
	if d.saysDamaged() {
		d.remove(d.file)
		d.build0()
	}
}

// look wants whoever reads all of the state to be told of the damage. A log that is cut between two records is a shorter log.
func (d *damaged) look(name string, cut bool) {
	d.Helper()
	if d.file == ".kiln/content.db" || d.file == ".kiln/traces" && cut {
		return
	}
	if !d.saysDamaged() {
		d.Errorf("%s: a look at all of the state gives no message", name)
	}
}

// saysDamaged reports whether a look at all of the state gives a message about damage.
func (d *damaged) saysDamaged() bool {
	d.Helper()
	v, err := d.open().Look(context.Background(), nil, nil)
	d.must(err)
	return slices.ContainsFunc(v.Messages, func(m *diag.Message) bool { return m.Code == diag.StateDamaged })
}

func (d *damaged) try0() (built, error) { return d.fixture.try(context.Background(), Request{}) }

// judge looks at what a build says of its state.
func (d *damaged) judge(name string, b built, again bool) {
	d.Helper()
	var said []string
	for _, m := range b.list {
		if m.Code == diag.StateDamaged {
			said = append(said, m.Error())
		}
	}
	if len(said) > 0 {
		d.told++
	}
	// A build with little to do reads little of its state, so it need not meet the damage.
	if len(said) > 1 || again && len(said) > 0 && d.file != ".kiln/content.db" || len(said) == 1 && strings.Contains(strings.TrimSpace(said[0]), "\n") {
		d.Errorf("%s: says %d things of its state: %q", name, len(said), said)
	}
}

// TestStateOfAnotherVersion has state of a version to come and of one long gone.
func TestStateOfAnotherVersion(t *testing.T) {
	for _, file := range []string{"traces", "snapshot", "content.db"} {
		for _, version := range []byte{0, 99} {
			p := newProject(t, "-- assets/a.txt --\na\n-- assets/b.s --\nuse a.txt\n")
			p.build()
			data := []byte(p.read(".kiln/" + file))
			at := 8 // of a number of four bytes, the least byte first
			if file == "content.db" {
				at = 63 // PRAGMA user_version
			}
			data[at] = version
			p.write(".kiln/"+file, string(data))
			p.write("assets/a.txt", "A\n")
			b := p.build()
			if n := strings.Count(b.messages, string(diag.StateDamaged)); n != 1 || strings.Count(strings.TrimSpace(b.messages), "\n") > 0 || !strings.Contains(b.messages, fmt.Sprint(version)) {
				t.Errorf("%s of version %d: says %q", file, version, b.messages)
			}
			p.nothing()
		}
	}
}

// TestDamagedDatabase damages the content database where no build looks. That it is cut off is seen all the same; the rest is for Verify.
func TestDamagedDatabase(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\na\n-- assets/b.s --\nuse a.txt\n")
	p.build()
	p.nothing()
	whole := p.read(".kiln/content.db")
	for _, size := range []int{0, 50, 100, 8192, len(whole) - 8192, len(whole) - 1} {
		p.write(".kiln/content.db", whole[:size])
		if b := p.wants(""); strings.Count(b.messages, "K0211") != 1 && size > 0 {
			t.Errorf("cut at %d: says %q", size, b.messages)
		}
		p.nothing()
	}
	found := 0
	for at := 8192; at < len(whole); at += 8192 { // page by page
		whole := p.read(".kiln/content.db")
		p.write(".kiln/content.db", whole[:at]+strings.Repeat("x", 8192)+whole[min(len(whole), at+8192):])
		p.build0() // does not look
		v := p.verify(false)
		p.verify(true)
		if l := v.Messages; len(l) == 1 && l[0].Error() == ".kiln/content.db: warning[K0211]: it is damaged" {
			found++
		}
		p.wants("")
		p.nothing()
	}
	if pages := len(whole)/8192 - 1; found != pages {
		t.Errorf("%d of %d damaged pages were found", found, pages)
	}
}

// TestDatabaseUnreadable: a content database that cannot be read, for whatever reason that may pass, is nothing that Kiln did wrong.
func TestDatabaseUnreadable(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\ntext a\n")
	p.build()
	p.remove(".kiln/content.db")
	p.remove(".kiln/content.db-wal")
	p.remove(".kiln/content.db-shm")
	p.mkdir(".kiln/content.db")
	pr := p.open()
	p.must(pr.Lock(context.Background(), false, nil))
	_, err := pr.Verify(context.Background(), false)
	p.must(pr.Unlock())
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != diag.ContentDBUnusable || m.File != ".kiln/content.db" || !strings.Contains(m.Hint, "the room on the disk") {
		t.Error(err)
	}
}
