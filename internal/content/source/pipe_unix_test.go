//go:build unix

package source

import "golang.org/x/sys/unix"

func makePipe(p string) error { return unix.Mkfifo(p, 0o666) }
