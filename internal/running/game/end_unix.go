//go:build unix

package game

import (
	"os"
	"syscall"
)

// ask asks a process to end.
func ask(p *os.Process) { p.Signal(syscall.SIGTERM) }

// exitCode is the exit code that a shell would report.
func exitCode(s *os.ProcessState) int {
	if s == nil {
		return 1
	}
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}
