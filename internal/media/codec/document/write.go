package document

import (
	"encoding/binary"
	"math"
	"strconv"
)

// AppendJSON writes canonical JSON: the same data gives the same bytes, however it was written. It follows RFC 8785 (no
// white space; minimal escapes in strings; floats by the rules of ECMAScript's Number::toString, the shortest digits that
// read back the same), with two differences. Keys are sorted by their UTF-8 bytes, not by UTF-16 units, because languages
// other than JavaScript sort them so by default. Integers keep all 64 bits. The output has no final line end.
func AppendJSON(b []byte, v *Value) []byte {
	switch x := v.V.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, x)
	case int64:
		return strconv.AppendInt(b, x, 10)
	case uint64:
		return strconv.AppendUint(b, x, 10)
	case float64:
		return appendFloat(b, x)
	case string:
		return appendString(b, x)
	case []Value:
		b = append(b, '[')
		for i := range x {
			if i > 0 {
				b = append(b, ',')
			}
			b = AppendJSON(b, &x[i])
		}
		return append(b, ']')
	case Object:
		b = append(b, '{')
		for i, m := range x.sorted() {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.Key), ':')
			b = AppendJSON(b, &m.Value)
		}
		return append(b, '}')
	}
	panic("document: a value of a type that Value does not name")
}

// appendFloat formats a float by ECMA-262, 6.1.6.1.20: plain digits from 1e-6 up to 1e21, otherwise an exponent without
// leading zeros.
func appendFloat(b []byte, f float64) []byte {
	abs := math.Abs(f)
	switch {
	case f == 0:
		return append(b, '0') // -0 too
	case abs >= 1e-6 && abs < 1e21:
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	b = strconv.AppendFloat(b, f, 'e', -1, 64)
	if n := len(b); b[n-2] == '0' && (b[n-3] == '-' || b[n-3] == '+') { // e-07
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}

func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\t':
			b = append(b, '\\', 't')
		case '\n':
			b = append(b, '\\', 'n')
		case '\f':
			b = append(b, '\\', 'f')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			if c < ' ' {
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			} else {
				b = append(b, c)
			}
		}
	}
	return append(b, '"')
}

// AppendMessagePack writes MessagePack in a canonical form: the shortest form of each integer, string, array and map; floats
// as float 64; keys sorted by their UTF-8 bytes.
//
// This code is shorter than the code to adapt a library would be.
func AppendMessagePack(b []byte, v *Value) []byte {
	switch x := v.V.(type) {
	case nil:
		return append(b, 0xc0)
	case bool:
		if x {
			return append(b, 0xc3)
		}
		return append(b, 0xc2)
	case int64:
		if x >= 0 {
			return packUint(b, uint64(x))
		}
		return packNegative(b, x)
	case uint64:
		return packUint(b, x)
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(x))
	case string:
		return packString(b, x)
	case []Value:
		b = packLength(b, len(x), 0x90, 0xdc)
		for i := range x {
			b = AppendMessagePack(b, &x[i])
		}
		return b
	case Object:
		b = packLength(b, len(x), 0x80, 0xde)
		for _, m := range x.sorted() {
			b = AppendMessagePack(packString(b, m.Key), &m.Value)
		}
		return b
	}
	panic("document: a value of a type that Value does not name")
}

func packUint(b []byte, u uint64) []byte {
	switch {
	case u < 0x80:
		return append(b, byte(u))
	case u <= math.MaxUint8:
		return append(b, 0xcc, byte(u))
	case u <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(u))
	case u <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(u))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), u)
}

func packNegative(b []byte, i int64) []byte {
	switch {
	case i >= -32:
		return append(b, byte(i))
	case i >= math.MinInt8:
		return append(b, 0xd0, byte(i))
	case i >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(i))
	case i >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(i))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(i))
}

func packString(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n <= math.MaxUint8:
		b = append(b, 0xd9, byte(n))
	case n <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

// packLength begins an array or a map: fix is for up to 15 elements, long for 16 bits, long+1 for 32 bits.
func packLength(b []byte, n int, fix, long byte) []byte {
	switch {
	case n < 16:
		return append(b, fix|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, long), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, long+1), uint32(n))
}
