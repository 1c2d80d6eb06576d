package own

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Run runs a program in place of this process, and returns its exit code. Ctrl-C reaches both, and only the program
// handles it; if this process is killed, so is the program.
func Run(program string, args []string) (exit int, err error) {
	signal.Reset()
	signal.Ignore(os.Interrupt)
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("job object: %w", err)
	}
	defer windows.CloseHandle(job)
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK,
		},
	}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return 0, fmt.Errorf("job object: %w", err)
	}
	cmd := exec.Command(program, args...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var assigned error
	if err := cmd.Process.WithHandle(func(handle uintptr) {
		assigned = windows.AssignProcessToJobObject(job, windows.Handle(handle))
	}); err == nil && assigned != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return 0, fmt.Errorf("job object: %w", assigned)
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &ended) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}
