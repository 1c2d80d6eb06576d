package build

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/processor"
)

// blobFile is where the blob with a content is, relative to the project's folder.
func blobFile(content string) string {
	h := digest.Of([]byte(content)).String()
	return ".kiln/cas/" + h[:2] + "/" + h[2:]
}

// blobs are all there are, sorted.
func (p *fixture) blobs() []string {
	p.Helper()
	var all []string
	err := cas.OpenReadOnly(p.path(".kiln/cas")).Walk(func(h digest.Hash, _ fs.FileInfo) error {
		all = append(all, ".kiln/cas/"+h.String()[:2]+"/"+h.String()[2:])
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		p.Fatal(err)
	}
	return all
}

// spoil gives a blob other bytes, as many, and what is the same file as well.
func (p *fixture) spoil(file string) {
	p.Helper()
	p.must(os.Chmod(p.path(file), 0o666))
	p.must(os.WriteFile(p.path(file), spoilt(p.read(file)), 0o666))
}

// spoilQuietly does the same so that its size and modification time do not show it.
func (p *fixture) spoilQuietly(file string) {
	p.Helper()
	p.must(keepTimes(p.path(file), spoilt(p.read(file))))
}

// spoilAlone does it to a blob and leaves the output alone that is the same file.
func (p *fixture) spoilAlone(file string) {
	p.Helper()
	content := p.read(file)
	p.remove(file)
	p.write(file, string(spoilt(content)))
}

func spoilt(content string) []byte {
	b := []byte(content)
	for i := range b {
		b[i] ^= 0x20
	}
	return b
}

// TestDamagedBlob has a blob get other bytes, as many, in several ways, or be replaced by a copy that can be written to, and then something
// happen for which it is wanted.
func TestDamagedBlob(t *testing.T) {
	spoils := map[string]func(p *fixture, file string){
		"in place": (*fixture).spoil, "in place, its time put back": (*fixture).spoilQuietly, "alone": (*fixture).spoilAlone, "lost": (*fixture).remove,
		"the same bytes, writable": func(p *fixture, file string) {
			content := p.read(file)
			p.remove(file)
			p.write(file, content)
		},
	}
	for name, then := range map[string]func(p *fixture){
		"forced":              func(p *fixture) { p.buildWith(Request{Force: true}) },
		"cleaned":             func(p *fixture) { _, _, err := p.open().Clean(false, false); p.must(err) },
		"an edited output":    func(p *fixture) { p.scribble("build/pc/a.txt") },
		"looked into":         func(p *fixture) { p.buildWith(Request{Detect: workspace.ByHash}) },
		"moved":               func(p *fixture) { p.rename("assets/a.txt", "assets/c.txt") },
		"another one like it": func(p *fixture) { p.write("assets/c.txt", "alpha\n") },
		"gone back":           func(p *fixture) { p.write("assets/back.txt", "before\n") },
		"a new boot":          func(p *fixture) { p.write(".kiln/boot", "another") },
		"noted, and lost":     func(p *fixture) { p.remove(".kiln/cas.noted"); p.remove("build") },
		"a parcel anew":       func(p *fixture) { p.remove("build/parcels") },
		"used by another":     func(p *fixture) { p.write("assets/u.s", "use a.txt\nuse back.txt\n") },
	} {
		for how, spoil := range spoils {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n[[parcels]]\nname = \"all\"\nassets = [\"**\"]\n"+
					"-- assets/a.txt --\nalpha\n-- assets/back.txt --\nbefore\n-- assets/other.txt --\nother\n")
				p.build()
				if name == "gone back" {
					p.write("assets/back.txt", "after\n")
					p.build()
					spoil(p, blobFile("before\n"))
				} else {
					spoil(p, blobFile("alpha\n"))
				}
				then(p)
				if b := p.build(); b.Failed > 0 || strings.Contains(b.messages, "error") {
					t.Error(b.messages)
				}
				p.buildWith(Request{Compact: true})
				p.nothing()
			})
		}
	}
}

// TestServedBlob: nobody is handed a blob that is not what its name says.
func TestServedBlob(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\nalpha\n")
	p.build()
	pr := p.open()
	h := digest.Of([]byte("alpha\n"))
	f, err := pr.OpenBlob(h)
	p.must(err)
	if got, _ := io.ReadAll(f); string(got) != "alpha\n" {
		t.Errorf("served: %q", got)
	}
	f.Close()
	p.spoilQuietly(blobFile("alpha\n"))
	if f, err := pr.OpenBlob(h); !cas.Lost(err) {
		t.Errorf("it is served: %v", err)
		f.Close()
	}
	if _, err := os.Stat(p.path(blobFile("alpha\n"))); err != nil {
		t.Errorf("who only looks removed it: %v", err)
	}
}

// TestVerifyLostBlob: verify tells of blobs that are not there, and makes those anew of which the output holds the content.
func TestVerifyLostBlob(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\nalpha\n-- assets/b.s --\nask a.txt\n")
	p.build()
	lost := p.blobs()
	for _, f := range lost {
		p.remove(f)
	}
	checked := p.verify(false)
	if made := p.blobs(); len(made) > 0 {
		t.Errorf("a check made %q", made)
	}
	v := p.verify(true)
	if len(checked.Messages) != len(v.Messages) {
		t.Errorf("a check found %v, and a repair %v", checked.Messages, v.Messages)
	}
	told := 0
	for _, m := range v.Messages {
		if m.Code == diag.BlobLost {
			told++
		}
	}
	if told != len(lost) {
		t.Errorf("of %d lost blobs it told of %d: %v", len(lost), told, v.Messages)
	}
	p.wants("b.s#a.txt") // what it made is hidden
	if got := p.blobs(); !slices.Equal(got, lost) {
		t.Errorf("there are %q, not %q", got, lost)
	}
	if v := p.verify(false); len(v.Messages) > 0 {
		t.Error(v.Messages)
	}
	p.nothing()
}

