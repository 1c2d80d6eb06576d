package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"

	"golang.org/x/sys/windows"
)

// changes is the notifier of Windows (ReadDirectoryChangesW). It does not use fsnotify, which keeps each folder of a
// tree open, and Windows cannot rename a folder above an open one. Here a tree needs one handle, at its top.
type changes struct {
	out  chan []event
	quit chan struct{}
	over sync.WaitGroup

	mu   sync.Mutex
	tops map[string]*top // by path: folders passed to add with top
}

// top is such a folder. Only its parent reports that it is renamed itself.
type top struct {
	self, holder *reading
	deep         bool // self reports everything below; set when the first folder below is added
}

// reading is a handle through which the system reports changes.
type reading struct {
	n      *changes
	path   string
	only   string // the only name of interest; "" for all
	deep   bool
	mask   uint32
	handle windows.Handle
	over   windows.Overlapped
	buf    [64 << 10]byte // the maximum for shared folders

	mu     sync.Mutex
	closed bool
	last   bool // it has read for the last time
}

const (
	nameMask = windows.FILE_NOTIFY_CHANGE_FILE_NAME | windows.FILE_NOTIFY_CHANGE_DIR_NAME
	allMask  = nameMask | windows.FILE_NOTIFY_CHANGE_SIZE | windows.FILE_NOTIFY_CHANGE_LAST_WRITE | windows.FILE_NOTIFY_CHANGE_CREATION
)

func newNotifier() (notifier, error) {
	return &changes{out: make(chan []event, 64), quit: make(chan struct{}), tops: map[string]*top{}}, nil
}

// networkName is not implemented here: a share that does not report changes returns an error.
func networkName(string) string { return "" }

func (n *changes) add(dir string, asked bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !asked {
		return n.deepen(dir)
	}
	if t := n.tops[dir]; t != nil {
		if t.self.goesOn() {
			return nil
		}
		t.holder.end()
	}
	self, err := n.begin(dir, "", allMask, false)
	if err != nil {
		return err
	}
	t := &top{self: self}
	if up := filepath.Dir(dir); up != dir {
		t.holder, _ = n.begin(up, filepath.Base(dir), windows.FILE_NOTIFY_CHANGE_DIR_NAME, false) // otherwise only its removal is noticed
	}
	n.tops[dir] = t
	return nil
}

// deepen makes the nearest top folder above report everything below. A handle cannot change what it reports, so there
// is a new one, and the old one is closed afterwards.
func (n *changes) deepen(dir string) error {
	for up := filepath.Dir(dir); up != filepath.Dir(up); up = filepath.Dir(up) {
		t := n.tops[up]
		if t == nil {
			continue
		}
		if t.deep && t.self.goesOn() {
			return nil
		}
		self, err := n.begin(up, "", allMask, true)
		if err != nil {
			return err
		}
		t.self.end()
		t.self, t.deep = self, true
		return nil
	}
	return nil
}

// begin opens a folder and requests its changes. Everything after it returns is reported.
func (n *changes) begin(path, only string, mask uint32, deep bool) (*reading, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "watch", Path: path, Err: err}
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	h, err := windows.CreateFile(name, windows.FILE_LIST_DIRECTORY, share, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OVERLAPPED, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "watch", Path: path, Err: err}
	}
	r := &reading{n: n, path: path, only: only, deep: deep, mask: mask, handle: h}
	if r.over.HEvent, err = windows.CreateEvent(nil, 1, 0, nil); err == nil {
		err = r.ask()
	}
	if err != nil {
		r.free()
		if errors.Is(err, windows.ERROR_INVALID_FUNCTION) || errors.Is(err, windows.ERROR_NOT_SUPPORTED) {
			return nil, &limitError{fmt.Sprintf("the disk of %s does not report changes", path), "keep the project on a disk of this machine, so that changes are seen at once"}
		}
		return nil, &fs.PathError{Op: "watch", Path: path, Err: err}
	}
	n.over.Go(r.read)
	return r, nil
}

// ask requests the next changes. The system keeps changes between two calls; those that it has when the reading ends
// are requested too.
func (r *reading) ask() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last {
		return windows.ERROR_OPERATION_ABORTED
	}
	err := windows.ReadDirectoryChanges(r.handle, &r.buf[0], uint32(len(r.buf)), r.deep, r.mask, nil, &r.over, 0)
	if r.closed {
		r.last = true
		windows.CancelIoEx(r.handle, &r.over) // unless there were some
	}
	return err
}

