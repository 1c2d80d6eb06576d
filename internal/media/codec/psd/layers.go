package psd

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf16"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// Layer is a layer of a document, or a group of layers.
type Layer struct {
	Name    string
	Parent  int  // index of the group that contains it; -1: none
	Group   bool // it contains layers, and has no pixels
	Visible bool
	Clipped bool   // drawn only over the pixels of the layer below
	Opacity byte   // 255 is opaque
	Blend   string // "normal", "multiply"; or the four letters in the file if they are unknown

	X, Y, Width, Height int    // may extend beyond the image; 0 x 0 for an empty layer
	Pix                 []byte // RGBA, 8 bits per channel, straight alpha, rows top down; 16-bit channels are rounded
}

// blends has names for the keys of the specification.
var blends = map[string]string{
	"norm": "normal", "pass": "pass-through", "diss": "dissolve", "dark": "darken",
	"mul ": "multiply", "idiv": "color-burn", "lbrn": "linear-burn",
	"dkCl": "darker-color", "lite": "lighten", "scrn": "screen", "div ": "color-dodge", "lddg": "linear-dodge", "lgCl": "lighter-color",
	"over": "overlay", "sLit": "soft-light", "hLit": "hard-light", "vLit": "vivid-light", "lLit": "linear-light", "pLit": "pin-light",
	"hMix": "hard-mix", "diff": "difference", "smud": "exclusion", "fsub": "subtract", "fdiv": "divide", "hue ": "hue", "sat ": "saturation",
	"colr": "color", "lum ": "luminosity",
}

// blendOf returns the name for a key. ImageMagick writes keys in reverse.
func blendOf(key []byte) string {
	for _, k := range []string{string(key), string([]byte{key[3], key[2], key[1], key[0]})} {
		if word := blends[k]; word != "" {
			return word
		}
	}
	return string(key)
}

// maxLayers is the limit of Photoshop, including groups.
const maxLayers = 8000

// Layers reads the layers of a document of RGB or grey with 8 or 16 bits per channel, from the bottom up; other documents
// give [input.ErrUnsupported]. A document with only a background has none. It returns [input.ErrTooLarge] for more than
// maxPixels pixels in all layers together.
//
// A layer has the pixels that are stored for it. Effects, masks, text and adjustments are ignored.
func Layers(data []byte, maxPixels int) ([]Layer, error) {
	h, err := ParseHeader(data)
	if err != nil {
		return nil, err
	}
	b, err := layerInfo(data, h.large)
	if err != nil || len(b) < 2 {
		return nil, err
	}
	if h.Mode != rgb && h.Mode != grey || h.Depth != 8 && h.Depth != 16 {
		return nil, fmt.Errorf("layers of %v with %d bits a channel: %w", h.Mode, h.Depth, input.ErrUnsupported)
	}
	count := int(int16(binary.BigEndian.Uint16(b)))
	if count < 0 { // the first alpha channel is the transparency of the image
		count = -count
	}
	if count > maxLayers {
		return nil, fmt.Errorf("%d layers: %w", count, input.ErrTooLarge)
	}
	r := layerReader{h: h, b: b[2:], left: maxPixels}
	records := make([]record, 0, min(count, len(b)/34))
	for range count {
		rec, err := r.record()
		if err != nil {
			return nil, err
		}
		records = append(records, rec)
	}
	for i := range records {
		if err := r.pixels(&records[i]); err != nil {
			return nil, fmt.Errorf("layer %d: %w", i, err)
		}
	}
	return tree(records), nil
}

