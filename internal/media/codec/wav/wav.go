// Package wav reads and writes WAV sound as a stream: memory use does not grow with the length of the sound.
//
// It follows "Multimedia Programming Interface and Data Specifications 1.0" (1991) and "New Multimedia Data Types and Data
// Techniques" (1994) of Microsoft and IBM, "Multiple channel audio data and WAVE files" (2007) of Microsoft, and ITU-R
// BS.2088-1 (2019), BW64, and its predecessor RF64. A file is chunks. A chunk is an id of four letters, a u32 with the size
// of its body, the body, and a padding byte if that size is odd. All numbers are little-endian, in RIFX big-endian:
//
//	RIFF  "WAVE", and then all other chunks
//	ds64  for RF64 and BW64: sizes of 64 bits, for chunks with the size 0xffffffff
//	fmt   format of the samples
//	fact  number of frames; only ADPCM needs it
//	data  the samples
//	smpl  loops
//	cue   markers
//	kiln  Kiln's own data about a sound
//	LIST  "adtl", names of markers, loops and regions; or "INFO", texts about the sound
//
// A frame is one sample of each channel. Deviations from the specifications that many programs write are read with a
// warning. So are files that are cut off: the existing data is read. Memory is allocated for the actual content of a file,
// not for the sizes that it claims.
package wav

import (
	"encoding/binary"
	"errors"
)

// Extension is the file name extension.
const Extension = ".wav"

var (
	ErrTruncated   = errors.New("data ends too early")
	ErrDamaged     = errors.New("damaged")
	ErrUnsupported = errors.New("not supported")
	ErrTooLarge    = errors.New("too large")
)

const (
	MaxChannels = 64
	MaxRate     = 1536000 // frames per second
)

// Coding is the encoding of a sample.
type Coding int

const (
	PCM      Coding = iota // integers
	Float                  // of 32 or 64 bits
	ALaw                   // 8 bits, G.711
	MuLaw                  // 8 bits, G.711
	IMAADPCM               // 4 bits
	MSADPCM                // 4 bits
)

func (c Coding) String() string {
	return [...]string{"PCM", "float", "A-law", "mu-law", "IMA ADPCM", "MS ADPCM"}[c]
}

// Format is the format of the samples.
type Format struct {
	Rate     int // frames per second
	Channels int
	Coding   Coding
	Bits     int    // valid bits per sample; PCM may have more
	Mask     uint32 // one bit per speaker, as in WAVEFORMATEXTENSIBLE; 0 if unspecified
	Block    int    // bytes of a block for ADPCM, otherwise of a frame
}

// LoopType is the direction in which a loop is played.
type LoopType int

const (
	Forward LoopType = iota
	PingPong
	Backward
)

// Loop has the frames from Begin up to End, without End.
type Loop struct {
	Begin, End int64
	Type       LoopType
	Count      uint32 // number of times it is played; 0: for ever
	Name       string
}

// Marker is a named frame, or Length frames from there.
type Marker struct {
	Name, Note    string
	Frame, Length int64
}

// Text is a text about the sound, such as INAM, its title.
type Text struct{ ID, Text string }

// Metadata has everything in a file besides samples.
type Metadata struct {
	UnityNote int // MIDI note of the sound at its normal speed, 1 to 127; 0 if unspecified
	Loops     []Loop
	Markers   []Marker // in the order of frames
	Info      []Text
	Private   []byte // body of the chunk "kiln", for a program's own data
}

// Codes of codings in fmt.
const (
	tagPCM        = 0x0001
	tagMSADPCM    = 0x0002
	tagFloat      = 0x0003
	tagALaw       = 0x0006
	tagMuLaw      = 0x0007
	tagIMAADPCM   = 0x0011
	tagExtensible = 0xfffe
)

var tags = [...]int{PCM: tagPCM, Float: tagFloat, ALaw: tagALaw, MuLaw: tagMuLaw, IMAADPCM: tagIMAADPCM, MSADPCM: tagMSADPCM}

// strangers are the names of other codings in WAV files.
var strangers = map[int]string{
	0x0010: "OKI ADPCM", 0x0031: "GSM 6.10", 0x0040: "G.721 ADPCM", 0x0050: "MPEG audio", 0x0055: "MP3", 0x0064: "G.726 ADPCM",
	0x0092: "AC-3", 0x00ff: "AAC", 0x0160: "Windows Media Audio", 0x0161: "Windows Media Audio", 0x0162: "Windows Media Audio",
	0x0270: "ATRAC3", 0x1610: "AAC", 0x2000: "AC-3", 0x566f: "Vorbis", 0x674f: "Vorbis", 0x6750: "Vorbis", 0x6751: "Vorbis",
	0x6771: "Vorbis", 0xf1ac: "FLAC",
}

// subFormat returns the tag in the long id of WAVEFORMATEXTENSIBLE. The id is a number of 32 bits, two of 16, and eight bytes; in
// RIFX some programs write the numbers in its order, others in that of RIFF, and others only the tag in its order.
func subFormat(id []byte, order binary.ByteOrder) (tag int, ok bool) {
	rest := string(id[2:])
	if rest == guidRest || rest == ambisonicRest {
		if order == binary.BigEndian && id[0] == 0 {
			return int(id[1]), true
		}
		return int(binary.LittleEndian.Uint16(id)), true
	}
	return int(binary.BigEndian.Uint16(id[2:])), order == binary.BigEndian && string(id[:2]) == "\x00\x00" && string(id[4:]) == guidRestBig
}

// guidRest are the bytes after the two bytes of a tag in the long id of WAVEFORMATEXTENSIBLE; ambisonicRest are those for
// sound in B-format.
const (
	guidRest      = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
	guidRestBig   = "\x00\x00\x00\x10\x80\x00\x00\xaa\x00\x38\x9b\x71"
	ambisonicRest = "\x00\x00\x21\x07\xd3\x11\x86\x44\xc8\xc1\xca\x00\x00\x00"
)