// end makes read return, after it has reported everything until now.
func (r *reading) end() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		windows.CancelIoEx(r.handle, &r.over)
	}
}

func (r *reading) goesOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.closed
}

func (r *reading) free() {
	windows.CloseHandle(r.handle)
	windows.CloseHandle(r.over.HEvent)
}

// read reports events until the folder is removed or the reading has ended.
func (r *reading) read() {
	defer r.free()
	defer r.end()
	for {
		var size uint32
		err := windows.GetOverlappedResult(r.handle, &r.over, &size, true)
		var events []event
		switch {
		case errors.Is(err, windows.ERROR_OPERATION_ABORTED):
			return
		case errors.Is(err, windows.ERROR_NOTIFY_ENUM_DIR), err == nil && size == 0: // more than the buffer can take
			events = []event{{kind: lost}}
		case err == nil:
			events = r.parse(r.buf[:size])
		}
		if err == nil || len(events) > 0 {
			err = r.ask()
		}
		if err != nil && !errors.Is(err, windows.ERROR_OPERATION_ABORTED) && r.only == "" { // the folder was removed
			events = append(events, event{path: r.path, kind: removed})
		}
		if len(events) > 0 {
			select {
			case r.n.out <- events:
			case <-r.n.quit:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// parse decodes the system's events (FILE_NOTIFY_INFORMATION: offset of the next, action, bytes of the name, name in
// UTF-16).
func (r *reading) parse(buf []byte) (events []event) {
	for len(buf) >= 12 {
		next, action, size := binary.LittleEndian.Uint32(buf), binary.LittleEndian.Uint32(buf[4:]), binary.LittleEndian.Uint32(buf[8:])
		if int(size) > len(buf)-12 {
			break
		}
		units := make([]uint16, size/2)
		for i := range units {
			units[i] = binary.LittleEndian.Uint16(buf[12+2*i:])
		}
		name := string(utf16.Decode(units))
		if e := (event{path: filepath.Join(r.path, name)}); r.only == "" && mayBeShort(name) && !isLong(e.path, name) {
			events = append(events, event{kind: lost}) // it may mean any file
		} else if (r.only == "" || strings.EqualFold(filepath.Base(e.path), r.only)) && e.act(action) {
			events = append(events, e)
		}
		if next == 0 || int(next) > len(buf) {
			break
		}
		buf = buf[next:]
	}
	return events
}

// mayBeShort reports whether an element of a path could be the second name that Windows gives to a file with a longer
// one: ABCDEF~1.TXT. A change made by that name is reported by it. Backups of editors, such as a.txt~, are not such
// names.
func mayBeShort(path string) bool {
	return slices.ContainsFunc(strings.Split(path, `\`), func(part string) bool {
		base, _, _ := strings.Cut(part, ".")
		at := strings.LastIndexByte(base, '~')
		return len(base) <= 8 && at > 0 && at < len(base)-1
	})
}

// isLong reports whether a path ends in a name in its full form.
func isLong(path, name string) bool {
	text, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return false
	}
	buf := make([]uint16, windows.MAX_LONG_PATH)
	n, err := windows.GetLongPathName(text, &buf[0], uint32(len(buf)))
	return err == nil && int(n) <= len(buf) && strings.HasSuffix(strings.ToLower(windows.UTF16ToString(buf[:n])), strings.ToLower(name))
}

// act sets the kind of an event. It returns false for an event without news.
func (e *event) act(action uint32) bool {
	if action == windows.FILE_ACTION_REMOVED || action == windows.FILE_ACTION_RENAMED_OLD_NAME {
		e.kind = removed
		return true
	}
	info, err := os.Lstat(e.path)
	e.dir = err == nil && info.IsDir()
	switch {
	case e.dir && action == windows.FILE_ACTION_MODIFIED:
		return false // its entries have events
	case e.dir, action == windows.FILE_ACTION_RENAMED_NEW_NAME: // a new folder may have been moved here, with its content
		e.kind = moved
	}
	return true
}

func (n *changes) remove(dir string) {
	n.removeIf(func(path string) bool { return within(path, dir) })
}

func (n *changes) removeIf(gone func(path string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for path, t := range n.tops {
		if gone(path) {
			t.self.end()
			t.holder.end()
			delete(n.tops, path)
		}
	}
}

func (n *changes) events() <-chan []event { return n.out }

// sync cannot be implemented: the system keeps events until they are read.
func (n *changes) sync() bool { return false }

func (n *changes) close() {
	close(n.quit)
	n.removeIf(func(string) bool { return true })
	n.over.Wait()
}
