package command

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipe is os.Pipe, but only the end that Kiln reads is registered with Go's poller. Registering and removing the
// program's end would take five system calls a pipe.
func pipe() (read, write *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if _, err := unix.FcntlInt(uintptr(ends[1]), unix.F_SETFL, 0); err != nil { // programs expect blocking streams
		unix.Close(ends[0])
		unix.Close(ends[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(ends[0]), "|0"), os.NewFile(uintptr(ends[1]), "|1"), nil
}
