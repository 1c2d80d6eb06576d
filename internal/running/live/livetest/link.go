package livetest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Link is an address at which games find a watcher, which may be another one from one moment to the next. It breaks connections, at any byte
// of what the watcher sends, or has them stay open and silent.
type Link struct {
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	moved  *sync.Cond // when anything below has changed
	to     string     // host and port of the watcher; "": there is none
	lines  map[*line]bool
	left   int64 // bytes until it ends; below 0: it does not
	end    End
	sent   int64 // bytes from watchers to games
	closed bool
}

// End is what happens to all connections that there are.
type End int

const (
	Cut     End = iota // they break
	Silence            // they stay open, and nothing arrives any more
)

// line is a connection of a game.
type line struct {
	game, watcher net.Conn
	silent, over  bool
}

// NewLink listens until the test ends.
func NewLink(t testing.TB) *Link {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{listener: listener, lines: map[*line]bool{}, left: -1}
	l.moved = sync.NewCond(&l.mu)
	l.running.Go(l.accept)
	t.Cleanup(l.Close)
	return l
}

// Close refuses games from now on.
func (l *Link) Close() {
	l.listener.Close()
	l.mu.Lock()
	l.closed = true
	l.cut()
	l.mu.Unlock()
	l.running.Wait()
}

// URL is the address for games.
func (l *Link) URL() string { return "http://" + l.listener.Addr().String() }

// To has new connections reach a watcher, by host and port; "": none.
func (l *Link) To(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = address
}

// Cut breaks all connections.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut()
}

// After has all connections end when so many bytes more have come from the watcher, on all of them together.
func (l *Link) After(n int64, end End) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.end = n, end
	l.moved.Broadcast()
}

// Sent is how many bytes have come from watchers.
func (l *Link) Sent() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// Ended reports whether After has come to its end.
func (l *Link) Ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left < 0
}

// cut breaks all connections. The caller holds the lock.
func (l *Link) cut() {
	for c := range l.lines {
		c.over = true
		c.game.(*net.TCPConn).SetLinger(0) // as when a program is killed
		c.game.Close()
		c.watcher.Close()
	}
	clear(l.lines)
	l.moved.Broadcast()
}

func (l *Link) accept() {
	for {
		game, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		to := l.to
		l.mu.Unlock()
		watcher, err := net.DialTimeout("tcp", to, Patience)
		if to == "" || err != nil {
			game.(*net.TCPConn).SetLinger(0)
			game.Close()
			continue
		}
		c := &line{game: game, watcher: watcher}
		l.mu.Lock()
		if l.lines[c] = true; l.closed || l.to != to {
			l.cut()
		}
		l.mu.Unlock()
		l.running.Go(func() { l.pass(c, game, watcher, false) })
		l.running.Go(func() { l.pass(c, watcher, game, true) })
	}
}

// pass moves bytes until one side ends.
func (l *Link) pass(c *line, from, to net.Conn, counted bool) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		for rest := buffer[:n]; len(rest) > 0; {
			k := len(rest)
			if counted {
				if k = l.take(c, k); k == 0 {
					return
				}
			}
			to.SetWriteDeadline(time.Now().Add(Patience))
			if _, err := to.Write(rest[:k]); err != nil {
				break
			}
			rest = rest[k:]
		}
		if err != nil {
			l.mu.Lock()
			c.over = true
			c.game.Close()
			c.watcher.Close()
			delete(l.lines, c)
			l.moved.Broadcast()
			l.mu.Unlock()
			return
		}
	}
}

// take returns how many of n bytes may pass; 0: the connection is over.
func (l *Link) take(c *line, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c.silent && !c.over {
		l.moved.Wait()
	}
	if c.over {
		return 0
	}
	if l.left < 0 || int64(n) < l.left {
		if l.left >= 0 {
			l.left -= int64(n)
		}
		l.sent += int64(n)
		return n
	}
	n = int(l.left)
	l.left = -1
	l.sent += int64(n)
	if l.end == Cut {
		l.to = ""
		l.cut()
		return 0
	}
	for other := range l.lines {
		other.silent = true
	}
	if n > 0 {
		return n
	}
	for !c.over {
		l.moved.Wait()
	}
	return 0
}
