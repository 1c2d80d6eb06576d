// Package flac reads and writes FLAC, the Free Lossless Audio Codec, as a stream: an hour of it is never whole in memory.
//
// It follows RFC 9639. All numbers are big-endian, but for those in comments:
//
//	"fLaC", perhaps after ID3v2 tags
//	blocks of metadata: a bit if it is the last, 7 bits kind, u24 bytes; the first is STREAMINFO
//	frames: a head with CRC-8, then bits: a subframe for each channel; then CRC-16
//
// A subframe is a predictor of order 0 to 32, the first samples, as many as the order, and for all others what the predictor gets wrong,
// in Rice codes. Two channels may be written as one of them and the difference, or their mean and the difference.
//
// Elsewhere in Kiln a frame is a sample of each channel; here that is a sample, and a frame is what the RFC calls so.
//
// What is damaged is read with a warning: for samples of frames that are damaged or not there comes silence, so that all others are in
// their places. Of a file that is cut off, whole frames are there. Memory is taken for what is in a file, not for what it claims.
package flac

import (
	"errors"
	"fmt"
)

// Extension is what such files are called.
const Extension = ".flac"

var (
	ErrTruncated   = errors.New("data ends too early")
	ErrDamaged     = errors.New("damaged")
	ErrUnsupported = errors.New("not supported")
	ErrTooLarge    = errors.New("too large")
)

const (
	MaxChannels = 8
	MaxRate     = 1<<20 - 1 // samples a second
	MaxSamples  = 1<<36 - 1 // of each channel
	MinBits     = 4         // of a sample
	MaxBits     = 32

	magic    = "fLaC"
	maxBlock = 65535 // samples of a frame
	maxOrder = 32
	infoSize = 34 // bytes of STREAMINFO
	headSize = 16 // bytes of the longest head of a frame
)

// Kinds of metadata blocks.
const (
	kindInfo     = 0
	kindSeek     = 3
	kindComments = 4
	kindCue      = 5
	kindInvalid  = 127
)

// Kinds of stereo, as the head of a frame has them; below are the channels, one by one.
const (
	leftSide  = 8
	sideRight = 9
	midSide   = 10
)

// Format is what samples are like.
type Format struct {
	Rate     int // samples a second
	Channels int
	Bits     int    // of a sample
	Mask     uint32 // a bit for each speaker, as WAVEFORMATEXTENSIBLE has them; 0 if nothing is said of speakers
}

// check refuses what a file cannot be.
func (f Format) check() error {
	switch {
	case f.Channels < 1 || f.Channels > MaxChannels:
		return fmt.Errorf("%d channels, and 1 to %d can be: %w", f.Channels, MaxChannels, ErrUnsupported)
	case f.Rate < 1 || f.Rate > MaxRate:
		return fmt.Errorf("%d samples a second, and 1 to %d can be: %w", f.Rate, MaxRate, ErrUnsupported)
	case f.Bits < MinBits || f.Bits > MaxBits:
		return fmt.Errorf("%d bits a sample, and %d to %d can be: %w", f.Bits, MinBits, MaxBits, ErrUnsupported)
	}
	return nil
}

// masks are the speakers of so many channels if a file does not say otherwise.
var masks = [MaxChannels + 1]uint32{0, 0x4, 0x3, 0x7, 0x33, 0x607, 0x60f, 0x70f, 0x63f}

// Comment is about the sound: TITLE is its title, for example.
type Comment struct{ Name, Value string }

// Loop is the samples from Begin to before End.
type Loop struct{ Begin, End int64 }

// Marker is a sample that has a name.
type Marker struct {
	Name   string
	Sample int64
}

// rates and sizes are those that the head of a frame has a number for.
var (
	rates = [12]int{0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000}
	sizes = [8]int{0, 8, 12, 0, 16, 20, 24, 32} // bits of a sample
)

// blockCode is the size of a block that has a number, or 0.
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

// crc16Table has in each row what one more byte of zeros makes of the row before.
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
