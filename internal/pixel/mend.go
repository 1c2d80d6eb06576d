package pixel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strings"
)

// libpng and libjpeg read some damaged files, and warn. So is it here: what is there counts, and Picture.Mended says what was wrong.

// mendPNG leaves out the chunks that are damaged and that a picture can do without (their first letter is small), and says which. If there
// are none, data comes back as it is.
func mendPNG(data []byte) (mended []byte, what string) {
	const signature, frame = 8, 12 // a chunk is u32 size, 4 letters, bytes, u32 checksum
	var bad []string
	for at := signature; at < len(data); {
		rest := data[at:]
		if len(rest) < 8 {
			break
		}
		name, size := string(rest[4:8]), uint64(binary.BigEndian.Uint32(rest))
		ancillary := rest[4]&0x20 != 0
		whole := size+frame <= uint64(len(rest))
		if !whole {
			break // the end is missing, which is another fault
		}
		chunk := rest[:size+frame]
		if ancillary && crc32.ChecksumIEEE(chunk[4:8+size]) != binary.BigEndian.Uint32(chunk[8+size:]) {
			if bad == nil {
				mended = append(mended, data[:at]...)
			}
			if !slices.Contains(bad, name) {
				bad = append(bad, name)
			}
		} else if bad != nil {
			mended = append(mended, chunk...)
		}
		if at += len(chunk); name == "IEND" {
			break
		}
	}
	if bad == nil {
		return data, ""
	}
	return mended, fmt.Sprintf("the checksum of the part %s is wrong; it was left out", strings.Join(bad, ", "))
}

func configPNG(data []byte) (Config, error) {
	data, _ = mendPNG(data)
	return config(png.DecodeConfig)(data)
}

func decodePNG(data []byte, _ int) (decoded, error) {
	data, what := mendPNG(data)
	m, err := png.Decode(bytes.NewReader(data))
	return decoded{image: m, mended: what}, err
}

// decodeJPEG reads what is there of a file whose end is missing, and makes the rest grey, as libjpeg does.
func decodeJPEG(data []byte, _ int) (decoded, error) {
	m, err := jpeg.Decode(bytes.NewReader(data))
	if err == nil || !short(err) {
		return decoded{image: m}, err
	}
	head := headOfJPEG(data)
	if head.scans == nil {
		return decoded{}, err
	}
	data = append(slices.Clip(data), 0xff, 0xd9) // the mark of the end, which may be all that was missing
	if m, e := jpeg.Decode(bytes.NewReader(data)); e == nil {
		return decoded{image: m, mended: "the mark of its end is missing"}, nil
	}
	for i := len(head.scans) - 1; i > 0 && head.progressive; i-- { // without the last scans it is coarser, and whole
		data := append(slices.Clip(data[:head.scans[i]]), 0xff, 0xd9)
		if m, e := jpeg.Decode(bytes.NewReader(data)); e == nil {
			return decoded{image: m, mended: "it ends too early; the finest detail is missing"}, nil
		}
	}
	if head.progressive && len(head.scans) > 1 {
		return decoded{}, err
	}
	return partOfJPEG(data, head, err)
}

// short tells the errors of a picture that has fewer bytes than it should.
func short(err error) bool {
	text := err.Error()
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || strings.Contains(text, "short Huffman data") || strings.Contains(text, "missing 0xff00")
}

// jpegHead is where things lie in a JPEG.
type jpegHead struct {
	frame       int   // the frame's segment, from its mark
	scans       []int // the scans' segments, from their marks
	progressive bool
}

// headOfJPEG walks over the segments: 0xff, a mark, u16 size, bytes. After a scan come its bits, in which 0xff is followed by 0 or a
// restart mark.
func headOfJPEG(data []byte) (h jpegHead) {
	for at := 2; at+4 <= len(data); {
		mark := data[at+1]
		switch {
		case data[at] != 0xff || mark == 0 || mark >= 0xd0 && mark <= 0xd7:
			at++
			continue
		case mark == 0xff:
			at++
			continue
		case mark == 0xd9:
			return h
		case mark == 0xc0 || mark == 0xc1 || mark == 0xc2:
			h.frame, h.progressive = at, mark == 0xc2
		case mark == 0xda:
			h.scans = append(h.scans, at)
		}
		at += 2 + int(binary.BigEndian.Uint16(data[at+2:]))
	}
	return h
}

// partOfJPEG finds how many lines can be read, by taking the picture for a lower one.
func partOfJPEG(data []byte, h jpegHead, err error) (decoded, error) {
	const block = 8
	if h.frame == 0 || h.frame+9 > len(data) {
		return decoded{}, err
	}
	data = slices.Clone(data)
	at := data[h.frame+5 : h.frame+9] // u16 height, u16 width
	height, width := int(binary.BigEndian.Uint16(at)), int(binary.BigEndian.Uint16(at[2:]))
	var part image.Image
	good, bad := 0, (height+block-1)/block
	for bad-good > 1 {
		try := (good + bad) / 2
		binary.BigEndian.PutUint16(at, uint16(try*block))
		if m, e := jpeg.Decode(bytes.NewReader(data)); e == nil {
			part, good = m, try
		} else {
			bad = try
		}
	}
	if part == nil {
		return decoded{}, err
	}
	whole := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range whole.Pix {
		whole.Pix[i] = 128 | byte(i&3/3*127) // opaque
	}
	draw.Draw(whole, part.Bounds(), part, image.Point{}, draw.Src)
	return decoded{image: whole, mended: fmt.Sprintf("it ends too early: from line %d of %d on it is grey", good*block, height)}, nil
}
