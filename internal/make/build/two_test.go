package build

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// another is another kiln at work in a project.
type another struct {
	testing.TB
	cmd   *exec.Cmd
	input io.Closer
	said  *bufio.Reader
}

func (p *fixture) another(holds bool) *another {
	p.Helper()
	exe, err := os.Executable()
	p.must(err)
	a := &another{TB: p, cmd: exec.Command(exe)}
	a.cmd.Env = append(os.Environ(), childDir+"="+p.dir)
	if holds {
		a.cmd.Env = append(a.cmd.Env, childHolds+"=1")
	}
	a.cmd.Stderr = os.Stderr
	a.input, err = a.cmd.StdinPipe()
	p.must(err)
	out, err := a.cmd.StdoutPipe()
	p.must(err)
	a.said = bufio.NewReader(out)
	p.must(a.cmd.Start())
	p.Cleanup(func() { a.cmd.Process.Kill() })
	return a
}

// says waits until it says something, besides which jobs begin and end.
func (a *another) says(want string) {
	a.Helper()
	for {
		got, err := a.said.ReadString('\n')
		if got == want+"\n" {
			return
		}
		if err != nil || !strings.HasPrefix(got, "begins ") && !strings.HasPrefix(got, "ends ") {
			a.Fatalf("says %q, not %q: %v", got, want, err)
		}
	}
}

func (a *another) kill() {
	a.Helper()
	a.cmd.Process.Kill()
	if a.cmd.Wait() == nil {
		a.Fatal("ended before it was killed")
	}
}

func (a *another) ends() {
	a.Helper()
	a.input.Close()
	io.Copy(io.Discard, a.said)
	if err := a.cmd.Wait(); err != nil {
		a.Errorf("another kiln: %v", err)
	}
}

// TestWaiting has several kilns wait for one that is at work. That one is killed, or one of them is, or none; the others go on, one
// after the other, and what they leave is right.
func TestWaiting(t *testing.T) {
	t.Parallel()
	p := newProject(t, "-- assets/use.s --\nuse 1.s 2.s\n-- assets/glob.s --\nglob **\n")
	p.procs = testProcessors(&hooks{call: slowly})
	for i := range 8 {
		p.write(fmt.Sprintf("assets/%d.s", i), fmt.Sprintf("text %d\nscratch\nhook", i))
	}
	for n, what := range []string{"first", "holder", "waiter", "none"} {
		p.write("assets/1.s", fmt.Sprintf("text %d\nscratch\nhook", 100+n))
		p.remove("build/pc/2.s.txt")
		p.remove(fmt.Sprintf("assets/%d.s", 7-n))
		holder := p.another(true)
		holder.says("holds")
		var waiters []*another
		for range 3 {
			w := p.another(false)
			w.says("waits")
			waiters = append(waiters, w)
		}
		switch what {
		case "first", "holder":
			p.write("assets/2.s", fmt.Sprintf("text %d\nscratch\nhook", 200+n)) // those who wait have seen nothing yet
			holder.kill()
		case "waiter":
			waiters[1].kill()
			waiters = append(waiters[:1], waiters[2])
			holder.ends()
		case "none":
			holder.ends()
		}
		for _, w := range waiters {
			w.ends()
		}
		p.wants("")
		p.nothing()
	}
}

// TestEmptyMeanwhile has a file that was empty when it was looked at, and is not when its job reads it, and one the other way round.
func TestEmptyMeanwhile(t *testing.T) {
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n-- assets/a.s --\ntext a\n-- assets/e.txt --\n-- assets/f.txt --\nfull\n")
	p.workers = 1
	for _, edit := range []bool{false, true} { // the first build, and one that looks at few tasks
		if edit {
			p.write("assets/a.s", "text other")
			p.write("assets/e.txt", "")
			p.write("assets/f.txt", "full")
		}
		meddle := func() {
			p.write("assets/e.txt", "full now")
			p.write("assets/f.txt", "")
		}
		s := p.procs[0].(*script)
		s.meddle.Store(&meddle)
		_, err := p.try(context.Background(), Request{})
		s.meddle.Store(nil)
		p.must(err)
		if b := p.build(); !strings.Contains(b.messages, "assets/f.txt: warning[K0103]") || strings.Contains(b.messages, "assets/e.txt") {
			t.Errorf("edit %t: %s", edit, b.messages)
		}
		p.nothing()
	}
}
