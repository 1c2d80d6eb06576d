//go:build amd64 || arm64

package seal

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxAccesses is how many different paths one run may access. Each is in the record of the job, about 100 bytes.
const maxAccesses = 200_000

// Tracer watches what was started in a sandbox.
type Tracer struct {
	box      Box
	thread   int  // the sandboxed thread, which is Kiln's own
	quiet    bool // its own accesses are not recorded
	listener int
	done     chan struct{}

	// Used by the watcher until done is closed.
	seen     map[seenKey]int // index in accesses
	accesses []Access
	ups      map[string]up // by folder
	err      error
}

type seenKey struct {
	path string
	op   Op
}

// note records one call. Its error ends the trace, but not the watch.
func (t *Tracer) note(n *notification) error {
	known := false
	for i := range calls {
		if calls[i].number == uint32(n.number) { // some have two paths
			if err := t.noteCall(n, &calls[i]); err != nil {
				return err
			}
			known = true
		}
	}
	if known {
		return nil
	}
	return fmt.Errorf("system call %d was stopped, and nobody asked for that", n.number)
}

func (t *Tracer) noteCall(n *notification, c *call) error {
	path, err := readPath(int(n.pid), uintptr(n.argument[c.path]))
	if err == nil {
		path, err = absolute(n, c, path)
	}
	if !t.valid(n) { // it was killed, and the memory may be another process's
		return nil
	}
	switch err {
	case nil:
	case unix.EFAULT, unix.ENAMETOOLONG, unix.EBADF, unix.ENOENT: // the call fails with that too
		return nil
	default:
		return fmt.Errorf("a path of the program cannot be read: %w", err)
	}
	if path == "" {
		return nil // about an open descriptor
	}
	return t.add(path, c.op, int(n.pid))
}

// add records a path, absolute but not clean.
func (t *Tracer) add(path string, op Op, pid int) error {
	path, err := t.withoutUps(path, pid)
	if err != nil || path == "" {
		return err
	}
	path = t.direct(path, pid)
	if path == "" || madeUp(path) {
		return nil
	}
	real, state := Find(path)
	if madeUp(real) || t.skipped(real) {
		return nil
	}
	if t.skipped(path) {
		path = real // the program made the link, and may remove it
	}
	if state.Exists && (!state.Dir || op == Read) && young(state) {
		state = settle(real)
	}
	if op == Read && state.Dir {
		op = List
	}
	key := seenKey{path, op}
	if i, again := t.seen[key]; again {
		if was := t.accesses[i].State; was != state && !(was.SameFolder(state) && (op != List || slices.Contains(t.box.Busy, real))) {
			// A folder that was only passed through is the same one, whatever was added to it
			// meanwhile.
			t.accesses[i].State = State{Exists: true, Inode: ^uint64(0)} // equals no file: it changed while the program ran
		}
		return nil
	}
	if len(t.accesses) == maxAccesses {
		return fmt.Errorf("the program looked at more than %d files", maxAccesses)
	}
	t.seen[key] = len(t.accesses)
	t.accesses = append(t.accesses, Access{path, real, op, state})
	return nil
}

// withoutUps follows the ".." of a path one after the other, and records each folder that one of them leads out of. It returns an absolute
// path without them, or "" if the program got no further than to one of those folders. In /proc they stay: there it depends on who asks.
func (t *Tracer) withoutUps(path string, pid int) (string, error) {
	if strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/dev/fd/") {
		return path, nil
	}
	at, rest := "", path // the path is at + rest, and there is no ".." in at
	for {
		before, after, up := cutUp(rest)
		if !up {
			return cmp.Or(at+rest, "/"), nil
		}
		rest = after
		if filepath.Clean("/"+before) == "/" { // at is the root, or where the last ".." led to
			at = at[:max(strings.LastIndexByte(at, '/'), 0)]
			continue
		}
		above, err := t.above(filepath.Clean(at+before), pid)
		if err != nil || above == "" {
			return "", err
		}
		at = strings.TrimSuffix(above, "/")
	}
}

// cutUp cuts a path around its first "..".
func cutUp(path string) (before, after string, is bool) {
	for at := 0; ; at += len("/..") {
		i := strings.Index(path[at:], "/..")
		if i < 0 {
			return path, "", false
		}
		at += i
		after = path[at+len("/.."):]
		if after == "" || after[0] == '/' {
			return path[:at], after, true
		}
	}
}

// up is where ".." led out of a folder, as the folder was then.
type up struct {
	folder State
	above  string
}

// above records a folder, and returns the one that it is in, without links, or "" if nothing leads out of it. Programs that follow includes
// with ".." from file to file ask for the same folders many thousand times.
func (t *Tracer) above(folder string, pid int) (string, error) {
	if was, ok := t.ups[folder]; ok && was.folder == StateOf(folder) {
		return was.above, nil
	}
	if err := t.add(folder, Look, pid); err != nil {
		return "", err
	}
	real, state := Find(folder)
	if !state.Dir || !StateOf(folder+"/.").Exists { // it is no folder, or may not be searched
		return "", nil
	}
	if t.ups == nil {
		t.ups = map[string]up{}
	}
	t.ups[folder] = up{state, filepath.Dir(real)}
	return t.ups[folder].above, nil
}

