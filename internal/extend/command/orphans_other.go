//go:build !linux

package command

// EndOrphans does nothing. Windows ends all processes with the job object; other systems do not show the environment of a process.
func EndOrphans(string) {}
