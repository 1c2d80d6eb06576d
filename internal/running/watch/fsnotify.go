package watch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// fsNotify is the notifier of systems other than Linux and Windows: kqueue(2) of macOS and the BSDs. They
// do not report when a file is closed.
//
// fsnotify knows a folder only by the name by which it was watched first, if it has another one because it was moved or
// a link leads to it, and no longer watches the folder when that name is removed. So a change in a folder is reported
// by all its names, and when one of them is removed, the others are reported as removed too: the watcher then looks for
// them, and watches them again.
//
// On Linux, where the tests use it too, fsnotify sends some errors while it is locked. They are always received: a
// watcher that is about to watch a folder takes no events, and fsnotify would wait for it for good.
type fsNotify struct {
	w      *fsnotify.Watcher
	out    chan []event
	failed chan struct{} // there was an error
	ended  chan struct{} // there is something in again
	quit   chan struct{}
	over   sync.WaitGroup

	mu    sync.Mutex // guards all fields below
	tops  map[string]bool
	dirs  folders[watched]
	names map[identity][]string // of the folders in dirs
	again []string              // folders whose watch has ended with another name
}

// watched is a name of a watched folder.
type watched struct {
	path string
	id   identity
}

// identity is what a folder has in common by all its names. It is zero if the system has none.
type identity struct{ device, inode uint64 }

func newFSNotify() (notifier, error) {
	w, err := fsnotify.NewBufferedWatcher(4096)
	if err != nil {
		return nil, err
	}
	return startFSNotify(w, 64), nil
}

// startFSNotify starts a notifier that is up to so many events ahead of the watcher.
func startFSNotify(w *fsnotify.Watcher, ahead int) *fsNotify {
	n := &fsNotify{
		w: w, out: make(chan []event, ahead), failed: make(chan struct{}, 1), ended: make(chan struct{}, 1), quit: make(chan struct{}),
		tops: map[string]bool{}, names: map[identity][]string{},
	}
	n.over.Go(n.read)
	n.over.Go(n.readErrors)
	return n
}

func (n *fsNotify) add(dir string, top bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if top {
		n.tops[dir] = true
	}
	id := identityOf(dir)
	if was, known := n.dirs.get(dir); known && was.id != id { // another folder had this name
		n.forget([]watched{was})
	}
	err := n.w.Add(dir)
	if err == nil {
		n.dirs.put(dir, watched{dir, id})
		if id != (identity{}) && !slices.Contains(n.names[id], dir) {
			n.names[id] = append(n.names[id], dir)
		}
		if identityOf(dir) != id { // one of several is watched
			n.renew(dir)
		}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return &limitError{"the limit of watched folders and files is reached", "raise the limit of open files: ulimit -n 65536"}
	}
	return err
}

func (n *fsNotify) remove(dir string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(n.dirs.cut(dir))
}

// forget stops watching names of folders, and has the other names of these folders watched again. n.mu is held.
func (n *fsNotify) forget(all []watched) {
	var others []string
	for _, was := range all {
		n.w.Remove(was.path)
		left := slices.DeleteFunc(n.names[was.id], func(path string) bool { return path == was.path })
		if n.names[was.id] = left; len(left) == 0 {
			delete(n.names, was.id)
		}
	}
	for _, was := range all {
		others = append(others, n.names[was.id]...)
	}
	for _, path := range others {
		if n.dirs.has(path) { // not below one of the others
			n.forget(n.dirs.cut(path))
			n.renew(path)
		}
	}
}

// renew has a folder watched again. n.mu is held.
func (n *fsNotify) renew(dir string) {
	n.again = append(n.again, dir)
	signal(n.ended)
}

// signal sends to a channel that has room for one, unless it is full.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// renewed returns the folders to watch again, as removed.
func (n *fsNotify) renewed() []event {
	n.mu.Lock()
	defer n.mu.Unlock()
	var events []event
	for _, dir := range n.again {
		events = append(events, event{path: dir, kind: removed, dir: true})
	}
	n.again = nil
	return events
}

func (n *fsNotify) events() <-chan []event { return n.out }

// sync cannot be implemented: folders are reported separately, in no common order.
func (n *fsNotify) sync() bool { return false }

func (n *fsNotify) close() {
	close(n.quit)
	n.w.Close()
	n.over.Wait()
}

func (n *fsNotify) read() {
	for {
		var events []event
		select {
		case e, ok := <-n.w.Events:
			if !ok {
				return
			}
			for _, path := range n.named(e.Name) {
				events = append(events, n.classify(path, e)...)
			}
		case <-n.failed:
			events = []event{{kind: lost}} // usually an overflow
		case <-n.ended:
			events = n.renewed()
		}
		if len(events) == 0 {
			continue
		}
		select {
		case n.out <- events:
		case <-n.quit:
			return
		}
	}
}

// readErrors receives errors until fsnotify is closed. It waits for nothing else.
func (n *fsNotify) readErrors() {
	for err := range n.w.Errors {
		if err != nil {
			signal(n.failed)
		}
	}
}

// named returns a path and the paths of the same entry by the other names of its folder.
func (n *fsNotify) named(path string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []string{path}
	dir := filepath.Dir(path)
	of, _ := n.dirs.get(dir)
	for _, other := range n.names[of.id] {
		if other != dir {
			all = append(all, filepath.Join(other, filepath.Base(path)))
		}
	}
	return all
}

func (n *fsNotify) classify(path string, e fsnotify.Event) []event {
	info, err := os.Lstat(path)
	isDir := err == nil && info.IsDir()
	switch {
	case e.Has(fsnotify.Remove), e.Has(fsnotify.Rename):
		return []event{{path: path, kind: removed}}
	case e.Has(fsnotify.Create) && isDir:
		return []event{{path: path, kind: moved, dir: true}}
	case isDir && !n.top(path) && !e.Has(fsnotify.Create):
		return nil // its entries are reported
	}
	return []event{{path: path, kind: changed, dir: isDir}}
}

func (n *fsNotify) top(dir string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tops[dir]
}
