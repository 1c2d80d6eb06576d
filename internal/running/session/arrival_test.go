package session

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

var arrivals = flag.Duration("arrivals", 3*time.Second, "how long TestArrivals saves files")

// TestArrivals: several editors save files in all the ways that editors have, as fast as they can, each waiting for its own product, and
// somebody disturbs them: kiln.toml and rules that are wrong for a moment, a source root that goes away, commands that others ask for. No
// file is lost.
func TestArrivals(t *testing.T) {
	seed := thorough.Seed(t)
	for name, disturbed := range map[string]bool{"alone": false, "disturbed": true} {
		t.Run(name, func(t *testing.T) {
			s := set(t, map[string]string{"assets/first.t": "x"})
			b := &arrivalBoard{news: make(chan struct{})}
			s.start(Config{})
			s.s.Follow(func(e Event) {
				if _, ok := e.(Ended); ok {
					b.tell()
				}
			})
			s.next()
			go func() {
				for range s.ended {
				}
			}()
			end := time.Now().Add(*arrivals)
			var over, others sync.WaitGroup
			counts := make([]int, 4)
			quit := make(chan struct{})
			if disturbed {
				others.Go(func() { disturb(s, b, rand.New(rand.NewPCG(seed, 99)), quit) })
			}
			for i := range counts {
				over.Go(func() {
					e := &saver{stage: s, board: b, rng: rand.New(rand.NewPCG(seed, uint64(i))), home: fmt.Sprintf("assets/e%d", i), outside: t.TempDir()}
					for time.Now().Before(end) && e.save() {
						counts[i]++
					}
				})
			}
			over.Wait()
			close(quit)
			others.Wait()
			t.Logf("saved %v times", counts)
			if !t.Failed() {
				if err := s.s.Build(context.Background()); err != nil {
					t.Fatal(err)
				}
				s.compareWithClean()
			}
		})
	}
}

// arrivalBoard tells of builds that ended.
type arrivalBoard struct {
	mu   sync.Mutex
	news chan struct{}
	root sync.RWMutex // held by editors while they write, and by who moves the source root
}

func (b *arrivalBoard) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.news)
	b.news = make(chan struct{})
}

func (b *arrivalBoard) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.news
}

// saver is an editor with a folder of its own.
type saver struct {
	*stage
	board   *arrivalBoard
	rng     *rand.Rand
	home    string
	outside string
	n       int
}

// save saves a file in some way, and waits until its product is there.
func (e *saver) save() bool {
	e.n++
	file := []string{"a.t", "b.t", "sub/c.t", "sub/deep/d.t", "other/e.t"}[e.rng.IntN(5)]
	path := e.path(e.home + "/" + file)
	text := fmt.Sprintf("%s %08d\n", file, e.n) // of one size
	way := e.rng.IntN(len(dances))
	e.board.root.RLock()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), dances[way].do(e, path, text))
	e.board.root.RUnlock()
	if err != nil {
		e.Errorf("%s of %s: %v", dances[way].name, path, err)
		return false
	}
	deadline := time.After(patience)
	for {
		news := e.board.next()
		if e.read("build/pc/"+strings.TrimPrefix(e.home, "assets/")+"/"+file+".out") == text {
			return true
		}
		select {
		case <-news:
		case <-deadline:
			var stacks strings.Builder
			pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			e.Errorf("%s of %s, number %d, never arrived (it reads %q)\n%s", dances[way].name, path, e.n, e.read(e.home+"/"+file), stacks.String())
			return false
		}
	}
}

func write(path, text string) error { return os.WriteFile(path, []byte(text), 0o666) }

