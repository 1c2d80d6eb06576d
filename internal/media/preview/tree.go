package preview

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// Limits for a tree of data on a page.
const (
	MaxNodes = 4000 // about 200 KB of HTML
	maxText  = 400  // bytes of one value
	maxDepth = 200
)

// Node is a value in a tree of data.
type Node struct {
	Key   string
	Type  string // "object", "array", "string", "number", "bool", "null", "bytes"
	Text  string // for a value without children
	Count int    // number of children, including those left out
	Inner []Node
}

// Tree returns a value as a tree. more reports whether values were left out: the tree has at most MaxNodes.
func Tree(v document.Value) (root Node, more bool) {
	left := MaxNodes
	root = node("", v.V, &left)
	return root, left <= 0
}

func node(key string, v any, left *int) Node {
	*left--
	n := Node{Key: key}
	switch v := v.(type) {
	case nil:
		n.Type, n.Text = "null", "null"
	case bool:
		n.Type, n.Text = "bool", strconv.FormatBool(v)
	case string:
		n.Type, n.Text = "string", shorten(v)
	case []byte:
		n.Type, n.Text = "bytes", shorten(hex.EncodeToString(v[:min(len(v), maxText)]))
	case document.Object:
		n.Type, n.Count = "object", len(v)
		for i := 0; i < len(v) && *left > 0; i++ {
			n.Inner = append(n.Inner, node(v[i].Key, v[i].Value.V, left))
		}
	case []document.Value:
		n.Type, n.Count = "array", len(v)
		for i := 0; i < len(v) && *left > 0; i++ {
			n.Inner = append(n.Inner, node(strconv.Itoa(i), v[i].V, left))
		}
	default:
		n.Type, n.Text = "number", fmt.Sprint(v)
	}
	return n
}

// shorten cuts a text to maxText bytes.
func shorten(s string) string {
	if len(s) <= maxText {
		return s
	}
	cut := maxText
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Lines returns the beginning of a text: at most most lines of at most maxText bytes. ok is false if the bytes are not
// text.
func Lines(data []byte, most int) (lines []string, more, ok bool) {
	if !utf8.Valid(data[:min(len(data), 1<<20)]) && !utf8.Valid(data) || strings.IndexByte(string(data[:min(len(data), 4096)]), 0) >= 0 {
		return nil, false, false
	}
	rest := string(data[:min(len(data), most*maxText)])
	more = len(rest) < len(data)
	for line := range strings.Lines(rest) {
		if len(lines) == most {
			return lines, true, true
		}
		lines = append(lines, shorten(strings.TrimRight(line, "\r\n")))
	}
	return lines, more, true
}

// errPack reports that the bytes are not MessagePack.
var errPack = errors.New("this is not MessagePack, or it ends too early")

// MessagePack reads the output of document.AppendMessagePack, and all else in the specification except extensions
// (https://github.com/msgpack/msgpack/blob/master/spec.md).
func MessagePack(data []byte) (document.Value, error) {
	r := &packReader{data: data}
	v, err := r.value(0)
	if err == nil && len(r.data) > 0 {
		err = errPack
	}
	return document.Value{V: v}, err
}

type packReader struct{ data []byte }

// take reads the next n bytes.
func (r *packReader) take(n uint64) ([]byte, error) {
	if n > uint64(len(r.data)) {
		return nil, errPack
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b, nil
}

// number reads the next n bytes as a big-endian number. n is at most 8.
func (r *packReader) number(n uint64) (uint64, error) {
	b, err := r.take(n)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[8-len(b):], b)
	return binary.BigEndian.Uint64(wide[:]), nil
}

func (r *packReader) value(depth int) (any, error) {
	head, err := r.number(1)
	if err != nil || depth > maxDepth {
		return nil, errPack
	}
	switch c := byte(head); {
	case c < 0x80:
		return int64(c), nil
	case c < 0x90:
		return r.object(uint64(c&15), depth)
	case c < 0xa0:
		return r.array(uint64(c&15), depth)
	case c < 0xc0:
		b, err := r.take(uint64(c & 31))
		return string(b), err
	case c >= 0xe0:
		return int64(int8(c)), nil
	default:
		return r.long(c, depth)
	}
}

// long reads a value whose first byte is the width of its length or number.
func (r *packReader) long(c byte, depth int) (any, error) {
	switch c {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return c == 0xc3, nil
	case 0xca:
		n, err := r.number(4)
		return float64(math.Float32frombits(uint32(n))), err
	case 0xcb:
		n, err := r.number(8)
		return math.Float64frombits(n), err
	case 0xcc, 0xcd, 0xce, 0xcf:
		return r.number(1 << (c - 0xcc))
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := uint64(1) << (c - 0xd0)
		n, err := r.number(size)
		shift := 64 - 8*size
		return int64(n<<shift) >> shift, err
	}
	return r.counted(c, depth)
}

// counted reads a value that begins with its number of bytes or values.
func (r *packReader) counted(c byte, depth int) (any, error) {
	width := map[byte]uint64{0xc4: 1, 0xc5: 2, 0xc6: 4, 0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4}[c]
	if width == 0 {
		return nil, errPack
	}
	n, err := r.number(width)
	switch {
	case err != nil:
		return nil, err
	case c >= 0xde:
		return r.object(n, depth)
	case c >= 0xdc:
		return r.array(n, depth)
	}
	b, err := r.take(n)
	if c >= 0xd9 {
		return string(b), err
	}
	return b, err
}

// array reads n values. Each takes at least a byte, so n is limited by the number of bytes left.
func (r *packReader) array(n uint64, depth int) (any, error) {
	if n > uint64(len(r.data)) {
		return nil, errPack
	}
	all := []document.Value{}
	for range n {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, document.Value{V: v})
	}
	return all, nil
}

func (r *packReader) object(n uint64, depth int) (any, error) {
	if n > uint64(len(r.data))/2 {
		return nil, errPack
	}
	all := document.Object{}
	for range n {
		key, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, document.Member{Key: fmt.Sprint(key), Value: document.Value{V: v}})
	}
	return all, nil
}
