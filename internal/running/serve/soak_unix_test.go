//go:build unix

package serve_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/running/live"
	"github.com/kiln-pipeline/kiln/internal/running/live/livetest"
	"github.com/kiln-pipeline/kiln/internal/running/serve"
	"github.com/kiln-pipeline/kiln/internal/running/session"
)

var (
	soakTime = flag.Duration("soak", 6*time.Second, "how long TestSoak edits; 10m is what a release takes")
	soakSeed = flag.Uint64("soakseed", 0, "seed of TestSoak's edits; 0 is a new one")
)

// watcherDir and watcherListen have this program be a watcher, in place of running tests.
const (
	watcherDir    = "KILN_TEST_WATCHER"
	watcherListen = "KILN_TEST_LISTEN"
)

// beWatcher serves a project until the process is killed. SIGUSR1 breaks all connections.
func beWatcher(dir string) error {
	s, err := session.Open(session.Config{Build: workspace.Config{Dir: dir, Version: "test", Processors: processors.All()}})
	if err != nil {
		return err
	}
	srv, err := serve.Listen(serve.Config{Session: s, Listen: os.Getenv(watcherListen), Guard: live.Guard{}})
	if err != nil {
		return err
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGUSR1)
	go func() {
		for range hangup {
			srv.Hub().Hangup()
		}
	}()
	go s.Run(context.Background())
	return srv.Run(context.Background(), nil)
}

// soak is a project that is edited at random while games run.
type soak struct {
	t       *testing.T
	dir     string
	listen  string
	random  *rand.Rand
	names   []string
	watcher *exec.Cmd
	edits   int
}

// TestSoak edits files at random, 20 times a second, while three games run; it breaks connections and kills the watcher. At the end every
// game has what a clean build has.
func TestSoak(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-soakseed %d", seed)
	s := &soak{t: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(seed, 1))}
	write(t, s.dir, "kiln.toml", project)
	for i := range 60 {
		s.names = append(s.names, fmt.Sprintf("%c/f%02d.txt", 'a'+i%5, i))
		s.write(s.names[i])
	}
	s.listen = address(t)
	s.start()
	t.Cleanup(s.kill)
	var games []*livetest.Game
	for _, language := range livetest.Languages {
		if available(language) {
			games = append(games, livetest.Start(t, language, "http://"+s.listen, s.names...))
		}
	}
	s.run()
	want := s.cleanBuild()
	for _, g := range games {
		g.Until(t, want)
	}
	t.Logf("%d edits, %d games", s.edits, len(games))
}

// available tells whether games of a language can run here: the soak does with those that can.
func available(language string) bool {
	program := map[string]string{"c": "gcc", "js": "node"}[language]
	if program == "" {
		return true
	}
	_, err := exec.LookPath(program)
	return err == nil
}

func (s *soak) start() {
	program, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.watcher = exec.Command(program)
	s.watcher.Env = append(os.Environ(), watcherDir+"="+s.dir, watcherListen+"="+s.listen)
	s.watcher.Stderr = os.Stderr
	if err := s.watcher.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *soak) kill() {
	s.watcher.Process.Kill()
	s.watcher.Wait()
}

// run edits. In the first half connections break and watchers die, in the second memory is looked at.
func (s *soak) run() {
	begin := time.Now()
	edits := time.NewTicker(50 * time.Millisecond)
	defer edits.Stop()
	var memory []int
	for time.Since(begin) < *soakTime {
		<-edits.C
		s.edit()
		first := time.Since(begin) < *soakTime/2
		switch n := s.random.IntN(200); {
		case n == 0 && first:
			s.kill()
			s.start()
		case n < 5:
			s.watcher.Process.Signal(syscall.SIGUSR1)
		case !first && s.edits%100 == 0:
			memory = append(memory, resident(s.watcher.Process.Pid))
		}
	}
	if n := len(memory); n >= 20 { // of a shorter run the start is too large a part
		early, late := slices.Max(memory[n/10:n/2]), slices.Max(memory[n/2:])
		s.t.Logf("memory of the watcher in KiB: %v", memory)
		if late > early+early/4+8<<10 {
			s.t.Errorf("the watcher grows: %d KiB, then %d", early, late)
		}
	}
	for _, name := range s.names { // what is gone for now comes back, all else is as it was left
		if _, err := os.Stat(filepath.Join(s.dir, "assets", name)); err != nil {
			s.write(name)
		}
	}
}

// write gives a file content that it never had, where it lies.
func (s *soak) write(name string) {
	s.t.Helper()
	s.edits++
	path := filepath.Join(s.dir, "assets", filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, fmt.Appendf(nil, "%s-%d", name, s.edits), 0o666)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *soak) edit() {
	name := s.names[s.random.IntN(len(s.names))]
	path := filepath.Join(s.dir, "assets", name)
	switch s.random.IntN(10) {
	case 0:
		os.Remove(path)
	case 1: // a folder goes and comes back under its name
		dir := filepath.Dir(path)
		if os.Rename(dir, dir+"-moved") == nil {
			time.Sleep(time.Duration(s.random.IntN(40)) * time.Millisecond)
			if err := os.Rename(dir+"-moved", dir); err != nil {
				s.t.Fatal(err)
			}
		}
	case 2: // many at once
		for _, other := range s.names[:s.random.IntN(len(s.names))] {
			s.write(other)
		}
	case 3, 4, 5:
		s.write(name)
	default: // beside, and renamed
		s.edits++
		write(s.t, s.dir, "assets/"+name+".tmp~", fmt.Sprintf("%s-%d", name, s.edits))
		if err := os.Rename(path+".tmp~", path); err != nil {
			s.t.Fatal(err)
		}
	}
}

// cleanBuild builds the sources as they are elsewhere, and gives what games say who have it.
func (s *soak) cleanBuild() string {
	dir := s.t.TempDir()
	write(s.t, dir, "kiln.toml", project)
	if err := os.CopyFS(filepath.Join(dir, "assets"), os.DirFS(filepath.Join(s.dir, "assets"))); err != nil {
		s.t.Fatal(err)
	}
	p, err := build.Open(workspace.Config{Dir: dir, Version: "test", Processors: processors.All()})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := p.Build(s.t.Context(), build.Request{Reporter: build.Silent{}})
	if err != nil || r.Failed() {
		s.t.Fatal(err, r.Messages)
	}
	var line []string
	for _, name := range s.names {
		b, err := os.ReadFile(filepath.Join(dir, "build", "pc", name))
		if err != nil {
			s.t.Fatal(err)
		}
		line = append(line, name+"="+string(b))
	}
	return strings.Join(line, " ")
}

// resident is the memory of a process, in KiB; 0 where that is not known.
func resident(pid int) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text))
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n * os.Getpagesize() >> 10
}