// TestCheckChangesNothing: verify without fix leaves everything as it is, whatever it finds, and the next build is right.
func TestCheckChangesNothing(t *testing.T) {
	const files = "-- kiln.toml --\n[project]\nname = \"test\"\n[[parcels]]\nname = \"all\"\nassets = [\"**\"]\n" +
		"-- assets/a.txt --\nalpha\n-- assets/b.s --\nuse a.txt\ntext b\n"
	for name, damage := range map[string]func(p *fixture){
		"blob":     func(p *fixture) { p.spoilAlone(blobFile("alpha\n")) },
		"output":   func(p *fixture) { p.scribble("build/pc/b.s.txt") },
		"lost":     func(p *fixture) { p.remove(blobFile("alpha\n")) },
		"missing":  func(p *fixture) { p.remove("build/pc/a.txt") },
		"database": func(p *fixture) { p.write(".kiln/content.db", "garbage") },
		"traces":   func(p *fixture) { p.write(".kiln/traces", "garbage") },
		"snapshot": func(p *fixture) { p.write(".kiln/snapshot", "garbage") },
		"killed":   func(p *fixture) { p.write(".kiln/underway", ""); p.write("build/pc/.kiln-1-1", "left") },
		"stranger": func(p *fixture) {
			p.write("build/pc/old.parcel", "x")
			p.must(os.Chmod(p.path("build/pc/old.parcel"), 0o444))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, files)
			p.build()
			p.nothing()
			damage(p)
			before := stamps(p.dir)
			v := p.verify(false)
			if d := cmp.Diff(before, stamps(p.dir)); d != "" {
				t.Errorf("a check changed something:\n%s", d)
			}
			if len(v.Messages) == 0 && name != "killed" {
				t.Error("it found nothing")
			}
			if p.litter = name == "stranger"; p.litter {
				defer p.remove("build/pc/old.parcel")
			}
			p.build()
		})
	}
}

// TestUnchangedIsNotHashed: a build that has nothing to put in place takes no blob for anything but what it was.
func TestUnchangedIsNotHashed(t *testing.T) {
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n[[parcels]]\nname = \"all\"\nassets = [\"**\"]\n-- assets/b.s --\nask a.txt\n")
	for i := range 30 {
		p.write(fmt.Sprintf("assets/%02d.txt", i), fmt.Sprint("content ", i/2)) // always two of one content
	}
	p.write("assets/a.txt", "alpha")
	p.build()
	s := cas.OpenReadOnly(p.path(".kiln/cas"))
	for _, f := range p.blobs() { // all of them are known
		h, err := digest.Parse(strings.ReplaceAll(strings.TrimPrefix(f, ".kiln/cas/"), "/", ""))
		p.must(err)
		if !s.Known(h) {
			t.Errorf("%s would be hashed", f)
		}
	}
}

// TestEditedInTheSameTick has somebody edit outputs as soon as they are there, when the clock of the file system has hardly ticked, so that
// they keep their size.
func TestEditedInTheSameTick(t *testing.T) {
	p := newProject(t, "")
	for i := range 20 {
		p.write(fmt.Sprintf("assets/%02d.txt", i), fmt.Sprint("content ", i))
	}
	var mu sync.Mutex
	_, err := p.try(context.Background(), Request{Done: func(o report.Outcome) {
		mu.Lock()
		defer mu.Unlock()
		p.old("build/pc/" + o.Asset)
		p.spoil("build/pc/" + o.Asset)
	}})
	p.must(err)
	p.build()
	p.nothing()
	p = newProject(t, parcelProject)
	p.build0()
	for _, f := range append(p.open().ShippedOutside(), "build/parcels/pc/one.parcel") {
		p.old(f)
	}
}

// old wants a file that was just written to have a time at which nothing is written any more. Clocks that tick too seldom to tell two
// writes apart are rare by now.
func (p *fixture) old(file string) {
	p.Helper()
	if st, _, err := source.StatPath(p.path(file)); err != nil || st.TooYoung(time.Now()) {
		p.Errorf("%s may be edited without a trace: %+v, %v", file, st, err)
	}
}

// TestLargeProduct reads a product that is too large to be read at once, here and there, and while somebody writes to its blob.
func TestLargeProduct(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", job.WholeFile/16+1)
	p := newProject(t, "-- assets/b.s --\nhook read\n")
	p.write("assets/big.txt", big)
	spoil := false
	p.procs = testProcessors(&hooks{call: func(_ context.Context, _ string, j processor.Job) error {
		products, err := j.Products("big.txt")
		if err != nil {
			return err
		}
		f, err := j.OpenProduct(products[0][0])
		if err != nil {
			return err
		}
		at := make([]byte, 5)
		if n, err := f.ReadAt(at, job.WholeFile-1); n != 5 || err != nil || string(at) != big[job.WholeFile-1:job.WholeFile+4] || f.Size() != int64(len(big)) {
			return fmt.Errorf("%d bytes of %d: %q, %v", n, f.Size(), at, err)
		}
		if spoil {
			spoil = false
			p.spoil(blobFile(big))
		}
		data, err := io.ReadAll(f)
		if err == nil {
			err = j.Write(processor.Output{Name: "read", Type: "text", Extension: ".read"}, data)
		}
		return err // that of Close is not looked at
	}})
	p.build()
	p.write("assets/b.s", "hook read\ntext more\n")
	spoil = true
	if b := p.build(); b.Failed != 0 || b.messages != "" { // and is compared with a clean one
		t.Errorf("failed %d: %s", b.Failed, b.messages)
	}
	p.nothing()
}
