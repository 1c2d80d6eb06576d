package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor"
)

// shelved is a job that has a folder where something can be left for later jobs of the same build. It is on the file system of the
// scratch folders, and in none of them. The contract of a processor says nothing of that.
type shelved interface{ Shelf() string }

// frame is the folders of a run, empty but for links to source files. Making and removing them for each run costs more than a small program
// takes: ext4 looks, for each inode that it makes, at all that were removed in the last minute, which was 45% of a build of 1,000 `cp`s. So
// a frame that is in order goes to the shelf, and from there to another run.
//
// What an earlier program left running must not write into it. Either it is known that nothing was left: then the frame stays where it is,
// and with it the seat that is in a box around it. Or the frame is moved into the next run's scratch folder, which is a new one, and the
// box lets a program write below that; what an earlier one left may write below a folder that is gone.
type frame struct {
	at      string   // on the shelf
	folders []string // below at, each after the one it lies in, as view.order
	links   map[string]string
	like    fs.FileInfo
	calm    map[string]calm // by folder
	seat    *seat           // nil if the frame is moved
	since   time.Time       // on the shelf
}

// frames are those on the shelf.
type frames struct {
	rest time.Duration // how long a seat is kept that has nothing to do

	mu     sync.Mutex // all below
	idle   []frame
	made   int
	ending bool // endIdle will be called
}

// maxFolders is how many folders a frame on the shelf has at most: looking through them must not cost more than making them.
const maxFolders = 16

// idleSeat is how long that is. The next job comes within milliseconds, or there is none.
const idleSeat = time.Second

// take takes a frame from the shelf. The zero frame says that there was none.
func (s *frames) take(shelf string) frame {
	for {
		s.mu.Lock()
		if len(s.idle) == 0 {
			s.mu.Unlock()
			return frame{}
		}
		f := s.idle[len(s.idle)-1]
		s.idle = s.idle[:len(s.idle)-1]
		s.mu.Unlock()
		if _, err := os.Lstat(f.at); err == nil && filepath.Dir(f.at) == shelf {
			return f
		}
		f.end() // it is of an earlier build, with which it went
	}
}

// name is a place on the shelf where nothing is yet.
func (s *frames) name(shelf, owner string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return filepath.Join(shelf, fmt.Sprint(owner, "-", s.made))
}

// put clears a frame that is on the shelf, and keeps it. If that fails, whoever removes the scratch folders removes it.
func (s *frames) put(f frame) {
	if f.clear() != nil {
		f.end()
		return
	}
	f.since = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, f)
	if f.seat != nil && !s.ending {
		s.ending = true
		time.AfterFunc(s.rest, s.endIdle)
	}
}

// endIdle gives up the frames whose seats have had nothing to do for a while.
func (s *frames) endIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = false
	s.idle = slices.DeleteFunc(s.idle, func(f frame) bool {
		if f.seat == nil {
			return false
		}
		if time.Since(f.since) < s.rest {
			s.ending = true
			return false
		}
		f.end()
		return true
	})
	if s.ending {
		time.AfterFunc(s.rest, s.endIdle)
	}
}

// end gives a frame up.
func (f *frame) end() {
	if f.seat != nil {
		f.seat.end()
	}
}

var errOutOfOrder = errors.New("the frame has changed")

// calm is what is known of a folder with nothing but folders in it.
type calm struct {
	state seal.State
	since time.Time // at which the state was seen for the first time
	sure  bool      // whoever changes the folder changes its state
}

// settled is how long a folder must have been as it is until a change is sure to give it another time: FAT counts in steps of two seconds.
const settled = 2500 * time.Millisecond

// clear removes all but the folders and the links. A folder that a program changed, or filled so that it grew, puts the frame out of order.
func (f *frame) clear() error {
	kept := 0
	for _, folder := range append([]string{"."}, f.folders...) {
		c, state := f.calm[folder], seal.StateOf(filepath.Join(f.at, filepath.FromSlash(folder)))
		if c.state != state {
			c = calm{state: state, since: time.Now()}
		} else if c.sure {
			continue
		}
		delete(f.calm, folder)
		links, removed, err := f.clearFolder(folder)
		if err != nil {
			return err
		}
		if kept += links; links == 0 && !removed {
			c.sure = time.Since(c.since) > settled
			f.calm[folder] = c
		}
	}
	if kept != len(f.links) {
		return errOutOfOrder
	}
	return nil
}

// clearFolder is clear for one folder, without those in it. It tells how many links there are.
func (f *frame) clearFolder(folder string) (links int, removed bool, err error) {
	at := filepath.Join(f.at, filepath.FromSlash(folder))
	info, err := os.Lstat(at)
	if err != nil || info.Mode() != f.like.Mode() || info.Size() != f.like.Size() && f.links == nil {
		return 0, false, errors.Join(errOutOfOrder, err)
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return 0, false, err
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		if slices.Contains(f.folders, name) {
			continue // it is looked at by itself
		}
		if to, err := os.Readlink(filepath.Join(at, e.Name())); err == nil && f.links[name] == to {
			links++
			continue
		}
		if err := os.RemoveAll(filepath.Join(at, e.Name())); err != nil {
			return 0, false, err
		}
		removed = true
	}
	return links, removed, nil
}

