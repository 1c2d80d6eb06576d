package varint

import (
	"bytes"
	"math"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// TestRound: what is written comes back, and what is cut off anywhere is an error, never a panic.
func TestRound(t *testing.T) {
	hash := digest.Of([]byte("x"))
	var e Encoder
	e.Uint(math.MaxUint64)
	e.Uint(7)
	e.Int(math.MinInt64)
	e.Int(-1)
	e.Byte(200)
	e.Bool(true)
	e.Fixed32(1 << 31)
	e.Fixed64(1 << 63)
	e.Float(math.Copysign(0, -1))
	e.Hash(&hash)
	e.Str("ä")
	e.Bytes([]byte{1, 2})
	e.Uint(3)
	e.Raw([]byte{1, 2, 3})
	read := func(d *Decoder) bool {
		ok := d.Uint() == math.MaxUint64 && d.Uint32() == 7 && d.Int() == math.MinInt64 && d.Int() == -1 && d.Byte() == 200 && d.Bool() &&
			d.Fixed32() == 1<<31 && d.Fixed64() == 1<<63 && math.Signbit(d.Float()) && d.Hash() == hash && d.Str() == "ä" &&
			bytes.Equal(d.Bytes(), []byte{1, 2})
		n := d.Count(1)
		return bytes.Equal(d.Take(uint64(n)), []byte{1, 2, 3}) && ok && d.Err == nil && len(d.Buf) == 0
	}
	if !read(&Decoder{Buf: e.Buf}) {
		t.Error("it does not come back")
	}
	for n := range e.Buf {
		if d := (&Decoder{Buf: e.Buf[:n]}); read(d) || d.Err == nil {
			t.Errorf("the first %d bytes are read", n)
		}
	}
}

// TestOneWay: a value that is written in another way is refused.
func TestOneWay(t *testing.T) {
	for name, d := range map[string]func(*Decoder){
		"\x80\x00":             func(d *Decoder) { d.Uint() },
		"\x81\x80\x00":         func(d *Decoder) { d.Int() },
		"\x02":                 func(d *Decoder) { d.Bool() },
		"\x80\x80\x80\x80\x10": func(d *Decoder) { d.Uint32() },
		"\x05abcd":             func(d *Decoder) { d.Count(1) },
	} {
		if x := (&Decoder{Buf: []byte(name)}); true {
			if d(x); x.Err != ErrShort || x.Buf != nil {
				t.Errorf("%q is read", name)
			}
		}
	}
}
