package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Each of these tests is of a way in which a change once was lost.

// TestMendedForATurn: what mends a project that cannot be built is not forgotten if it is taken in for somebody's turn.
func TestMendedForATurn(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "a"}).start(Config{})
	s.next()
	s.write("assets/rules.toml", "]")
	s.until("an error", func(e Ended) bool { return e.Err != nil })
	ctx := context.Background()
	var over sync.WaitGroup
	begun := make(chan struct{})
	over.Go(func() {
		s.s.Turn(ctx, func(*Turn) { // what comes now is done one after the other, with no build in between
			close(begun)
			for asked := 0; asked < 2; time.Sleep(time.Millisecond) {
				s.s.mu.Lock()
				asked = len(s.s.asked)
				s.s.mu.Unlock()
			}
		})
	})
	<-begun
	var once sync.Once
	for range 2 {
		over.Go(func() {
			s.s.Turn(ctx, func(*Turn) {
				once.Do(func() {
					s.write("assets/a.t", "edited")
					s.write("assets/rules.toml", "")
				})
			})
		})
	}
	over.Wait()
	s.until("all is well", func(e Ended) bool { return e.Err == nil && names(e.Products) == "a.t" })
	s.compareWithClean()
}

// TestCancelledTurn: what a build made that its client cancelled is told all the same.
func TestCancelledTurn(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "a", "assets/b.t": "b"}).start(Config{Quiet: time.Hour, Workers: 1})
	s.next()
	s.write("assets/a.t", "other")
	s.write("assets/b.t", "BLOCK\nother")
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error)
	go func() { over <- s.s.Build(ctx) }()
	<-s.gates.in
	cancel()
	<-over
	close(s.gates.gate("b.t"))
	told := map[string]bool{}
	s.until("both are told", func(e Ended) bool {
		for _, p := range e.Products {
			told[p.Asset] = true
		}
		return told["a.t"] && told["b.t"]
	})
}

// TestIgnoredBefore: a folder whose ignore file went elsewhere with it is no longer passed over when another takes its place.
func TestIgnoredBefore(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "a", "assets/x/.kilnignore": "*.t\n", "assets/x/b.t": "b"}).start(Config{})
	s.next()
	s.write("assets/x/b.t", "ignored") // somebody asks for the folder's ignore file
	if err := os.Rename(s.path("assets/x"), s.path("away")); err != nil {
		t.Fatal(err)
	}
	s.write("assets/a.t", "other")
	s.until("it is away", func(Ended) bool { return s.read("build/pc/a.t.out") == "other" })
	s.write("assets/x/b.t", "new")
	s.until("the new folder", func(Ended) bool { return s.read("build/pc/x/b.t.out") == "new" })
	s.write("assets/x/b.t", "edited")
	s.until("an edit there", func(Ended) bool { return s.read("build/pc/x/b.t.out") == "edited" })
}

// TestOtherRoot: a source root that is a symbolic link is made to lead elsewhere.
func TestOtherRoot(t *testing.T) {
	s := set(t, map[string]string{"v1/a.t": "one", "v2/a.t": "two"})
	if err := os.Symlink("v1", s.path("assets")); err != nil {
		t.Skip("no symbolic links here")
	}
	s.start(Config{}).next()
	if err := errors.Join(os.Symlink("v2", s.path("new")), os.Rename(s.path("new"), s.path("assets"))); err != nil {
		t.Fatal(err)
	}
	s.until("it leads elsewhere", func(Ended) bool { return s.read("build/pc/a.t.out") == "two" })
	s.write("v2/a.t", "edited")
	s.until("an edit there", func(Ended) bool { return s.read("build/pc/a.t.out") == "edited" })
}

