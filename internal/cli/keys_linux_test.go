package cli_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/cli"
)

// screen is a terminal that a kiln runs on, and all that it shows.
type screen struct {
	t      *testing.T
	master *os.File
	shown  bytes.Buffer
	read   int // of what is shown: what is waited for next comes after it
	more   chan []byte
}

// onTerminal starts kiln with a controlling terminal of its own.
func onTerminal(t *testing.T, args ...string) (*screen, *exec.Cmd) {
	t.Helper()
	master, tty := cli.Terminal(t)
	cmd := exec.Command("kiln", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close() // so that what it shows ends with it
	s := &screen{t: t, master: master, more: make(chan []byte, 1000)}
	go func() {
		defer close(s.more)
		for {
			b := make([]byte, 4096)
			n, err := master.Read(b)
			if err != nil {
				return
			}
			s.more <- b[:n]
		}
	}()
	return s, cmd
}

// until waits until a text is shown after what was waited for before.
func (s *screen) until(text string) {
	s.t.Helper()
	end := time.After(patience)
	for {
		if at := strings.Index(s.shown.String()[s.read:], text); at >= 0 {
			s.read += at + len(text)
			return
		}
		select {
		case b, ok := <-s.more:
			if !ok {
				s.t.Fatalf("it ended before %q was shown:\n%s", text, s.shown.String())
			}
			s.shown.Write(b)
		case <-end:
			s.t.Fatalf("%q was not shown:\n%s", text, s.shown.String())
		}
	}
}

func (s *screen) press(key string) { s.master.WriteString(key) }

// TestKeys: on a terminal a watcher builds again, shows what is wrong, opens the dashboard and ends at a key.
func TestKeys(t *testing.T) {
	for _, command := range []string{"watch", "serve"} {
		t.Run(command, func(t *testing.T) {
			dir, bin := t.TempDir(), t.TempDir()
			write(t, filepath.Join(dir, "kiln.toml"), "[project]\nname = \"keys\"\n")
			write(t, filepath.Join(dir, "assets", "good.json"), "{}")
			write(t, filepath.Join(dir, "assets", "bad.json"), "{]")
			// What opens a browser writes down its address.
			write(t, filepath.Join(bin, "xdg-open"), "#!/bin/sh\necho \"$1\" >\""+bin+"/opened.tmp\"; mv \""+bin+"/opened.tmp\" \""+bin+"/opened\"\n")
			os.Chmod(filepath.Join(bin, "xdg-open"), 0o777)
			t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			t.Setenv("TERM", "xterm")

			s, cmd := onTerminal(t, command, "-C", dir, "--listen", "127.0.0.1:0", "--color", "never")
			s.until("assets/bad.json:1:2: error[K1101]")
			s.until("watching; r builds again, o opens the dashboard, p shows the problems, q ends it")
			s.press("p")
			s.until("assets/bad.json:1:2: error[K1101]")
			s.press("r")
			s.until("0 assets built, 1 up to date, 1 failed")
			s.press("o")
			for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
				if b, err := os.ReadFile(filepath.Join(bin, "opened")); err == nil {
					page, err := http.Get(strings.TrimSpace(string(b)))
					if err != nil || page.StatusCode != http.StatusOK {
						t.Fatalf("opened %q: %v", b, err)
					}
					page.Body.Close()
					break
				}
				if time.Now().After(end) {
					t.Fatal("no browser was opened")
				}
			}
			s.press("x?q") // a key that does nothing, a list of all, the end
			s.until("r builds again, o opens")
			if err := cmd.Wait(); err != nil {
				t.Errorf("ended with %v:\n%s", err, s.shown.String())
			}
			if strings.Contains(s.shown.String(), "x?q") {
				t.Error("keys are shown")
			}
		})
	}

	// Ctrl-C stays an interrupt.
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kiln.toml"), "[project]\nname = \"keys\"\n")
	write(t, filepath.Join(dir, "assets", "good.json"), "{}")
	s, cmd := onTerminal(t, "watch", "-C", dir, "--listen", "127.0.0.1:0")
	s.until("watching; r builds")
	s.press("\x03")
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("ended with %v", err)
	}
}
