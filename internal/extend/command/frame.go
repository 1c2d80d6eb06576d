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

// shelved is a job with a folder for later jobs of the same build. It is on the file system of the scratch folders, but
// in none of them. It is not part of the contract of processors.
type shelved interface{ Shelf() string }

// frame is the folders of a run, empty except for links to source files. Creating and removing them for each run takes
// longer than a small program: for each new inode, ext4 checks all those removed in the last minute, which was 45% of a
// build of 1,000 `cp`s. So an unchanged frame goes to the shelf, and from there to another run.
//
// A process left behind by an earlier program must not write into it. If it is known that there is none, the frame
// stays where it is, with the sandboxed thread for it. Otherwise the frame is moved into the next run's scratch folder,
// which is new: the sandbox allows writing below that one, while a process of an earlier program may only write below a
// folder that no longer exists.
type frame struct {
	at      string   // on the shelf
	folders []string // below at, each after its parent, as view.order
	links   map[string]string
	like    fs.FileInfo
	calm    map[string]calm // by folder
	sandbox *sandbox        // nil if the frame is moved
	since   time.Time       // on the shelf
}

// frames are the frames on the shelf.
type frames struct {
	rest time.Duration // how long an idle sandbox is kept

	mu     sync.Mutex // guards all fields below
	idle   []frame
	made   int
	ending bool // endIdle will be called
}

// maxFolders is the maximum number of folders of a frame on the shelf: checking them must not cost more than creating them.
const maxFolders = 16

// idleSandbox is the default of that. The next job comes within milliseconds, or there is none.
const idleSandbox = time.Second

// take returns a frame from the shelf, or the zero frame.
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
		f.end() // it belongs to an earlier build, and was removed with it
	}
}

// name is an unused path on the shelf.
func (s *frames) name(shelf, owner string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return filepath.Join(shelf, fmt.Sprint(owner, "-", s.made))
}

// put empties a frame that is on the shelf, and keeps it. If that fails, it is removed with the scratch folders.
func (s *frames) put(f frame) {
	if f.clear() != nil {
		f.end()
		return
	}
	f.since = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, f)
	if f.sandbox != nil && !s.ending {
		s.ending = true
		time.AfterFunc(s.rest, s.endIdle)
	}
}

// endIdle ends the frames whose sandboxes were idle for a while.
func (s *frames) endIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = false
	s.idle = slices.DeleteFunc(s.idle, func(f frame) bool {
		if f.sandbox == nil {
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

// end ends the frame's sandbox.
func (f *frame) end() {
	if f.sandbox != nil {
		f.sandbox.end()
	}
}

var errOutOfOrder = errors.New("the frame has changed")

// calm is what is known about a folder that contains only folders.
type calm struct {
	state seal.State
	since time.Time // when the state was first seen
	sure  bool      // any change of the folder changes its state
}

// settled is how long a folder must be unchanged until a later change surely gives it another time: FAT counts in steps of two seconds.
const settled = 2500 * time.Millisecond

// clear removes everything except the folders and the links. It fails if a program changed a folder, or filled it so that it grew.
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

// clearFolder is clear for one folder, without its subfolders. It returns the number of links.
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
			continue // it is handled separately
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

// shelf is the path for the job's frame, or "": without a sandbox, a process could still write to it.
func shelf(job processor.Job) string {
	if j, ok := job.(shelved); ok && seal.Supported().Writes > 0 {
		return j.Shelf()
	}
	return ""
}

// frame creates the folders that every run has, or takes a frame that has them.
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
		if f, err = v.sandboxed(c); err != nil {
			return err
		}
	}
	if f.sandbox != nil {
		v.sandbox, v.scratch, v.dir, v.root = f.sandbox, f.at, f.at, f.sandbox.root
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

// sandboxed creates a frame with a sandbox, without folders. If this system does not support that, it returns the zero frame.
func (v *view) sandboxed(c *Config) (frame, error) {
	at := v.frames.name(v.shelf, v.owner)
	if err := onShelf(v.shelf, func() error { return os.Mkdir(at, 0o755) }); err != nil {
		return frame{}, moment(err)
	}
	sandbox, err := newSandbox(at, c.Network)
	if err != nil {
		return frame{}, nil // the sandbox of each run reports the reason, if there is none either
	}
	return frame{at: at, sandbox: sandbox}, nil
}

// inScratch moves a frame into the job's scratch folder, or creates a folder for one there.
func (v *view) inScratch(job processor.Job, frame string) (moved bool, err error) {
	if v.scratch, err = job.Scratch(); err != nil {
		return false, err
	}
	if v.frames == nil { // a job may run several programs in parallel
		v.dir, err = os.MkdirTemp(v.scratch, frameFolder+"-")
		return false, moment(err)
	}
	v.dir = filepath.Join(v.scratch, frameFolder)
	if frame != "" && os.Rename(frame, v.dir) == nil {
		return true, nil
	}
	return false, moment(os.Mkdir(v.dir, 0o755))
}

// folders creates those that every run has.
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

// prune removes a folder of a frame, or folders in it, that this run does not need; it always needs the folder of the view.
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

// close ends the view. The folders go to the shelf, or are removed with the scratch folder.
func (v *view) close() error {
	f := frame{at: v.dir, folders: v.order, links: v.links, calm: v.calm, like: v.like, sandbox: v.sandbox}
	if v.frames == nil {
		return errors.Join(v.root.Close(), os.RemoveAll(v.dir))
	}
	keep := v.shelf != "" && v.like != nil && len(v.order) <= maxFolders && v.alone
	if v.sandbox != nil {
		if keep {
			v.frames.put(f)
		} else {
			f.end()
		}
		return nil
	}
	err := v.root.Close()
	if keep && err == nil && v.toShelf(&f) == nil { // from here on, no program may write to it
		v.frames.put(f)
	}
	return err
}

// toShelf moves a frame to the shelf.
func (v *view) toShelf(f *frame) error {
	f.at = v.frames.name(v.shelf, v.owner)
	return onShelf(v.shelf, func() error { return os.Rename(v.dir, f.at) })
}

// onShelf puts something on the shelf, which it creates if necessary.
func onShelf(shelf string, put func() error) error {
	err := put()
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(shelf, 0o777); err == nil {
			err = put()
		}
	}
	return err
}
