// Package relay sends a command to the kiln that watches the project, which has the project in memory, and returns its
// output.
//
// The watcher listens on a socket in the project's state folder that only its user can open. If a socket's path would
// be too long, it listens on a port of this machine, and a file there contains the port and a secret. Both sides send
// JSON, an object a line:
//
//	watcher: Hello             which program it is; a client that is another program, or has other variables, disconnects
//	client:  Call              the command line, and properties of the terminal
//	watcher: frame, frame...   output; the last frame has the exit code
//	client:  {"cancel":true}   the user cancels; closing the connection means the same
//
// Rules:
//
//   - If anything fails before the first output, the client runs the command itself.
//   - A client that does not read blocks the watcher for patience at most.
//   - The state folder may be deleted at any time. The watcher checks regularly whether clients can find it, and
//     listens again if not.
package relay

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// Hello describes the watcher.
type Hello struct {
	Kiln      string            `json:"kiln"`                // identifies the exact program
	Variables map[string]string `json:"variables,omitempty"` // hashes of the project's relevant environment variables in its process
	Busy      bool              `json:"busy,omitempty"`      // a build is under way
	Stages    []string          `json:"stages,omitempty"`    // of its builds, sorted
}

// Call is a command.
type Call struct {
	Token  string            `json:"token,omitempty"` // the secret of a port
	Args   []string          `json:"args"`            // without the program name
	Dir    string            `json:"dir"`             // the working folder
	Env    map[string]string `json:"env,omitempty"`   // variables that affect the output
	Out    Screen            `json:"out"`
	Errors Screen            `json:"errors"`
}

// Screen describes where a stream is displayed.
type Screen struct {
	Terminal bool `json:"terminal,omitempty"`
	Columns  int  `json:"columns,omitempty"`
	Rows     int  `json:"rows,omitempty"`
}

// frame is an answer of the watcher.
type frame struct {
	Out    []byte `json:"out,omitempty"`
	Errors []byte `json:"errors,omitempty"`
	Exit   *int   `json:"exit,omitempty"`
}

const (
	socketName = "watcher.sock"
	portName   = "watcher.port"
	longest    = 100     // bytes of a socket's path: systems allow 104 to 108
	maxCall    = 1 << 20 // maximum size of its line in bytes
	maxHello   = 1 << 18
	greeting   = 2 * time.Second  // time for each side to identify itself
	patience   = 10 * time.Second // time for a client to read
)

// ErrTaken means that another kiln watches the project.
var ErrTaken = errors.New("another kiln watches the project")

// Server answers calls.
type Server struct {
	dir   string
	hello func() Hello
	run   func(ctx context.Context, c *Call, out, errs io.Writer) (exit int)
	greet time.Duration // greeting, unless changed by tests
	over  sync.WaitGroup
	ctx   context.Context // cancelled by Close
	stop  context.CancelFunc

	mu   sync.Mutex // guards all fields below
	l    net.Listener
	file string // the file by which clients find the server
	made os.FileInfo
}

// Listen starts a server in a state folder, which must exist. run is called for each call, on its own goroutine.
func Listen(dir string, hello func() Hello, run func(ctx context.Context, c *Call, out, errs io.Writer) (exit int)) (*Server, error) {
	return begin(dir, greeting, hello, run)
}

func begin(dir string, greet time.Duration, hello func() Hello, run func(ctx context.Context, c *Call, out, errs io.Writer) (exit int)) (*Server, error) {
	s := &Server{dir: dir, hello: hello, run: run, greet: greet}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.listen(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// listen starts accepting calls, and writes the file by which clients find the server.
func (s *Server) listen() error {
	if c, _, err := dial(s.dir, s.greet); err == nil {
		c.Close()
		return ErrTaken
	}
	socket, port, token := filepath.Join(s.dir, socketName), filepath.Join(s.dir, portName), ""
	os.Remove(socket) // left by a killed watcher
	os.Remove(port)
	l, err := listenSocket(socket)
	file := socket
	if err != nil {
		file = port
		if l, token, err = listenPort(port); err != nil {
			return err
		}
	}
	made, err := os.Lstat(file)
	if err != nil {
		l.Close()
		return err
	}
	s.l, s.file, s.made = l, file, made
	s.over.Go(func() { s.accept(l, token) })
	return nil
}

func listenSocket(file string) (net.Listener, error) {
	if len(file) > longest {
		return nil, errors.New("the path is too long")
	}
	l, err := net.Listen("unix", file)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it may belong to another watcher by then
	os.Chmod(file, 0o600)
	return l, nil
}

func listenPort(file string) (l net.Listener, token string, err error) {
	if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, "", err
	}
	token = rand.Text()
	if err := os.WriteFile(file, []byte(l.Addr().String()+" "+token+"\n"), 0o600); err != nil {
		l.Close()
		return nil, "", err
	}
	return l, token, nil
}

// Stay makes the server reachable again if its file was deleted, for example with the whole state folder. Running
// commands continue. If the folder does not exist, or another watcher has started, the next call tries again. It takes
// a few microseconds if nothing has happened.
func (s *Server) Stay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || s.there() {
		return
	}
	s.l.Close()
	s.listen()
}

// there reports whether clients can find this server.
func (s *Server) there() bool {
	now, err := os.Lstat(s.file)
	return err == nil && os.SameFile(now, s.made) && now.ModTime().Equal(s.made.ModTime())
}

