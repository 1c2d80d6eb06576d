package diag

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files")

// messages are one of each shape.
func messages() []*Message {
	text := []byte("<map>\r\n\t<tileset source=\"castel.tsx\"/>\r\n</map>")
	long := strings.Repeat("0123456789", 50)
	at := func(line, column int) Pos { return Pos{File: "levels/intro.tmx", Line: line, Column: column} }
	return []*Message{
		Errorf(SourceMissing, at(2, 19), "tileset %q does not exist", "castel.tsx").WithSource(text, 10).
			WithHint("did you mean %q?", "castle.tsx").WithNote("needed by parcel %q", "level1").WithNote("and by two others"),
		Warningf(RuleMatchesNothing, Pos{File: "kiln.toml", Line: 12}, "the rule matches nothing").WithHint("remove it"),
		{Severity: Note, Code: StateDamaged, Text: "no place, no hint"},
		Errorf(BadValue, at(1, 0), "a line without a column").WithSource(text, 3).WithHint("stands below"),
		Errorf(BadValue, at(1, 1), "no length, one mark").WithSource(text, 0),
		Errorf(BadValue, at(3, 99), "a column beyond the end of the line").WithSource(text, 2),
		Errorf(DataSyntax, at(1, 5), "start of a long line").WithSource([]byte(long), 4),
		Errorf(DataSyntax, at(1, 250), "middle of a long line").WithSource([]byte(long), 4),
		Errorf(DataSyntax, at(1, 499), "end of a long line, length beyond it").WithSource([]byte(long), 400),
		Errorf(DataSyntax, at(1, 4), "letters of two bytes").WithSource([]byte("äöü = 1"), 1),
		Errorf(DataSyntax, at(1, 3), "letters of two columns").WithSource([]byte("剣と盾 = 1"), 1),
		Errorf(DataSyntax, at(1, 3), "a control character").WithSource([]byte("a\x1b[31mb\a\x7f"), 1),
	}
}

// TestText compares what people see. "^" stands below the letter that it means.
func TestText(t *testing.T) {
	for name, st := range map[string]Style{"plain": {}, "colour": {Color: true}} {
		var b bytes.Buffer
		for _, m := range messages() {
			if err := m.Write(&b, st); err != nil {
				t.Fatal(err)
			}
			b.WriteByte('\n')
		}
		file := "testdata/" + name + ".txt"
		got := strings.ReplaceAll(b.String(), "\x1b", "␛")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != got {
			t.Errorf("%s: %v; look at the difference, then run with -update\n%s", file, err, got)
		}
	}
}

func TestWriteError(t *testing.T) {
	if err := messages()[0].Write(full{}, Style{}); !errors.Is(err, errFull) {
		t.Errorf("error: %v", err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWindow(t *testing.T) {
	long := []rune(strings.Repeat("0123456789", 50))
	for col := 1; col <= len(long)+20; col++ {
		m := Errorf(JobFailed, Pos{"f", 1, col}, "x").WithSource([]byte(string(long)), 1)
		line, at := m.Line, col-max(m.From, 1)
		if n := utf8.RuneCountInString(line); n != maxLine {
			t.Fatalf("column %d: %d characters", col, n)
		}
		if col <= len(long) && []rune(line)[at] != long[col-1] {
			t.Errorf("column %d: the mark is below %q", col, []rune(line)[at])
		}
	}
}

func TestLine(t *testing.T) {
	huge := strings.Repeat("x", 1<<17)
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"a\nb\nc", 1, "a"}, {"a\nb\nc", 2, "b"}, {"a\nb\nc", 3, "c"}, {"a\nb\nc", 4, ""}, {"a\nb\n", 2, "b"}, {"a\nb\n", 3, ""},
		{"a\r\nb\r\n", 1, "a"}, {"a\r\nb\r\n", 2, "b"}, {"\n\nx", 2, ""}, {"\n\nx", 3, "x"}, {"", 1, ""}, {"a", 0, ""}, {"a", -1, ""},
		{"a\n\xff\nb", 2, ""}, {"a\n\xff\nb", 3, "b"}, {"a\x00b", 1, ""}, {huge + "\nb", 2, "b"}, {huge + "\n" + huge, 2, huge}, {huge, 1, huge},
		{strings.Repeat("\n", 70000) + "deep\n", 70001, "deep"}, {strings.Repeat("ab\n", 50000) + "z", 50001, "z"}, {"a", 1 << 30, ""},
	} {
		if got := NewLines([]byte(c.text)).Line(c.n); got != c.want {
			t.Errorf("line %d of %.20q...: %.20q, not %.20q", c.n, c.text, got, c.want)
		}
	}
}

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		m    *Message
		want string
	}{
		{messages()[0], `{"severity":"error","code":"K0207","file":"levels/intro.tmx","line":2,"column":19,"length":10,` +
			`"text":"tileset \"castel.tsx\" does not exist","source":"\t\u003ctileset source=\"castel.tsx\"/\u003e","hint":"did you mean \"castle.tsx\"?",` +
			`"notes":["needed by parcel \"level1\"","and by two others"]}`},
		{messages()[2], `{"severity":"note","code":"K0211","text":"no place, no hint"}`},
	} {
		got, err := json.Marshal(c.m)
		if err != nil || string(got) != c.want {
			t.Errorf("%v\n%s\n%s", err, got, c.want)
		}
		var back Message
		if err := json.Unmarshal(got, &back); err != nil || fmt.Sprint(&back) != fmt.Sprint(c.m) {
			t.Errorf("read back: %v\n%v", err, &back)
		}
	}
}

