package build

import (
	"strings"
	"testing"
)

// TestMessagesFollowTheFile has files that messages are about come into another root with the same content, so that no job runs: the
// messages name the file where it is now.
func TestMessagesFollowTheFile(t *testing.T) {
	const files = shortcuts + "roots = [\"assets\", \"mod\"]\n-- assets/fails.s --\nfail now\n-- mod/keep.s --\ntext to keep\n-- mod/keep.txt --\nkept\n"
	for _, f := range []string{"fails.s", "warns.s"} {
		t.Run(f, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, files)
			p.age()
			p.build()
			about := func(b built, file string) {
				t.Helper()
				if b.ran != "" || strings.Count(b.messages, f+":") != 1 || !strings.Contains(b.messages, file+":1:1: ") {
					t.Errorf("ran %q, said\n%s", b.ran, b.messages)
				}
			}
			p.write("mod/"+f, p.read("assets/"+f))
			about(p.build(), "mod/"+f)
			p.remove("mod/" + f)
			about(p.build(), "assets/"+f)
			p.write("kiln.toml", "[project]\nname = \"test\"\nroots = [\"art\", \"mod\"]\n")
			p.rename("assets", "art")
			about(p.build(), "art/"+f)
			p.nothing()
		})
	}
}

// TestCaseOfOld changes kiln.toml when a folder once had its name in another case, and the cache is lost: outputs that are in place stay
// there.
func TestCaseOfOld(t *testing.T) {
	requireLinux(t, "names that differ in case")
	p := newProject(t, "-- assets/t/a.txt --\nalpha\n")
	p.build()
	p.rename("assets/t", "assets/T")
	p.build()
	p.remove(".kiln/cas")
	p.write("kiln.toml", "[project]\nname = \"other\"\n")
	p.wants("")
}

// TestNameOfFolder: a file of one root has the path of a folder of another one. The folder counts, whatever the order of the roots, and an
// error names both.
func TestNameOfFolder(t *testing.T) {
	for _, first := range []string{"file", "folder", "nothing", "an empty folder"} {
		for _, roots := range []string{`["one", "two"]`, `["two", "one"]`} {
			t.Run(first+roots, func(t *testing.T) {
				t.Parallel()
				p := newProject(t, shortcuts+"-- one/z.txt --\nz\n-- two/y.txt --\ny\n-- one/list.s --\nglob **\nexists s\ntry s\ntry s/a.txt\n")
				p.write("kiln.toml", "[project]\nname = \"test\"\nroots = "+roots+"\n")
				file := func() { p.write("one/s", "a file") }
				folder := func() { p.write("two/s/a.txt", "in a folder") }
				wants := func(errors int) {
					t.Helper()
					if b := p.build(); strings.Count(b.messages, "one/s: error[K0113]: a folder in another source root has the path of this file: two/s/") != errors || b.Failed != 0 {
						t.Errorf("%d failed, messages:\n%s", b.Failed, b.messages)
					}
				}
				switch first {
				case "file":
					file()
				case "folder":
					folder()
				case "an empty folder":
					p.mkdir("two/s")
				}
				wants(0)
				file()
				folder()
				wants(1)
				p.write("two/s/a.txt", "edited")
				wants(1)
				p.write("one/s", "edited")
				wants(1)
				p.remove("two/s")
				wants(0)
				folder()
				wants(1)
				p.remove("one/s")
				wants(0)
			})
		}
	}
}
