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

// splitGLB returns the chunks. bin is nil if the file has no binary chunk.
func splitGLB(data []byte) (json, bin []byte, err error) {
	if len(data) < glbHeader+chunkHeader {
		return nil, nil, fmt.Errorf("the file is cut off: %d bytes are too few for a .glb", len(data))
	}
	if v := binary.LittleEndian.Uint32(data[4:]); v != 2 {
		return nil, nil, fmt.Errorf("the container has version %d, not 2", v)
	}
	length := uint64(binary.LittleEndian.Uint32(data[8:]))
	switch {
	case length > uint64(len(data)):
		return nil, nil, fmt.Errorf("the file is cut off: its header says %d bytes, there are %d", length, len(data))
	case length < uint64(len(data)):
		return nil, nil, fmt.Errorf("the file's header says %d bytes, there are %d", length, len(data))
	}
	for pos, n := glbHeader, 0; pos < len(data); n++ {
		if len(data)-pos < chunkHeader {
			return nil, nil, fmt.Errorf("%d bytes after the last chunk are not a chunk", len(data)-pos)
		}
		size := uint64(binary.LittleEndian.Uint32(data[pos:]))
		kind := string(data[pos+4 : pos+8])
		body := data[pos+chunkHeader:]
		switch {
		case size > uint64(len(body)):
			return nil, nil, fmt.Errorf("chunk %d says %d bytes, but only %d are left in the file", n, size, len(body))
		case size%4 != 0:
			return nil, nil, fmt.Errorf("chunk %d has %d bytes, which is not a multiple of 4", n, size)
		case (n == 0) != (kind == chunkJSON):
			return nil, nil, fmt.Errorf("chunk %d has the type %q; the first chunk, and no other, holds the JSON", n, kind)
		case kind == chunkBIN && n != 1:
			return nil, nil, fmt.Errorf("chunk %d holds binary data, which only chunk 1 may", n)
		}
		body = body[:size:size]
		if kind == chunkJSON {
			json = body
		} else if kind == chunkBIN {
			bin = body
		}
		pos += chunkHeader + int(size)
	}
	return json, bin, nil
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
