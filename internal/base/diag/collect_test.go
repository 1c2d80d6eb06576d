package diag

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

var messagesFor = flag.Duration("messages", 0, "how long TestCollectRandom goes on")

// around is a simple form of Lines.around.
func around(text string, n, column int) (string, int) {
	lines := strings.Split(text, "\n")
	if n < 1 || n > len(lines) {
		return "", 1
	}
	r := []rune(strings.TrimRight(lines[n-1], "\r"))
	from := max(0, min(max(column, 1)-maxLine/2, len(r)-maxLine))
	if len(string(r)) <= maxLine {
		from = 0
	}
	part := string(r[from:min(from+maxLine, len(r))])
	if strings.Contains(part, "\x00") {
		part = ""
	}
	return part, from + 1
}

// TestCollectRandom collects messages about many places of texts with long and short lines, and compares with simple forms of what
// makes lines and lists of them. It does this for -messages of time.
func TestCollectRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(thorough.Seed(t), 1))
	rounds, messages := 0, 0
	for start := time.Now(); rounds < thorough.Of(300, 3000) || time.Since(start) < *messagesFor; rounds++ {
		text := randomText(r)
		lines, many := NewLines([]byte(text)), r.IntN(400)
		var c Collector
		total, seen := map[kind]int{}, map[string]bool{}
		var first []string
		for range many {
			m := &Message{Severity: []Severity{Error, Warning, Note}[r.IntN(3)], Code: Code(fmt.Sprint("K", r.IntN(1+many/3)))}
			m.Pos = Pos{fmt.Sprint("f", r.IntN(2)), r.IntN(6), r.IntN(1 + r.IntN(1+len(text)))}
			m.Text = fmt.Sprint("number ", messages)
			if r.IntN(100) == 0 {
				m.Text += strings.Repeat("x", r.IntN(2*maxText))
			}
			want, from := around(text, m.Pos.Line, m.Column)
			if m.WithLine(lines, 1); m.Line != want || max(m.From, 1) != from {
				t.Fatalf("column %d of line %d of %q: %q from %d, not %q from %d", m.Column, m.Pos.Line, text, m.Line, m.From, want, from)
			}
			id := m.ID()
			c.Add(m)
			if messages++; !seen[id] {
				seen[id] = true
				total[kind{m.Code, m.Severity}]++
				first = append(first, m.ID())
			}
		}
		checkCollected(t, c.List(), first, total)
	}
	t.Logf("%d rounds with %d messages", rounds, messages)
}

// checkCollected checks a list of messages against their IDs in order, and how many there are of each kind.
func checkCollected(t *testing.T, l List, ids []string, total map[kind]int) {
	t.Helper()
	got, listed := map[kind]int{}, 0
	for _, m := range l {
		got[kind{m.Code, m.Severity}] += max(1, m.Count)
		if len(m.Text) > maxText+10 || utf8.RuneCountInString(m.Line) > maxLine {
			t.Fatalf("a message with %d bytes of text, and %d of a line", len(m.Text), len(m.Line))
		}
		if m.Count > 0 {
			continue
		}
		if listed++; len(m.Text) < maxText { // else it was cut
			for len(ids) > 0 && ids[0] != m.ID() {
				ids = ids[1:]
			}
			if len(ids) == 0 {
				t.Fatal("a message that is not one of those added, or not in their order")
			}
		}
	}
	if listed > MostMessages || len(l) > 2*MostMessages || len(ids) > 0 && len(l) == 0 {
		t.Fatalf("%d messages of %d in all", listed, len(l))
	}
	if len(total) <= MostMessages {
		for k, n := range total {
			if got[k] != n {
				t.Fatalf("%s[%s]: %d messages, not %d", k.severity, k.code, got[k], n)
			}
		}
	}
	sum, want := 0, 0
	for _, n := range got {
		sum += n
	}
	for _, n := range total {
		want += n
	}
	if sum != want {
		t.Fatalf("%d messages in all, not %d", sum, want)
	}
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(5) {
		for range r.IntN(1 + r.IntN(1000)) {
			b.WriteRune([]rune("aé\t中🎮\r\x00"[:])[min(r.IntN(40), 6)])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestCollectMany checks that many messages about one long line cost little, and that what is rare is among those that are kept.
func TestCollectMany(t *testing.T) {
	line := bytes.Repeat([]byte("0123456789"), 100000)
	lines := NewLines(line)
	var c Collector
	for i := range 100000 {
		c.Add(Errorf(JobFailed, Pos{"f", 1, 10*i + 1}, "number %d", i).WithLine(lines, 1))
	}
	c.Add(Warningf(EmptyFile, Pos{"g", 0, 0}, "rare"))
	l := c.List()
	if n := len(l); n != MostMessages+1 || l[MostMessages-1].Text != "rare" {
		t.Fatalf("%d messages, %v", n, l[len(l)-2])
	}

	if last := l[len(l)-1]; last.Count != 99901 || !strings.HasSuffix(last.Error(), "99901 more messages with this code are not listed") {
		t.Errorf("%v, count %d", last.Error(), last.Count)
	}
	if n := len(Encode(l)); n > 64<<10 {
		t.Errorf("they take %d bytes", n)
	}
	short := Condense(l, nil, "-v lists all of them")
	if len(short) != 2 || !strings.HasPrefix(short[0].Text, "100000 times, first: number 0; at f:1:1, f:1:11, f:1:21 and 99997") {
		t.Errorf("condensed to %v", short)
	}
	if n := l.Total(Error); n != 100000 {
		t.Errorf("%d errors", n)
	}
	again := Limit(append(l, l...))
	if n := again.Total(Error); n != 2*99901+99 || len(again) > MostMessages+1 {
		t.Errorf("collected again: %d errors in %d messages", n, len(again))
	}
}

// TestCollectKinds: a processor may make up codes.
func TestCollectKinds(t *testing.T) {
	var c Collector
	for i := range 1000 {
		c.Add(Warningf(Code(fmt.Sprint("own", i)), Pos{}, "x"))
		c.Add(Warningf("own0", Pos{}, "x")) // the same again
	}
	if l := c.List(); len(l) != MostMessages+1 || l.Total(Warning) != 1000 {
		t.Errorf("%d messages for %d", len(l), l.Total(Warning))
	}
}
