//go:build amd64 || arm64

package seal

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// startOn runs a program on a thread, and tells how it ended.
func startOn(t *testing.T, thread *Thread, args ...string) error {
	t.Helper()
	file, err := exec.LookPath(args[0])
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(file, args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: OwnGroup()}
	done := make(chan error)
	thread.Do(func() { done <- cmd.Run() })
	if err := <-done; err != nil {
		return err
	}
	if group, err := syscall.Getpgid(cmd.Process.Pid); err == nil {
		t.Errorf("process %d still has group %d", cmd.Process.Pid, group)
	}
	return nil
}

// TestThread: programs that run on one thread are all in its box, and it is noticed when one of them leaves its group.
func TestThread(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		left bool
	}{
		{"nothing", []string{"true"}, false},
		{"children", []string{"sh", "-c", "true; sh -c true; (true) | cat"}, false},
		{"session", []string{"setsid", "--wait", "true"}, true},
		{"group", []string{"timeout", "100", "true"}, true}, // it makes itself a group of its own
		{"job control", []string{"bash", "-c", "set -m; true & wait"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			thread, err := Box{Writable: []string{dir}}.Thread()
			if errors.Is(err, ErrUnsupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer thread.End()
			for range 2 {
				if err := startOn(t, thread, "sh", "-c", "echo a > "+filepath.Join(dir, "a")); err != nil || thread.Left() {
					t.Fatal(err, thread.Left())
				}
			}
			outside := filepath.Join(t.TempDir(), "b")
			if err := startOn(t, thread, "sh", "-c", "echo b > "+outside); err == nil {
				t.Error("it wrote outside of its box")
			}
			if _, err := os.Stat(outside); err == nil {
				t.Error("there is a file outside of the box")
			}
			if err := startOn(t, thread, c.args...); err != nil {
				t.Fatal(err)
			}
			if thread.Left() != c.left {
				t.Errorf("somebody left the group: %v, want %v", thread.Left(), c.left)
			}
		})
	}
	if _, err := (Box{Trace: true}).Thread(); !errors.Is(err, ErrUnsupported) {
		t.Error("a box that traces was made for several programs:", err)
	}
}

// TestThreadEnds: thread, watcher and the descriptor that it reads from go.
func TestThreadEnds(t *testing.T) {
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	run := func() {
		thread, err := Box{Writable: []string{t.TempDir()}}.Thread()
		if err != nil {
			t.Skip(err)
		}
		if err := startOn(t, thread, "true"); err != nil {
			t.Fatal(err)
		}
		thread.End()
	}
	run() // what is opened once
	before := open()
	for range 5 {
		run()
	}
	for end := time.Now().Add(time.Minute); open() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d descriptors are open, %d were before", open(), before)
		}
	}
}