// TestLinkToIgnored: a link leads to a file that is passed over itself, or is in a folder that is.
func TestLinkToIgnored(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "a", "assets/.kilnignore": "store/\n*.old\n", "assets/store/x.t": "one", "assets/x.old": "two"})
	if err := os.Symlink("store/x.t", s.path("assets/link.t")); err != nil {
		t.Skip("no symbolic links here")
	}
	if err := os.Symlink("x.old", s.path("assets/file.t")); err != nil {
		t.Fatal(err)
	}
	s.start(Config{}).next()
	if got := s.read("build/pc/link.t.out") + s.read("build/pc/file.t.out"); got != "onetwo" {
		t.Fatal(got)
	}
	s.write("assets/store/x.t", "edited")
	s.until("what the link leads to", func(Ended) bool { return s.read("build/pc/link.t.out") == "edited" })
	s.write("assets/x.old", "edited")
	s.until("where the folder is watched", func(Ended) bool { return s.read("build/pc/file.t.out") == "edited" })
}

// TestMendedScript: kiln.toml names a script for the first time, which is wrong, and then right.
func TestMendedScript(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "a", "assets/b.new": "b"}).start(Config{})
	s.next()
	s.write("tools/new.star", "what is this")
	s.write("kiln.toml", "[project]\nname = \"test\"\n\n[[processors]]\nscript = \"tools/new.star\"\n")
	s.until("an error", func(e Ended) bool { return e.Err != nil })
	s.write("tools/new.star", `processor("new", extensions = [".new"], products = {"text": (".out", "text")})

def process(job):
    job.write(job.read_text())
`)
	s.until("it is mended", func(e Ended) bool { return e.Err == nil && s.read("build/pc/b.new.out") == "b" })
}

// TestMoment: a job that fails for a moment is tried again, although nothing changes.
func TestMoment(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "a"}).start(Config{})
	s.next()
	s.write("assets/a.t", "MOMENT\nlater\n")
	s.until("it is tried again", func(Ended) bool { return s.read("build/pc/a.t.out") == "later\n" })
	s.compareWithClean()
}

// TestLinkedIgnoreFile: an ignore file is a link to a list that is passed over itself, or is any file.
func TestLinkedIgnoreFile(t *testing.T) {
	for _, list := range []string{"store/list", "list.txt", "x.list"} {
		s := set(t, map[string]string{"assets/.kilnignore": "store/\n*.list\n", "assets/in/a.t": "a", "assets/in/x/b.t": "b", "assets/" + list: "x/\n"})
		if err := os.Symlink("../"+list, s.path("assets/in/.kilnignore")); err != nil {
			t.Skip("no symbolic links here")
		}
		s.start(Config{}).next()
		s.write("assets/"+list, "a.t\n")
		s.until("another list", func(Ended) bool { return s.read("build/pc/in/x/b.t.out") == "b" })
		s.write("assets/in/x/b.t", "edited")
		s.until("an edit of what was ignored", func(Ended) bool { return s.read("build/pc/in/x/b.t.out") == "edited" })
		s.compareWithClean()
	}
}

// TestDanglingIgnoreFile: an ignore file is a link to a list that is not there yet.
func TestDanglingIgnoreFile(t *testing.T) {
	for _, list := range []string{"store/list", "list.txt", "x.list", "later/list.txt"} {
		t.Run(list, func(t *testing.T) {
			s := set(t, map[string]string{"assets/.kilnignore": "store/\n*.list\n", "assets/store/other": "", "assets/in/a.t": "a"})
			if err := os.Symlink("../"+list, s.path("assets/in/.kilnignore")); err != nil {
				t.Skip("no symbolic links here")
			}
			s.start(Config{}).next()
			s.write("assets/"+list, "x/\n")
			s.until("there is a list", func(e Ended) bool { return len(e.Report.Messages) == 0 })
			s.write("assets/in/x/b.t", "b")
			s.write("assets/in/a.t", "somebody asks for the list")
			s.until("the edit", func(Ended) bool { return s.read("build/pc/in/a.t.out") == "somebody asks for the list" })
			if got := s.read("build/pc/in/x/b.t.out"); got != "" {
				t.Errorf("what the list names is built: %q", got)
			}
			s.write("assets/"+list, "a.t\n")
			s.until("another list", func(Ended) bool { return s.read("build/pc/in/x/b.t.out") == "b" })
			s.write("assets/in/x/b.t", "edited")
			s.until("an edit of what was ignored", func(Ended) bool { return s.read("build/pc/in/x/b.t.out") == "edited" })
			s.compareWithClean()
		})
	}
}

