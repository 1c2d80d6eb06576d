package session

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/processor"
)

var soak = flag.Duration("soak", 4*time.Second, "how long TestSoak edits files")

// childDir is set for a process that TestSoak starts, to be killed.
const childDir = "KILN_SESSION_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		gated := []processor.Processor{lines{newGates()}}
		s, err := Open(Config{Build: workspace.Config{Dir: dir, Version: "test", Processors: gated}, Workers: 2})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go func() { // it does not outlive the test
			io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		s.Run(context.Background())
		return
	}
	os.Exit(m.Run())
}

// TestSoak edits files at random, 20 times a second and now and then many at once, while a session follows in a process of its own that is
// killed again and again. At the end the outputs are those of a clean build.
func TestSoak(t *testing.T) {
	seed := thorough.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 7))
	s := set(t, nil)
	edit(s, rng, 100)
	end := time.Now().Add(*soak)
	kills := 0
	for time.Now().Before(end) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childDir+"="+s.dir)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(time.Duration(100+rng.IntN(900)) * time.Millisecond); time.Now().Before(until); {
			edit(s, rng, 1+rng.IntN(2)*rng.IntN(2)*rng.IntN(60))
			time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
		}
		err = errors.Join(cmd.Process.Kill(), in.Close())
		if cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		kills++
	}
	t.Logf("killed %d times", kills)
	s.start(Config{})
	s.next()
	for range 100 {
		edit(s, rng, 3)
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
	}
	if err := s.s.Build(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.compareWithClean()
}

// edit changes some files at random.
func edit(s *stage, rng *rand.Rand, times int) {
	name := func() string {
		folder := []string{"", "a/", "b/", "b/c/", "d/"}[rng.IntN(5)]
		return fmt.Sprintf("%s%d.t", folder, rng.IntN(8))
	}
	save := func(file, text string) { // where it lies
		if err := errors.Join(os.MkdirAll(filepath.Dir(s.path(file)), 0o777), write(s.path(file), text)); err != nil {
			s.Fatal(err)
		}
	}
	for range times {
		file := "assets/" + name()
		switch rng.IntN(12) {
		case 0:
			os.Remove(s.path(file))
		case 1:
			os.Rename(s.path(file), s.path("assets/"+name()))
		case 2:
			save(file, "NEED "+name()+"\nneeds\n")
		case 3:
			save(file, "READ "+name()+"\n")
		case 4:
			save(file, "GLOB "+[]string{"*.t", "b/**", "a/*.t"}[rng.IntN(3)]+"\n")
		case 5:
			save(file, "FAIL "+fmt.Sprint(rng.IntN(3))+"\n")
		case 6:
			if rng.IntN(4) == 0 {
				os.RemoveAll(s.path("assets/" + string(rune('a'+rng.IntN(4)))))
			}
		case 7:
			if rng.IntN(4) == 0 {
				os.Rename(s.path("assets/b"), s.path("assets/d"))
			}
		case 8:
			os.Remove(s.path("build/pc/" + name() + ".out"))
		default:
			save(file, fmt.Sprint("text ", rng.IntN(1000), "\n"))
		}
	}
}
