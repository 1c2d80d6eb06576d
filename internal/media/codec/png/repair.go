package png

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
)

// As libpng does, Kiln reads some files with a fault: what the pixels do not need is left out.

// repairer removes and shortens chunks.
type repairer struct {
	depth, kind int
	seen        []string

	checksums []string // names of chunks with a wrong checksum
	flaws     []string
}

// Repair returns a file without the chunks that are damaged and not needed (their first letter is in lower case), and without
// those that have no place in this kind of file: a palette of grey, a transparent colour beside alpha. flaw lists them. If
// there are none, it returns data unchanged.
func Repair(data []byte) (fixed []byte, flaw string) {
	const frame = 12 // a chunk is u32 size, 4 letters, bytes, u32 checksum
	var r repairer
	changed := false
	for at := len(signature); at+8 <= len(data); {
		rest := data[at:]
		name, size := string(rest[4:8]), uint64(binary.BigEndian.Uint32(rest))
		if size+frame > uint64(len(rest)) {
			break // the end is missing, which is another error
		}
		whole := rest[:size+frame]
		body := r.keeps(name, whole[8:8+size], binary.BigEndian.Uint32(whole[8+size:]))
		same := body != nil && len(body) == int(size)
		if !same && !changed {
			changed = true
			fixed = append(fixed, data[:at]...)
		}
		if same && changed {
			fixed = append(fixed, whole...)
		} else if body != nil && changed {
			fixed = appendChunk(fixed, name, body)
		}
		r.seen = append(r.seen, name)
		if at += len(whole); name == "IEND" {
			break
		}
	}
	if !changed {
		return data, ""
	}
	if r.checksums != nil {
		r.flaws = append([]string{fmt.Sprintf("the checksum of the part %s is wrong; it was left out", strings.Join(r.checksums,
			", "))}, r.flaws...)
	}
	return fixed, strings.Join(r.flaws, "; ")
}

func appendChunk(b []byte, name string, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	from := len(b)
	b = append(append(b, name...), body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[from:]))
}

// keeps returns the bytes of a chunk that are kept, or nil for none.
func (r *repairer) keeps(name string, body []byte, sum uint32) []byte {
	const ancillary = 0x20
	if name[0]&ancillary != 0 && crc32.Update(crc32.ChecksumIEEE([]byte(name)), crc32.IEEETable, body) != sum {
		if !slices.Contains(r.checksums, name) {
			r.checksums = append(r.checksums, name)
		}
		return nil
	}
	flaw := func(text string) []byte {
		r.flaws = append(r.flaws, text)
		return nil
	}
	switch name {
	case "IHDR":
		if len(body) == 13 {
			r.depth, r.kind = int(body[8]), int(body[9])
		}
	case "PLTE":
		switch most := 3 << min(r.depth, 8); {
		case r.kind == grey || r.kind == greyAlpha:
			return flaw("a palette of grey was left out")
		case r.kind == indexed && len(body) > most && len(body)%3 == 0:
			flaw("colours of its palette that no pixel can have were left out")
			return body[:most]
		case r.kind != indexed && (len(body) == 0 || len(body) > most || len(body)%3 != 0):
			return flaw("a palette of another size was left out")
		}
	case "tRNS":
		length := map[int]int{grey: 2, rgb: 6}
		switch {
		case r.kind == greyAlpha || r.kind == rgba:
			return flaw("a transparent colour beside alpha was left out")
		case slices.Contains(r.seen, name), slices.Contains(r.seen, "IDAT"), r.kind == indexed && !slices.Contains(r.seen, "PLTE"):
			return flaw("transparent colours at a wrong place were left out")
		case r.kind != indexed && len(body) != length[r.kind], len(body) > 256:
			return flaw("transparent colours of another size were left out")
		}
	case "IEND":
		if len(body) > 0 {
			flaw("bytes in its last part were left out")
			return []byte{}
		}
	}
	if body == nil {
		return []byte{}
	}
	return body
}

// Trim returns a file without the pixels beyond its last row. It returns nil if there are none, or if rows are missing.
func Trim(data []byte) (fixed []byte) {
	var parts []io.Reader
	for b := data[min(len(data), len(signature)):]; len(b) >= 12; {
		size := min(uint64(binary.BigEndian.Uint32(b)), uint64(len(b)-12))
		if string(b[4:8]) == "IDAT" {
			parts = append(parts, bytes.NewReader(b[8:8+size]))
		} else if parts == nil {
			fixed = append(fixed, b[:12+size]...)
		}
		b = b[12+size:]
	}
	need := filtered(fixed)
	packed := io.MultiReader(parts...)
	if _, err := io.CopyN(io.Discard, packed, 2); need <= 0 || err != nil { // the head of zlib
		return nil
	}
	rows := flate.NewReader(packed)
	defer rows.Close()
	var out bytes.Buffer
	w, err := zlib.NewWriterLevel(&out, zlib.HuffmanOnly) // which takes little memory
	if err == nil {
		_, err = io.CopyN(w, rows, need)
	}
	if err != nil || w.Close() != nil {
		return nil
	}
	if n, _ := rows.Read(make([]byte, 1)); n == 0 {
		return nil
	}
	fixed = append([]byte(signature), fixed...)
	return appendChunk(appendChunk(fixed, "IDAT", out.Bytes()), "IEND", nil)
}

// filtered returns the number of bytes of all rows with their filters, by the chunk that is the head, or 0.
func filtered(chunks []byte) int64 {
	if len(chunks) < 8+13 || string(chunks[4:8]) != "IHDR" {
		return 0
	}
	h := chunks[8:]
	width, height := int64(binary.BigEndian.Uint32(h)), int64(binary.BigEndian.Uint32(h[4:]))
	const most = 1 << 20 // no product overflows
	bits := int64(h[8]) * map[byte]int64{grey: 1, rgb: 3, indexed: 1, greyAlpha: 2, rgba: 4}[h[9]]
	if width > most || height > most || bits == 0 {
		return 0
	}
	passes := [][4]int64{{0, 0, 1, 1}}
	if h[12] == 1 { // where each pass begins, and its steps, across and down (PNG, 8.2)
		passes = [][4]int64{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}
	}
	n := int64(0)
	for _, p := range passes {
		across, down := (width-p[0]+p[2]-1)/p[2], (height-p[1]+p[3]-1)/p[3]
		if across > 0 && down > 0 {
			n += down * (1 + (across*bits+7)/8)
		}
	}
	return n
}
