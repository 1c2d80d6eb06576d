//go:build unix

package command

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// shelving runs a processor with jobs that have a shelf.
type shelving struct {
	processor.Processor
	shelf string
}

type shelvingJob struct {
	processor.Job
	shelf string
}

func (j shelvingJob) Inputs() []string                    { return j.Job.(byHand).Inputs() }
func (j shelvingJob) Needs() ([]processor.Product, error) { return j.Job.(byHand).Needs() }

func (s shelving) Process(ctx context.Context, job processor.Job) error {
	return s.Processor.Process(ctx, shelvingJob{job, s.shelf})
}

func (j shelvingJob) Shelf() string { return j.shelf }

// lasting is a processor that keeps its sandboxes, however long a busy machine takes to come back to them.
func lasting(t *testing.T, c Config) *proc {
	t.Helper()
	p := mustNew(t, c).(*proc)
	p.frames.rest = time.Hour
	return p
}

// inFrame does what its input says, once it has written what it finds in its frame.
func inFrame(in, out, address string) error {
	data, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	if err := os.Chdir(".."); err != nil {
		return err
	}
	found := tree()
	switch string(data) {
	case "litter":
		for _, name := range []string{"in/a/more", "in/b/c/more", "in/top", "out/d/more", "home/.cache/more", "tmp/more", "more"} {
			if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
				err = os.WriteFile(name, data, 0o400)
			}
			if err != nil {
				return err
			}
		}
		err = os.Symlink("/etc", "out/link")
	case "close":
		err = os.Chmod("tmp", 0o711)
	case "replace":
		if err = os.Remove("home"); err == nil {
			err = os.Symlink("/", "home")
		}
	case "relink":
		if err = os.Remove("in/d.txt"); err == nil {
			err = os.Symlink("/etc/passwd", "in/d.txt")
		}
	case "fill":
		for i := 0; i < 200 && err == nil; i++ { // folders that grew stay so
			err = os.WriteFile(fmt.Sprint("tmp/", strings.Repeat("x", 200), i), nil, 0o600)
		}
	case "squat":
		if err := leave("squat", address); err != nil {
			return err
		}
		err = started(address)
	}
	if err != nil {
		return err
	}
	return os.WriteFile("out/"+filepath.Base(out), found, 0o600)
}

// squat says where it is and waits; then it tries to write there and at the paths it is told.
func squat(address string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintln(c, "squats")
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		fmt.Fprintln(c, os.WriteFile(lines.Text(), []byte("planted"), 0o600))
	}
	return lines.Err()
}

func inFrameCase(t *testing.T, do string) processortest.Case {
	c := helperCase(t)
	c.Files["a/water.txt"] = []byte(do)
	return c
}

const emptyFrame = `. folder
home folder
in folder
in/a folder
in/a/water.txt file
out folder
tmp folder
`

// shape is a tree without sizes and times.
func shape(listed []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(listed)) {
		name, rest, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(rest, "folder") {
			rest = "file"
		}
		fmt.Fprintln(&b, name, strings.Fields(rest)[0])
	}
	return b.String()
}

// timeless checks that a program finds the same time in everything of its view.
func timeless(t *testing.T, listed []byte) {
	t.Helper()
	for line := range strings.Lines(string(listed)) {
		if strings.HasPrefix(line, "in") && !strings.HasSuffix(line, " 1980-01-01\n") {
			t.Error(line)
		}
	}
}

func TestFramesGoFromRunToRun(t *testing.T) {
	if seal.Supported().Writes == 0 {
		t.Skip("without landlock each run has a frame of its own")
	}
	p := lasting(t, helperConfig("frame", "{in}", "{out}", "-"))
	job := shelving{p, filepath.Join(t.TempDir(), "shelf")}
	for _, step := range []struct {
		do   string
		kept int // frames afterwards
	}{{"nothing", 1}, {"litter", 1}, {"nothing", 1}, {"close", 0}, {"nothing", 1}, {"replace", 0}, {"nothing", 1}, {"fill", 0}, {"nothing", 1}} {
		r := processortest.Run(t, job, inFrameCase(t, step.do))
		if r.Err != nil {
			t.Fatal(step.do, r.Err)
		}
		if got := shape(r.Products[""].Data); got != emptyFrame {
			t.Errorf("%s found\n%s", step.do, got)
		}
		if len(p.frames.kept()) != step.kept {
			t.Errorf("after %q there are %d frames on the shelf, not %d", step.do, len(p.frames.kept()), step.kept)
		}
	}
}

// age makes a frame as old as it must be for its folders to be calm.
func age(f frame) {
	for folder, c := range f.calm {
		c.since = c.since.Add(-settled)
		f.calm[folder] = c
	}
}