// direct removes "." from a path, and from one in /proc "..", too, as the kernel does: it leads out of the target of a link. A path through
// /proc is replaced by the one that it means.
func (t *Tracer) direct(path string, pid int) string {
	clean := filepath.Clean(path)
	if strings.Contains(path, "..") && clean != path {
		folder, name := filepath.Split(strings.TrimRight(path, "/"))
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			clean = filepath.Join(real, name)
			if name == ".." || name == "." {
				clean, _ = filepath.EvalSymlinks(path)
			}
		}
	}
	if rest, ok := within("/dev/fd", clean); ok {
		clean = filepath.Join("/proc/self/fd", rest)
	}
	if rest, ok := within("/proc", clean); ok {
		first, _, _ := strings.Cut(rest, "/")
		if first == "self" || first == "thread-self" {
			clean = "/proc/" + strconv.Itoa(pid) + strings.TrimPrefix(rest, first)
		}
		real, err := filepath.EvalSymlinks(clean)
		if err != nil {
			return ""
		}
		return real
	}
	return clean
}

// madeUp reports whether a path is in a file system that the kernel generates. /dev/shm is a disk in memory, and may
// have a project.
func madeUp(path string) bool {
	_, kept := within("/dev/shm", path)
	for _, folder := range []string{"/proc", "/sys", "/dev"} {
		if _, ok := within(folder, path); ok && !kept {
			return true
		}
	}
	return false
}

// skipped reports whether a path is one of the program's own files.
func (t *Tracer) skipped(path string) bool {
	for _, folder := range t.box.Skip {
		if _, ok := within(folder, path); ok {
			return true
		}
	}
	return false
}

// within is the part of a path below a folder.
func within(folder, path string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, folder)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.TrimPrefix(rest, "/"), true
}

// absolute is the absolute path of a call.
func absolute(n *notification, c *call, path string) (string, error) {
	if strings.HasPrefix(path, "/") {
		return path, nil
	}
	if path == "" && c.op != Exec {
		return "", nil // of the folder itself, or an error
	}
	link := "/proc/" + strconv.Itoa(int(n.pid)) + "/cwd"
	if c.folder != noFolder {
		if fd := int32(n.argument[c.folder]); fd != unix.AT_FDCWD {
			link = "/proc/" + strconv.Itoa(int(n.pid)) + "/fd/" + strconv.Itoa(int(fd))
		}
	}
	folder, err := os.Readlink(link)
	if err != nil {
		return "", err.(*os.PathError).Err
	}
	if path == "" {
		return folder, nil
	}
	return folder + "/" + path, nil
}

// readPath reads a path in a process's memory, page by page, because the page after the path may not exist.
func readPath(pid int, at uintptr) (string, error) {
	var buf [unix.PathMax]byte
	page := uintptr(os.Getpagesize())
	for n := 0; n < len(buf); {
		size := min(int(page-(at+uintptr(n))%page), len(buf)-n, 256)
		local := []unix.Iovec{{Base: &buf[n], Len: uint64(size)}}
		got, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: at + uintptr(n), Len: size}}, 0)
		if err != nil {
			return "", err
		}
		if got == 0 {
			return "", unix.EFAULT
		}
		if i := bytes.IndexByte(buf[n:n+got], 0); i >= 0 {
			return string(buf[:n+i]), nil
		}
		n += got
	}
	return "", unix.ENAMETOOLONG
}

// StateOf returns the state of a file, links followed.
func StateOf(path string) State {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return State{}
	}
	return stateOf(&st)
}

func stateOf(st *unix.Stat_t) State {
	s := State{Exists: true, Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, Device: uint64(st.Dev), Inode: st.Ino}
	s.Size, s.Written, s.Moved = st.Size, st.Mtim.Nano(), st.Ctim.Nano()
	return s
}

// maxLinks is how many links the kernel follows in one path.
const maxLinks = 40

// Find is StateOf, and also returns where the path leads, both for the same file.
func Find(path string) (real string, s State) {
	for range maxLinks {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == nil {
			var st unix.Stat_t
			err = unix.Fstat(fd, &st)
			real, lerr := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
			unix.Close(fd)
			if err != nil || lerr != nil {
				return path, State{}
			}
			return real, stateOf(&st)
		}
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) { // a link that leads nowhere
			to = filepath.Dir(path) + "/" + to
		}
		path = to
	}
	dir, name := filepath.Split(strings.TrimRight(path, "/"))
	if dir == "" || dir == path || name == ".." {
		return filepath.Clean(path), State{}
	}
	folder, _ := Find(filepath.Clean(dir))
	return filepath.Join(folder, name), State{}
}

// tick is how long a file's times may stay the same while it changes, on systems that count them in steps: the maximum,
// for a clock with 100 steps a second.
const tick = 10 * time.Millisecond

// young reports whether a file changed since the last step of the system's clock.
func young(s State) bool {
	var now unix.Timespec
	return unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) == nil && s.Moved >= now.Nano()
}

// settle waits until a change of a file surely changes its times. Otherwise it could change between the program's
// access and Kiln's without being noticed. Few files have changed so recently.
func settle(path string) (s State) {
	for end := time.Now().Add(2 * tick); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s = StateOf(path); !young(s) {
			break
		}
	}
	return s
}
