//go:build unix && !linux

package command

import "syscall"

// dieWithParent does nothing: these systems have no such signal.
func dieWithParent(*syscall.SysProcAttr) {}
