//go:build !linux

package command

import "os"

func pipe() (read, write *os.File, err error) { return os.Pipe() }
