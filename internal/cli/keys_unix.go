//go:build linux || darwin

package cli

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// singleKeys makes a terminal return each key at once without showing it, until restore is called. Ctrl-C stays an
// interrupt. A background process gets an error when it reads, and is not stopped.
func singleKeys(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return nil, syscall.ENOTTY // another program uses it
	}
	signal.Ignore(syscall.SIGTTIN, syscall.SIGTTOU)
	now := *was
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, setTermios, &now); err != nil {
		return nil, err
	}
	return func() { unix.IoctlSetTermios(fd, setTermios, was) }, nil
}
