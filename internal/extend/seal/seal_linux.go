//go:build amd64 || arm64

package seal

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Supported is what this system can do. It is found out once, by trying.
var Supported = sync.OnceValue(func() Support {
	var s Support
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno == 0 {
		s.Writes = int(version)
	}
	s.Signals = s.Writes >= scopes && signalsMended()
	s.Network = place() != 0
	s.Trace = tryTrace()
	return s
})

// tryTrace lets a watcher read a path of this process: some containers allow the filter, but not reading.
func tryTrace() error {
	if place() == 0 {
		return fmt.Errorf("%w: the system refuses seccomp filters", ErrUnsupported)
	}
	const path = "/etc/kiln-looks-for-this"
	result := make(chan error)
	go func() { // the thread ends with it
		runtime.LockOSThread()
		t, err := Box{Network: true, Trace: true}.enter(Support{}, false)
		if err != nil {
			result <- fmt.Errorf("%w: %v", ErrUnsupported, err)
			return
		}
		unix.Access(path, unix.F_OK)
		seen, err := t.Stop()
		if err == nil && (len(seen) != 1 || seen[0].Path != path) {
			err = fmt.Errorf("what was read is %v", seen)
		}
		if err != nil {
			err = fmt.Errorf("%w: %v", ErrUnsupported, err)
		}
		result <- err
	}()
	return <-result
}

// Enter puts the calling thread, and everything that it starts from now on, into the sandbox. The caller must have
// locked its goroutine to the thread (runtime.LockOSThread) and must never unlock it: the thread ends with the
// goroutine. Stop must be called on the same thread.
func (b Box) Enter() (*Tracer, error) {
	s := Supported()
	if b.Trace && s.Trace != nil {
		return nil, s.Trace
	}
	return b.enter(s, true)
}

// enter is Enter. With quiet, accesses of the thread itself, which starts the program, are not recorded.
func (b Box) enter(s Support, quiet bool) (*Tracer, error) {
	t := &Tracer{box: b, thread: unix.Gettid(), quiet: quiet, listener: -1, seen: map[seenKey]int{}}
	if s.Writes > 0 {
		if err := b.landlock(s.Writes); err != nil {
			return nil, fmt.Errorf("landlock: %w", err)
		}
	}
	if err := giveUpRights(); err != nil { // after Landlock, which may need them to open the folders
		return nil, fmt.Errorf("capabilities: %w", err)
	}
	if !b.Trace && !s.Network {
		return t, nil
	}
	p := b.filter(s.Writes)
	if !b.Trace {
		_, err := p.install(0)
		return t, err
	}
	// Signals do not interrupt a call that the watcher handles, since Go's programs send themselves many: Linux 5.19.
	listener, err := p.install(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if err == unix.EINVAL {
		listener, err = p.install(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	// The watcher answers on the processor of the program: Linux 6.6, a third of the time.
	unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	t.listener = listener
	t.done = make(chan struct{})
	go t.watch()
	return t, nil
}

// notification and response are struct seccomp_notif and seccomp_notif_resp.
type notification struct {
	id       uint64
	pid      uint32 // the thread
	flags    uint32
	number   int32
	arch     uint32
	place    uint64
	argument [6]uint64
}

type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// stopCall is the argument of a call by which a thread in the sandbox ends the watch. No program
// makes this call.
const stopCall = 0x6b696c6e // "kiln", as a folder's descriptor

// Stop ends the watch and returns the accesses, each path with each Op once, in order. Processes that still run in the
// sandbox get ENOSYS from now on.
func (t *Tracer) Stop() ([]Access, error) {
	if t.listener < 0 {
		return nil, nil
	}
	unix.Syscall6(unix.SYS_FACCESSAT, stopCall, 0, 0, 0, 0, 0) // fails at once if the watcher has ended
	<-t.done
	return t.accesses, t.err
}

// watch answers calls until Stop, or until it fails.
func (t *Tracer) watch() {
	defer close(t.done)
	defer unix.Close(t.listener)
	for {
		var n notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(t.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
		switch errno {
		case 0:
		case unix.EINTR, unix.ENOENT: // the calling process was killed meanwhile
			continue
		default:
			t.err = fmt.Errorf("the watch of a program ended: %w", errno)
			return
		}
		stop := int(n.pid) == t.thread && n.argument[0] == stopCall
		if !stop && t.err == nil && !(int(n.pid) == t.thread && t.quiet) {
			t.err = t.note(&n)
		}
		r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, uintptr(t.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
		if errno != 0 && errno != unix.ENOENT && errno != unix.EINTR {
			t.err = fmt.Errorf("the watch of a program ended: %w", errno)
			return
		}
		if stop {
			return
		}
	}
}

// valid reports whether the call still waits, so that what was read was memory of its process.
func (t *Tracer) valid(n *notification) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(t.listener), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&n.id)))
	return errno == 0
}
