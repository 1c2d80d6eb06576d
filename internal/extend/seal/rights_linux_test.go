//go:build amd64 || arm64

package seal

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// spy is a program that reads what Kiln and other processes of its user have. It must not succeed.
func spy(args []string) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for _, name := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if !strings.Contains(string(status), name+":\t0000000000000000\n") {
			return fmt.Errorf("it has capabilities: %s", status)
		}
	}
	if os.Getuid() == 0 && !strings.Contains(string(status), "CapBnd:\t0000000000000000\n") || !strings.Contains(string(status), "NoNewPrivs:\t1\n") {
		return fmt.Errorf("it may get some: %s", status)
	}
	for _, pid := range args {
		for _, name := range []string{"environ", "mem", "maps", "auxv", "fd/0", "cwd/.", "root/.", "task/" + pid + "/environ"} {
			if f, err := os.Open("/proc/" + pid + "/" + name); err == nil {
				f.Close()
				return fmt.Errorf("it opens %s of process %s", name, pid)
			}
		}
		number, _ := strconv.Atoi(pid)
		if err := unix.PtraceSeize(number); err == nil {
			return fmt.Errorf("it traces process %s", pid)
		}
		var b [8]byte
		local, remote := []unix.Iovec{{Base: &b[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}
		if _, err := unix.ProcessVMReadv(number, local, remote, 0); err != unix.EPERM {
			return fmt.Errorf("it reads the memory of process %s: %v", pid, err)
		}
	}
	return nil
}

// TestSpy: programs have no capabilities, and reach no process besides their own, whoever runs Kiln: neither Kiln, nor what started it,
// nor another program of the same user.
func TestSpy(t *testing.T) {
	if Supported().Writes == 0 && os.Getuid() != 0 {
		t.Skip("this system has no Landlock; Kiln refuses others access to itself if it has secrets: package secret")
	}
	other := exec.Command("/bin/sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	pids := []string{strconv.Itoa(os.Getpid()), strconv.Itoa(os.Getppid()), strconv.Itoa(other.Process.Pid)}
	for _, trace := range []bool{false, true} {
		if trace && Supported().Trace != nil {
			t.Log(Supported().Trace)
			continue
		}
		if _, err := inBox(t, Box{Trace: trace}, t.TempDir(), append([]string{"spy"}, pids...)...); err != nil {
			t.Errorf("trace %v: %v", trace, err)
		}
	}
	box, err := (Box{Writable: []string{t.TempDir()}}).Thread()
	if err != nil {
		t.Skip(err)
	}
	defer box.End()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	box.Do(func() {
		cmd := exec.Command(exe, append([]string{"spy"}, pids...)...)
		cmd.Env = helperEnvironment
		said, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, said)
		}
		done <- err
	})
	if err := <-done; err != nil {
		t.Error(err)
	}
}
