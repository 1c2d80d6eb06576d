package relay

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// places are state folders: one for a socket, and one whose path is too long for that.
func places(t *testing.T, f func(t *testing.T, dir string)) {
	short, err := os.MkdirTemp("", "k")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	long := filepath.Join(short, strings.Repeat("long", 30))
	if err := os.Mkdir(long, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Run("socket", func(t *testing.T) { f(t, short) })
	t.Run("port", func(t *testing.T) { f(t, long) })
}

// patient is how long either side may take to say who it is. A machine may be busy.
const patient = time.Minute

func listen(t *testing.T, dir string, run func(ctx context.Context, c *Call, out, errs io.Writer) int) *Server {
	t.Helper()
	s, err := begin(dir, patient, func() Hello { return Hello{Kiln: "me"} }, run)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func anyone(Hello) bool { return true }

func TestAsk(t *testing.T) {
	places(t, func(t *testing.T, dir string) {
		var out, errs bytes.Buffer
		if _, ok := ask(context.Background(), dir, patient, anyone, Call{}, &out, &errs); ok {
			t.Error("nobody is there, and answered")
		}
		s := listen(t, dir, func(_ context.Context, c *Call, out, errs io.Writer) int {
			fmt.Fprintln(out, c.Args, c.Dir, c.Env["TERM"], c.Out.Columns)
			out.Write([]byte{0xff, 0})
			fmt.Fprint(errs, "on the other stream")
			return 7
		})
		if _, err := begin(dir, patient, nil, nil); err != ErrTaken {
			t.Errorf("a second watcher: %v", err)
		}
		call := Call{Args: []string{"ls", "a b"}, Dir: "/x", Env: map[string]string{"TERM": "vt100"}, Out: Screen{Terminal: true, Columns: 99}}
		exit, ok := ask(context.Background(), dir, patient, anyone, call, &out, &errs)
		if !ok || exit != 7 || out.String() != "[ls a b] /x vt100 99\n\xff\x00" || errs.String() != "on the other stream" {
			t.Errorf("%d, %v, %q, %q", exit, ok, &out, &errs)
		}
		if _, ok := ask(context.Background(), dir, patient, func(h Hello) bool { return h.Kiln != "me" }, call, &out, &errs); ok {
			t.Error("a watcher that was not accepted answered")
		}
		s.Close()
		if left, _ := os.ReadDir(dir); len(left) > 1 || len(left) == 1 && !left[0].IsDir() {
			t.Errorf("it left %v", left)
		}
	})
}

// A client that has had enough, or is gone, ends what it asked for, and nothing else.
func TestCancel(t *testing.T) {
	places(t, func(t *testing.T, dir string) {
		ended := make(chan error, 2)
		s := listen(t, dir, func(ctx context.Context, c *Call, out, errs io.Writer) int {
			fmt.Fprint(out, "x")
			<-ctx.Done()
			ended <- ctx.Err()
			return 130
		})
		defer s.Close()
		ctx, cancel := context.WithCancel(context.Background())
		exit, ok := ask(ctx, dir, patient, anyone, Call{}, onWrite(cancel), io.Discard)
		if <-ended; !ok || exit != 130 {
			t.Errorf("%d, %v", exit, ok)
		}
		c, token, err := dial(dir, patient)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "{\"token\":%q}\n", token)
		io.ReadFull(c, make([]byte, 1))
		c.Close()
		select {
		case <-ended:
		case <-time.After(patient):
			t.Error("a client that is gone is waited for")
		}
	})
}

type onWrite func()

func (f onWrite) Write(p []byte) (int, error) { f(); return len(p), nil }

// A watcher that was killed leaves its socket or its port behind.
func TestKilled(t *testing.T) {
	places(t, func(t *testing.T, dir string) {
		s := listen(t, dir, nil)
		kept := s.file + ".kept"
		if err := os.Link(s.file, kept); err != nil {
			t.Fatal(err)
		}
		s.Close()
		os.Rename(kept, s.file)
		if _, ok := ask(context.Background(), dir, patient, anyone, Call{}, io.Discard, io.Discard); ok {
			t.Error("a dead watcher answered")
		}
		s = listen(t, dir, func(context.Context, *Call, io.Writer, io.Writer) int { return 3 })
		defer s.Close()
		if exit, ok := ask(context.Background(), dir, patient, anyone, Call{}, io.Discard, io.Discard); !ok || exit != 3 {
			t.Error(exit, ok)
		}
	})
}

// The state folder may be removed: the watcher is found again once it is back, and stays away from a place that another one took meanwhile.
func TestStay(t *testing.T) {
	places(t, func(t *testing.T, dir string) {
		if err := os.MkdirAll(dir, 0o777); err != nil { // the one for sockets holds the other
			t.Fatal(err)
		}
		begun, end := make(chan bool), make(chan bool)
		s := listen(t, dir, func(_ context.Context, c *Call, _, _ io.Writer) int {
			if len(c.Args) > 0 {
				begun <- true
				<-end
			}
			return 3
		})
		exit := make(chan int)
		go func() {
			code, _ := ask(context.Background(), dir, patient, anyone, Call{Args: []string{"wait"}}, io.Discard, io.Discard)
			exit <- code
		}()
		<-begun
		asks := func(want bool) {
			t.Helper()
			if code, ok := ask(context.Background(), dir, patient, anyone, Call{}, io.Discard, io.Discard); ok != want || ok && code != 3 {
				t.Errorf("%d, %v", code, ok)
			}
		}
		asks(true)
		os.RemoveAll(dir)
		s.Stay()
		asks(false)
		if _, err := os.Lstat(dir); err == nil {
			t.Error("it made the folder, which may be that of a project that is no more")
		}
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		s.Stay()
		asks(true)
		close(end)
		if code := <-exit; code != 3 {
			t.Errorf("what was asked for before ended with %d", code)
		}

		os.Remove(s.file)
		other := listen(t, dir, func(context.Context, *Call, io.Writer, io.Writer) int { return 3 })
		s.Stay()
		other.Stay()
		asks(true)
		s.Close()
		asks(true)
		other.Close()
		asks(false)
	})
}

// TestEnded: a command of a server that is ended meanwhile has no exit code: the client does it by itself, from the beginning if nothing was
// said.
func TestEnded(t *testing.T) {
	places(t, func(t *testing.T, dir string) {
		for _, says := range []string{"", "said"} {
			begun := make(chan bool)
			s := listen(t, dir, func(ctx context.Context, _ *Call, out, _ io.Writer) int {
				fmt.Fprint(out, says)
				close(begun)
				<-ctx.Done()
				return 130
			})
			over := make(chan bool)
			go func() { <-begun; s.Close(); close(over) }()
			var out, errs bytes.Buffer
			exit, ok := ask(context.Background(), dir, patient, anyone, Call{}, &out, &errs)
			if want := says != ""; ok != want || ok && exit != -1 || out.String() != says {
				t.Errorf("%q: %d, %v, %q", says, exit, ok, &out)
			}
			<-over
		}
	})
}

// A watcher that goes away in the middle of an answer is told from one that has not begun.
func TestGoesAway(t *testing.T) {
	places(t, func(t *testing.T, dir string) {
		for said, want := range map[string]bool{"": false, "something": true} {
			s := listen(t, dir, func(_ context.Context, _ *Call, out, _ io.Writer) int {
				if said != "" {
					fmt.Fprint(out, said)
				}
				out.(stream).a.c.Close()
				return 0
			})
			if exit, ok := ask(context.Background(), dir, patient, anyone, Call{}, io.Discard, io.Discard); ok != want || ok && exit != -1 {
				t.Errorf("after %q: %d, %v", said, exit, ok)
			}
			s.Close()
		}
	})
}

// Who does not know the secret of a port gets nothing done.
func TestToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s := listen(t, dir, func(context.Context, *Call, io.Writer, io.Writer) int {
		t.Error("it was done")
		return 0
	})
	defer s.Close()
	port := filepath.Join(dir, portName)
	data, _ := os.ReadFile(port)
	if err := os.WriteFile(port, append(data[:len(data)-2], 'x', '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := ask(context.Background(), dir, patient, anyone, Call{}, io.Discard, io.Discard); ok {
		t.Error("it was answered")
	}
}

func FuzzCall(f *testing.F) {
	f.Add([]byte("{\"args\":[\"ls\"]}\n"))
	f.Add([]byte("{\"args\":7}\n"))
	f.Add(bytes.Repeat([]byte("x"), maxCall+1))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readCall(bufio.NewReaderSize(bytes.NewReader(data), maxCall))
		if err == nil && len(c.Args) > maxCall {
			t.Error("larger than it may be")
		}
	})
}

// TestPieces: what is written in many pieces arrives whole and in order, on both streams, and in few frames.
func TestPieces(t *testing.T) {
	places(t, func(t *testing.T, dir string) {
		var want strings.Builder
		s := listen(t, dir, func(_ context.Context, _ *Call, out, errs io.Writer) int {
			for i := range 20_000 {
				w := out
				if i%1000 == 500 {
					w = errs
				}
				fmt.Fprintf(io.MultiWriter(w, &want), "piece %d\n", i)
			}
			return 0
		})
		defer s.Close()
		got := new(counted)
		if exit, ok := ask(context.Background(), dir, patient, anyone, Call{}, got, got); !ok || exit != 0 {
			t.Fatal(exit, ok)
		}
		if got.String() != want.String() {
			t.Errorf("%d bytes came, not %d, or in another order", got.Len(), want.Len())
		}
		if got.writes > 10_000 { // of 40,000: 61, and one more each 10 ms, each with an empty one for the other stream
			t.Errorf("in %d pieces", got.writes)
		}
	})
}

// counted counts what is written to it.
type counted struct {
	strings.Builder
	writes int
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes++
	return c.Builder.Write(p)
}
