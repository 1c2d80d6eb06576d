package build

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/processors"
)

// TestUpgrade builds a project that the first formats were written for: a snapshot of version 3, a content database of version 4, and a
// kiln.ids in which the numbers are not in the order of the names. What was built is taken over, ids stay, and one line tells of it.
func TestUpgrade(t *testing.T) {
	p := &fixture{TB: t, dir: t.TempDir(), procs: processors.All()}
	p.unpack("testdata/first-formats.tar.gz")
	ids := p.read("kiln.ids")
	b := p.build() // and compares it with a clean one
	if b.Built != 0 || b.Failed != 0 {
		t.Errorf("built %d, failed %d", b.Built, b.Failed)
	}
	if want := ".kiln: warning[K0211]: the snapshot of files has version 3, not 5; all files are compared\n"; b.messages != want {
		t.Errorf("said %q, want %q", b.messages, want)
	}
	if now := p.read("kiln.ids"); now != ids || !strings.Contains(now, "0first.txt\t3\n") {
		t.Errorf("ids were %q and are %q", ids, now)
	}
	p.nothing()
}

// unpack extracts an archive into the project.
func (p *fixture) unpack(archive string) {
	p.Helper()
	f, err := os.Open(archive)
	p.must(err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	p.must(err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		p.must(err)
		at := p.path(h.Name)
		p.must(os.MkdirAll(filepath.Dir(at), 0o777))
		switch h.Typeflag {
		case tar.TypeLink: // an output, and its blob
			p.must(os.Link(p.path(h.Linkname), at))
		case tar.TypeReg:
			data, err := io.ReadAll(r)
			p.must(err)
			p.must(os.WriteFile(at, data, os.FileMode(h.Mode)))
		}
	}
}
