package command

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a program with all processes that it starts: a Windows job object, which ends them
// together, also when Kiln itself ends and its handle is closed.
type group struct {
	object windows.Handle
}

// prepare is called before the program starts. The program starts suspended, so that it cannot
// start others before it is in the job object.
func (g *group) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		HideWindow:    true,
		CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW | windows.CREATE_SUSPENDED,
	}
}

// started is called after it has started.
func (g *group) started(cmd *exec.Cmd) error {
	object, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return fmt.Errorf("job object: %w", err)
	}
	g.object = object
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	if _, err := windows.SetInformationJobObject(object, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return fmt.Errorf("job object: %w", err)
	}
	var assigned error
	if err := cmd.Process.WithHandle(func(handle uintptr) {
		assigned = windows.AssignProcessToJobObject(object, windows.Handle(handle))
	}); err != nil {
		return err
	}
	if assigned != nil {
		return fmt.Errorf("job object: %w", assigned)
	}
	return resume(uint32(cmd.Process.Pid))
}

// resume resumes a process that was started suspended and so has one thread.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("list of threads: %w", err)
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return fmt.Errorf("thread: %w", err)
		}
		_, err = windows.ResumeThread(thread)
		return errors.Join(err, windows.CloseHandle(thread))
	}
	return fmt.Errorf("list of threads: %w", err)
}

// kill ends every process of the group. It does not report whether there was none.
func (g *group) kill() (gone bool) {
	if g.object != 0 {
		windows.TerminateJobObject(g.object, 1)
	}
	return false
}

// peak is the peak memory of the program and all processes that it started together.
func (g *group) peak(*exec.Cmd) int64 {
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	if g.object == 0 || windows.QueryInformationJobObject(g.object, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)), nil) != nil {
		return 0
	}
	return int64(limits.PeakJobMemoryUsed)
}

func (g *group) close() {
	if g.object != 0 {
		windows.CloseHandle(g.object)
	}
}

// signalled reports whether a signal ended the program: there are none here.
func signalled(*exec.ExitError) bool { return false }

// systemEnv has the variables that every program of this system needs.
func systemEnv(env func(string) (string, bool)) []string {
	root := systemRoot(env)
	return []string{
		"SystemRoot=" + root,
		"ComSpec=" + filepath.Join(root, "System32", "cmd.exe"),
		"PATHEXT=.COM;.EXE;.BAT;.CMD",
	}
}

// systemPath are the folders in which a program finds others, besides its own.
func systemPath(env func(string) (string, bool)) []string {
	root := systemRoot(env)
	return []string{filepath.Join(root, "System32"), root}
}

func systemRoot(env func(string) (string, bool)) string {
	if root, ok := env("SystemRoot"); ok {
		return root
	}
	return `C:\Windows`
}
