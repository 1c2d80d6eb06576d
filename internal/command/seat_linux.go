package command

import (
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/kiln-pipeline/kiln/internal/seal"
)

// seat is where programs run one after the other, as long as it is known that nothing of the one before is left: a folder, a thread that is in a box
// around it, and pipes for what they write. To make pipes for each, to wait for their ends and to close them is 24 system calls and two threads that have to be woken. Of
// the time that thousands of `cp`s take that is 0 to 10%, less than two runs differ by.
type seat struct {
	root   *os.Root
	thread *seal.Thread
	pipes  [2]*seatPipe // standard output, standard error
}

// newSeat makes a seat. The error wraps seal.ErrUnsupported if this system has none.
func newSeat(folder string, network bool) (*seat, error) {
	s := &seat{}
	if err := s.open(folder, network); err != nil {
		s.end()
		return nil, err
	}
	for _, p := range s.pipes {
		go p.watch()
	}
	return s, nil
}

func (s *seat) open(folder string, network bool) (err error) {
	if s.thread, err = (seal.Box{Writable: []string{folder}, Network: network}).Thread(); err != nil {
		return err
	}
	if s.root, err = os.OpenRoot(folder); err != nil {
		return err
	}
	for i := range s.pipes {
		if s.pipes[i], err = newSeatPipe(); err != nil {
			return err
		}
	}
	return nil
}

// run is run, on the seat. Another program may follow if this one was ended.alone.
func (s *seat) run(ctx context.Context, cmd *exec.Cmd, out *capture) ended {
	for i, to := range []io.Writer{out.stdout(), out.errout()} {
		if err := s.pipes[i].begin(to); err != nil {
			return ended{err: &startError{err}}
		}
	}
	cmd.Stdout, cmd.Stderr = s.pipes[0].write, s.pipes[1].write
	done := make(chan ended)
	s.thread.Do(func() { done <- inBox(ctx, cmd, func() {}) })
	e := <-done
	e.alone = e.alone && !s.thread.Left()
	for _, p := range s.pipes {
		p.end()
	}
	return e
}

// end gives the seat up.
func (s *seat) end() {
	if s.thread != nil {
		s.thread.End()
	}
	if s.root != nil {
		s.root.Close()
	}
	for _, p := range s.pipes {
		if p != nil {
			p.close()
		}
	}
}

// seatPipe is read when there is something to read, and once more when a program has ended: the pipe does not end with it, so nobody could tell
// whether all had been read.
type seatPipe struct {
	read, write *os.File
	raw         syscall.RawConn // of read

	mu   sync.Mutex
	to   io.Writer // nil between programs
	some []byte    // room to read into
}

func newSeatPipe() (*seatPipe, error) {
	read, write, err := pipe()
	if err != nil {
		return nil, err
	}
	p := &seatPipe{read: read, write: write, some: make([]byte, 4<<10)}
	if p.raw, err = read.SyscallConn(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *seatPipe) close() {
	p.write.Close()
	p.read.Close()
}

// begin is before a program starts. It has the program wait where the pipe is full, whatever the one before chose.
func (p *seatPipe) begin(to io.Writer) error {
	p.mu.Lock()
	p.to = to
	p.mu.Unlock()
	_, err := unix.FcntlInt(p.write.Fd(), unix.F_SETFL, 0)
	return os.NewSyscallError("fcntl", err)
}

// end is after a program has ended.
func (p *seatPipe) end() {
	p.raw.Control(func(fd uintptr) { p.take(fd) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = nil
}

// watch takes what comes, until the pipe is closed.
func (p *seatPipe) watch() { p.raw.Read(p.take) }

// take takes what is there. It tells whether the pipe has ended.
func (p *seatPipe) take(fd uintptr) (over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		n, err := unix.Read(int(fd), p.some)
		switch {
		case n > 0 && p.to != nil:
			p.to.Write(p.some[:n])
		case n <= 0 && err != unix.EINTR:
			return err != unix.EAGAIN
		}
	}
}
