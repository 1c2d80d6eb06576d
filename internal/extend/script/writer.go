package script

import (
	"encoding/binary"
	"fmt"
	"math"

	"go.starlark.net/starlark"
)

// writerValue is bytes that a script writes.
type writerValue struct {
	data   []byte
	order  byteOrder
	frozen bool
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func (w *writerValue) String() string      { return fmt.Sprintf("writer(%d bytes)", len(w.data)) }
func (*writerValue) Type() string          { return "writer" }
func (w *writerValue) Freeze()             { w.frozen = true }
func (*writerValue) Truth() starlark.Bool  { return true }
func (*writerValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: writer") }
func (w *writerValue) Len() int            { return len(w.data) }
func (*writerValue) AttrNames() []string {
	return []string{"align", "bytes", "data", "f32", "f64", "i16", "i32", "i64", "i8", "patch_u16", "patch_u32", "patch_u64", "patch_u8", "pos", "str", "u16", "u32", "u64", "u8"}
}

// writer(endian="little")
func newWriter(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	endian := "little"
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "endian?", &endian); err != nil {
		return nil, err
	}
	switch endian {
	case "little":
		return &writerValue{order: binary.LittleEndian}, nil
	case "big":
		return &writerValue{order: binary.BigEndian}, nil
	}
	return nil, fmt.Errorf("%s: endian is \"little\" or \"big\", not %q", b.Name(), endian)
}

// integers are the methods for whole numbers, with their size in bits; signed ones are negative.
var integers = map[string]int{"u8": 8, "u16": 16, "u32": 32, "u64": 64, "i8": -8, "i16": -16, "i32": -32, "i64": -64}

func (w *writerValue) Attr(name string) (starlark.Value, error) {
	var fn func(*callArgs) (starlark.Value, error)
	bits, whole := integers[name]
	patched := 0
	if len(name) > 6 && name[:6] == "patch_" {
		patched = max(0, integers[name[6:]])
	}
	switch {
	case whole:
		fn = func(c *callArgs) (starlark.Value, error) { return w.whole(c, bits) }
	case patched > 0:
		fn = func(c *callArgs) (starlark.Value, error) { return w.patch(c, patched) }
	case name == "f32" || name == "f64":
		fn = w.float
	case name == "bytes" || name == "str":
		fn = w.text
	case name == "align":
		fn = w.align
	case name == "pos":
		return starlark.MakeInt(len(w.data)), nil
	case name == "data":
		fn = func(c *callArgs) (starlark.Value, error) {
			if err := c.unpack(); err != nil {
				return nil, err
			}
			return starlark.Bytes(w.data), take(c.thread, int64(len(w.data)))
		}
	default:
		return nil, nil
	}
	return starlark.NewBuiltin("writer."+name, func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if w.frozen && name != "data" {
			return nil, fmt.Errorf("%s: the writer is shared by all jobs and cannot be written to", b.Name())
		}
		return fn(&callArgs{t, b.Name(), args, kwargs})
	}), nil
}

// room asks the guard before n bytes are appended.
func (w *writerValue) room(c *callArgs, n int) error {
	if int64(len(w.data))+int64(n) > maxValue {
		return take(c.thread, -1)
	}
	return take(c.thread, int64(n))
}

// number is a whole number as the bits that hold it.
func number(c *callArgs, v starlark.Value, bits int) (uint64, error) {
	n, ok := v.(starlark.Int)
	if !ok {
		return 0, fmt.Errorf("%s: got %s, want a whole number", c.name, v.Type())
	}
	if bits > 0 {
		if u, ok := n.Uint64(); ok && (bits == 64 || u < 1<<bits) {
			return u, nil
		}
		return 0, fmt.Errorf("%s: %s is not from 0 to %d", c.name, shortInt(n), uint64(math.MaxUint64)>>(64-bits))
	}
	top := int64(1)<<(-bits-1) - 1
	if i, ok := n.Int64(); ok && i >= -top-1 && i <= top {
		return uint64(i), nil
	}
	return 0, fmt.Errorf("%s: %s is not from %d to %d", c.name, shortInt(n), -top-1, top)
}

// shortInt is a number for a message.
func shortInt(n starlark.Int) string {
	if _, ok := n.Int64(); !ok && n.BigInt().BitLen() > 128 {
		return "a number of more than 128 bits"
	}
	return n.String()
}

