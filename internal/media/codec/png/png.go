// Package png reads and writes PNG, the usual kinds of it fast: pictures of at most 8 bits a channel, straight to RGBA.
//
// It follows "Portable Network Graphics (PNG) Specification (Third Edition)" of the W3C. Files with a fault, 16-bit channels,
// interlace, or a colour that is transparent are left to image/png, which also has the messages about faults. All other files
// have the same pixels there; FuzzDecode checks that.
package png

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
)

const signature = "\x89PNG\r\n\x1a\n"

// Colour types.
const (
	grey      = 0
	rgb       = 2
	indexed   = 3
	greyAlpha = 4
	rgba      = 6
)

// reader has the parts of a file that its pixels depend on.
type reader struct {
	width, height int
	depth, kind   int
	palette       [256][4]byte // opaque black where the file has no colour
	data          [][]byte     // the bodies of IDAT
}

// Decode reads a picture: as an [image.NRGBA] without padding, or as image/png returns it. The caller has checked the size in
// the head of the file.
func Decode(data []byte) (image.Image, error) {
	if pix, width, height, ok := decode(data); ok {
		return &image.NRGBA{Pix: pix, Stride: 4 * width, Rect: image.Rect(0, 0, width, height)}, nil
	}
	return png.Decode(bytes.NewReader(data))
}

// decode returns the pixels as straight RGBA, 8 bits a channel, or false if image/png has to read the file.
func decode(data []byte) (pix []byte, width, height int, ok bool) {
	var r reader
	if !r.parts(data) {
		return nil, 0, 0, false
	}
	pix, ok = r.pixels()
	return pix, r.width, r.height, ok
}

// channels returns the channels that a row has for each pixel, or 0 if the combination is not one that is read here.
func (r *reader) channels() int {
	switch {
	case r.depth == 8:
		return map[int]int{grey: 1, rgb: 3, indexed: 1, greyAlpha: 2, rgba: 4}[r.kind]
	case (r.depth == 1 || r.depth == 2 || r.depth == 4) && (r.kind == grey || r.kind == indexed):
		return 1
	}
	return 0
}

// parts reads the chunks: u32 size, four letters, bytes, u32 CRC of letters and bytes. It returns false for anything
// unusual.
func (r *reader) parts(data []byte) bool {
	if len(data) < len(signature) || string(data[:len(signature)]) != signature {
		return false
	}
	seen := ""
	for b := data[len(signature):]; len(b) >= 12; {
		size := uint64(binary.BigEndian.Uint32(b))
		if size > uint64(len(b)-12) || crc32.ChecksumIEEE(b[4:8+size]) != binary.BigEndian.Uint32(b[8+size:]) {
			return false
		}
		name, body := string(b[4:8]), b[8:8+size]
		b = b[12+size:]
		ok := seen != ""
		switch name {
		case "IHDR":
			ok = seen == "" && r.head(body)
			seen = name
		case "PLTE":
			ok = seen == "IHDR" && r.kind == indexed && r.readPalette(body)
			seen = name
		case "tRNS":
			ok = seen == "PLTE" && len(body) <= 256
			for i, alpha := range body[:min(len(body), 256)] {
				r.palette[i][3] = alpha
			}
			seen = name
		case "IDAT":
			ok = seen == "IDAT" || seen == "IHDR" && r.kind != indexed || seen == "PLTE" || seen == "tRNS"
			r.data = append(r.data, body)
			seen = name
		case "IEND":
			return seen == "IDAT" && size == 0
		default:
			ok = ok && seen != "IDAT" // the pixels must not be interrupted
		}
		if !ok {
			return false
		}
	}
	return false
}

func (r *reader) head(b []byte) bool {
	if len(b) != 13 {
		return false
	}
	width, height := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	r.width, r.height, r.depth, r.kind = int(width), int(height), int(b[8]), int(b[9])
	const most = 1 << 20 // no product overflows
	return width-1 < most && height-1 < most && r.channels() > 0 && b[10] == 0 && b[11] == 0 && b[12] == 0
}

func (r *reader) readPalette(b []byte) bool {
	if len(b)%3 != 0 || len(b) == 0 || len(b)/3 > 1<<r.depth {
		return false
	}
	for i := range r.palette {
		r.palette[i][3] = 255
	}
	for i := range len(b) / 3 {
		copy(r.palette[i][:3], b[3*i:])
	}
	return true
}

// window is how many bytes are inflated before rows are made of them: they are still in the processor's cache then.
const window = 64 << 10

// pixels inflates and converts the rows.
func (r *reader) pixels() ([]byte, bool) {
	stride := 1 + (r.width*r.depth*r.channels()+7)/8
	left := stride * r.height
	f := &inflater{more: r.data}
	if !f.zlibHead() {
		return nil, false
	}
	sum := adler{a: 1}
	f.limit = min(left, history+max(window, stride))
	f.out = make([]byte, f.limit+2*slack)
	rows := r.rows(stride)
	done := 0 // bytes of the window that have been used
	for {
		from := f.at
		if !f.fill() {
			return nil, false
		}
		sum.add(f.out[from:f.at])
		if f.at-done > left || f.at < f.limit && f.at-done < left {
			return nil, false
		}
		for f.at-done >= stride {
			if !rows.add(f.out[done:][:stride]) {
				return nil, false
			}
			done += stride
			left -= stride
		}
		if left == 0 {
			break
		}
		drop := min(done, max(0, f.at-history))
		copy(f.out, f.out[drop:f.at])
		f.at -= drop
		done -= drop
	}
	f.limit = f.at + 1 // there must be no more
	if !f.fill() || f.at == f.limit || !f.zlibTail(uint32(sum.b<<16|sum.a)) {
		return nil, false
	}
	return rows.pix, true
}

// adler is the checksum of zlib: the sum of the bytes and 1, and the sum of all such sums, modulo 65521.
type adler struct{ a, b uint64 }

// add takes eight bytes at a time: the upper 16 bits of a product are the sum of four bytes, each times its weight. It is
// twice as fast as hash/adler32. p must be below a gigabyte, or the sums overflow.
func (s *adler) add(p []byte) {
	const modulus = 65521
	a, b := s.a, s.b
	for ; len(p) >= 8; p = p[8:] {
		v := binary.LittleEndian.Uint64(p)
		even, odd := v&evenBytes, v>>8&evenBytes
		b += 8*a + even*0x0008000600040002>>48 + odd*0x0007000500030001>>48
		a += (even + odd) * ones >> 48
	}
	for _, v := range p {
		a += uint64(v)
		b += a
	}
	s.a, s.b = a%modulus, b%modulus
}

// zlibHead reads the head of a zlib stream (RFC 1950).
func (f *inflater) zlibHead() bool {
	v, ok := f.take(16)
	method, flags := v&0xff, v>>8
	return ok && method&15 == 8 && method>>4 <= 7 && (method<<8|flags)%31 == 0 && flags&0x20 == 0
}

// zlibTail checks the checksum, after which the input must end.
func (f *inflater) zlibTail(sum uint32) bool {
	f.bits >>= f.n % 8
	f.n -= f.n % 8
	for shift := 24; shift >= 0; shift -= 8 {
		if v, ok := f.take(8); !ok || byte(v) != byte(sum>>shift) {
			return false
		}
	}
	return f.n == 0 && !f.need(1)
}
