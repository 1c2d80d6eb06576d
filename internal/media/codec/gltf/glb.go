package gltf

import (
	"encoding/binary"
	"fmt"
)

// The container, GLB 2.0. Numbers are little-endian.
//
//	header   "glTF"  version u32 = 2  length u32 of the whole file
//	chunk    length u32 of the data  type u32  data, padded to a multiple of 4
//	         "JSON"   first, padded with spaces
//	         "BIN\0"  second, if any, padded with zeros: the buffer without a uri
//	         others   after that; readers skip them
const (
	glbMagic    = "glTF"
	glbHeader   = 12
	chunkHeader = 8
	chunkJSON   = "JSON"
	chunkBIN    = "BIN\x00"
)

// Alignment of the binary chunk in the output of AppendGLB, and of each bufferView in the output of Pack, in bytes. glTF
// requires 4; metadata extensions require 8. With 16, a game that maps the file can load any element with aligned vector
// instructions. It costs about ten bytes per view.
const Alignment = 16

// isGLB reports whether data is a .glb, by its first bytes, since file name extensions may be wrong.
func isGLB(data []byte) bool { return len(data) >= 4 && string(data[:4]) == glbMagic }

// container is what a .glb holds.
type container struct {
	json, bin []byte   // bin is nil if the file has no binary chunk
	wrong     []string // violations that loaders pass over
}

// splitGLB returns the chunks. The JSON and the binary chunk have to be complete; whatever follows may be wrong, since loaders
// do not look at it. A chunk whose length is not a multiple of 4 is followed by the next one without padding, as loaders read it.
func splitGLB(data []byte) (c container, err error) {
	if len(data) < glbHeader+chunkHeader {
		return c, fmt.Errorf("the file is cut off: %d bytes are too few for a .glb", len(data))
	}
	if v := binary.LittleEndian.Uint32(data[4:]); v != 2 {
		return c, fmt.Errorf("the container has version %d, not 2", v)
	}
	length := uint64(binary.LittleEndian.Uint32(data[8:]))
	switch {
	case length > uint64(len(data)):
		return c, fmt.Errorf("the file is cut off: its header says %d bytes, there are %d", length, len(data))
	case length < glbHeader+chunkHeader:
		return c, fmt.Errorf("the file's header says %d bytes, there are %d", length, len(data))
	case length < uint64(len(data)):
		c.wrong = append(c.wrong, fmt.Sprintf("the file's header says %d bytes, there are %d; the rest is ignored", length, len(data)))
		data = data[:length]
	}
	for pos, n := glbHeader, 0; pos < len(data); n++ {
		size, err := c.chunk(n, data[pos:])
		if err != nil {
			return c, err
		}
		if size == 0 {
			break
		}
		pos += size
	}
	return c, nil
}

// chunk reads chunk n, at the start of data, and returns its size with its header; 0 is the end of what can be read.
func (c *container) chunk(n int, data []byte) (int, error) {
	if len(data) < chunkHeader {
		if n == 0 {
			return 0, fmt.Errorf("the file is cut off in its first chunk")
		}
		c.wrong = append(c.wrong, fmt.Sprintf("%d bytes after the last chunk are not a chunk; they are ignored", len(data)))
		return 0, nil
	}
	size := uint64(binary.LittleEndian.Uint32(data))
	kind := string(data[4:chunkHeader])
	body := data[chunkHeader:]
	needed := n == 0 || n == 1 && kind == chunkBIN
	switch {
	case n == 0 && kind != chunkJSON:
		return 0, fmt.Errorf("chunk 0 has the type %q; the first chunk holds the JSON", kind)
	case size > uint64(len(body)) && needed:
		return 0, fmt.Errorf("chunk %d says %d bytes, but only %d are left in the file", n, size, len(body))
	case size > uint64(len(body)):
		c.wrong = append(c.wrong, fmt.Sprintf("chunk %d says %d bytes, but only %d are left in the file; it is ignored", n, size, len(body)))
		return 0, nil
	case size%4 != 0:
		c.wrong = append(c.wrong, fmt.Sprintf("chunk %d has %d bytes, which is not a multiple of 4", n, size))
	case n > 0 && kind == chunkJSON, n > 1 && kind == chunkBIN:
		c.wrong = append(c.wrong, fmt.Sprintf("chunk %d has the type %q, which only an earlier chunk may have; it is ignored", n, kind))
	}
	body = body[:size:size]
	switch {
	case n == 0:
		c.json = body
	case n == 1 && kind == chunkBIN:
		c.bin = body
	}
	return chunkHeader + int(size), nil
}

// AppendGLB appends a .glb of the JSON and the binary chunk, unless that is empty. The JSON is padded so that the binary
// data begin at a multiple of Alignment from the start of the file.
func AppendGLB(b []byte, root *Value, bin []byte) ([]byte, error) {
	start := len(b)
	b = append(b, "glTF\x02\x00\x00\x00----"...)
	b = append(b, "----JSON"...)
	b = root.AppendJSON(b)
	after := 0
	if len(bin) > 0 {
		after = chunkHeader
	}
	for (len(b)-start+after)%Alignment != 0 {
		b = append(b, ' ')
	}
	jsonSize := len(b) - start - glbHeader - chunkHeader
	binary.LittleEndian.PutUint32(b[start+glbHeader:], uint32(jsonSize))
	if len(bin) > 0 {
		padded := (len(bin) + 3) &^ 3
		b = binary.LittleEndian.AppendUint32(b, uint32(padded))
		b = append(b, chunkBIN...)
		b = append(b, bin...)
		b = append(b, make([]byte, padded-len(bin))...)
	}
	if int64(len(b)-start) > 1<<32-1 {
		return nil, fmt.Errorf("%d bytes are too many for a .glb, which holds 4 GiB", len(b)-start)
	}
	binary.LittleEndian.PutUint32(b[start+8:], uint32(len(b)-start))
	return b, nil
}