// TestBetweenLooks: where all files are compared now and then, a build reads one that came since the last look and is gone by the next.
func TestBetweenLooks(t *testing.T) {
	for name, see := range map[string]func(s *stage) error{
		"a new file beside it":     func(s *stage) error { return write(s.path("assets/in/new.t"), "n") },
		"one beside it is renamed": func(s *stage) error { return os.Rename(s.path("assets/in/a.t"), s.path("assets/in/b.t")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t, map[string]string{"assets/in/a.t": "a", "assets/list.t": "GLOB in/*"}).start(Config{Poll: time.Hour}) // it looks when a turn begins
			s.next()
			if err := see(s); err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			err := s.s.Turn(ctx, func(turn *Turn) {
				s.write("assets/in/between.t", "between")
				old := time.Now().Add(-time.Minute) // else both are known to be uncertain, and looked at by the next build, whenever that may be
				if err := errors.Join(os.Chtimes(s.path("assets/in/between.t"), old, old), os.Chtimes(s.path("assets/in"), old, old)); err != nil {
					t.Error(err)
				}
				if _, err := turn.Build(ctx, turn.r.request()); err != nil {
					t.Error(err)
				}
			})
			if got := s.read("build/pc/in/between.t.out"); got != "between" || err != nil {
				t.Fatalf("the build was to read it: %q, %v", got, err)
			}
			if err := os.Remove(s.path("assets/in/between.t")); err != nil {
				t.Fatal(err)
			}
			if err := s.s.Build(ctx); err != nil {
				t.Fatal(err)
			}
			if got := s.read("build/pc/in/between.t.out") + s.read("build/pc/list.t.out"); strings.Contains(got, "between") {
				t.Errorf("it is gone, and there is %q", got)
			}
			s.compareWithClean()
		})
	}
}

// TestOwnFileInTheWay: a build that one of Kiln's own files stopped is tried again, although nothing changes in the project.
func TestOwnFileInTheWay(t *testing.T) {
	s := set(t, map[string]string{"assets/a.t": "a"}).start(Config{})
	s.next()
	cas := s.path(".kiln/cas")
	if err := errors.Join(os.Rename(cas, cas+".away"), os.WriteFile(cas, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	s.write("assets/a.t", "other")
	s.until("the build fails", func(e Ended) bool { return e.Err != nil })
	if err := errors.Join(os.Remove(cas), os.Rename(cas+".away", cas)); err != nil {
		t.Fatal(err)
	}
	s.until("it is tried again", func(e Ended) bool { return e.Err == nil && s.read("build/pc/a.t.out") == "other" })
	s.compareWithClean()
}

// TestStateRemoved: who removes the state folder below a session finds it made anew without another change, and all else as it was, be it
// in the middle of a build.
func TestStateRemoved(t *testing.T) {
	for name, c := range map[string]Config{"told": {}, "polled": {Poll: 10 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set(t, map[string]string{"assets/a.t": "a", "assets/b.t": "NEED a.t\n"}).start(c)
			s.next()
			remove := func() {
				t.Helper()
				if err := os.RemoveAll(s.path(".kiln")); err != nil && !errors.Is(err, syscall.ENOTEMPTY) { // a build is writing there
					t.Fatal(err)
				}
			}
			remove()
			// The session may have seen that a part of it was gone, and have been at work when the rest went: what it made then is reused.
			s.until("the state is whole again", func(e Ended) bool {
				blobs, err := filepath.Glob(s.path(".kiln/cas/??/*")) // one: both products are the same bytes
				return err == nil && len(blobs) == 1 && e.Err == nil && e.Report.Summary.Built+e.Report.Summary.Reused == 2 && s.read(".kiln/snapshot") != ""
			})
			s.write("assets/b.t", "BLOCK\n")
			<-s.gates.in
			remove()
			close(s.gates.gate("b.t"))
			s.write("assets/a.t", "other")
			s.until("the last edit is built, and the state is whole", func(e Ended) bool {
				return e.Err == nil && !e.Report.Stopped && s.read("build/pc/a.t.out") == "other" && s.read(".kiln/snapshot") != ""
			})
			s.compareWithClean()
		})
	}
}
