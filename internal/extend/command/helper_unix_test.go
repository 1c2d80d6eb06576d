//go:build unix

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
)

// systemHelper has the modes that only this system can have.
func systemHelper(mode string, args []string) error {
	switch mode {
	case "escape": // ADDRESS OUT: leaves a child that is in no group of ours and holds the pipes
		fmt.Println("leaves")
		if err := leave("wait", args[0]); err != nil {
			return err
		}
		if err := started(args[0]); err != nil {
			return err
		}
		return os.WriteFile(args[1], nil, 0o600)
	case "frame": // IN OUT ADDRESS
		return inFrame(args[0], args[1], args[2])
	case "squat": // ADDRESS
		return squat(args[0])
	case "inside": // OUT IN FOLDER NAME: goes to the folder and reads it there
		back, err := os.Getwd()
		if err != nil {
			return err
		}
		err = os.Chdir(args[2])
		data, rerr := os.ReadFile(args[3])
		return errors.Join(err, rerr, os.Chdir(back), os.WriteFile(args[0], data, 0o600))
	case "relative": // OUT IN FOLDER NAME: reads it from a descriptor of the folder
		root, err := os.OpenRoot(args[2])
		if err != nil {
			return err
		}
		data, err := root.ReadFile(args[3])
		return errors.Join(err, os.WriteFile(args[0], data, 0o600))
	case "through": // OUT IN FOLDER NAME: reads it through a link of its own in a folder that it then calls otherwise
		temp := os.Getenv("TMPDIR")
		err := errors.Join(os.Mkdir(temp+"/a", 0o700), os.Symlink(args[2], temp+"/a/link"))
		data, rerr := os.ReadFile(temp + "/a/link/" + args[3])
		err = errors.Join(err, rerr, os.Rename(temp+"/a", temp+"/b"), os.RemoveAll(temp+"/b"))
		return errors.Join(err, os.WriteFile(args[0], data, 0o600))
	case "pipe": // OUT
		return syscall.Mkfifo(args[0], 0o600)
	case "drive": // MODE ADDRESS: runs a program as Kiln does
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := &exec.Cmd{Path: exe, Args: []string{"helper", args[0], args[1]}}
		return run(context.Background(), cmd, &capture{}, seal.Box{Network: true, Writable: []string{"/"}}).err
	case "flood": // BYTES: to standard output, which waits
		n, err := strconv.Atoi(args[0])
		for err == nil && n > 0 {
			var k int
			k, err = syscall.Write(1, make([]byte, min(n, 100_000)))
			n -= k
		}
		return err
	case "nonblock": // changes the pipes that it was given
		return errors.Join(syscall.SetNonblock(1, true), syscall.SetNonblock(2, true))
	case "suicide":
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return fmt.Errorf("no mode %q", mode)
}

// leave starts the helper in a session of its own.
func leave(mode string, args ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, append([]string{mode}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}
