package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out, color: "never"}
	tab := a.table()
	tab.header("name", ">size", "state")
	tab.row(left("a"), right("1"), styled(green, "fresh"))
	tab.row(left("日本.png"), right("1234"), styled(red, "failed"))
	tab.note("a line across")
	tab.row(left("é"), right("5"), left(""))
	if err := tab.write(); err != nil {
		t.Fatal(err)
	}
	want := "name      size  state\na            1  fresh\n日本.png  1234  failed\na line across\né            5\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
	out.Reset()
	a.color = "always"
	tab = a.table()
	tab.row(styled(green, "ok"), left("x"))
	tab.row(styled(red, "failed"), left("y"))
	if err := tab.write(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("\x1b[32mok\x1b[0m      x\n\x1b[31mfailed\x1b[0m  y\n", out.String()); d != "" {
		t.Error(d)
	}
}

// A name of a hundred letters does not push the other columns apart, and none has the screen.
func TestTableOfOddNames(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out, color: "never"}
	long := strings.Repeat("n", widestCell+1)
	tab := a.table()
	tab.row(left("a"), left("1"))
	tab.row(left(long), left("2"))
	tab.row(left("\x1b[31mred\n\u009b2J"), left("3"))
	if err := tab.write(); err != nil {
		t.Fatal(err)
	}
	want := "a             1\n" + long + "  2\n\ufffd[31mred\ufffd\ufffd2J  3\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

func TestNumberText(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1.5: "1.5", 105.944038: "105.944", 5.3498e-05: "0.000053", 1e-7: "1e-07", 4_000_001: "4000001", 1e15: "1e+15", -2.5e-5: "-0.000025",
	} {
		if got := numberText(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0 ms", 0.0123: "12 ms", 0.9994: "999 ms", 0.9996: "1.0 s", 59.94: "59.9 s", 59.96: "1 min 00 s", 125: "2 min 05 s", 3660: "1 h 01 min",
	} {
		if got := secondsText(s); got != want {
			t.Errorf("%v seconds: %q, want %q", s, got, want)
		}
	}
}

func TestCutAndWrap(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{{"short", 5, "short"}, {"longer", 5, "long…"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"x", 0, ""}, {"xy", 1, "…"}} {
		if got := cut(c.text, c.columns); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.columns, got, c.want)
		}
	}
	if d := cmp.Diff([]string{"one two", "three", "averylongword", "x"}, wrap("one two three  averylongword x", 8)); d != "" {
		t.Error(d)
	}
}
