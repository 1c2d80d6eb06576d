package build

import (
	"os"
	"testing"
)

// TestEditedBlob edits an output that is the same file as its blob, so that it is as long as before, and then has something happen that
// makes Kiln look at the blob alone.
func TestEditedBlob(t *testing.T) {
	for name, then := range map[string]func(p *fixture){
		"nothing":             func(*fixture) {},
		"the source moved":    func(p *fixture) { p.rename("assets/a.txt", "assets/b.txt") },
		"another one like it": func(p *fixture) { p.write("assets/b.txt", "alpha") },
		"the output removed":  func(p *fixture) { p.remove("build") },
		"removed, and moved":  func(p *fixture) { p.remove("build"); p.rename("assets/a.txt", "assets/b.txt") },
		"the snapshot lost":   func(p *fixture) { p.remove(".kiln/snapshot") },
		"lost, and moved": func(p *fixture) {
			p.remove(".kiln/snapshot")
			p.remove("build")
			p.rename("assets/a.txt", "assets/b.txt")
		},
		"all outputs cleaned": func(p *fixture) { _, _, err := p.open().Clean(false, false); p.must(err) },
		"a build of a part":   func(p *fixture) { p.buildWith(Request{Patterns: []string{"other.txt"}}) },
		"a part, and removed": func(p *fixture) { p.buildWith(Request{Patterns: []string{"other.txt"}}); p.remove("build") },
		"killed, and removed": func(p *fixture) { p.write(".kiln/underway", ""); p.remove("build") },
		"moved, a part, moved": func(p *fixture) {
			p.rename("assets/a.txt", "assets/b.txt")
			p.buildWith(Request{Patterns: []string{"other.txt"}})
			p.rename("assets/b.txt", "assets/c.txt")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "-- assets/a.txt --\nalpha\n-- assets/other.txt --\nother\n")
			p.build()
			p.must(os.Chmod(p.path("build/pc/a.txt"), 0o666))
			p.must(os.WriteFile(p.path("build/pc/a.txt"), []byte("ALPHA\n"), 0o666))
			then(p)
			p.build() // which is compared with a clean one
			p.nothing()
		})
	}
}
