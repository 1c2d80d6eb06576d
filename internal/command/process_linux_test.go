package command

import (
	"os"
	"os/exec"
	"testing"
)

func TestProgramDiesWithKiln(t *testing.T) {
	address, next := listener(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kiln := exec.Command(exe, "drive", address)
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
