package command

import (
	"context"
	"os"
	"os/exec"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
)

// sandbox runs programs one after the other, as long as it is known that no process of an earlier one is left: it is a
// folder, and a thread that is confined to it.
type sandbox struct {
	root   *os.Root
	thread *seal.Thread
}

// newSandbox makes a sandbox. The error wraps seal.ErrUnsupported if this system does not support it.
func newSandbox(folder string, network bool) (*sandbox, error) {
	s := &sandbox{}
	if err := s.open(folder, network); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

func (s *sandbox) open(folder string, network bool) (err error) {
	if s.thread, err = (seal.Box{Writable: []string{folder}, Network: network}).Thread(); err != nil {
		return err
	}
	s.root, err = os.OpenRoot(folder)
	return err
}

// run is run in the sandbox. Another program may follow if this one was ended.alone.
func (s *sandbox) run(ctx context.Context, cmd *exec.Cmd, out *capture) ended {
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

// end ends the thread.
func (s *sandbox) end() {
	if s.thread != nil {
		s.thread.End()
	}
	if s.root != nil {
		s.root.Close()
	}
}
