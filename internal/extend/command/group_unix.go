//go:build unix

package command

import (
	"os/exec"
	"runtime"
	"syscall"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
)

// group is a program with all processes that it starts, so that they can be ended together.
type group struct {
	id int // of the process group, the program's own process id
}

// prepare is called before the program starts.
func (g *group) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: seal.OwnGroup()}
	dieWithParent(cmd.SysProcAttr)
}

// started is called after it has started.
func (g *group) started(cmd *exec.Cmd) error {
	g.id = cmd.Process.Pid
	return nil
}

// kill ends every process of the group, and reports whether there was none. Its number could belong
// to another group by now only if all other numbers had been used in between.
func (g *group) kill() (gone bool) { return syscall.Kill(-g.id, syscall.SIGKILL) == syscall.ESRCH }

// peak is the largest peak memory of the program and of the processes that it waited for.
func (g *group) peak(cmd *exec.Cmd) int64 {
	if cmd.ProcessState == nil {
		return 0
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss) // bytes
	}
	return int64(usage.Maxrss) << 10
}

func (g *group) close() {}

// signalled reports whether a signal ended the program.
func signalled(err *exec.ExitError) bool {
	status, ok := err.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// systemEnv has the variables that every program of this system needs.
func systemEnv(func(string) (string, bool)) []string { return nil }

// systemPath are the folders in which a program finds others, besides its own.
func systemPath(func(string) (string, bool)) []string {
	return []string{"/usr/local/bin", "/usr/bin", "/bin"}
}
