package doctor

import (
	"bytes"
	"encoding/binary"
	"io"
)

const (
	headSize = 512
	tailSize = 64 << 10 // within which the mark of the end must be
)

// end looks at the end of a file. What is said of formats: PNG (ISO/IEC 15948, 5), JPEG (ITU T.81, B.1), GIF89a (trailer), RIFF (Microsoft
// and IBM 1991), Ogg (RFC 3533), GLB (glTF 2.0, 4), ZIP (APPNOTE 4.3), BMP (BITMAPFILEHEADER), KTX 2.0 (3.9).
type end struct {
	file io.ReaderAt
	size int64
}

// read reads up to n bytes; fewer at the end of the file.
func (e *end) read(at int64, n int) []byte {
	b := make([]byte, max(0, min(int64(n), e.size-at)))
	m, _ := e.file.ReadAt(b, at)
	return b[:m]
}

func (e *end) tail() []byte { return e.read(max(0, e.size-tailSize), tailSize) }

// cutShort tells whether the file is of a format that says where it ends, and does not get there. What
// stands behind the end does not matter.
func (e *end) cutShort(head []byte, ext string) bool {
	has := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case has("\x89PNG\r\n\x1a\n"):
		return e.pngCut()
	case has("\xff\xd8\xff"):
		return !bytes.Contains(e.tail(), []byte{0xff, 0xd9})
	case has("GIF87a"), has("GIF89a"):
		return e.gifCut(head)
	case has("RIFF"):
		return e.riffCut()
	case has("glTF") && len(head) >= 12:
		return int64(binary.LittleEndian.Uint32(head[8:])) > e.size
	case has("BM") && ext == ".bmp" && len(head) >= 6:
		return int64(binary.LittleEndian.Uint32(head[2:])) > e.size
	case has("PK\x03\x04"):
		return !bytes.Contains(e.tail(), []byte("PK\x05\x06"))
	case has("OggS"):
		return e.oggCut()
	case has("\xabKTX 20\xbb\r\n\x1a\n"):
		return e.ktx2Cut(head)
	}
	return false
}

// pngCut goes from chunk to chunk to IEND.
func (e *end) pngCut() bool {
	at := int64(8)
	for {
		h := e.read(at, 8)
		if len(h) < 8 {
			return true
		}
		at += 12 + int64(binary.BigEndian.Uint32(h))
		if at > e.size {
			return true
		}
		if string(h[4:]) == "IEND" {
			return false
		}
	}
}

// riffCut goes from chunk to chunk, to the sound or to where the file says it ends. That the data is shorter than this is not
// trusted: some writers count it wrongly.
func (e *end) riffCut() bool {
	last := e.size
	if head := e.read(4, 4); len(head) == 4 {
		last = min(last, 8+int64(binary.LittleEndian.Uint32(head)))
	}
	for at := int64(12); ; {
		h := e.read(at, 8)
		if len(h) < 8 {
			return at == 12 // nothing in it at all
		}
		id, size := string(h[:4]), int64(binary.LittleEndian.Uint32(h[4:]))
		if size == 0xffffffff || size == 0 && id == "data" {
			return false // not known while it was recorded
		}
		if at += 8 + size; at > e.size {
			return true
		}
		if at += size & 1; id == "data" || at >= last {
			return false
		}
	}
}

// gifCut goes from block to block to the trailer.
func (e *end) gifCut(head []byte) bool {
	if len(head) < 13 {
		return true
	}
	at := 13 + colours(head[10])
	for {
		b := e.read(at, 10)
		switch {
		case len(b) == 0:
			return true
		case b[0] == ';':
			return false
		case b[0] == '!':
			at += 2
		case b[0] == ',' && len(b) == 10:
			at += 11 + colours(b[9])
		default:
			return true
		}
		for {
			n := e.read(at, 1)
			if len(n) == 0 {
				return true
			}
			if at += 1 + int64(n[0]); n[0] == 0 {
				break
			}
		}
	}
}

// colours is the size of a colour table in bytes, by the flags that announce it.
func colours(flags byte) int64 {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// oggCut looks whether the last page that begins also ends.
func (e *end) oggCut() bool {
	tail := e.tail()
	i := bytes.LastIndex(tail, []byte("OggS"))
	if i < 0 {
		return e.size > tailSize // a page has less than 64 KiB and a header
	}
	page := tail[i:]
	if len(page) < 27 || len(page) < 27+int(page[26]) {
		return true
	}
	n := 27 + int(page[26])
	for _, segment := range page[27:n] {
		n += int(segment)
	}
	return n > len(page)
}

// ktx2Cut looks where the levels end.
func (e *end) ktx2Cut(head []byte) bool {
	if len(head) < 80 {
		return true
	}
	levels := int(max(1, binary.LittleEndian.Uint32(head[40:])))
	index := e.read(80, 24*min(levels, 64))
	if len(index) < 24*min(levels, 64) {
		return true
	}
	for i := 0; i+24 <= len(index); i += 24 {
		offset, length := binary.LittleEndian.Uint64(index[i:]), binary.LittleEndian.Uint64(index[i+8:])
		if size := uint64(e.size); offset > size || length > size-offset {
			return true
		}
	}
	return false
}
