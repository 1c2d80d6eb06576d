package game

import "os"

// ask ends a process: a program with a window or without a console cannot receive a signal.
func ask(p *os.Process) { p.Kill() }

func exitCode(s *os.ProcessState) int {
	if s == nil {
		return 1
	}
	return s.ExitCode()
}
