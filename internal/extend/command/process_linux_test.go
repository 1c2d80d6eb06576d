package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestProgramDiesWithKiln(t *testing.T) {
	address, next := listener(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kiln := exec.Command(exe, "drive", "wait", address)
	kiln.Env = []string{helperEnv + "=1"}
	if err := kiln.Start(); err != nil {
		t.Fatal(err)
	}
	program := next()
	if err := kiln.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	kiln.Wait()
	program.gone(t)
}

// What a program started lives on when Kiln is killed, until the next one looks for it; nobody else's processes are concerned.
func TestOrphans(t *testing.T) {
	address, next := listener(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	scratch := filepath.Join(t.TempDir(), "tmp")
	kiln := exec.Command(exe, "drive", "hang", address)
	kiln.Env = []string{helperEnv + "=1", "PATH=/bin", "HOME=" + scratch + "/1-1/home"}
	if err := kiln.Start(); err != nil {
		t.Fatal(err)
	}
	program, orphan := next(), next()
	if status, _ := os.ReadFile("/proc/" + program.says + "/status"); strings.Contains(string(status), fmt.Sprintf("PPid:\t%s\n", orphan.says)) {
		program, orphan = orphan, program
	}
	if err := kiln.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	kiln.Wait()
	program.gone(t)
	pid, err := strconv.Atoi(orphan.says)
	if err != nil {
		t.Fatal(err)
	}
	EndOrphans(filepath.Dir(scratch) + "/tm")
	EndOrphans(scratch + "/2-1")
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("what another kiln started was ended: %v", err)
	}
	EndOrphans(scratch)
	orphan.gone(t)
}
