package command

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
)

// maxOutput is how much of a program's output is kept, in bytes: half from its beginning, where the
// first error is, and half from its end, where the summary is.
const maxOutput = 64 << 10

// text keeps the head and the tail of what is written to it.
type text struct {
	head, tail []byte
	next       int // position in tail of the next byte, once tail is full
	dropped    int64
}

func (t *text) write(p []byte) {
	n := min(len(p), maxOutput/2-len(t.head))
	t.head = append(t.head, p[:n]...)
	p = p[n:]
	if over := len(p) - maxOutput/2; over > 0 {
		t.dropped += int64(over)
		p = p[over:]
	}
	n = min(len(p), maxOutput/2-len(t.tail))
	t.tail = append(t.tail, p[:n]...)
	for p = p[n:]; len(p) > 0; p = p[n:] {
		n = copy(t.tail[t.next:], p)
		t.next = (t.next + n) % len(t.tail)
		t.dropped += int64(n)
	}
}

// String returns what was kept, safe for display: valid UTF-8 without control sequences.
func (t *text) String() string {
	head := string(t.head)
	tail := string(t.tail[t.next:]) + string(t.tail[:t.next])
	if t.dropped > 0 {
		return printable(head) + fmt.Sprintf("\n... %d bytes left out ...\n", t.dropped) + printable(tail)
	}
	return printable(head + tail)
}

// printable removes escape sequences and control characters, which a terminal would interpret.
func printable(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	var b strings.Builder
	for s != "" {
		if rest, ok := strings.CutPrefix(s, "\x1b["); ok { // CSI: parameters, then one byte from @ to ~
			i := strings.IndexFunc(rest, func(r rune) bool { return r < ' ' || r >= '@' })
			if i < 0 {
				break
			}
			if rest[i] >= '@' && rest[i] <= '~' {
				i++
			}
			s = rest[i:]
			continue
		}
		i := strings.IndexFunc(s[1:], func(r rune) bool { return r == '\x1b' }) + 1
		if i == 0 {
			i = len(s)
		}
		b.WriteString(strings.Map(func(r rune) rune {
			switch {
			case r == '\r': // progress lines: each replaces the last
				return '\n'
			case r == '\n' || r == '\t' || !unicode.IsControl(r):
				return r
			}
			return -1
		}, s[:i]))
		s = s[i:]
	}
	return strings.TrimSpace(b.String())
}

// capture holds a program's output: both streams in order of arrival, and standard error alone.
type capture struct {
	mu          sync.Mutex
	all, stderr text

	kept    bool   // keep all of standard output
	output  []byte // all of standard output
	dropped bool   // it was larger than maxStdout
}

// keep makes capture keep all of standard output, unless that is too much; whole returns it after the program has ended.
func (c *capture) keep() { c.kept = true }

func (c *capture) whole() (data []byte, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output, !c.dropped
}

func (c *capture) stdout() io.Writer { return stream{c, false} }

func (c *capture) errout() io.Writer { return stream{c, true} }

type stream struct {
	c      *capture
	stderr bool
}

func (s stream) Write(p []byte) (int, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.all.write(p)
	switch {
	case s.stderr:
		s.c.stderr.write(p)
	case s.c.kept && len(s.c.output)+len(p) > maxStdout:
		s.c.dropped, s.c.output = true, nil
	case s.c.kept && !s.c.dropped:
		s.c.output = append(s.c.output, p...)
	}
	return len(p), nil
}
