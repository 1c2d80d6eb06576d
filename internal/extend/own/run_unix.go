//go:build unix

package own

import (
	"os"
	"syscall"
)

// Run replaces this process by a program, which gets its terminal and signals; its exit code is that of this process.
// It returns only if the program cannot be started.
func Run(program string, args []string) (exit int, err error) {
	return 0, &os.PathError{Op: "start", Path: program, Err: syscall.Exec(program, append([]string{os.Args[0]}, args...), os.Environ())}
}
