// Package whole checks whether a file is complete. It finds files that were cut off by a full disk or a broken
// download, without decoding them.
//
// Each function checks one format, which it recognizes by the first bytes, and reads no more than it needs. Bytes after
// the end are ignored. The formats: PNG (ISO/IEC 15948, 5), JPEG (ITU T.81, B.1), GIF89a (trailer), RIFF (Microsoft and
// IBM 1991), Ogg (RFC 3533), GLB (glTF 2.0, 4), ZIP (APPNOTE 4.3), BMP (BITMAPFILEHEADER), KTX 2.0 (3.9), QOI (end
// marker), QOA (qoaformat.org).
package whole

import (
	"bytes"
	"encoding/binary"
	"io"
)

const (
	headSize = 512
	tailSize = 64 << 10 // the end marker must be in the last tailSize bytes
)

// State is the result of a check.
type State int

const (
	Other State = iota // not a file of this format
	Whole
	Cut // the end is missing
)

// File is a file to check.
type File struct {
	r    io.ReaderAt
	size int64
	head []byte
}

// NewFile reads the head of a file. size is the size of the file in bytes.
func NewFile(r io.ReaderAt, size int64) *File {
	f := &File{r: r, size: size}
	f.head = f.read(0, headSize)
	return f
}

// Head returns the beginning of the file, at most 512 bytes.
func (f *File) Head() []byte { return f.head }

// read reads up to n bytes, or fewer at the end of the file.
func (f *File) read(at int64, n int) []byte {
	b := make([]byte, max(0, min(int64(n), f.size-at)))
	m, _ := f.r.ReadAt(b, at)
	return b[:m]
}

func (f *File) tail() []byte { return f.read(max(0, f.size-tailSize), tailSize) }

// is checks a file that begins with magic, where ? matches any byte.
func (f *File) is(magic string, cut func() bool) State {
	if len(f.head) < len(magic) {
		return Other
	}
	for i := range len(magic) {
		if magic[i] != '?' && magic[i] != f.head[i] {
			return Other
		}
	}
	if cut() {
		return Cut
	}
	return Whole
}

// PNG checks a PNG image.
func PNG(f *File) State { return f.is("\x89PNG\r\n\x1a\n", f.pngCut) }

// JPEG checks a JPEG image.
func JPEG(f *File) State {
	return f.is("\xff\xd8\xff", func() bool { return !bytes.Contains(f.tail(), []byte{0xff, 0xd9}) })
}

// GIF checks a GIF image.
func GIF(f *File) State { return f.is("GIF8", f.gifCut) }

// BMP checks a BMP image.
func BMP(f *File) State {
	return f.is("BM????\x00\x00\x00\x00", func() bool { return int64(binary.LittleEndian.Uint32(f.head[2:])) > f.size })
}

// QOI checks a QOI image, which ends in seven zeros and a one.
func QOI(f *File) State {
	return f.is("qoif", func() bool { return !bytes.Contains(f.tail(), []byte("\x00\x00\x00\x00\x00\x00\x00\x01")) })
}

// RIFF checks a RIFF file, such as WAV or WebP.
func RIFF(f *File) State { return f.is("RIFF", f.riffCut) }

// Ogg checks an Ogg stream with any content.
func Ogg(f *File) State { return f.is("OggS", f.oggCut) }

// QOA checks a QOA sound.
func QOA(f *File) State { return f.is("qoaf????????", f.qoaCut) }

// GLB checks a binary glTF.
func GLB(f *File) State {
	return f.is("glTF????????", func() bool { return int64(binary.LittleEndian.Uint32(f.head[8:])) > f.size })
}

// KTX2 checks a KTX 2.0 texture.
func KTX2(f *File) State { return f.is("\xabKTX 20\xbb\r\n\x1a\n", f.ktx2Cut) }

// ZIP checks a ZIP archive.
func ZIP(f *File) State {
	return f.is("PK\x03\x04", func() bool { return !bytes.Contains(f.tail(), []byte("PK\x05\x06")) })
}

// pngCut follows the chunks to IEND.
func (f *File) pngCut() bool {
	at := int64(8)
	for {
		h := f.read(at, 8)
		if len(h) < 8 {
			return true
		}
		at += 12 + int64(binary.BigEndian.Uint32(h))
		if at > f.size {
			return true
		}
		if string(h[4:]) == "IEND" {
			return false
		}
	}
}

// riffCut follows the chunks up to the sound data, or up to the end that the header states. If the chunks are complete, it
// accepts a file that is shorter than the header states, because some writers store a wrong size.
func (f *File) riffCut() bool {
	last := f.size
	if head := f.read(4, 4); len(head) == 4 {
		last = min(last, 8+int64(binary.LittleEndian.Uint32(head)))
	}
	for at := int64(12); ; {
		h := f.read(at, 8)
		if len(h) < 8 {
			return at == 12 // the file has no chunks
		}
		id, size := string(h[:4]), int64(binary.LittleEndian.Uint32(h[4:]))
		if size == 0xffffffff || size == 0 && id == "data" {
			return false // the writer did not know the size while recording
		}
		if at += 8 + size; at > f.size {
			return true
		}
		if at += size & 1; id == "data" || at >= last {
			return false
		}
	}
}

// gifCut follows the blocks to the trailer.
func (f *File) gifCut() bool {
	if len(f.head) < 13 {
		return true
	}
	at := 13 + colours(f.head[10])
	for {
		b := f.read(at, 10)
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
			n := f.read(at, 1)
			if len(n) == 0 {
				return true
			}
			if at += 1 + int64(n[0]); n[0] == 0 {
				break
			}
		}
	}
}

// colours returns the size of a colour table in bytes. flags is the byte that announces the table.
func colours(flags byte) int64 {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// oggCut checks whether the last page is complete.
func (f *File) oggCut() bool {
	tail := f.tail()
	i := bytes.LastIndex(tail, []byte("OggS"))
	if i < 0 {
		return f.size > tailSize // a page has at most 64 KiB with its header
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

// qoaCut computes the length of the file: 8 bytes, then frames of up to 5120 samples. A frame has 8 bytes, and for each
// channel 16 bytes, and 8 bytes for every 20 samples.
func (f *File) qoaCut() bool {
	samples, channels := int64(binary.BigEndian.Uint32(f.head[4:])), int64(f.head[8])
	frame := func(n int64) int64 { return 8 + channels*(16+8*((n+19)/20)) }
	size := 8 + samples/5120*frame(5120)
	if rest := samples % 5120; rest > 0 {
		size += frame(rest)
	}
	return size > f.size
}

// ktx2Cut checks where the levels end.
func (f *File) ktx2Cut() bool {
	if len(f.head) < 80 {
		return true
	}
	levels := int(max(1, binary.LittleEndian.Uint32(f.head[40:])))
	index := f.read(80, 24*min(levels, 64))
	if len(index) < 24*min(levels, 64) {
		return true
	}
	for i := 0; i+24 <= len(index); i += 24 {
		offset, length := binary.LittleEndian.Uint64(index[i:]), binary.LittleEndian.Uint64(index[i+8:])
		if size := uint64(f.size); offset > size || length > size-offset {
			return true
		}
	}
	return false
}
