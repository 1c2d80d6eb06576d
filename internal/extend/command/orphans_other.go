//go:build !linux

package command

// EndOrphans does nothing. Windows ends all that a program started with its job object; other systems do not tell what a process was
// started with.
func EndOrphans(string) {}
