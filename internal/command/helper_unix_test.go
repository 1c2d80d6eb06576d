//go:build unix

package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/kiln-pipeline/kiln/internal/seal"
)

// systemHelper has the modes that only this system can have.
func systemHelper(mode string, args []string) error {
	switch mode {
	case "escape": // ADDRESS OUT: leaves a child that is in no group of ours and holds the pipes
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.Command(exe, "wait", args[0])
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		if err := started(args[0]); err != nil {
			return err
		}
		return os.WriteFile(args[1], nil, 0o600)
	case "pipe": // OUT
		return syscall.Mkfifo(args[0], 0o600)
	case "drive": // ADDRESS: runs a program as Kiln does
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := &exec.Cmd{Path: exe, Args: []string{"helper", "wait", args[0]}}
		return run(context.Background(), cmd, &capture{}, seal.Box{Network: true, Writable: []string{"/"}}).err
	case "suicide":
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return fmt.Errorf("no mode %q", mode)
}
