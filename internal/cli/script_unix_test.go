//go:build unix

package cli_test

import (
	"fmt"
	"io/fs"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// identity tells a file from another one that took its place.
func identity(info fs.FileInfo) string { return fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino) }

// fifo FILE: makes a named pipe.
func fifo(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o666))
}
