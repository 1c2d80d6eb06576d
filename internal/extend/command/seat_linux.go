package command

import (
	"context"
	"os"
	"os/exec"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
)

// seat is where programs run one after the other, as long as it is known that nothing of the one before is left: a folder, and a thread
// that is in a box around it.
type seat struct {
	root   *os.Root
	thread *seal.Thread
}

// newSeat makes a seat. The error wraps seal.ErrUnsupported if this system has none.
func newSeat(folder string, network bool) (*seat, error) {
	s := &seat{}
	if err := s.open(folder, network); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

func (s *seat) open(folder string, network bool) (err error) {
	if s.thread, err = (seal.Box{Writable: []string{folder}, Network: network}).Thread(); err != nil {
		return err
	}
	s.root, err = os.OpenRoot(folder)
	return err
}

// run is run, on the seat. Another program may follow if this one was ended.alone.
func (s *seat) run(ctx context.Context, cmd *exec.Cmd, out *capture) ended {
	p, err := openPipes(cmd)
	if err != nil {
		return ended{err: &startError{err}}
	}
	var e ended
	done := make(chan struct{})
	s.thread.Do(func() {
		defer close(done)
		defer p.end()
		e = inBox(ctx, cmd, p.given)
	})
	p.collect(out)
	<-done
	p.close()
	e.alone = e.alone && !s.thread.Left()
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
}
