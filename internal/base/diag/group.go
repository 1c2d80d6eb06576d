package diag

import (
	"fmt"
	"slices"
	"strings"
)

// many is the number of messages of one code from which on they are shown as one.
const many = 5

// mostPlaces is how many places such a message names.
const mostPlaces = 3

// Condense replaces five or more messages of one code and severity by one at the place of the first: with
// their number, the text of the first, and the first three places. Messages that were shown already, by their
// IDs, are counted and left out. all says how to see each.
func Condense(l List, shown map[string]bool, all string) List {
	groups := map[kind]List{}
	for _, m := range l {
		k := kind{m.Code, m.Severity}
		groups[k] = append(groups[k], m)
	}
	done := map[kind]bool{}
	var short List
	for _, m := range l {
		switch k := (kind{m.Code, m.Severity}); {
		case len(groups[k]) < many:
			if !shown[m.ID()] {
				short = append(short, m)
			}
		case !done[k]:
			done[k] = true
			short = append(short, groups[k].one(all))
		}
	}
	return short
}

// one returns one message for several of one code.
func (l List) one(all string) *Message {
	m := &Message{Severity: l[0].Severity, Code: l[0].Code}
	var places []string
	same := true
	for _, x := range l {
		if x.Count > 0 {
			continue // it is counted, and is not one itself
		}
		same = same && x.Text == l[0].Text
		if p := x.Pos.String(); p != "" && len(places) < mostPlaces {
			places = append(places, p)
		}
	}
	total := l.Total(m.Severity)
	m.Text = fmt.Sprintf("%d times, first: %s", total, l[0].Text)
	if same {
		m.Text = fmt.Sprintf("%d times: %s", total, l[0].Text)
	}
	if len(places) > 0 {
		m.Text += "; at " + strings.Join(places, ", ")
		if n := total - len(places); n > 0 {
			m.Text += fmt.Sprintf(" and %d more", n)
		}
	}
	if listed := len(slices.DeleteFunc(slices.Clone(l), func(x *Message) bool { return x.Count > 0 })); listed < len(l) {
		all = strings.Replace(all, "all of them", fmt.Sprintf("%d of them", listed), 1)
	}
	m.Hint = fmt.Sprintf("%s; `kiln explain %s` says what it means", all, m.Code)
	return m
}

// wrap breaks the lines of a text at spaces. The first begins at a column, further ones are indented.
func (st Style) wrap(text string, at, indent int) string {
	if st.Width < 20 {
		return text
	}
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
			at = 0
		}
		for at+columns([]rune(line)) > st.Width {
			cut := breakAt(line, st.Width-at)
			if cut < 0 {
				break
			}
			b.WriteString(strings.TrimRight(line[:cut], " ") + "\n" + strings.Repeat(" ", indent))
			line, at = strings.TrimLeft(line[cut:], " "), indent
		}
		b.WriteString(line)
		at += columns([]rune(line))
	}
	return b.String()
}

// breakAt is where to break a line so that the first part has at most width columns: at the last space there, or at the
// first if a word is longer; -1 if there is no space. Spaces at the beginning do not count.
func breakAt(line string, width int) int {
	best, n := -1, 0
	start := len(line) - len(strings.TrimLeft(line, " "))
	for i, r := range line {
		if r == ' ' && i > start {
			if n > width && best >= 0 {
				break
			}
			if best = i; n > width {
				break
			}
		}
		n += columns([]rune{r})
	}
	if best == len(strings.TrimRight(line, " ")) {
		return -1
	}
	return best
}
