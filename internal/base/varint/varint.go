// Package varint writes values one after the other in Kiln's own file formats: unsigned integers as varints, signed
// ones as zigzag varints (both as in encoding/binary), floats as 8 bytes, little endian, strings and bytes after their
// length, hashes unchanged. Each value has only one valid encoding, so equal values have equal bytes.
package varint

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// ErrShort means that values end early, claim too much, or have an invalid encoding.
var ErrShort = errors.New("record is cut short")

// Encoder appends values to Buf.
type Encoder struct{ Buf []byte }

func (e *Encoder) Uint(v uint64)       { e.Buf = binary.AppendUvarint(e.Buf, v) }
func (e *Encoder) Int(v int64)         { e.Buf = binary.AppendVarint(e.Buf, v) }
func (e *Encoder) Byte(v byte)         { e.Buf = append(e.Buf, v) }
func (e *Encoder) Raw(b []byte)        { e.Buf = append(e.Buf, b...) }
func (e *Encoder) Fixed32(v uint32)    { e.Buf = binary.LittleEndian.AppendUint32(e.Buf, v) }
func (e *Encoder) Fixed64(v uint64)    { e.Buf = binary.LittleEndian.AppendUint64(e.Buf, v) }
func (e *Encoder) Float(v float64)     { e.Fixed64(math.Float64bits(v)) }
func (e *Encoder) Hash(h *digest.Hash) { e.Buf = append(e.Buf, h[:]...) }
func (e *Encoder) Str(s string)        { e.Uint(uint64(len(s))); e.Buf = append(e.Buf, s...) }
func (e *Encoder) Bytes(b []byte)      { e.Uint(uint64(len(b))); e.Buf = append(e.Buf, b...) }

func (e *Encoder) Bool(v bool) {
	if v {
		e.Byte(1)
	} else {
		e.Byte(0)
	}
}

// Decoder reads what Encoder wrote. After the first error it returns zeros, and Err returns the error. Strings and
// bytes that it returns share Buf, which must not be changed.
type Decoder struct {
	Buf []byte
	Err error
}

// Fail ends the reading: it returns zeros from then on.
func (d *Decoder) Fail() {
	if d.Err == nil {
		d.Err = ErrShort
	}
	d.Buf = nil
}

func (d *Decoder) Uint() uint64 {
	v, n := binary.Uvarint(d.Buf)
	if n <= 0 || n > 1 && d.Buf[n-1] == 0 {
		d.Fail()
		return 0
	}
	d.Buf = d.Buf[n:]
	return v
}

func (d *Decoder) Uint32() uint32 {
	v := d.Uint()
	if v > math.MaxUint32 {
		d.Fail()
		return 0
	}
	return uint32(v)
}

func (d *Decoder) Int() int64 {
	v := d.Uint()
	return int64(v>>1) ^ -int64(v&1)
}

// Take reads n bytes; nil if there are fewer.
func (d *Decoder) Take(n uint64) []byte {
	if n > uint64(len(d.Buf)) {
		d.Fail()
		return nil
	}
	b := d.Buf[:n:n]
	d.Buf = d.Buf[n:]
	return b
}

// Fill reads len(to) bytes.
func (d *Decoder) Fill(to []byte) { copy(to, d.Take(uint64(len(to)))) }

func (d *Decoder) Byte() byte {
	if b := d.Take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *Decoder) Bool() bool {
	b := d.Byte()
	if b > 1 {
		d.Fail()
	}
	return b == 1
}

func (d *Decoder) Fixed32() uint32 {
	if b := d.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *Decoder) Fixed64() uint64 {
	if b := d.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (d *Decoder) Float() float64 { return math.Float64frombits(d.Fixed64()) }

func (d *Decoder) Hash() (h digest.Hash) {
	d.Fill(h[:])
	return h
}

func (d *Decoder) Bytes() []byte { return d.Take(d.Uint()) }

func (d *Decoder) Str() string {
	b := d.Bytes()
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Count reads the number of elements that take at least least bytes each, so that a damaged count cannot request more
// memory than the bytes could fill.
func (d *Decoder) Count(least int) int {
	n := d.Uint()
	if n > uint64(len(d.Buf)/least) {
		d.Fail()
		return 0
	}
	return int(n)
}
