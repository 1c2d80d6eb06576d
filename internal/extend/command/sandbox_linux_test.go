package command

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// testSandbox returns a sandbox, and a function that runs a helper in it.
func testSandbox(t *testing.T) (s *sandbox, run func(args ...string) (ended, *capture)) {
	t.Helper()
	keeping(t)
	dir := t.TempDir()
	s, err := newSandbox(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return s, func(args ...string) (ended, *capture) {
		cmd := &exec.Cmd{Path: exe, Args: append([]string{"helper"}, args...), Dir: dir, Env: []string{helperEnv + "=1"}}
		if dir := os.Getenv("GOCOVERDIR"); dir != "" {
			cmd.Env = append(cmd.Env, "GOCOVERDIR="+dir)
		}
		var out capture
		return s.run(context.Background(), cmd, &out), &out
	}
}

// TestSandboxOutput: each program's output is its own, and whole, whatever the one before did to the pipes.
func TestSandboxOutput(t *testing.T) {
	s, run := testSandbox(t)
	defer s.end()
	for range 3 {
		for _, test := range []struct{ stdout, stderr string }{{"one", "two"}, {"", ""}, {"", "three"}, {strings.Repeat("x", 30<<10), "four"}} {
			e, out := run("say", "out", test.stdout, test.stderr, "0")
			if e.err != nil || !e.alone {
				t.Fatalf("%+v", e)
			}
			if got := out.stderr.String(); got != test.stderr {
				t.Errorf("standard error %q, not %q", got, test.stderr)
			}
			if got, want := len(out.all.String()), len(test.stdout+test.stderr); got != want {
				t.Errorf("%d bytes in all, not %d", got, want)
			}
		}
		if e, _ := run("nonblock"); e.err != nil || !e.alone {
			t.Fatalf("%+v", e)
		}
		const size = 8_000_000 // more than a pipe holds
		e, out := run("flood", strconv.Itoa(size))
		if got := int64(len(out.all.head)+len(out.all.tail)) + out.all.dropped; e.err != nil || !e.alone || got != size {
			t.Fatalf("%+v, %d bytes were taken", e, got)
		}
	}
}

// TestSandboxLeft: a program is over when it ends, although a process that left its group holds the pipes. What it wrote is there.
func TestSandboxLeft(t *testing.T) {
	address, next := listener(t)
	s, run := testSandbox(t)
	defer s.end()
	type result struct {
		e   ended
		out *capture
	}
	done := make(chan result)
	go func() {
		e, out := run("escape", address, "out")
		done <- result{e, out}
	}()
	one, two := next(), next()
	child, parent := one, two
	if one.says == "waits" {
		child, parent = two, one
	}
	parent.Close()
	r := <-done
	if got := r.out.all.String(); r.e.err != nil || r.e.alone || got != "leaves" {
		t.Errorf("%+v, %q", r.e, got)
	}
	if err := child.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Error(err)
	}
	child.gone(t)
}