func (w *writerValue) append(n uint64, bits int) {
	switch bits {
	case 8:
		w.data = append(w.data, byte(n))
	case 16:
		w.data = w.order.AppendUint16(w.data, uint16(n))
	case 32:
		w.data = w.order.AppendUint32(w.data, uint32(n))
	default:
		w.data = w.order.AppendUint64(w.data, n)
	}
}

// whole appends numbers: several arguments, or lists of them.
func (w *writerValue) whole(c *callArgs, bits int) (starlark.Value, error) {
	if len(c.kwargs) > 0 || len(c.args) == 0 {
		return nil, fmt.Errorf("%s: want numbers, or lists of numbers", c.name)
	}
	size := max(bits, -bits)
	one := func(v starlark.Value) error {
		n, err := number(c, v, bits)
		if err == nil {
			w.append(n, size)
		}
		return err
	}
	return starlark.None, w.each(c, size/8, one)
}

// each calls one for each argument, and for each element of a list.
func (w *writerValue) each(c *callArgs, size int, one func(starlark.Value) error) error {
	for _, a := range c.args {
		seq, ok := a.(starlark.Iterable)
		if !ok {
			if err := w.room(c, size); err != nil {
				return err
			}
			if err := one(a); err != nil {
				return err
			}
			continue
		}
		if err := w.room(c, min(maxValue, max(0, starlark.Len(seq)))*size); err != nil { // elems() have no length, but are not many
			return err
		}
		for v := range starlark.Elements(seq) {
			if err := one(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writerValue) float(c *callArgs) (starlark.Value, error) {
	if len(c.kwargs) > 0 || len(c.args) == 0 {
		return nil, fmt.Errorf("%s: want numbers, or lists of numbers", c.name)
	}
	wide := c.name == "writer.f64"
	size := 4
	if wide {
		size = 8
	}
	return starlark.None, w.each(c, size, func(v starlark.Value) error {
		f, ok := starlark.AsFloat(v)
		switch {
		case !ok:
			return fmt.Errorf("%s: got %s, want a number", c.name, v.Type())
		case wide:
			w.append(math.Float64bits(f), 64)
		default:
			w.append(uint64(math.Float32bits(float32(f))), 32)
		}
		return nil
	})
}

// text runs bytes(data) and str(text, size=None, zero=False): text is written as UTF-8, filled with zeros up to size
// bytes, with a zero at the end if zero is true.
func (w *writerValue) text(c *callArgs) (starlark.Value, error) {
	var v starlark.Value
	size, zero := -1, false
	params := []any{"data", &v}
	if c.name == "writer.str" {
		params = append(params, "size?", &size, "zero?", &zero)
	}
	if err := c.unpack(params...); err != nil {
		return nil, err
	}
	data, err := bytesOf(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	n := len(data)
	if zero {
		n++
	}
	if size >= 0 && n > size {
		return nil, fmt.Errorf("%s: %d bytes do not fit into %d", c.name, n, size)
	}
	if err := w.room(c, max(n, size)); err != nil {
		return nil, err
	}
	w.data = append(w.data, data...)
	w.data = append(w.data, make([]byte, max(n, size)-len(data))...)
	return starlark.None, nil
}

func (w *writerValue) align(c *callArgs) (starlark.Value, error) {
	var n, fill int
	if err := c.unpack("n", &n, "fill?", &fill); err != nil {
		return nil, err
	}
	if n < 1 || n > 1<<20 || fill < 0 || fill > 255 {
		return nil, fmt.Errorf("%s: n is 1 to %d, fill 0 to 255", c.name, 1<<20)
	}
	more := (n - len(w.data)%n) % n
	if err := w.room(c, more); err != nil {
		return nil, err
	}
	for range more {
		w.data = append(w.data, byte(fill))
	}
	return starlark.None, nil
}

// patch_u32(pos, value) and others overwrite existing bytes.
func (w *writerValue) patch(c *callArgs, bits int) (starlark.Value, error) {
	var pos int
	var v starlark.Value
	if err := c.unpack("pos", &pos, "value", &v); err != nil {
		return nil, err
	}
	n, err := number(c, v, bits)
	if err != nil {
		return nil, err
	}
	if pos < 0 || pos > len(w.data)-bits/8 {
		return nil, fmt.Errorf("%s: %d bytes at %d are not within the %d that are written", c.name, bits/8, pos, len(w.data))
	}
	at := w.data[pos:]
	switch bits {
	case 8:
		at[0] = byte(n)
	case 16:
		w.order.PutUint16(at, uint16(n))
	case 32:
		w.order.PutUint32(at, uint32(n))
	default:
		w.order.PutUint64(at, n)
	}
	return starlark.None, nil
}
