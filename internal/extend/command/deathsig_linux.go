package command

import "syscall"

// dieWithParent makes the kernel end the program when the thread that started it ends, and so when
// Kiln does, even by SIGKILL. The thread must live that long: see run.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