// Close ends the server and cancels running commands.
func (s *Server) Close() {
	s.stop()
	s.mu.Lock()
	s.l.Close()
	if s.there() {
		os.Remove(s.file)
	}
	s.mu.Unlock()
	s.over.Wait()
}

func (s *Server) accept(l net.Listener, token string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.over.Go(func() {
			defer c.Close()
			s.serve(c, token)
		})
	}
}

func (s *Server) serve(c net.Conn, token string) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Now()) })()
	c.SetDeadline(time.Now().Add(s.greet))
	if json.NewEncoder(c).Encode(s.hello()) != nil {
		return
	}
	in := bufio.NewReaderSize(c, maxCall)
	call, err := readCall(in)
	if err != nil {
		return
	}
	if subtle.ConstantTimeCompare([]byte(call.Token), []byte(token)) != 1 {
		return
	}
	c.SetDeadline(time.Time{})
	var enough atomic.Bool
	s.over.Go(func() { // anything that arrives, including the end, means cancel
		in.ReadByte()
		enough.Store(s.ctx.Err() == nil)
		cancel()
	})
	w := &answer{c: c, cancel: cancel}
	exit := s.run(ctx, call, stream{w, false}, stream{w, true})
	if exit != 0 && s.ctx.Err() != nil && !enough.Load() {
		w.leave() // this server was ended, and the command with it; the client goes on by itself
	} else {
		w.end(exit)
	}
	cancel()
}

// readCall reads a line that fits into the buffer.
func readCall(in *bufio.Reader) (*Call, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	c := new(Call)
	return c, json.Unmarshal(line, c)
}

// answer sends frames. It combines small pieces, because kiln ls --json writes a line for each asset.
type answer struct {
	mu     sync.Mutex
	c      net.Conn
	cancel context.CancelFunc
	err    error
	held   []byte // not sent yet
	errors bool   // held belongs to standard error
	timer  *time.Timer
}

const (
	fullFrame = 64 << 10              // bytes of output
	lateFrame = 10 * time.Millisecond // how long output waits for more
)

func (a *answer) write(p []byte, errors bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors != a.errors {
		a.flush()
		a.errors = errors
	}
	a.held = append(a.held, p...)
	if a.timer == nil || len(a.held) >= fullFrame { // the first piece is sent at once, following ones together
		a.flush()
	}
	if a.timer == nil {
		a.timer = time.AfterFunc(lateFrame, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.timer = nil
			a.flush()
		})
	}
	return a.err
}

func (a *answer) end(exit int) {
	a.leave()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.send(frame{Exit: &exit})
}

// leave sends what is held, and no exit code.
func (a *answer) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flush()
	if a.timer != nil {
		a.timer.Stop()
	}
}

// flush sends what is held. As for send, a.mu is held.
func (a *answer) flush() {
	if len(a.held) == 0 {
		return
	}
	f := frame{Out: a.held}
	if a.errors {
		f = frame{Errors: a.held}
	}
	a.send(f)
	a.held = a.held[:0]
}

func (a *answer) send(f frame) {
	if a.err == nil {
		a.c.SetWriteDeadline(time.Now().Add(patience))
		if a.err = json.NewEncoder(a.c).Encode(f); a.err != nil {
			a.cancel()
		}
	}
}

type stream struct {
	a      *answer
	errors bool
}

func (s stream) Write(p []byte) (int, error) {
	if err := s.a.write(p, s.errors); err != nil {
		return 0, err
	}
	return len(p), nil
}

// dial connects to the watcher of a state folder.
func dial(dir string, greet time.Duration) (c net.Conn, token string, err error) {
	if c, err = net.DialTimeout("unix", filepath.Join(dir, socketName), greet); err == nil {
		return c, "", nil
	}
	data, err := disk.ReadFile(filepath.Join(dir, portName))
	if err != nil {
		return nil, "", err
	}
	address, token, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	if host, _, err := net.SplitHostPort(address); err != nil || host != "127.0.0.1" {
		return nil, "", errors.New("the port file is damaged")
	}
	c, err = net.DialTimeout("tcp", address, greet)
	return c, token, err
}

// Ask sends a call to the watcher of a state folder. ok is false if there is none, if accept refuses it, or if it
// disconnected without output: then nothing was done. The exit code is -1 if it disconnected later.
func Ask(ctx context.Context, dir string, accept func(Hello) bool, call Call, out, errs io.Writer) (exit int, ok bool) {
	return ask(ctx, dir, greeting, accept, call, out, errs)
}

func ask(ctx context.Context, dir string, greet time.Duration, accept func(Hello) bool, call Call, out, errs io.Writer) (exit int, ok bool) {
	c, token, err := dial(dir, greet)
	if err != nil {
		return 0, false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(greet))
	in := bufio.NewReaderSize(c, maxHello)
	var hello Hello
	if line, err := in.ReadSlice('\n'); err != nil || json.Unmarshal(line, &hello) != nil || !accept(hello) {
		return 0, false
	}
	call.Token = token
	if json.NewEncoder(c).Encode(call) != nil {
		return 0, false
	}
	c.SetDeadline(time.Time{})
	defer context.AfterFunc(ctx, func() { io.WriteString(c, "{\"cancel\":true}\n") })()
	dec := json.NewDecoder(in)
	for said := false; ; said = true {
		var f frame
		if err := dec.Decode(&f); err != nil {
			return -1, said || ctx.Err() != nil
		}
		if f.Exit != nil {
			return *f.Exit, true
		}
		if _, err := out.Write(f.Out); err != nil {
			return 0, true // the reader of the output closed it
		}
		errs.Write(f.Errors)
	}
}
