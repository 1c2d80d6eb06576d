package build

import (
	"strings"
	"testing"
)

// TestMessagesFollowTheFile has files that messages are about come into another root with the same content, so that no job runs: the messages
// name the file where it is now.
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

// TestCaseOfOld changes kiln.toml when a folder once had its name in another case, and the cache is lost: outputs that are in place stay there.
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
