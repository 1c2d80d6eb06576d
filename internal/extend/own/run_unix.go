//go:build unix

package own

import (
	"os"
	"syscall"
)

// Run has a program take the place of this process: it has its terminal, gets its signals, and its exit code is this one's. It comes back
// only if the program cannot be started.
func Run(program string, args []string) (exit int, err error) {
	return 0, &os.PathError{Op: "start", Path: program, Err: syscall.Exec(program, append([]string{os.Args[0]}, args...), os.Environ())}
}