// CountLayers returns the number of layers and groups according to the document.
func CountLayers(data []byte) int {
	h, err := ParseHeader(data)
	if err != nil {
		return 0
	}
	b, err := layerInfo(data, h.large)
	if err != nil || len(b) < 2 {
		return 0
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	return max(n, -n)
}

// layerInfo finds the records: in their own section, or, for 16 and 32 bits, in a block after it.
func layerInfo(data []byte, large bool) ([]byte, error) {
	rest := data[headerSize:]
	var err error
	for range 2 { // colours, resources
		if _, rest, err = section(rest, false); err != nil {
			return nil, err
		}
	}
	b, _, err := section(rest, large)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	info, rest, err := section(b, large)
	if err != nil || len(info) >= 2 {
		return info, err
	}
	if _, rest, err = section(rest, false); err != nil { // the mask
		return nil, nil
	}
	for key, body := range blocks(rest, large) {
		if key == "Lr16" {
			return body, nil
		}
	}
	return nil, nil
}

// blocks iterates over blocks: "8BIM", a key of four letters, a length and as many bytes, padded to a multiple of four if
// the next block is there. It stops at other data.
func blocks(b []byte, large bool) func(yield func(string, []byte) bool) {
	signed := func(b []byte) bool { return len(b) >= 8 && (string(b[:4]) == "8BIM" || string(b[:4]) == "8B64") }
	wide := map[string]bool{"LMsk": true, "Lr16": true, "Lr32": true, "Layr": true, "Mt16": true, "Mt32": true, "Mtrn": true, "Alph": true,
		"FMsk": true, "lnk2": true, "FEid": true, "FXid": true, "PxSD": true}
	return func(yield func(string, []byte) bool) {
		for signed(b) {
			key := string(b[4:8])
			body, rest, err := section(b[8:], large && wide[key])
			if err != nil || !yield(key, body) {
				return
			}
			b = rest
			if pad := -len(body) & 3; !signed(rest) && pad <= len(rest) {
				b = rest[pad:]
			}
		}
	}
}

// record is a layer in the form of the file. A group has a divider below its layers, and a folder above them.
type record struct {
	Layer
	divider  int // 0: a layer; 1, 2: a folder; 3: the end of a folder
	channels []channel
}

type channel struct{ id, size int }

type layerReader struct {
	h    Header
	b    []byte // the rest of the section
	left int    // remaining number of allowed pixels
}

// record reads a record: i32 top, left, bottom, right; u16 channels, for each i16 id and its size in bytes; "8BIM"; four
// letters of the blend mode; u8 opacity, u8 clipping, u8 flags, u8; then a length and, within it, the mask, ranges, a name
// with its length in a byte, blocks.
func (r *layerReader) record() (rec record, err error) {
	if len(r.b) < 18 {
		return rec, input.ErrTruncated
	}
	i32 := func(i int) int { return int(int32(binary.BigEndian.Uint32(r.b[i:]))) }
	top, left, bottom, right, n := i32(0), i32(4), i32(8), i32(12), int(binary.BigEndian.Uint16(r.b[16:]))
	if r.b = r.b[18:]; n > 56 || bottom < top || right < left || max(bottom-top, right-left) > 300000 {
		return rec, fmt.Errorf("a layer from %d,%d to %d,%d with %d channels: %w", left, top, right, bottom, n, input.ErrDamaged)
	}
	rec.X, rec.Y, rec.Width, rec.Height = left, top, right-left, bottom-top
	size := 6
	if r.h.large {
		size = 10
	}
	if len(r.b) < n*size+16 {
		return rec, input.ErrTruncated
	}
	for range n {
		c := channel{id: int(int16(binary.BigEndian.Uint16(r.b))), size: int(binary.BigEndian.Uint32(r.b[size-4:]))}
		if r.h.large && binary.BigEndian.Uint32(r.b[2:]) != 0 {
			return rec, input.ErrTruncated
		}
		rec.channels = append(rec.channels, c)
		r.b = r.b[size:]
	}
	rec.Blend = blendOf(r.b[4:8])
	rec.Opacity, rec.Clipped, rec.Visible = r.b[8], r.b[9] != 0, r.b[10]&2 == 0
	extra, rest, err := section(r.b[12:], false)
	if err != nil {
		return rec, err
	}
	r.b = rest
	return rec, rec.extra(extra, r.h.large)
}

func (rec *record) extra(b []byte, large bool) (err error) {
	for range 2 { // mask, blending ranges
		if _, b, err = section(b, false); err != nil {
			return err
		}
	}
	if len(b) == 0 {
		return nil
	}
	n := int(b[0])
	padded := (1 + n + 3) &^ 3
	if len(b) < padded {
		return input.ErrTruncated
	}
	rec.Name = latin(b[1 : 1+n])
	for key, body := range blocks(b[padded:], large) {
		switch {
		case key == "luni" && len(body) >= 4:
			units := make([]uint16, min(int(binary.BigEndian.Uint32(body)), (len(body)-4)/2))
			for i := range units {
				units[i] = binary.BigEndian.Uint16(body[4+2*i:])
			}
			for len(units) > 0 && units[len(units)-1] == 0 {
				units = units[:len(units)-1]
			}
			rec.Name = string(utf16.Decode(units))
		case (key == "lsct" || key == "lsdk") && len(body) >= 4:
			rec.divider = int(binary.BigEndian.Uint32(body))
			if len(body) >= 12 {
				rec.Blend = blendOf(body[8:12])
			}
		}
	}
	return nil
}

// latin decodes a name. The file does not specify the code page of bytes beyond ASCII.
func latin(b []byte) string {
	letters := make([]rune, len(b))
	for i, c := range b {
		letters[i] = rune(c)
	}
	return string(letters)
}

// pixels reads the channels of a layer: colours, and -1, its alpha; it ignores masks, -2 and -3.
func (r *layerReader) pixels(rec *record) error {
	n := rec.Width * rec.Height
	if rec.divider != 0 {
		rec.Width, rec.Height, n = 0, 0, 0
	}
	if int64(rec.Width)*int64(rec.Height) > int64(r.left) {
		return fmt.Errorf("%d x %d pixels: %w", rec.Width, rec.Height, input.ErrTooLarge)
	}
	r.left -= n
	alpha := false
	for _, c := range rec.channels {
		if c.size > len(r.b) {
			return input.ErrTruncated
		}
		body := r.b[:c.size]
		r.b = r.b[c.size:]
		to := c.id
		if c.id == -1 {
			to, alpha = 3, true
		}
		if n == 0 || to < 0 || to > 3 || to >= r.h.Mode.colours() && to != 3 || to == 3 && c.id != -1 {
			continue
		}
		if err := r.channel(rec, to, body); err != nil {
			return fmt.Errorf("channel %d: %w", c.id, err)
		}
	}
	if n > 0 && rec.Pix == nil { // an adjustment or a fill: it has an area without pixels
		rec.Pix, alpha = make([]byte, 4*n), true
	}
	for i := 0; i+3 < len(rec.Pix); i += 4 {
		if r.h.Mode == grey {
			rec.Pix[i+1], rec.Pix[i+2] = rec.Pix[i], rec.Pix[i]
		}
		if !alpha {
			rec.Pix[i+3] = 255
		}
	}
	return nil
}

// channel reads u16 packing, then rows. PackBits rows are preceded by their lengths in u16, or u32 in a PSB.
func (r *layerReader) channel(rec *record, to int, b []byte) error {
	if len(b) < 2 {
		return input.ErrTruncated
	}
	packing := binary.BigEndian.Uint16(b)
	b = b[2:]
	size := rec.Width * r.h.Depth / 8
	rows, err := r.rows(b, packing, size, rec.Height)
	if err != nil {
		return err
	}
	if rec.Pix == nil {
		rec.Pix = make([]byte, 4*rec.Width*rec.Height)
	}
	for y := range rec.Height {
		row, err := rows(y)
		if err != nil {
			return fmt.Errorf("row %d: %w", y, err)
		}
		dst := rec.Pix[4*y*rec.Width:]
		for x := range rec.Width {
			if r.h.Depth == 8 {
				dst[4*x+to] = row[x]
			} else {
				v := uint32(binary.BigEndian.Uint16(row[2*x:]))
				dst[4*x+to] = byte((v*255 + 32767) / 65535)
			}
		}
	}
	return nil
}

// rows returns a function for the rows of a channel, in ascending order. It first checks that the data can have as many
// bytes.
func (r *layerReader) rows(b []byte, packing uint16, size, height int) (func(y int) ([]byte, error), error) {
	buf := make([]byte, size)
	switch packing {
	case 0:
		if len(b) < size*height {
			return nil, input.ErrTruncated
		}
		return func(y int) ([]byte, error) { return b[y*size:][:size], nil }, nil
	case 1:
		d := decoder{Image: &Image{Header: Header{Width: 1, Height: height, Channels: 1, large: r.h.large}}}
		length, rest, err := d.lengths(b, 1, size)
		return func(y int) ([]byte, error) {
			row := rest[:length(y)]
			rest = rest[len(row):]
			return buf, input.PackBits(buf, row, false)
		}, err
	case 2, 3:
		if len(b) < size*height/1032 { // Deflate makes at most that many bytes of one
			return nil, input.ErrTruncated
		}
		z, err := zlib.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("%v: %w", err, input.ErrDamaged)
		}
		return func(int) ([]byte, error) {
			if _, err := io.ReadFull(z, buf); err != nil {
				return nil, fmt.Errorf("%v: %w", err, input.ErrDamaged)
			}
			if packing == 3 {
				r.add(buf)
			}
			return buf, nil
		}, nil
	}
	return nil, fmt.Errorf("packing %d: %w", packing, input.ErrDamaged)
}

// add converts the differences of a row to numbers.
func (r *layerReader) add(row []byte) {
	if r.h.Depth == 8 {
		for i := 1; i < len(row); i++ {
			row[i] += row[i-1]
		}
		return
	}
	for i := 2; i+1 < len(row); i += 2 {
		binary.BigEndian.PutUint16(row[i:], binary.BigEndian.Uint16(row[i:])+binary.BigEndian.Uint16(row[i-2:]))
	}
}

// tree converts records to layers. The file stores a group from the bottom up: its end, its layers, then the folder with its
// name.
func tree(records []record) []Layer {
	layers := make([]Layer, 0, len(records))
	var open []int // the first layers of open groups
	for _, rec := range records {
		switch rec.divider {
		case 3:
			open = append(open, len(layers))
			continue
		case 1, 2:
			rec.Group = true
			from := len(layers)
			if n := len(open); n > 0 {
				from, open = open[n-1], open[:n-1]
			}
			for i := from; i < len(layers); i++ {
				if layers[i].Parent < 0 {
					layers[i].Parent = len(layers)
				}
			}
		}
		rec.Parent = -1
		layers = append(layers, rec.Layer)
	}
	return layers
}
