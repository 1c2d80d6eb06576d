// Package flac reads and writes FLAC, the Free Lossless Audio Codec, as a stream: memory use does not grow with the length
// of the sound.
//
// It follows RFC 9639. All numbers are big-endian, except in comments:
//
//	"fLaC", sometimes after ID3v2 tags
//	blocks of metadata: a bit that is set in the last block, 7 bits kind, u24 bytes; the first is STREAMINFO
//	frames: a head with CRC-8, then bits: a subframe for each channel; then CRC-16
//
// A subframe is a predictor of order 0 to 32, the first samples, as many as the order, and the errors of the predictor for
// all other samples, in Rice codes. Two channels may be stored as one of them and the difference, or as their mean and the
// difference.
//
// Elsewhere in Kiln a frame is one sample of each channel. In this package that is a sample, and a frame is a frame of the
// RFC.
//
// Damaged files are read with a warning: samples of damaged or missing frames become silence, so that all others remain in
// place. Of a file that is cut off, the complete frames are read. Memory is allocated for the actual content of a file, not
// for the sizes that it claims.
package flac

import (
	"errors"
	"fmt"
)

// Extension is the file name extension.
const Extension = ".flac"

var (
	ErrTruncated   = errors.New("data ends too early")
	ErrDamaged     = errors.New("damaged")
	ErrUnsupported = errors.New("not supported")
	ErrTooLarge    = errors.New("too large")
)

const (
	MaxChannels = 8
	MaxRate     = 1<<20 - 1 // samples per second
	MaxSamples  = 1<<36 - 1 // of each channel
	MinBits     = 4         // per sample
	MaxBits     = 32

	magic    = "fLaC"
	maxBlock = 65535 // samples per frame
	maxOrder = 32
	infoSize = 34 // size of STREAMINFO in bytes
	headSize = 16 // size of the longest frame head in bytes
)

// Kinds of metadata blocks.
const (
	kindInfo     = 0
	kindSeek     = 3
	kindComments = 4
	kindCue      = 5
	kindInvalid  = 127
)

// Kinds of stereo in the head of a frame; lower numbers mean independent channels.
const (
	leftSide  = 8
	sideRight = 9
	midSide   = 10
)

// Format is the format of the samples.
type Format struct {
	Rate     int // samples per second
	Channels int
	Bits     int    // per sample
	Mask     uint32 // one bit per speaker, as in WAVEFORMATEXTENSIBLE; 0 if unspecified
}

func (f Format) String() string {
	return fmt.Sprintf("%d Hz, %d x %d bits", f.Rate, f.Channels, f.Bits)
}

// check returns an error for formats that FLAC does not support.
func (f Format) check() error {
	switch {
	case f.Channels < 1 || f.Channels > MaxChannels:
		return fmt.Errorf("%d channels; the limits are 1 and %d: %w", f.Channels, MaxChannels, ErrUnsupported)
	case f.Rate < 1 || f.Rate > MaxRate:
		return fmt.Errorf("%d samples a second; the limits are 1 and %d: %w", f.Rate, MaxRate, ErrUnsupported)
	case f.Bits < MinBits || f.Bits > MaxBits:
		return fmt.Errorf("%d bits a sample; the limits are %d and %d: %w", f.Bits, MinBits, MaxBits, ErrUnsupported)
	}
	return nil
}

// masks are the default speakers by number of channels.
var masks = [MaxChannels + 1]uint32{0, 0x4, 0x3, 0x7, 0x33, 0x607, 0x60f, 0x70f, 0x63f}

// Comment is a text about the sound, such as TITLE, its title.
type Comment struct{ Name, Value string }

// Loop has the samples from Begin up to End, without End.
type Loop struct{ Begin, End int64 }

// Marker is a named sample.
type Marker struct {
	Name   string
	Sample int64
}

// rates and sizes are the values with a code in the head of a frame.
var (
	rates = [12]int{0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000}
	sizes = [8]int{0, 8, 12, 0, 16, 20, 24, 32} // bits per sample
)

// blockCode returns the size of a block for a code, or 0 for other codes.
func blockCode(code int) int {
	switch {
	case code == 1:
		return 192
	case code >= 2 && code <= 5:
		return 576 << (code - 2)
	case code >= 8:
		return 256 << (code - 8)
	}
	return 0
}

var crc8Table = func() (t [256]uint8) {
	for i := range t {
		c := uint8(i)
		for range 8 {
			c = c<<1 ^ c>>7*0x07
		}
		t[i] = c
	}
	return t
}()

// crc16Table has in row n the CRC of each byte followed by n zero bytes.
var crc16Table = func() (t [4][256]uint16) {
	for i := range 256 {
		c := uint16(i) << 8
		for range 8 {
			c = c<<1 ^ c>>15*0x8005
		}
		t[0][i] = c
	}
	for row := 1; row < len(t); row++ {
		for i, c := range t[row-1] {
			t[row][i] = c<<8 ^ t[0][c>>8]
		}
	}
	return t
}()

func crc8(b []byte) (c uint8) {
	for _, v := range b {
		c = crc8Table[c^v]
	}
	return c
}

func crc16(c uint16, b []byte) uint16 {
	t := &crc16Table
	for ; len(b) >= 4; b = b[4:] {
		c = t[3][byte(c>>8)^b[0]] ^ t[2][byte(c)^b[1]] ^ t[1][b[2]] ^ t[0][b[3]]
	}
	for _, v := range b {
		c = c<<8 ^ t[0][byte(c>>8)^v]
	}
	return c
}
