package loadorder

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

func parse(t *testing.T, text string) *List {
	t.Helper()
	l, bad := Parse("game.order", []byte(text))
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return l
}

func sorted(l *List, names ...string) string {
	var list []string
	for _, i := range l.Sort(names) {
		list = append(list, names[i])
	}
	return strings.Join(list, " ")
}

func TestSort(t *testing.T) {
	all := []string{"a/1", "a/2", "a/2#page1", "b", "c[1]", "sprites/ui/", "sprites/ui/#page1", "sprites/uix", "z"}
	for text, want := range map[string]string{
		"":                             "",
		"z\nb\n":                       "z b",
		"b\r\n# z\n\na/1\r\n":          "b a/1",
		"a/*":                          "a/1 a/2 a/2#page1",
		"a/2\na/*\nb":                  "a/2 a/1 a/2#page1 b",
		"a/*\na/2\nb":                  "a/1 a/2 a/2#page1 b", // the first line that means it counts
		"sprites/ui/":                  "sprites/ui/ sprites/ui/#page1",
		"sprites/**":                   "sprites/ui/ sprites/ui/#page1 sprites/uix",
		"c\\[1\\]\nb":                  "c[1] b",
		"c[1]":                         "", // a glob: c1
		"{z,b}\na/?":                   "b z a/1 a/2",
		"**\n":                         "a/1 a/2 a/2#page1 b c[1] sprites/ui/ sprites/ui/#page1 sprites/uix z",
		"nothing\nz\nz\nnothing else/": "z",
	} {
		if got := sorted(parse(t, text), all...); got != want {
			t.Errorf("%q: %s, not %s", text, got, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb[\n":                             "game.order:2:1: error[K1607]: \"b[\" is not a glob",
		"{a\n":                                "game.order:1:1: error[K1607]: \"{a\" is not a glob",
		"a\\\n":                               "game.order:1:1: error[K1607]: \"a\\\\\" is not a glob",
		"x\n" + strings.Repeat("a", 9000):     "game.order:2:1: error[K1607]: the line has more than 8192 bytes",
		strings.Repeat("a*\n", maxGlobs+1):    "game.order:1001:1: error[K1607]: the order has more than 1000 folders and globs",
		strings.Repeat("a\n", maxLines) + "b": "game.order:1048577:1: error[K1607]: the order has more than 1048576 lines",
	} {
		l, bad := Parse("game.order", []byte(text))
		if len(bad) != 1 || !strings.HasPrefix(bad[0].String(), want) || l == nil {
			t.Errorf("%.20q: %v", text, bad)
		}
	}
	l, bad := Parse("game.order", []byte(strings.Repeat("[\n", 500)+"b\n"))
	if len(bad) != diag.MostMessages+1 || sorted(l, "a", "b") != "b" {
		t.Errorf("%d messages", len(bad))
	}
}

func TestMerge(t *testing.T) {
	for _, c := range []struct{ text, loaded, want string }{
		{"", "b a c", "b a c"},
		{"a b c d", "a x y c d e", "a b x y c d e"},          // what is new goes before what was loaded next
		{"boot one", "boot two three", "boot one two three"}, // or to the end
		{"a b", "b x a y b", "a b x y"},                      // what comes twice counts where it came first
		{"a sprites/** z", "sprites/1 q z", "a sprites/** q z"},
		{"a sprites/** z", "sprites/1 q sprites/2", "a sprites/** q z"},
		{"portrait page paladin", "page knight portrait", "portrait page knight paladin"}, // it may need the page
		{"# first a # then b", "c b", "# first a c # then b"},
		{"a", "#hash st*r pl[ain] \\", "a \\#hash st\\*r pl\\[ain\\] \\\\"},
		{"a", "", "a"},
	} {
		lines := func(s string) string {
			s = strings.ReplaceAll(s, "# ", "#_")
			s = strings.ReplaceAll(s, " ", "\n")
			if s == "" {
				return ""
			}
			return strings.ReplaceAll(s, "#_", "# ") + "\n"
		}
		l := parse(t, lines(c.text))
		loaded := strings.Fields(c.loaded)
		l.Merge(loaded)
		if got := string(l.Format()); got != lines(c.want) {
			t.Errorf("%q and %q: %q", c.text, c.loaded, got)
		}
		again := string(l.Format())
		l.Merge(loaded)
		if got := string(l.Format()); got != again {
			t.Errorf("%q and %q, and again: %q", c.text, c.loaded, got)
		}
	}
}

// TestMerged: what games loaded is all there, and what the list had is where it was.
func TestMerged(t *testing.T) {
	one, two, three := strings.Fields("a b c d e f"), strings.Fields("a x b y f z"), strings.Fields("q a z y x")
	l := parse(t, "")
	for _, r := range [][]string{one, two, three} {
		l.Merge(r)
	}
	if got, want := strings.Fields(string(l.Format())), strings.Fields("q a x b c d e y f z"); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestGone(t *testing.T) {
	l := parse(t, "# top\na\n# of b\nb\nc/*\n\nd/\na\n# end\n")
	gone := l.Gone(func(tell func(string)) {
		for _, name := range []string{"a", "c/1"} {
			tell(name)
		}
	}, nil)
	if want := []Line{{"b", 4}, {"d/", 7}}; !slices.Equal(gone, want) {
		t.Errorf("%v", gone)
	}
	l.Drop(gone)
	if got, want := string(l.Format()), "# top\na\n# of b\nc/*\n\na\n# end\n"; got != want {
		t.Errorf("%q", got)
	}
}

// TestGoneOfLost: what a lost asset may make is not gone.
func TestGoneOfLost(t *testing.T) {
	l := parse(t, "a\na#more\nb#more\n[ab]#x\n[cd]#x\nf/#1\nf/a#1\nq\\[1\\]#x\nq\\[2\\]#x\n*.{x,y#}\n")
	var got []string
	for _, line := range l.Gone(func(func(string)) {}, map[string]bool{"a": true, "f/": true, "q[1]": true}) {
		got = append(got, line.Text)
	}
	if want := strings.Fields(`b#more [cd]#x f/a#1 q\[2\]#x *.{x,y#}`); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestHash(t *testing.T) {
	a, b, c := parse(t, "a\nb\n"), parse(t, "# c\na\n\nb"), parse(t, "b\na\n")
	if a.Hash() != b.Hash() || a.Hash() == c.Hash() {
		t.Error("lines and nothing else are hashed")
	}
}

// FuzzParse: whatever stands in a file, what it means is the same when it is written again and after a merge of what it means already.
func FuzzParse(f *testing.F) {
	f.Add([]byte("# comment\na/b\nsprites/ui/\nc\\[1\\]\n{a,b}*\n"), "a/b c[1]")
	f.Add([]byte("\xff\n[\n\\"), "#a a* /")
	f.Fuzz(func(t *testing.T, text []byte, names string) {
		l, _ := Parse("f", text)
		loaded := strings.Split(names, " ")
		before := l.Sort(loaded)
		again, bad := Parse("f", l.Format())
		if len(bad) > 0 || again.Hash() != l.Hash() || !slices.Equal(again.Sort(loaded), before) {
			t.Fatalf("%q becomes %q: %v", text, l.Format(), bad)
		}
		l.Merge(loaded)
		for _, i := range before {
			if l.at(loaded[i]) < 0 {
				t.Errorf("%q is lost", loaded[i])
			}
		}
		merged := l.Format()
		l, bad = Parse("f", merged)
		if l.Merge(loaded); len(bad) > 0 || len(l.globs) < maxGlobs && !bytes.Equal(l.Format(), merged) {
			t.Errorf("%q: merged once more it is %q: %v", merged, l.Format(), bad)
		}
	})
}
