//go:build unix

package command

import (
	"os/exec"
	"syscall"
)

// group is a program and all that it starts, so that they can be ended together.
type group struct {
	id int // of the process group, the program's own process id
}

// prepare is called before the program starts.
func (g *group) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// started is called once it has.
func (g *group) started(cmd *exec.Cmd) error {
	g.id = cmd.Process.Pid
	return nil
}

// kill ends every process of the group. A group that is gone already is no error; that its
// number belongs to another one by now would take all other numbers to be used in between.
func (g *group) kill() { syscall.Kill(-g.id, syscall.SIGKILL) }

func (g *group) close() {}

// signalled tells whether a signal ended the program.
func signalled(err *exec.ExitError) bool {
	status, ok := err.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// systemEnv is what every program of this system needs.
func systemEnv(func(string) (string, bool)) []string { return nil }

// systemPath are the folders that a program finds others in, besides its own.
func systemPath(func(string) (string, bool)) []string {
	return []string{"/usr/local/bin", "/usr/bin", "/bin"}
}
