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

	"github.com/kiln-pipeline/kiln/internal/seal"
	"github.com/kiln-pipeline/kiln/processor"
)

// shelved is a job that has a folder where something can be left for later jobs of the same build. It is on the file system of the
// scratch folders, and in none of them. The contract of a processor says nothing of that.
type shelved interface{ Shelf() string }

// frame is the folders of a run, empty but for links to source files. Making and removing them for each run costs more than a small program takes: ext4
// looks, for each inode that it makes, at all that were removed in the last minute, which was 45% of a build of 1,000 `cp`s. So a
// frame that is in order goes to the shelf, and from there to another run.
//
// It is moved into the next run's scratch folder, which is a new one, and the box lets a program write below that. What an earlier
// program left running may write below a folder that is gone.
type frame struct {
	at      string   // on the shelf
	folders []string // below frameFolder, each after the one it lies in, as view.order
	links   map[string]string
	like    fs.FileInfo
}

// frames are those on the shelf.
type frames struct {
	mu   sync.Mutex
	idle []frame
	made int
}

// maxFolders is how many folders a frame on the shelf has at most: looking through them must not cost more than making them.
const maxFolders = 16

// take moves a frame from the shelf to where it does not yet exist. The zero frame says that there was none.
func (s *frames) take(shelf, to string) frame {
	for {
		s.mu.Lock()
		if len(s.idle) == 0 {
			s.mu.Unlock()
			return frame{}
		}
		f := s.idle[len(s.idle)-1]
		s.idle = s.idle[:len(s.idle)-1]
		s.mu.Unlock()
		if filepath.Dir(f.at) == shelf && os.Rename(f.at, to) == nil {
			return f // else it is of an earlier build, with which it went
		}
	}
}

// put moves a frame to the shelf and clears it. If that fails, whoever removes the scratch folders removes it.
func (s *frames) put(shelf, from, name string, f frame) {
	s.mu.Lock()
	s.made++
	f.at = filepath.Join(shelf, fmt.Sprint(name, "-", s.made))
	s.mu.Unlock()
	err := os.Rename(from, f.at)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.Mkdir(shelf, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
			err = os.Rename(from, f.at)
		}
	}
	if err != nil || f.clear() != nil { // from here on, no program has a right to write in it
		return
	}
	s.mu.Lock()
	s.idle = append(s.idle, f)
	s.mu.Unlock()
}

var errOutOfOrder = errors.New("the frame is not as it was")

// clear removes all but the folders and the links. A folder that a program changed, or filled so that it grew, puts the frame out of order.
func (f *frame) clear() error {
	kept := 0
	for _, folder := range append([]string{"."}, f.folders...) {
		at := filepath.Join(f.at, filepath.FromSlash(folder))
		info, err := os.Lstat(at)
		if err != nil || info.Mode() != f.like.Mode() || info.Size() != f.like.Size() && f.links == nil {
			return errors.Join(errOutOfOrder, err)
		}
		entries, err := os.ReadDir(at)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := path.Join(folder, e.Name())
			if slices.Contains(f.folders, name) {
				continue // it is looked at by itself
			}
			if to, err := os.Readlink(filepath.Join(at, e.Name())); err == nil && f.links[name] == to {
				kept++
				continue
			}
			if err := os.RemoveAll(filepath.Join(at, e.Name())); err != nil {
				return err
			}
		}
	}
	if kept != len(f.links) {
		return errOutOfOrder
	}
	return nil
}

// shelf is where the job's frame can be left, "" if nowhere: only a box makes sure that nobody writes in it any more.
func shelf(job processor.Job) string {
	if j, ok := job.(shelved); ok && seal.Supported().Writes > 0 {
		return j.Shelf()
	}
	return ""
}

// frame lays out the folders that every run has, or takes a frame that has them.
func (v *view) frame(job processor.Job) error {
	if v.shelf = shelf(job); v.shelf != "" {
		if f := v.frames.take(v.shelf, v.dir); f.at != "" {
			v.like, v.order, v.links = f.like, slices.Clip(f.folders), f.links
			for _, folder := range f.folders {
				v.made[folder] = true
			}
			return nil
		}
	}
	if err := os.Mkdir(v.dir, 0o755); err != nil {
		return moment(err)
	}
	for _, folder := range []string{viewFolder, outFolder, homeFolder, tempFolder} {
		if err := v.mkdir(folder); err != nil {
			return err
		}
	}
	var err error
	v.like, err = os.Lstat(v.path(homeFolder))
	return moment(err)
}

// prune removes the folders of a frame that this run does not want.
func (v *view) prune(wanted map[string]bool) error {
	for i := len(v.order) - 1; i >= 0; i-- {
		folder := v.order[i]
		if !strings.HasPrefix(folder, viewFolder+"/") || wanted[folder] {
			continue
		}
		if err := os.Remove(v.path(folder)); err != nil {
			return moment(err)
		}
		delete(v.made, folder)
		v.order = slices.Delete(slices.Clone(v.order), i, i+1)
	}
	return nil
}

// close ends the view. The folders go to the shelf, or with the scratch folder.
func (v *view) close() error {
	err := v.root.Close()
	if err == nil && v.shelf != "" && v.like != nil && len(v.order) <= maxFolders {
		v.frames.put(v.shelf, v.dir, v.owner, frame{folders: v.order, links: v.links, like: v.like})
	}
	return err
}
