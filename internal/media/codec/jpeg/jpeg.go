// Package jpeg reads JPEG images, with the pixels of libjpeg-turbo.
//
// It follows ITU-T T.81 (JPEG), T.871 (JFIF), and T.872 for Adobe's segment. It reads baseline, extended and progressive
// files of 8 bits with Huffman codes, in one scan or many, with restarts: grey, YCbCr, RGB, CMYK and YCCK. Arithmetic
// coding, lossless and hierarchical files, 12 bits, and a height that follows the picture give an error that names them.
//
// T.81 leaves to the decoder how exact the cosine transform is, and how chroma of a lower resolution is enlarged. Kiln does
// both as libjpeg-turbo 2.1 does by default, to the bit, since textures should look as in all other programs:
//
//   - The transform is libjpeg's "islow", integers of 13 bits: see idct.
//   - Half resolution is interpolated with weights of 3/4 and 1/4 per direction, other ratios are repeated: see upsample.go.
//   - Colours are converted with the constants of JFIF in 16 bits of fraction: see colour.go.
//
// Damaged files are read as far as libjpeg reads them, which warns where other decoders stop; Picture.Damage describes the
// damage:
//
//   - Invalid codes, and codes that run over the end of a block, are used as far as they go.
//   - Where the data ends or a marker comes too early, the block is filled with zeros. The blocks after it, up to the
//     next restart, stay unchanged: grey, or in a progressive JPEG coarse. libjpeg smooths coarse blocks; Kiln does not.
//   - At a restart, the markers show what is missing: see restartMark.
//   - Bytes between the segments are skipped.
//
// What is an error in libjpeg is an error here: headers that contradict themselves, tables that are missing or wrong,
// unknown markers. A picture without a single block is an error too. If the data ends in the header of a scan, the scans
// before it are used.
//
// A picture of one scan is decoded row by row into its pixels. Only other files need memory for all coefficients, 2 bytes
// each. The work for the scans of a file is limited: see maxPasses.
package jpeg

import (
	"errors"
	"fmt"
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// Header is what a file says before its picture.
type Header struct {
	Width, Height int
	Progressive   bool
	Memory        int64 // upper bound of the bytes that [Decode] takes, Picture.Pix included
}

// Picture is a decoded image: straight RGBA, rows from the top.
type Picture struct {
	Width, Height int
	Pix           []byte
	Damage        string // what is wrong with a file that could still be read; or ""
}

// maxPasses limits the work for files with many scans. Each scan may go over all blocks, for as little as 20 bytes. Real
// files have up to 30 scans, which pass each block about 8 times. Pictures of fewer than fewBlocks blocks may have more.
const (
	maxPasses = 100
	fewBlocks = 1 << 14
)

// errScan ends [ParseHeader].
var errScan = errors.New("a scan begins")

// ParseHeader reads the segments up to the first scan.
func ParseHeader(data []byte) (Header, error) {
	d := &decoder{reader: reader{data: data}, headerOnly: true, maxPixels: math.MaxInt}
	err := d.segments()
	switch {
	case d.parts != nil && (err == nil || errors.Is(err, errScan) || d.ended()):
		return Header{d.width, d.height, d.progressive, d.memory()}, nil
	case err == nil && !d.ended():
		return Header{}, d.damaged("no picture")
	}
	return Header{}, d.failure(err)
}

// Decode reads an image of up to maxPixels pixels.
func Decode(data []byte, maxPixels int) (*Picture, error) {
	d := &decoder{reader: reader{data: data}, wrong: -1, maxPixels: maxPixels}
	err := d.segments()
	if err == nil && d.read == 0 {
		err = d.damaged("no picture")
	}
	if err != nil {
		return nil, d.failure(err)
	}
	if !d.whole {
		d.transform()
	}
	return &Picture{d.width, d.height, d.pix, d.what()}, nil
}

// failure returns the error of a file that ends too early, which may be read as anything.
func (d *decoder) failure(err error) error {
	if d.ended() {
		return input.ErrTruncated
	}
	return err
}

// block has the 64 coefficients of 8 x 8 samples, row by row.
type block [64]int16

// part is a component: Y, Cb, Cr, ...
type part struct {
	id, h, v, quantIndex int
	width, height        int         // in samples
	quant                *[64]uint16 // the table at its first scan, in zigzag order
	scale                [64]int32   // the same row by row
	blocks               []block     // of all rows, if there are several scans
	across               int         // blocks in a row, including those that only complete a group
	known                [64]bool    // coefficients known to the last bit
	dc                   int         // DC coefficient of the block before

	strip []byte // the last line of the row of groups before, and the 8*v lines of the current row
	line  []byte // an enlarged line
	ratio ratio
}

// scan has the parts of a scan in order, the coefficients from first to last in zigzag order, and their bits from low on.
// If more is set, the bits above low were in an earlier scan.
type scan struct {
	parts            []*part
	blocks           int // of a group
	dc, ac           [4]*table
	first, last, low int
	more             bool
}

type decoder struct {
	reader
	headerOnly    bool
	maxPixels     int
	width, height int
	progressive   bool
	parts         []*part
	h, v          int // the largest of all parts
	across, down  int // number of groups of h x v blocks
	quant         [4]*[64]uint16
	dc, ac        [4]*table
	restart       int // groups between restarts, or blocks if there is one part; 0 for none
	jfif, adobe   bool
	adobeColour   byte
	colour        colour
	whole         bool  // the picture is in one scan
	blocks        int64 // of all parts, for the limit of work
	passes        int64 // blocks of all scans

	nextRestart int   // 0 to 7
	ends        int   // length of a run of blocks without further coefficients
	empty       bool  // bits were requested beyond the data
	spare       block // for pictures in one scan; always zero between two blocks
	row, high   int   // current row of groups, and its height in pixels
	read        int   // groups read
	wrong       int   // line of the first fault
	short       bool

	mixer *mixer
	pix   []byte
	done  int // lines in pix
}

// memory returns the bytes for the picture, the lines in work, and all coefficients if needed.
func (d *decoder) memory() int64 {
	n := 4 * int64(d.width) * int64(d.height)
	for _, p := range d.parts {
		samples := 64 * int64(d.across*p.h) * int64(p.v)
		n += 2*samples + 8*int64(d.across*d.h)
		if !d.whole {
			n += 2 * samples * int64(d.down)
		}
	}
	return n + 1<<16 // tables
}

// fault records the line of the first fault.
func (d *decoder) fault(short bool) {
	if d.wrong < 0 {
		d.wrong, d.short = min(d.row*d.high, d.height-1), short
	}
}

const extraBytes = "there are bytes in it that belong to nothing"

func (d *decoder) what() string {
	all := true
	for _, p := range d.parts {
		for _, known := range p.known {
			all = all && known
		}
	}
	switch {
	case d.progressive && (d.short || d.ended() && !all):
		return "it ends too early; the finest detail is missing"
	case d.short:
		return fmt.Sprintf("it ends too early: from line %d of %d on it is grey", d.wrong, d.height)
	case d.wrong >= 0:
		return fmt.Sprintf("from line %d of %d on, what could not be read is wrong or grey", d.wrong, d.height)
	case d.ended() && !all:
		return "it ends too early; some of its colours are missing"
	case d.ended():
		return "the mark of its end is missing"
	case d.extra:
		return extraBytes
	}
	return ""
}
