// Package relay hands a command to the kiln that watches a project, which has everything at hand, and brings back what it says.
//
// The watcher listens on a socket in the project's state folder that only its user can open; where a socket's path would be too long, on a
// port of this machine whose number, with a secret, is in a file there. Both sides speak JSON, an object a line:
//
//	watcher: Hello             who it is; a client that is another kiln, or sees another environment, goes away
//	client:  Call              the command line, and what it is shown on
//	watcher: frame, frame...   output as it comes; the last has the exit code
//	client:  {"cancel":true}   the user has had enough; so says the end of the connection
//
// Rules:
//
//   - Whatever goes wrong before the first output, the client does by itself what it was asked for.
//   - A client that does not read holds the watcher for patience at most.
//   - The state folder may be removed at any time. The watcher looks now and then whether it is still found, and listens anew if not.
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
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// Hello is what the watcher says of itself.
type Hello struct {
	Kiln      string            `json:"kiln"`                // which program it is, exactly
	Variables map[string]string `json:"variables,omitempty"` // hashes of the environment variables that matter in the project, as it sees them
	Busy      bool              `json:"busy,omitempty"`      // a build is under way
}

// Call is a command.
type Call struct {
	Token  string            `json:"token,omitempty"` // the secret of a port
	Args   []string          `json:"args"`            // without the program's name
	Dir    string            `json:"dir"`             // the working folder
	Env    map[string]string `json:"env,omitempty"`   // variables that say how to print
	Out    Screen            `json:"out"`
	Errors Screen            `json:"errors"`
}

// Screen is what a stream is shown on.
type Screen struct {
	Terminal bool `json:"terminal,omitempty"`
	Columns  int  `json:"columns,omitempty"`
	Rows     int  `json:"rows,omitempty"`
}

// frame is what the watcher answers.
type frame struct {
	Out    []byte `json:"out,omitempty"`
	Errors []byte `json:"errors,omitempty"`
	Exit   *int   `json:"exit,omitempty"`
}

const (
	socketName = "watcher.sock"
	portName   = "watcher.port"
	longest    = 100     // bytes of a socket's path: systems allow 104 to 108
	maxCall    = 1 << 20 // bytes of its line
	maxHello   = 1 << 18
	greeting   = 2 * time.Second  // for either side to say who it is
	patience   = 10 * time.Second // for a client to read
)

// ErrTaken says that another kiln watches the project.
var ErrTaken = errors.New("another kiln watches the project")

// Server answers calls.
type Server struct {
	dir   string
	hello func() Hello
	run   func(ctx context.Context, c *Call, out, errs io.Writer) (exit int)
	greet time.Duration // as greeting
	over  sync.WaitGroup
	ctx   context.Context // ends with Close
	stop  context.CancelFunc

	mu   sync.Mutex // all below
	l    net.Listener
	file string // by which clients find it
	made os.FileInfo
}

// Listen begins to answer in a state folder, which is there. run is called for each call, from a goroutine of its own.
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

// listen begins to accept calls, and leaves a file by which clients find the way.
func (s *Server) listen() error {
	if c, _, err := dial(s.dir, s.greet); err == nil {
		c.Close()
		return ErrTaken
	}
	socket, port, token := filepath.Join(s.dir, socketName), filepath.Join(s.dir, portName), ""
	os.Remove(socket) // of a watcher that was killed
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
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it may be another watcher's by then
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

// Stay has the server be found again if the file by which clients find it was removed, as with the whole state folder. Commands that run
// are not concerned. If the folder is not there, or another watcher has taken the place, the next call tries again. It takes a few
// microseconds if all is well.
func (s *Server) Stay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || s.there() {
		return
	}
	s.l.Close()
	s.listen()
}

// there tells whether clients find this server.
func (s *Server) there() bool {
	now, err := os.Lstat(s.file)
	return err == nil && os.SameFile(now, s.made) && now.ModTime().Equal(s.made.ModTime())
}

// Close ends it; commands that run are cancelled.
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
	s.over.Go(func() { // whatever comes now, be it the end, means to stop
		in.ReadByte()
		cancel()
	})
	w := &answer{c: c, cancel: cancel}
	exit := s.run(ctx, call, stream{w, false}, stream{w, true})
	w.end(exit)
	cancel()
}

// readCall reads a line, of no more than what fits into the buffer.
func readCall(in *bufio.Reader) (*Call, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	c := new(Call)
	return c, json.Unmarshal(line, c)
}

// answer sends frames. What is written in small pieces goes together: kiln ls --json writes a line for each asset.
type answer struct {
	mu     sync.Mutex
	c      net.Conn
	cancel context.CancelFunc
	err    error
	held   []byte // not sent yet
	errors bool   // held is of that stream
	timer  *time.Timer
}

const (
	fullFrame = 64 << 10              // bytes of output
	lateFrame = 10 * time.Millisecond // that something waits for more
)

func (a *answer) write(p []byte, errors bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors != a.errors {
		a.flush()
		a.errors = errors
	}
	a.held = append(a.held, p...)
	if a.timer == nil || len(a.held) >= fullFrame { // the first goes at once, and what follows hard on it together
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
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flush()
	a.send(frame{Exit: &exit})
	if a.timer != nil {
		a.timer.Stop()
	}
}

// flush sends what is held. a.mu is held, as by send.
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

// dial connects with the watcher of a state folder.
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

// Ask hands a call to the watcher of a state folder. ok is false if there is none, or it is not accepted, or it went away without a word:
// then nothing was done. The exit code is -1 if it went away later.
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
			return 0, true // who reads it has seen enough
		}
		errs.Write(f.Errors)
	}
}
