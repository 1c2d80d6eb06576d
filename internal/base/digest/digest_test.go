package digest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// TestKnown: the values are those of the BLAKE3 specification's test vectors.
func TestKnown(t *testing.T) {
	for in, want := range map[string]string{
		"":     "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
		"\x00": "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
		"abc":  "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
	} {
		if got := Of([]byte(in)).String(); got != want {
			t.Errorf("Of(%q) is %s, not %s", in, got, want)
		}
	}
}

func TestStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "bytes")
		want := Of(b)
		h, n, err := Reader(iotest.HalfReader(bytes.NewReader(b)))
		if err != nil || h != want || n != int64(len(b)) {
			t.Fatalf("Reader: %s of %d bytes, %v", h.Short(), n, err)
		}
		s := New()
		s.Write([]byte("something before"))
		s.Reset()
		for rest := b; len(rest) > 0; {
			k := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			s.Write(rest[:k])
			rest = rest[k:]
			s.Sum() // does not disturb
		}
		if s.Sum() != want {
			t.Fatal("written in pieces it is another hash")
		}
	})
	broken := errors.New("broken")
	if _, n, err := Reader(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken))); err != broken || n != 3 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Hash
		copy(h[:], rapid.SliceOfN(rapid.Byte(), Size, Size).Draw(t, "hash"))
		if got, err := Parse(h.String()); err != nil || got != h {
			t.Fatalf("%v %v", got, err)
		}
		if !strings.HasPrefix(h.String(), h.Short()) || len(h.Short()) != 12 {
			t.Fatalf("short: %s", h.Short())
		}
	})
	good := Of(nil).String()
	for _, bad := range []string{"", good[1:], good + "0", good[:63] + "g", good[:62] + "\xc3\xa4", "0x" + good[2:]} {
		if h, err := Parse(bad); err == nil || !h.IsZero() {
			t.Errorf("Parse(%q) gives %s", bad, h)
		}
	}
	if !(Hash{}).IsZero() || Of(nil).IsZero() {
		t.Error("IsZero")
	}
}

// list is what a builder is told.
type list struct {
	kind  string
	parts []Part
	hash  []bool // the part is added as a hash
}

func lists() *rapid.Generator[list] {
	// Few letters, and the bytes of lengths among them, so that clashes would be found.
	text := rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00\x01\x02\x03")), 0, 4, -1)
	return rapid.Custom(func(t *rapid.T) list {
		l := list{kind: text.Draw(t, "kind")}
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			l.parts = append(l.parts, Part{text.Draw(t, "label"), text.Draw(t, "value")})
			l.hash = append(l.hash, rapid.Bool().Draw(t, "hash"))
		}
		return l
	})
}

func (l list) build() *Builder {
	b := Build(l.kind)
	for i, p := range l.parts {
		if l.hash[i] {
			b.Hash(p.Label, Of([]byte(p.Value)))
		} else {
			b.Str(p.Label, p.Value)
		}
	}
	return b
}

// TestInjective: other parts, other bytes; and the parts can be read back out of the bytes, which proves it. A text of
// 32 bytes and a hash with the same bytes are told apart by their kinds.
func TestInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := lists().Draw(t, "a"), lists().Draw(t, "b")
		same := a.kind == b.kind && slices.Equal(a.parts, b.parts) && slices.Equal(a.hash, b.hash)
		x, y := a.build(), b.build()
		if bytes.Equal(x.buf, y.buf) != same || (x.Sum() == y.Sum()) != same {
			t.Fatalf("%v and %v give %q and %q", a, b, x.buf, y.buf)
		}
		pre := x.Preimage()
		if len(pre) != len(a.parts) {
			t.Fatalf("%v is read back as %q", a, pre)
		}
		for i, p := range a.parts {
			if a.hash[i] {
				p.Value = Of([]byte(p.Value)).String()
			}
			if pre[i] != p {
				t.Fatalf("part %d is shown as %v, not %v", i, pre[i], p)
			}
		}
	})
}

// TestLongParts: lengths of more than a byte.
func TestLongParts(t *testing.T) {
	seen := map[Hash]string{}
	for _, n := range []int{0, 1, 127, 128, 129, 300, 16383, 16384} {
		for _, l := range []list{
			{"k", []Part{{"l", strings.Repeat("x", n)}}, []bool{false}}, {"k", []Part{{strings.Repeat("x", n), "v"}}, []bool{false}},
		} {
			name := fmt.Sprint(n, len(l.parts[0].Label))
			if other, ok := seen[l.build().Sum()]; ok {
				t.Errorf("%s and %s clash", name, other)
			}
			seen[l.build().Sum()] = name
		}
	}
}
