// Package wav reads and writes WAV sound as a stream: an hour of it is never whole in memory.
//
// It follows "Multimedia Programming Interface and Data Specifications 1.0" (1991) and "New Multimedia Data Types and Data
// Techniques" (1994) of Microsoft and IBM, "Multiple channel audio data and WAVE files" (2007) of Microsoft, and ITU-R BS.2088-1
// (2019), BW64, with RF64 before it. A file is chunks, each of an id of four letters, a u32 with the size of its body, the body, and a
// byte more if that size is odd. All numbers are little-endian, in RIFX big-endian:
//
//	RIFF  "WAVE", and then all the other chunks
//	ds64  of RF64 and BW64: sizes of 64 bits, for chunks that say 0xffffffff
//	fmt   what samples are like
//	fact  how many frames there are; only ADPCM needs it
//	data  the samples
//	smpl  loops
//	cue   markers
//	kiln  what Kiln notes of a sound
//	LIST  "adtl", names of markers, loops and regions; or "INFO", texts about the sound
//
// A frame is a sample of each channel. What many programs write and the specifications do not allow is read with a warning. So are files
// cut off: what is there is there. Memory is taken for what is in a file, not for what it claims.
package wav

import "errors"

// Extension is what such files are called.
const Extension = ".wav"

var (
	ErrTruncated   = errors.New("data ends too early")
	ErrDamaged     = errors.New("damaged")
	ErrUnsupported = errors.New("not supported")
	ErrTooLarge    = errors.New("too large")
)

const (
	MaxChannels = 64
	MaxRate     = 1536000 // frames a second
)

// Coding is how a sample is written.
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

// Format is what samples are like.
type Format struct {
	Rate     int // frames a second
	Channels int
	Coding   Coding
	Bits     int    // of a sample that mean something; of PCM it may have more
	Mask     uint32 // a bit for each speaker, as WAVEFORMATEXTENSIBLE has them; 0 if nothing is said of speakers
	Block    int    // bytes of a block of ADPCM; else of a frame
}

// LoopType is the way a loop is played.
type LoopType int

const (
	Forward LoopType = iota
	PingPong
	Backward
)

// Loop is the frames from Begin to before End.
type Loop struct {
	Begin, End int64
	Type       LoopType
	Count      uint32 // how often it is played; 0 is for ever
	Name       string
}

// Marker is a frame, or as many from there as Length, that has a name.
type Marker struct {
	Name, Note    string
	Frame, Length int64
}

// Text is about the sound: INAM is its title, for example.
type Text struct{ ID, Text string }

// Metadata is what a file says besides its samples.
type Metadata struct {
	UnityNote int // MIDI note, 1 to 127, that the sound is if played as it is; 0 if the file does not say
	Loops     []Loop
	Markers   []Marker // in the order of frames
	Info      []Text
	Private   []byte // body of the chunk "kiln", in which a program's own may stand
}

// Ids in fmt.
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

// strangers are names of codings that are seen in WAV files and are none of ours.
var strangers = map[int]string{
	0x0010: "OKI ADPCM", 0x0031: "GSM 6.10", 0x0040: "G.721 ADPCM", 0x0050: "MPEG audio", 0x0055: "MP3", 0x0064: "G.726 ADPCM",
	0x0092: "AC-3", 0x00ff: "AAC", 0x0160: "Windows Media Audio", 0x0161: "Windows Media Audio", 0x0162: "Windows Media Audio",
	0x0270: "ATRAC3", 0x1610: "AAC", 0x2000: "AC-3", 0x566f: "Vorbis", 0x674f: "Vorbis", 0x6750: "Vorbis", 0x6751: "Vorbis",
	0x6771: "Vorbis", 0xf1ac: "FLAC",
}

// guidRest is what follows the two bytes of a tag in the long id of WAVEFORMATEXTENSIBLE; ambisonicRest of sound in B-format.
const (
	guidRest      = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
	ambisonicRest = "\x00\x00\x21\x07\xd3\x11\x86\x44\xc8\xc1\xca\x00\x00\x00"
)
