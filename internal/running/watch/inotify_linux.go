package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// inotify is the notifier of Linux (inotify(7)). It does not use fsnotify, which does not report that a file was closed
// after writing. With that event, no waiting time is needed.
type inotify struct {
	file *os.File
	out  chan []event
	quit chan struct{}
	over sync.WaitGroup

	mu    sync.Mutex         // guards all fields below
	paths map[int32][]string // a folder may be watched by several names, if links lead to it, and is reported by each
	wds   folders[named]
	marks map[int32]chan struct{} // for sync
}

// named is a name of a watched folder.
type named struct {
	path string
	wd   int32
}

const (
	watchMask = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE |
		unix.IN_ATTRIB | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK
	topMask = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
)

func newNotifier() (notifier, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if errors.Is(err, unix.EMFILE) {
		return nil, &limitError{"the limit of programs that watch files is reached", "raise it: sudo sysctl fs.inotify.max_user_instances=1024; in a file under /etc/sysctl.d it stays so"}
	}
	if err != nil {
		return nil, fmt.Errorf("the system does not report changes: %w", err)
	}
	n := &inotify{
		file: os.NewFile(uintptr(fd), "inotify"), out: make(chan []event, 64), quit: make(chan struct{}),
		paths: map[int32][]string{}, marks: map[int32]chan struct{}{},
	}
	n.over.Go(n.read)
	return n, nil
}

func (n *inotify) add(dir string, top bool) error {
	mask := uint32(watchMask | unix.IN_MASK_ADD) // under another name it may be a top folder
	if top {
		mask |= topMask
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	wd, err := n.call(func(fd int) (int, error) { return unix.InotifyAddWatch(fd, dir, mask) })
	if errors.Is(err, unix.ENOSPC) {
		return &limitError{"the limit of watched folders is reached", "raise it: sudo sysctl fs.inotify.max_user_watches=1048576; in a file under /etc/sysctl.d it stays so"}
	}
	if err != nil {
		return &os.PathError{Op: "watch", Path: dir, Err: err}
	}
	if was, ok := n.wds.get(dir); ok && was.wd != int32(wd) { // another folder had this name
		n.unname(was)
	}
	if n.wds.put(dir, named{dir, int32(wd)}); !slices.Contains(n.paths[int32(wd)], dir) {
		n.paths[int32(wd)] = append(n.paths[int32(wd)], dir)
	}
	return nil
}

// call uses the descriptor without making it blocking, as File.Fd would.
func (n *inotify) call(f func(fd int) (int, error)) (r int, err error) {
	c, err := n.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var ferr error
	err = c.Control(func(fd uintptr) { r, ferr = f(int(fd)) })
	return r, errors.Join(err, ferr)
}

func (n *inotify) remove(dir string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, was := range n.wds.cut(dir) {
		n.unname(was)
	}
}

// unname removes a name of a watched folder. A folder without a name is no longer watched. n.mu is
// held.
func (n *inotify) unname(was named) {
	left := slices.DeleteFunc(n.paths[was.wd], func(path string) bool { return path == was.path })
	if n.paths[was.wd] = left; len(left) == 0 {
		n.call(func(fd int) (int, error) { return unix.InotifyRmWatch(fd, uint32(was.wd)) })
		delete(n.paths, was.wd)
	}
}

func (n *inotify) events() <-chan []event { return n.out }

// sync relies on the order of events: the end of a watch is reported after all earlier events. It watches, for a
// moment, a folder that nothing else watches.
func (n *inotify) sync() bool {
	done := make(chan struct{})
	n.mu.Lock()
	wd, err := n.call(func(fd int) (int, error) {
		return unix.InotifyAddWatch(fd, "/proc/self", unix.IN_MASK_CREATE|unix.IN_DELETE_SELF)
	})
	if err == nil {
		n.marks[int32(wd)] = done
		_, err = n.call(func(fd int) (int, error) { return unix.InotifyRmWatch(fd, uint32(wd)) })
	}
	n.mu.Unlock()
	if err != nil {
		return false
	}
	select {
	case <-done:
		return true
	case <-n.quit:
	case <-time.After(5 * time.Second):
	}
	return false
}

func (n *inotify) close() {
	close(n.quit)
	n.file.Close()
	n.over.Wait()
}

// read reads events until the descriptor is closed. After an error there are no more events.
func (n *inotify) read() {
	defer close(n.out)
	buf := make([]byte, 64<<10)
	for {
		k, err := n.file.Read(buf)
		if err != nil {
			return
		}
		events, marks := n.parse(buf[:k])
		if len(events) > 0 {
			select {
			case n.out <- events:
			case <-n.quit:
				return
			}
		}
		for _, m := range marks {
			close(m)
		}
	}
}

// parse decodes the kernel's events (struct inotify_event: wd, mask, cookie, len, name).
func (n *inotify) parse(buf []byte) (events []event, marks []chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(buf) >= unix.SizeofInotifyEvent {
		wd, mask := int32(binary.NativeEndian.Uint32(buf)), binary.NativeEndian.Uint32(buf[4:])
		size := int(binary.NativeEndian.Uint32(buf[12:]))
		buf = buf[unix.SizeofInotifyEvent:]
		if size > len(buf) {
			break
		}
		name, _, _ := bytes.Cut(buf[:size], []byte{0})
		buf = buf[size:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			events = append(events, event{kind: lost})
			continue
		}
		if m := n.marks[wd]; m != nil && mask&unix.IN_IGNORED != 0 {
			delete(n.marks, wd)
			marks = append(marks, m)
			continue
		}
		dirs := n.paths[wd]
		if mask&unix.IN_IGNORED != 0 { // the folder was removed, or its file system unmounted
			delete(n.paths, wd)
		}
		for _, dir := range dirs {
			if e := (event{path: filepath.Join(dir, string(name)), dir: mask&unix.IN_ISDIR != 0}); e.classify(mask) {
				events = append(events, e)
			}
		}
	}
	return events, marks
}

// classify sets the kind of an event. It returns false for an event without news.
func (e *event) classify(mask uint32) bool {
	switch {
	case mask&(unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_UNMOUNT) != 0:
		e.kind = removed
	case mask&unix.IN_MOVED_TO != 0:
		e.kind = moved
	case mask&unix.IN_CLOSE_WRITE != 0:
		e.kind = written
	case mask&unix.IN_MODIFY != 0, mask&unix.IN_CREATE != 0 && !e.dir:
		e.kind = opened // a hard or symbolic link is never opened, and waits a little longer
	case mask&unix.IN_CREATE != 0:
		e.kind = changed
	case mask&unix.IN_ATTRIB != 0:
		e.kind = written
	default:
		return false
	}
	return true
}
