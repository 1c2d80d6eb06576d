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

// Tracer watches what was started in a sandbox.
type Tracer struct{}

// Enter does nothing, and fails if the program must be traced.
func (b Box) Enter() (*Tracer, error) {
	if b.Trace {
		return nil, Supported().Trace
	}
	return &Tracer{}, nil
}

// Stop returns no accesses.
func (t *Tracer) Stop() ([]Access, error) { return nil, nil }

// Thread is a sandboxed thread; there is none on this system.
type Thread struct{}

// Thread fails.
func (b Box) Thread() (*Thread, error) { return nil, Supported().Trace }

// Do does nothing.
func (t *Thread) Do(func()) {}

// Left reports that some process may still run.
func (t *Thread) Left() bool { return true }

// End does nothing.
func (t *Thread) End() {}

// OwnGroup is the value of syscall.SysProcAttr.Pgid for a program that gets a group of its own.
func OwnGroup() int { return 0 }

// StateOf returns the state of a file, links followed. This system does not identify files.
func StateOf(path string) State {
	st, err := os.Stat(path)
	if err != nil {
		return State{}
	}
	return State{Exists: true, Dir: st.IsDir(), Size: st.Size(), Written: st.ModTime().UnixNano(), Moved: st.ModTime().UnixNano()}
}

// Find is StateOf, and also returns where the path leads.
func Find(path string) (real string, s State) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = filepath.Clean(path) // nobody is traced here
	}
	return real, StateOf(path)
}
