package watch

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// fsNotify is the notifier of systems other than Linux and Windows: kqueue(2) of macOS and the BSDs. They
// do not report when a file is closed.
type fsNotify struct {
	w    *fsnotify.Watcher
	out  chan []event
	quit chan struct{}
	over sync.WaitGroup

	mu   sync.Mutex
	tops map[string]bool
	dirs folders[string] // watched folders with their paths
}

func newFSNotify() (notifier, error) {
	w, err := fsnotify.NewBufferedWatcher(4096)
	if err != nil {
		return nil, err
	}
	n := &fsNotify{w: w, out: make(chan []event, 64), quit: make(chan struct{}), tops: map[string]bool{}}
	n.over.Go(n.read)
	return n, nil
}

func (n *fsNotify) add(dir string, top bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if top {
		n.tops[dir] = true
	}
	err := n.w.Add(dir)
	if err == nil {
		n.dirs.put(dir, dir)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return &limitError{"the limit of watched folders and files is reached", "raise the limit of open files: ulimit -n 65536"}
	}
	return err
}

func (n *fsNotify) remove(dir string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, path := range n.dirs.cut(dir) {
		n.w.Remove(path)
	}
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
			if events = n.classify(e); len(events) == 0 {
				continue
			}
		case err, ok := <-n.w.Errors:
			if !ok {
				return
			}
			if err != nil {
				events = []event{{kind: lost}} // usually an overflow
			}
		}
		select {
		case n.out <- events:
		case <-n.quit:
			return
		}
	}
}

func (n *fsNotify) classify(e fsnotify.Event) []event {
	info, err := os.Lstat(e.Name)
	isDir := err == nil && info.IsDir()
	switch {
	case e.Has(fsnotify.Remove), e.Has(fsnotify.Rename):
		return []event{{path: e.Name, kind: removed}}
	case e.Has(fsnotify.Create) && isDir:
		return []event{{path: e.Name, kind: moved, dir: true}}
	case isDir && !n.top(e.Name) && !e.Has(fsnotify.Create):
		return nil // its entries are reported
	}
	return []event{{path: e.Name, kind: changed, dir: isDir}}
}

func (n *fsNotify) top(dir string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tops[dir]
}
