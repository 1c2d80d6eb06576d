package state

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// errShort says that a record ends before what it claims to hold, or claims too much.
var errShort = errors.New("record is cut short")

// encoder appends values to buf: unsigned integers as varints, signed ones as zigzag varints, strings and
// bytes with their length before them, hashes as they are.
type encoder struct{ buf []byte }

func (e *encoder) uint(v uint64)       { e.buf = binary.AppendUvarint(e.buf, v) }
func (e *encoder) int(v int64)         { e.buf = binary.AppendVarint(e.buf, v) }
func (e *encoder) byte(v byte)         { e.buf = append(e.buf, v) }
func (e *encoder) fixed64(v uint64)    { e.buf = binary.LittleEndian.AppendUint64(e.buf, v) }
func (e *encoder) float(v float64)     { e.fixed64(math.Float64bits(v)) }
func (e *encoder) hash(h *digest.Hash) { e.buf = append(e.buf, h[:]...) }
func (e *encoder) str(s string)        { e.uint(uint64(len(s))); e.buf = append(e.buf, s...) }
func (e *encoder) bytes(b []byte)      { e.uint(uint64(len(b))); e.buf = append(e.buf, b...) }
func (e *encoder) bool(v bool) {
	if v {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

// decoder reads what encoder wrote. After the first error it yields zeros, and err says so. Strings and bytes it
// gives share the buffer, which must not be changed.
type decoder struct {
	buf []byte
	err error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errShort
	}
	d.buf = nil
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.buf)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.buf)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.buf)) {
		d.fail()
		return nil
	}
	b := d.buf[:n:n]
	d.buf = d.buf[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) fixed64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) fixed32() uint32 {
	if b := d.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) float() float64 { return math.Float64frombits(d.fixed64()) }
func (d *decoder) bool() bool     { return d.byte() != 0 }

func (d *decoder) hash() (h digest.Hash) {
	copy(h[:], d.take(digest.Size))
	return h
}

func (d *decoder) bytes() []byte { return d.take(d.uint()) }

func (d *decoder) str() string {
	b := d.bytes()
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// count reads a number of things that take at least least bytes each, so that a damaged count
// cannot ask for more memory than the record could fill.
func (d *decoder) count(least int) int {
	n := d.uint()
	if n > uint64(len(d.buf)/least) {
		d.fail()
		return 0
	}
	return int(n)
}