// TestCalmFrame: folders in which nothing happens are not looked through any more, until something does.
func TestCalmFrame(t *testing.T) {
	if seal.Supported().Writes == 0 {
		t.Skip("without landlock each run has a frame of its own")
	}
	for _, step := range []struct {
		do    string
		kept  int    // frames afterwards
		moved string // folders that are not calm any more
	}{{"nothing", 1, ""}, {"litter", 1, ". home in tmp"}, {"close", 0, ""}, {"replace", 0, ""}, {"fill", 0, ""}} {
		p := lasting(t, helperConfig("frame", "{in}", "{out}", "-"))
		job := shelving{p, filepath.Join(t.TempDir(), "shelf")}
		run := func(do string) {
			t.Helper()
			r := processortest.Run(t, job, inFrameCase(t, do))
			if r.Err != nil {
				t.Fatal(do, r.Err)
			}
			if got := shape(r.Products[""].Data); got != emptyFrame {
				t.Errorf("%s found\n%s", do, got)
			}
			timeless(t, r.Products[""].Data)
		}
		sure := func() string {
			var all []string
			for folder, c := range p.frames.kept()[0].calm {
				if c.sure {
					all = append(all, folder)
				}
			}
			slices.Sort(all)
			return strings.Join(all, " ")
		}
		began := time.Now()
		for range 2 {
			run("nothing")
		}
		if got := sure(); got != "" && time.Since(began) < settled {
			t.Errorf("%s: already calm", got)
		}
		age(p.frames.kept()[0])
		run("nothing")
		want := "home in tmp"
		if p.frames.kept()[0].sandbox != nil {
			want = ". " + want // one that is moved is another in each place
		}
		if got := sure(); got != want {
			t.Fatalf("calm are %q, not %q", got, want)
		}
		run(step.do)
		if n := len(p.frames.kept()); n != step.kept {
			t.Fatalf("after %q there are %d frames on the shelf, not %d", step.do, n, step.kept)
		}
		if step.kept > 0 {
			for _, folder := range strings.Fields(step.moved) {
				if p.frames.kept()[0].calm[folder].sure {
					t.Errorf("after %q %s is still calm", step.do, folder)
				}
			}
		}
		run("nothing")
	}
}

// TestFrameOfAnotherFolder: the next run wants other folders in its view.
func TestFrameOfAnotherFolder(t *testing.T) {
	if seal.Supported().Writes == 0 {
		t.Skip("without landlock each run has a frame of its own")
	}
	p := lasting(t, helperConfig("frame", "{in}", "{out}", "-"))
	job := shelving{p, filepath.Join(t.TempDir(), "shelf")}
	for _, path := range []string{"a/b/c/water.txt", "a/d/water.txt", "water.txt", "a/b/water.txt"} {
		c := helperCase(t)
		c.Asset, c.Files = path, map[string][]byte{path: []byte("nothing")}
		r := processortest.Run(t, job, c)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		var folders string
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			folders = "in/" + dir + " folder\n" + folders
		}
		want := strings.Replace(emptyFrame, "in/a folder\nin/a/water.txt file\n", folders+"in/"+path+" file\n", 1)
		if got := shape(r.Products[""].Data); got != want || len(p.frames.kept()) != 1 {
			t.Errorf("%s: %d frames\n%s", path, len(p.frames.kept()), got)
		}
		timeless(t, r.Products[""].Data)
	}
}

// TestFrameTimes: whatever comes and goes between two runs, folders have the same time.
func TestFrameTimes(t *testing.T) {
	if seal.Supported().Writes == 0 {
		t.Skip("without landlock each run has a frame of its own")
	}
	c := helperConfig("frame", "{in}", "{out}", "-")
	p := lasting(t, c)
	job := shelving{p, filepath.Join(t.TempDir(), "shelf")}
	for _, more := range []string{"x/b/more", "", "x/more", "", "x/b/more", "x/b/c/more", "x/b/more"} {
		c := helperCase(t)
		c.Inputs = []string{"x/**"}
		c.Asset, c.Files = "x/a/water.txt", map[string][]byte{"x/a/water.txt": []byte("nothing")}
		if more != "" {
			c.Files[more] = nil
		}
		r := processortest.Run(t, job, c)
		if r.Err != nil || len(p.frames.kept()) != 1 || !strings.Contains(string(r.Products[""].Data), more) {
			t.Fatalf("%v, %d frames\n%s", r.Err, len(p.frames.kept()), r.Products[""].Data)
		}
		timeless(t, r.Products[""].Data)
	}
}

// kept are the frames on the shelf.
func (s *frames) kept() []frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.idle)
}

// keeping skips a test of frames that stay where they are.
func keeping(t *testing.T) {
	t.Helper()
	thread, err := seal.Box{Writable: []string{t.TempDir()}}.Thread()
	if err != nil {
		t.Skip(err)
	}
	thread.End()
}

