package diag

import (
	"cmp"
	"fmt"
	"slices"
)

// MostMessages is how many messages there are of one job, or of one file of the project. The others are counted.
const MostMessages = 100

// Collector collects the messages of one job or file. What it keeps does not depend on how many there are, or how long they are.
type Collector struct {
	kinds map[kind]*some
	order []*some
	added int
}

// kind is what messages have in common that are counted together.
type kind struct {
	code     Code
	severity Severity
}

// some are the first messages of a kind.
type some struct {
	kind
	first []collected
	ids   map[string]bool
	left  int    // how many more there are
	file  string // of the first of these
}

type collected struct {
	*Message
	at int // its place among all
}

// Add adds a message, unless the same one is there.
func (c *Collector) Add(m *Message) {
	k := kind{m.Code, m.Severity}
	s := c.kinds[k]
	if s == nil && len(c.order) < MostMessages {
		if c.kinds == nil {
			c.kinds = map[kind]*some{}
		}
		s = &some{kind: k, ids: map[string]bool{}}
		c.kinds[k], c.order = s, append(c.order, s)
	}
	if s == nil { // a processor that makes codes up
		s = c.order[MostMessages-1]
		if s.leave(m); m.Severity == Error {
			s.severity = Error
		}
		return
	}
	m.clip()
	id := m.ID()
	switch {
	case s.ids[id]:
	case m.Count > 0: // of another collector
		s.leave(m)
	case len(s.first) < MostMessages:
		s.ids[id] = true
		s.first = append(s.first, collected{m, c.added})
	default:
		s.leave(m)
	}
	c.added++
}

// leave counts a message that is left out.
func (s *some) leave(m *Message) {
	if s.left == 0 {
		s.file = m.File
	}
	s.left += max(1, m.Count)
}

// List returns the messages, in the order in which they were added. Of more than MostMessages it has the first of each code, equally
// many as far as there are, and then for each code a message with the number of those that are left out.
func (c *Collector) List() List {
	each := MostMessages
	for ; each > 1; each-- {
		n := 0
		for _, s := range c.order {
			n += min(len(s.first), each)
		}
		if n <= MostMessages {
			break
		}
	}
	var all []collected
	var more List
	for _, s := range c.order {
		rest := *s
		for _, m := range s.first[min(each, len(s.first)):] {
			if rest.left == s.left {
				rest.file = m.File
			}
			rest.left += max(1, m.Count)
		}
		all = append(all, s.first[:min(each, len(s.first))]...)
		if rest.left > 0 {
			more = append(more, rest.rest())
		}
	}
	slices.SortFunc(all, func(a, b collected) int { return cmp.Compare(a.at, b.at) })
	l := make(List, 0, len(all)+len(more))
	for _, m := range all {
		l = append(l, m.Message)
	}
	return append(l, more...)
}

// rest is the message that stands for those that are left out.
func (s *some) rest() *Message {
	m := &Message{Severity: s.severity, Code: s.code, Pos: Pos{File: s.file}, Count: s.left}
	m.Text = fmt.Sprintf("%d more messages with this code are not listed", s.left)
	if s.left == 1 {
		m.Text = "1 more message with this code is not listed"
	}
	return m.WithHint("fix those that are; they often have the same cause")
}

// Limit returns a list with at most as many messages as a job may have.
func Limit(l List) List {
	if len(l) <= MostMessages {
		return l
	}
	var c Collector
	for _, m := range l {
		c.Add(m)
	}
	return c.List()
}

// maxText is the longest text of a message, in bytes: more than what is kept of a program's output.
const maxText = 66 << 10

// clip shortens what is too long.
func (m *Message) clip() {
	m.Text, m.Hint = clip(m.Text), clip(m.Hint)
	for _, l := range []*[]string{&m.Notes, &m.More} {
		if len(*l) > MostMessages {
			*l = append((*l)[:MostMessages:MostMessages], fmt.Sprintf("and %d more", len(*l)-MostMessages))
		}
		for i, s := range *l {
			(*l)[i] = clip(s)
		}
	}
}

// Total is how many messages of a severity there are, with those that others stand for.
func (l List) Total(of Severity) (n int) {
	for _, m := range l {
		if m.Severity == of {
			n += max(1, m.Count)
		}
	}
	return n
}