// shelf is where the job's frame can be left, "" if nowhere: only a box makes sure that nobody writes in it any more.
func shelf(job processor.Job) string {
	if j, ok := job.(shelved); ok && seal.Supported().Writes > 0 {
		return j.Shelf()
	}
	return ""
}

// frame lays out the folders that every run has, or takes a frame that has them.
func (v *view) frame(job processor.Job, c *Config) error {
	if v.frames != nil {
		v.shelf = shelf(job)
	}
	var f frame
	if v.shelf != "" {
		f = v.frames.take(v.shelf)
	}
	if v.shelf != "" && f.at == "" && c.Reads == Declared {
		var err error
		if f, err = v.seated(c); err != nil {
			return err
		}
	}
	if f.seat != nil {
		v.seat, v.scratch, v.dir, v.root = f.seat, f.at, f.at, f.seat.root
	} else if moved, err := v.inScratch(job, f.at); err != nil {
		return err
	} else if !moved {
		f = frame{}
	}
	v.like, v.order, v.links, v.calm = f.like, slices.Clip(f.folders), f.links, f.calm
	if v.calm == nil {
		v.calm = map[string]calm{}
	}
	for _, folder := range f.folders {
		v.made[folder] = true
	}
	return v.folders()
}

// seated makes a frame with a seat, as yet without folders. If this system has no seats, it gives the zero frame.
func (v *view) seated(c *Config) (frame, error) {
	at := v.frames.name(v.shelf, v.owner)
	if err := onShelf(v.shelf, func() error { return os.Mkdir(at, 0o755) }); err != nil {
		return frame{}, moment(err)
	}
	seat, err := newSeat(at, c.Network)
	if err != nil {
		return frame{}, nil // the box of each run tells why, if there is none either
	}
	return frame{at: at, seat: seat}, nil
}

// inScratch moves a frame into the job's scratch folder, or makes a folder for one there.
func (v *view) inScratch(job processor.Job, frame string) (moved bool, err error) {
	if v.scratch, err = job.Scratch(); err != nil {
		return false, err
	}
	if v.frames == nil { // a job may run several programs, side by side
		v.dir, err = os.MkdirTemp(v.scratch, frameFolder+"-")
		return false, moment(err)
	}
	v.dir = filepath.Join(v.scratch, frameFolder)
	if frame != "" && os.Rename(frame, v.dir) == nil {
		return true, nil
	}
	return false, moment(os.Mkdir(v.dir, 0o755))
}

// folders makes those that every run has.
func (v *view) folders() error {
	for _, folder := range []string{viewFolder, outFolder, homeFolder, tempFolder} {
		if err := v.mkdir(folder); err != nil {
			return err
		}
	}
	if v.like != nil {
		return nil
	}
	var err error
	v.like, err = os.Lstat(v.path(homeFolder))
	return moment(err)
}

// prune removes the folders of a frame in a folder of it, or that one, which this run does not want; that of the view it always wants.
func (v *view) prune(in string, wanted map[string]bool) error {
	for i := len(v.order) - 1; i >= 0; i-- {
		folder := v.order[i]
		if !strings.HasPrefix(folder+"/", in+"/") || folder == viewFolder || wanted[folder] {
			continue
		}
		if err := os.Remove(v.path(folder)); err != nil {
			return moment(err)
		}
		delete(v.made, folder)
		delete(v.calm, folder)
		delete(v.calm, path.Dir(folder))
		v.order = slices.Delete(slices.Clone(v.order), i, i+1)
	}
	return nil
}

// close ends the view. The folders go to the shelf, or with the scratch folder.
func (v *view) close() error {
	f := frame{at: v.dir, folders: v.order, links: v.links, calm: v.calm, like: v.like, seat: v.seat}
	if v.frames == nil {
		return errors.Join(v.root.Close(), os.RemoveAll(v.dir))
	}
	keep := v.shelf != "" && v.like != nil && len(v.order) <= maxFolders && v.alone
	if v.seat != nil {
		if keep {
			v.frames.put(f)
		} else {
			f.end()
		}
		return nil
	}
	err := v.root.Close()
	if keep && err == nil && v.toShelf(&f) == nil { // from here on, no program has a right to write in it
		v.frames.put(f)
	}
	return err
}

// toShelf moves a frame to the shelf.
func (v *view) toShelf(f *frame) error {
	f.at = v.frames.name(v.shelf, v.owner)
	return onShelf(v.shelf, func() error { return os.Rename(v.dir, f.at) })
}

// onShelf puts something on the shelf, which it makes if there is none.
func onShelf(shelf string, put func() error) error {
	err := put()
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(shelf, 0o777); err == nil {
			err = put()
		}
	}
	return err
}
