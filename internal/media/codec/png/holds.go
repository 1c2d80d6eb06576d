package png

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
)

// Holds inflates n bytes of a file's pixels without keeping them. It returns an error if there are fewer.
func Holds(data []byte, n int64) error {
	var parts [][]byte
	for b := data[min(len(data), len(signature)):]; len(b) >= 12; {
		size := min(uint64(binary.BigEndian.Uint32(b)), uint64(len(b)-12))
		if string(b[4:8]) == "IDAT" {
			parts = append(parts, b[8:8+size])
		}
		b = b[12+size:]
	}
	if holds(parts, n) {
		return nil
	}
	var readers []io.Reader
	for _, part := range parts {
		readers = append(readers, bytes.NewReader(part))
	}
	r, err := zlib.NewReader(io.MultiReader(readers...)) // it has the error
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.CopyN(io.Discard, r, n)
	return err
}

func holds(parts [][]byte, n int64) bool {
	f := &inflater{more: parts, limit: history + window, out: make([]byte, history+window+slack)}
	if !f.zlibHead() {
		return false
	}
	for n > 0 {
		from := f.at
		if !f.fill() || f.at == from {
			return false
		}
		n -= int64(f.at - from)
		copy(f.out, f.out[max(0, f.at-history):f.at])
		f.at = min(f.at, history)
	}
	return true
}
