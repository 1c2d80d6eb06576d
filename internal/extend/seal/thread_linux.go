//go:build amd64 || arm64

package seal

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Thread is a sandboxed thread on which programs are started one after the other. A sandbox for each program takes 0.15
// ms: a thread, a filter that the kernel compiles, and the end of both.
//
// Programs of one sandbox can write to the same folders. So before the next one starts, no process of the earlier one
// may run: its process group must be empty, and no process may have left it.
type Thread struct {
	do   chan func()
	left atomic.Bool
}

// Thread makes a Thread. The error wraps ErrUnsupported if the system does not refuse writes, or cannot report
// processes that leave their group. A sandbox that traces is for one program.
func (b Box) Thread() (*Thread, error) {
	if b.Trace || !threads() {
		return nil, fmt.Errorf("%w: no thread for several programs", ErrUnsupported)
	}
	b.groups = true
	t := &Thread{do: make(chan func())}
	ready := make(chan error)
	go func() { // the sandbox belongs to a thread, which ends with this goroutine
		runtime.LockOSThread()
		err := t.enter(b)
		ready <- err
		if err != nil {
			return
		}
		for f := range t.do {
			f()
		}
	}()
	return t, <-ready
}

// threads reports whether this system supports them.
func threads() bool {
	s := Supported()
	return s.Writes > 0 && s.Trace == nil
}

func (t *Thread) enter(b Box) error {
	if err := b.landlock(Supported().Writes); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if err := giveUpRights(); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	listener, err := b.filter(Supported().Writes).install(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	if err := unix.SetNonblock(listener, true); err != nil { // for Go's poller: no thread waits for this rare event
		return errors.Join(err, unix.Close(listener))
	}
	go t.watch(os.NewFile(uintptr(listener), "seccomp"))
	return nil
}

// watch notices when a process leaves its group, before it does, until the thread and everything that it started
// have ended.
func (t *Thread) watch(listener *os.File) {
	defer listener.Close()
	defer t.left.Store(true)
	raw, err := listener.SyscallConn()
	if err != nil {
		return
	}
	for more := true; more; {
		err := raw.Read(func(fd uintptr) bool {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if _, err := unix.Poll(fds, 0); err != nil || fds[0].Revents == 0 {
				return err != nil
			}
			more = fds[0].Revents&unix.POLLIN != 0 && t.let(fd)
			return true
		})
		if err != nil {
			return
		}
	}
}

// let lets one call continue.
func (t *Thread) let(listener uintptr) (more bool) {
	var n notification
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
	if errno != 0 {
		return errno == unix.EINTR || errno == unix.ENOENT // the calling process was killed meanwhile
	}
	t.left.Store(true)
	r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	_, _, errno = unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
	return errno == 0 || errno == unix.EINTR || errno == unix.ENOENT
}

// Do runs a function on the thread, and does not wait for its end.
func (t *Thread) Do(f func()) { t.do <- f }

// Left reports whether a process may have left its group, so that it may still run.
func (t *Thread) Left() bool { return t.left.Load() }

// End ends the thread.
func (t *Thread) End() { close(t.do) }
