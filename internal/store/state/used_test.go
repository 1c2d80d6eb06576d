package state

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// at sets the log's clock to a day of its own.
func (t *Traces) at(day int) { t.now = func() time.Time { return time.Unix(0, 0).AddDate(0, 0, day) } }

// days tells when the traces of a key were last used, the one used last first.
func days(tr *Traces, k string) string {
	var all []string
	tr.Each(func(of engine.Key, x *engine.Trace, used time.Time) {
		if of == key(k) {
			all = append(all, fmt.Sprintf("%s:%d", x.Messages, used.Unix()/86400))
		}
	})
	return strings.Join(all, " ")
}

// A trace is used when it is made or found to hold, and until another one takes its place.
func TestUsed(t *testing.T) {
	path := logPath(t)
	tr := openWell(t, path)
	steps := []struct {
		day  int
		do   func()
		want string
	}{
		{1, func() { add(t, tr, "k", trace("a", "1")) }, "a:1"},
		{2, func() { add(t, tr, "k", trace("b", "2")) }, "b:2 a:2"},
		{5, func() { add(t, tr, "k", trace("c", "3")) }, "c:5 b:5 a:2"},
		{6, func() { add(t, tr, "other", trace("x", "1")) }, "c:5 b:5 a:2"},
		{9, func() { tr.Use(key("k"), tr.Traces(key("k"))[2]) }, "a:9 c:9 b:5"},
		{10, func() { tr.Use(key("k"), tr.Traces(key("k"))[0]) }, "a:10 c:9 b:5"}, // until now
		{11, func() { tr.Use(key("k"), &engine.Trace{ID: 1}) }, "a:10 c:9 b:5"},   // there is none
		{12, func() { add(t, tr, "k", trace("d", "1")) }, "d:12 c:9 b:5"},         // in place of a
		{13, func() { add(t, tr, "k", &engine.Trace{Outcome: engine.Failed}) }, ":13 d:13 c:9 b:5"},
	}
	for _, s := range steps {
		tr.at(s.day)
		s.do()
		if got := days(tr, "k"); got != s.want {
			t.Errorf("on day %d: %s, want %s", s.day, got, s.want)
		}
		ro, why, err := OpenTraces(path, true)
		if got := days(ro, "k"); got != s.want || why != "" || err != nil {
			t.Errorf("on day %d, on disk: %s, want %s; %s %v", s.day, got, s.want, why, err)
		}
	}
	want := days(tr, "k")
	if err := tr.Retain(func(engine.Key, *engine.Trace) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if got := days(openWell(t, path), "k"); got != want {
		t.Errorf("written anew: %s, want %s", got, want)
	}
}

// The time when a trace was used tells nothing apart.
func TestTimeIsNoPartOfTheID(t *testing.T) {
	tr := openWell(t, logPath(t))
	a, b := trace("a", "1"), trace("a", "1")
	tr.at(1)
	add(t, tr, "k", a)
	tr.at(2)
	add(t, tr, "k", b)
	if a.ID != b.ID || a.ID == 0 {
		t.Errorf("IDs %d and %d", a.ID, b.ID)
	}
}

func TestRetain(t *testing.T) {
	for _, c := range []struct {
		keep, k, l string
	}{
		{"a c x", "c a", "x"},
		{"b", "b", ""},
		{"", "", ""},
		{"a b c x", "c b a", "x"},
	} {
		path := logPath(t)
		tr := openWell(t, path)
		add(t, tr, "k", trace("a", "1"), trace("b", "2"), trace("c", "3"))
		add(t, tr, "l", trace("x", "1"))
		if err := tr.Retain(func(_ engine.Key, x *engine.Trace) bool {
			return slices.Contains(strings.Fields(c.keep), string(x.Messages))
		}); err != nil {
			t.Fatal(err)
		}
		closeIt(t, tr)
		again := openWell(t, path)
		for _, tr := range []*Traces{tr, again} {
			if names(tr, "k") != c.k || names(tr, "l") != c.l {
				t.Errorf("keep %q: %q and %q are left", c.keep, names(tr, "k"), names(tr, "l"))
			}
			if n := len(strings.Fields(c.k + " " + c.l)); tr.live == 0 && n > 0 || len(tr.Keys()) > n {
				t.Errorf("keep %q: %d bytes live, %d keys", c.keep, tr.live, len(tr.Keys()))
			}
		}
		if again.live+logHead != again.size || again.live != tr.live {
			t.Errorf("keep %q: %d bytes live, %d when read again, of %d", c.keep, tr.live, again.live, again.size)
		}
		add(t, again, "k", trace("d", "4"))
		if want := strings.TrimSpace("d " + c.k); names(again, "k") != want {
			t.Errorf("keep %q: then %q", c.keep, names(again, "k"))
		}
	}
}

// What only reads changes nothing on disk, and a log that cannot be written anew stays as it is.
func TestRetainThatCannotWrite(t *testing.T) {
	path := logPath(t)
	tr := openWell(t, path)
	add(t, tr, "k", trace("a", "1"), trace("b", "2"))
	before, _ := os.ReadFile(path)
	none := func(engine.Key, *engine.Trace) bool { return false }
	ro, _, err := OpenTraces(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := ro.Retain(none); err != nil || len(ro.Keys()) != 0 {
		t.Errorf("%v, %d keys", err, len(ro.Keys()))
	}
	if err := os.MkdirAll(filepath.Join(disk.Temp(path), "in the way"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := tr.Retain(none); err == nil {
		t.Error("no error")
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the log was changed")
	}
	if got := names(openWell(t, path), "k"); got != "b a" {
		t.Errorf("has %q", got)
	}
}