// TestFrameKeepsItsThread: frame and thread are the same ones in each run, until a run leaves something behind.
func TestFrameKeepsItsThread(t *testing.T) {
	keeping(t)
	p := lasting(t, helperConfig("frame", "{in}", "{out}", "-"))
	job := shelving{p, filepath.Join(t.TempDir(), "shelf")}
	var first frame
	for i := range 3 {
		if r := processortest.Run(t, job, inFrameCase(t, "litter")); r.Err != nil {
			t.Fatal(r.Err)
		}
		if len(p.frames.kept()) != 1 {
			t.Fatal("no frame on the shelf")
		}
		f := p.frames.kept()[0]
		if i == 0 {
			first = f
		}
		if f.sandbox == nil || f.sandbox != first.sandbox || f.at != first.at {
			t.Errorf("run %d: %v, not %v", i, f, first)
		}
	}
	if _, err := os.Stat(first.at); err != nil {
		t.Error(err)
	}
	p.frames.mu.Lock()
	p.frames.idle[0].since = time.Now().Add(-p.frames.rest)
	p.frames.mu.Unlock()
	p.frames.endIdle()
	if len(p.frames.kept()) != 0 {
		t.Error("the thread is kept for ever")
	}

	if r := processortest.Run(t, job, inFrameCase(t, "nothing")); r.Err != nil || len(p.frames.kept()) != 1 {
		t.Fatal(r.Err)
	}
	if err := os.RemoveAll(job.shelf); err != nil { // a build ends, and the next one begins
		t.Fatal(err)
	}
	if r := processortest.Run(t, job, inFrameCase(t, "nothing")); r.Err != nil || shape(r.Products[""].Data) != emptyFrame || len(p.frames.kept()) != 1 {
		t.Error(r.Err, p.frames.kept())
	}
}

// squatter runs a program that leaves a process behind, which leaves the group of the program. What is given to try is a path that this
// process tries to write to, and returns what came of it.
func squatter(t *testing.T, prepare func(p *proc, shelf string)) (p *proc, job shelving, try func(path string) string) {
	t.Helper()
	address, next := listener(t)
	p = lasting(t, helperConfig("frame", "{in}", "{out}", address))
	job = shelving{p, filepath.Join(t.TempDir(), "shelf")}
	prepare(p, job.shelf)
	done := make(chan error, 1)
	go func() { done <- processortest.Run(t, job, inFrameCase(t, "squat")).Err }()
	one, two := next(), next()
	child, parent := one, two
	if one.says != "squats" {
		child, parent = two, one
	}
	answers := bufio.NewReader(child)
	try = func(path string) string {
		fmt.Fprintln(child, path)
		answer, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if a := try("in/planted"); a != "<nil>\n" {
		t.Fatal("while its run lasts it writes where it likes:", a)
	}
	parent.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := child.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Error(err)
		}
		child.gone(t)
	})
	return p, job, try
}

// TestSquattedFrame: where a process was left behind, no other program runs.
func TestSquattedFrame(t *testing.T) {
	keeping(t)
	p, job, try := squatter(t, func(*proc, string) {})
	if len(p.frames.kept()) != 0 {
		t.Fatalf("the frame of a program that left a process behind is kept: %v", p.frames.kept())
	}
	r := processortest.Run(t, job, inFrameCase(t, "nothing"))
	if r.Err != nil || shape(r.Products[""].Data) != emptyFrame || len(p.frames.kept()) != 1 {
		t.Fatalf("%v, %d frames\n%s", r.Err, len(p.frames.kept()), r.Products[""].Data)
	}
	for _, name := range []string{"in/planted", "planted"} {
		if a := try(filepath.Join(p.frames.kept()[0].at, name)); !strings.Contains(a, "permission denied") {
			t.Errorf("%s: %s", name, a)
		}
	}
}

// TestFrameIsOutOfReach: a process that an earlier run left behind cannot write into a frame that was moved, neither where that is now nor
// by the folder that it still stands in.
func TestFrameIsOutOfReach(t *testing.T) {
	if seal.Supported().Writes == 0 {
		t.Skip("without landlock each run has a frame of its own")
	}
	p, job, try := squatter(t, func(p *proc, shelf string) {
		v := &view{dir: filepath.Join(shelf, "made"), made: map[string]bool{}}
		if err := os.MkdirAll(v.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := v.folders(); err != nil {
			t.Fatal(err)
		}
		p.frames.idle = []frame{{at: v.dir, folders: v.order, like: v.like}}
	})
	if len(p.frames.kept()) != 1 {
		t.Fatal("no frame on the shelf")
	}
	at := filepath.Join(t.TempDir(), "run")
	f := p.frames.take(job.shelf)
	if f.sandbox != nil {
		t.Fatal("the frame was not moved")
	}
	if err := os.Rename(f.at, at); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"planted", "in/planted", "tmp/planted", at + "/in/planted", at + "/planted"} {
		if a := try(path); !strings.Contains(a, "permission denied") {
			t.Errorf("%s: %s", path, a)
		}
	}
}
