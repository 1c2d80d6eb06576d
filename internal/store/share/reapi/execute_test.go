package reapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kiln-pipeline/kiln/internal/store/share"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
)

// In the environment, asCommand has this program be the command of an action: it writes what is in its input.
const asCommand = "KILN_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	data, err := os.ReadFile("sub/deep/in")
	if err == nil && len(os.Args) == 2 && os.Args[1] == "make" {
		err = os.WriteFile("made", bytes.ToUpper(data), 0o666)
	}
	if err != nil || os.Args[1] == "fail" {
		os.Stderr.WriteString("it does not work\n")
		os.Exit(7)
	}
}

func farmAndClient(t *testing.T, workers int) (*reapitest.Farm, *Client) {
	f, err := reapitest.StartFarm(t.TempDir(), workers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Stop)
	f.Env = []string{asCommand + "=1"}
	c, err := Dial(f.Address, Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return f, c
}

// action is one that this program does.
func action(t *testing.T, word string) *Action {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	input := func(data []byte, executable bool) Input {
		b := share.Blob{SHA256: sha256.Sum256(data), Size: int64(len(data))}
		return Input{Blob: b, Executable: executable, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	}
	return &Action{
		Args: []string{"./program.exe", word}, Output: "made", Folder: "out", Timeout: time.Minute, Queue: time.Minute,
		Inputs: map[string]Input{
			"program.exe": input(data, true), "sub/deep/in": input([]byte("text"), false),
			"sub-other": input(nil, false), "sub/a": input([]byte("a"), false),
		},
	}
}

func TestRun(t *testing.T) {
	f, c := farmAndClient(t, 1)
	if err := c.Executes(t.Context()); err != nil {
		t.Fatal(err)
	}
	ran, err := c.Run(t.Context(), action(t, "make"))
	if err != nil || ran.Code != 0 || string(ran.Output) != "TEXT" || ran.Cached || ran.Worker == "" || ran.Took <= 0 {
		t.Fatalf("%v, %+v", err, ran)
	}
	if ran, err = c.Run(t.Context(), action(t, "make")); err != nil || string(ran.Output) != "TEXT" || !ran.Cached || f.Ran() != 1 {
		t.Errorf("%v, %+v", err, ran)
	}
	for n := range int64(2) { // a failure is not an error, and is not remembered
		ran, err = c.Run(t.Context(), action(t, "fail"))
		if err != nil || ran.Code != 7 || ran.Output != nil || string(ran.Stderr) != "it does not work\n" || f.Ran() != 2+n {
			t.Errorf("%v, %+v", err, ran)
		}
	}
	a := action(t, "make")
	a.Inputs["../out"] = a.Inputs["sub/a"]
	if _, err := c.Run(t.Context(), a); err == nil {
		t.Error("a path out of the folder was taken")
	}
}

// A server that only stores, or speaks another version of the API, is said to be just that.
func TestExecutesNot(t *testing.T) {
	for want, old := range map[string]bool{
		"it is a cache alone": false, "version 1.3 of the Remote Execution API, and Kiln version 2": true,
	} {
		s, err := reapitest.Start("")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop()
		s.Old = old
		c, err := Dial(s.Address, Credentials{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Executes(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

// An action that is queued may wait for longer than it may run. Then its operation ends, as it does when the caller's context ends.
func TestQueue(t *testing.T) {
	f, c := farmAndClient(t, 0)
	a := action(t, "make")
	e, err := a.encode()
	if err == nil {
		_, err = c.upload(t.Context(), e)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.Timeout, a.Queue = 500*time.Millisecond, time.Second
	began := time.Now()
	if _, err := c.execute(t.Context(), a, e, false); status.Code(err) != codes.DeadlineExceeded || time.Since(began) < a.Queue {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.execute(ctx, a, e, false); err == nil {
		t.Error("it was executed")
	}
	if f.Ran() != 0 {
		t.Error("it ran")
	}
}
