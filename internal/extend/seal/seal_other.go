//go:build !linux || (!amd64 && !arm64)

package seal

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Supported is what this system can do: nothing.
func Supported() Support {
	return Support{Trace: fmt.Errorf("%w: %s on %s has no way to", ErrUnsupported, runtime.GOOS, runtime.GOARCH)}
}

// Tracer watches what was started in a box.
type Tracer struct{}

// Enter does nothing, and fails if the program is to be traced.
func (b Box) Enter() (*Tracer, error) {
	if b.Trace {
		return nil, Supported().Trace
	}
	return &Tracer{}, nil
}

// Stop is what was seen: nothing.
func (t *Tracer) Stop() ([]Access, error) { return nil, nil }

// Thread is a thread in a box; there is none.
type Thread struct{}

// Thread fails.
func (b Box) Thread() (*Thread, error) { return nil, Supported().Trace }

// Do does nothing.
func (t *Thread) Do(func()) {}

// Left tells that some process may still run.
func (t *Thread) Left() bool { return true }

// End does nothing.
func (t *Thread) End() {}

// OwnGroup is what syscall.SysProcAttr.Pgid is set to for a program that gets a group of its own.
func OwnGroup() int { return 0 }

// StateOf looks at a file, links followed. Which file it is, this system does not tell.
func StateOf(path string) State {
	st, err := os.Stat(path)
	if err != nil {
		return State{}
	}
	return State{Exists: true, Dir: st.IsDir(), Size: st.Size(), Written: st.ModTime().UnixNano(), Moved: st.ModTime().UnixNano()}
}

// Find is StateOf, and tells where the path leads.
func Find(path string) (real string, s State) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = filepath.Clean(path) // nobody is traced here
	}
	return real, StateOf(path)
}
