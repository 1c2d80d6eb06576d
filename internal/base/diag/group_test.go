package diag

import (
	"fmt"
	"strings"
	"testing"
)

func TestCondense(t *testing.T) {
	list := func(n int, code Code) (l List) {
		for i := range n {
			l = append(l, Warningf(code, Pos{File: fmt.Sprintf("f%d", i)}, "it is odd"))
		}
		return l
	}
	show := func(l List) string {
		var b strings.Builder
		for _, m := range l {
			b.WriteString(m.String())
		}
		return b.String()
	}
	few := list(4, ImageFixed)
	if got := Condense(few, nil, "all"); show(got) != show(few) {
		t.Errorf("four became\n%s", show(got))
	}
	mixed := append(list(1, EmptyFile), list(7, ImageFixed)...)
	want := "f0: warning[K0103]: it is odd\n" +
		"warning[K1230]: 7 times: it is odd; at f0, f1, f2 and 4 more\n  -v shows all; `kiln explain K1230` says what it means\n"
	if got := show(Condense(mixed, nil, "-v shows all")); got != want {
		t.Errorf("%s", got)
	}
	six := list(6, ImageFixed)
	six[5].Text = "it is even"
	want = "warning[K1230]: 6 times, first: it is odd; at f0, f1, f2 and 3 more\n  x; `kiln explain K1230` says what it means\n"
	if got := show(Condense(six, map[string]bool{six[0].ID(): true, six[1].ID(): true}, "x")); got != want {
		t.Errorf("%s", got)
	}
	if got := show(Condense(six[2:], map[string]bool{six[2].ID(): true, six[3].ID(): true}, "x")); got != show(six[4:]) {
		t.Errorf("four, two of which were shown, became\n%s", got)
	}
}

func TestWrap(t *testing.T) {
	m := Warningf(ImageFixed, Pos{File: "assets/a.png"}, "one two three four five six seven eight").
		WithHint("write it again with a program that knows").
		WithNote("averyveryveryveryverylongwordofmanyletters and more")
	var b strings.Builder
	if err := m.Write(&b, Style{Width: 40}); err != nil {
		t.Fatal(err)
	}
	want := "assets/a.png: warning[K1230]: one two\n  three four five six seven eight\n  write it again with a program that\n  knows\n" +
		"  averyveryveryveryverylongwordofmanyletters\n    and more\n"
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
	for width := range 60 {
		for _, text := range []string{"", " ", "a", "  a b  ", "a\n b c\n\nd", strings.Repeat("word ", 30)} {
			got := Style{Width: width}.wrap(text, 5, 2)
			if a, b := strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(text), " "); a != b {
				t.Errorf("width %d: %q became %q", width, text, got)
			}
		}
	}
}