func TestErrors(t *testing.T) {
	e, w := Errorf(BadValue, Pos{File: "a", Line: 1, Column: 2}, "bad"), Warningf(BadValue, Pos{}, "odd")
	for want, err := range map[string]error{
		"a:1:2: error[K0005]: bad": e, "warning[K0005]: odd": w, "a:1:2: error[K0005]: bad\nwarning[K0005]: odd": List{e, w},
	} {
		if err.Error() != want {
			t.Errorf("%q, not %q", err.Error(), want)
		}
	}
	if (List{w}).Err() != nil || (List{}).Err() != nil || (List{w, e}).Err() == nil {
		t.Error("Err")
	}
	for _, c := range []struct {
		err  error
		want []string
	}{
		{nil, nil}, {e, []string{"bad"}}, {fmt.Errorf("while: %w", e), []string{"bad"}}, {fmt.Errorf("while: %w", List{w, e}), []string{"odd", "bad"}},
		{errors.New("plain"), []string{"plain"}}, {errors.Join(e, w), []string{"bad", "odd"}}, {errors.Join(errors.New("x"), List{e, w}, e), []string{"x", "bad", "odd", "bad"}},
		{fmt.Errorf("%w, %w", e, errors.New("y")), []string{"bad", "y"}},
	} {
		var got []string
		for _, m := range Messages(c.err, Internal) {
			got = append(got, m.Text)
			if m.Text == "plain" && (m.Code != Internal || m.Severity != Error) {
				t.Errorf("an error without a message: %v", m)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("Messages(%v): %q, not %q", c.err, got, c.want)
		}
	}
	for want, p := range map[string]Pos{"": {}, "f": {File: "f", Column: 3}, "f:2": {File: "f", Line: 2}, "f:2:3": {File: "f", Line: 2, Column: 3}} {
		if p.String() != want {
			t.Errorf("%q, not %q", p.String(), want)
		}
	}
}

func TestNearest(t *testing.T) {
	c := []string{"texture", "atlas", "copy", "mips", "max_size", "srgb"}
	for word, want := range map[string]string{
		"textur": "texture", "texutre": "texture", "Texture": "texture", "TEXUTRE": "texture", "atals": "atlas", "copi": "copy", "mipps": "mips", "maxsize": "max_size",
		"texture": "", "x": "", "": "", "sound": "", "srbg": "srgb", "SRBG": "srgb", "sr": "", strings.Repeat("x", 300): "",
	} {
		if got := Nearest(word, c); got != want {
			t.Errorf("Nearest(%.20q) is %q, not %q", word, got, want)
		}
	}
	if got := Nearest("ab", []string{"ax", "bb"}); got != "ax" {
		t.Errorf("of two as near, the first: %q", got)
	}
	if got := DidYouMean("textur", c); got != `did you mean "texture"?` {
		t.Error(got)
	}
	for word, form := range map[string]string{"\u00e9.png": "NFD", "e\u0301.png": "NFC"} {
		if got := DidYouMean(word, []string{"e.png", "\u00e9.png", "e\u0301.png"}); !strings.Contains(got, "another Unicode form ("+form+")") {
			t.Error(got)
		}
	}
	if got := DidYouMean("nothing like it", c); got != "" {
		t.Error(got)
	}
}

func TestColumns(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "äöü": 3, "a\u0308": 1, "剣と盾": 6, "검": 2, "ｱｲ": 2, "Ａ": 2, "、": 2, "🎮": 2, "\u200b": 0, "Ж": 1,
	} {
		if got := columns([]rune(s)); got != want {
			t.Errorf("%q: %d columns, not %d", s, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 9949: "9.9 kB", 9999: "10 kB", 999_499: "999 kB", 999_500: "1.0 MB", 3_058_255: "3.1 MB", 1 << 40: "1.1 TB", 1<<63 - 1: "9.2 EB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}