// dances are the ways in which programs save.
var dances = []struct {
	name string
	do   func(e *saver, path, text string) error
}{
	{"truncate and write", func(_ *saver, path, text string) error { return write(path, text) }},
	{"twice", func(_ *saver, path, text string) error {
		return errors.Join(write(path, strings.ReplaceAll(text, "0", "9")), write(path, text))
	}},
	{"twice, the second time while the first is built", func(e *saver, path, text string) error {
		err := write(path, strings.ReplaceAll(text, "0", "9"))
		time.Sleep(time.Duration(e.rng.IntN(40)) * time.Millisecond)
		return errors.Join(err, write(path, text))
	}},
	{"beside and rename", func(_ *saver, path, text string) error {
		return errors.Join(write(path+".tmp", text), os.Rename(path+".tmp", path))
	}},
	{"beside under an asset's name and rename", func(_ *saver, path, text string) error {
		tmp := filepath.Join(filepath.Dir(path), "tmp.t")
		return errors.Join(write(tmp, text), os.Rename(tmp, path))
	}},
	{"backup, anew, remove the backup", func(_ *saver, path, text string) error {
		os.Rename(path, path+"~")
		err := write(path, text)
		os.Remove(path + "~")
		return err
	}},
	{"remove, wait, anew", func(e *saver, path, text string) error {
		os.Remove(path)
		time.Sleep(time.Duration(e.rng.IntN(60)) * time.Millisecond)
		return write(path, text)
	}},
	{"from outside", func(e *saver, path, text string) error {
		out := filepath.Join(e.outside, "x")
		return errors.Join(write(out, text), os.Rename(out, path))
	}},
	{"its folder is renamed while it is written", func(e *saver, path, text string) error {
		dir, name := filepath.Split(path)
		dir = strings.TrimSuffix(dir, "/")
		if err := os.Rename(dir, dir+".away"); err != nil {
			return err
		}
		e.pause()
		err := write(filepath.Join(dir+".away", name), text)
		e.pause()
		return errors.Join(err, os.Rename(dir+".away", dir))
	}},
	{"its folder goes outside, and comes back", func(e *saver, path, text string) error {
		dir, name := filepath.Split(path)
		dir = strings.TrimSuffix(dir, "/")
		out := filepath.Join(e.outside, "d")
		if err := os.Rename(dir, out); err != nil {
			return err
		}
		err := write(filepath.Join(out, name), text)
		e.pause()
		return errors.Join(err, os.Rename(out, dir))
	}},
	{"its folder is removed and made anew", func(e *saver, path, text string) error {
		dir := filepath.Dir(path)
		os.RemoveAll(dir)
		e.pause()
		return errors.Join(os.MkdirAll(dir, 0o777), write(path, text))
	}},
	{"a new folder that is renamed", func(e *saver, path, text string) error {
		dir := filepath.Dir(path)
		err := errors.Join(os.MkdirAll(dir+".new/x/y", 0o777), write(filepath.Join(dir+".new", filepath.Base(path)), text))
		e.pause()
		os.RemoveAll(dir)
		return errors.Join(err, os.Rename(dir+".new", dir))
	}},
	{"two folders change places", func(e *saver, path, text string) error {
		dir := filepath.Dir(path)
		err := errors.Join(os.MkdirAll(dir+".b", 0o777), write(filepath.Join(dir+".b", filepath.Base(path)), text))
		e.pause()
		return errors.Join(err, os.Rename(dir, dir+".t"), os.Rename(dir+".b", dir), os.Rename(dir+".t", dir+".b"), os.RemoveAll(dir+".b"))
	}},
	{"in pieces", func(e *saver, path, text string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		for i := range text {
			if _, err := f.WriteString(text[i : i+1]); err != nil {
				return err
			}
			if e.rng.IntN(4) == 0 {
				e.pause()
			}
		}
		return f.Close()
	}},
	{"written and left open", func(e *saver, path, text string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		e.Cleanup(func() { f.Close() })
		if e.n > 10000 {
			defer f.Close()
		}
		_, err = f.WriteString(text)
		return err
	}},
	{"with the time it had", func(e *saver, path, text string) error {
		st, _ := os.Stat(path)
		err := errors.Join(write(path, text))
		if st != nil && err == nil {
			err = os.Chtimes(path, st.ModTime(), st.ModTime())
		}
		return err
	}},
	{"a hard link", func(e *saver, path, text string) error {
		out := filepath.Join(e.outside, fmt.Sprint("h", e.n))
		os.Remove(path)
		return errors.Join(write(out, text), os.Link(out, path), os.Remove(out))
	}},
	{"a folder in its place, then a file", func(e *saver, path, text string) error {
		os.Remove(path)
		err := errors.Join(os.Mkdir(path, 0o777), write(filepath.Join(path, "x.t"), text))
		e.pause()
		return errors.Join(err, os.RemoveAll(path), write(path, text))
	}},
}

// pause waits for about as long as a step of the watcher takes.
func (e *saver) pause() {
	switch e.rng.IntN(4) {
	case 0:
		time.Sleep(time.Duration(e.rng.IntN(30)) * time.Millisecond)
	case 1:
		time.Sleep(time.Duration(e.rng.IntN(500)) * time.Microsecond)
	}
}

// disturb does now and then what editors do not.
func disturb(s *stage, b *arrivalBoard, rng *rand.Rand, quit <-chan struct{}) {
	ctx := context.Background()
	wait := func(ms int) {
		select {
		case <-time.After(time.Duration(rng.IntN(ms)) * time.Millisecond):
		case <-quit:
		}
	}
	for {
		select {
		case <-quit:
			return
		default:
		}
		switch rng.IntN(8) {
		case 0:
			write(s.path("assets/rules.toml"), "]")
			wait(60)
			write(s.path("assets/rules.toml"), "")
		case 1:
			write(s.path("kiln.toml"), "]")
			wait(60)
			write(s.path("kiln.toml"), "[project]\nname = \"test\"\n")
		case 2:
			s.s.Turn(ctx, func(t *Turn) { t.Look(ctx, nil, nil) })
		case 3:
			s.s.Build(ctx)
		case 4:
			some, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(20))*time.Millisecond)
			s.s.Build(some)
			cancel()
		case 5:
			os.RemoveAll(s.path("build/pc/e1"))
		case 6:
			write(s.path("assets/.kilnignore"), fmt.Sprintf("*.x%d\n", rng.IntN(100)))
		case 7:
			b.root.Lock()
			err := os.Rename(s.path("assets"), s.path("assets.away"))
			wait([]int{1, 5, 50, 1000}[rng.IntN(4)])
			if err := errors.Join(err, os.Rename(s.path("assets.away"), s.path("assets"))); err != nil {
				s.Error(err)
			}
			b.root.Unlock()
		}
		wait(100)
	}
}
