//go:build unix

package cli_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInterrupt sends the signals of Ctrl-C and of a service manager to a build that hangs.
func TestInterrupt(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "kiln.toml"), "[project]\nname = \"test\"\n[[processors]]\nname = \"hang\"\ncommand = [\"tool\", \"hang\", \"{out}\", \"{in}\"]\nextensions = [\".hang\"]\n")
			write(t, filepath.Join(dir, "assets", "a.hang"), "a")
			cmd := exec.Command("kiln", "build", "-C", dir)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
				if begun, _ := filepath.Glob(filepath.Join(dir, ".kiln", "tmp", "*", "*", "out", "a.hang")); len(begun) > 0 {
					break
				}
				if time.Now().After(end) {
					cmd.Process.Kill()
					cmd.Wait() // and with it for what it says
					t.Fatal("the job never started: ", errs.String())
				}
			}
			cmd.Process.Signal(sig)
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
				t.Errorf("ended with %v", err)
			}
			if s := errs.String(); !strings.Contains(s, "interrupted; what was finished is kept\n0 assets built, 0 up to date, 1 not built in ") {
				t.Errorf("said %q", s)
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
