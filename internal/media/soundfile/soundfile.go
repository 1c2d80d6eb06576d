// Package soundfile opens files of sound whatever their format, and writes those that a game gets.
//
// A file is read a piece at a time, so an hour of sound is never whole in memory. What is damaged is read as far as it goes, with a
// warning. WAV, FLAC and QOA are read by Kiln's own decoders. Of Ogg and MP3 the container is read here, which decides where
// the sound begins and ends to the sample, and packets of Vorbis, Opus and MP3 are decoded by libraries; one that panics counts as one
// that reports damage.
//
//	soundfile.go   what is known of a file
//	decode.go      its samples
//	notes.go       gain, loops and markers as bytes
//	write.go       QOA, WAV, IMA ADPCM, FLAC
//	pass.go        a file as it is, or with other tags
package soundfile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/flac"
	"github.com/kiln-pipeline/kiln/internal/media/codec/mp3"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ogg"
	"github.com/kiln-pipeline/kiln/internal/media/codec/qoa"
	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
)

// Container is the format of a file.
type Container string

const (
	WAV  Container = "wav"
	FLAC Container = "flac"
	Ogg  Container = "ogg"
	MP3  Container = "mp3"
	QOA  Container = "qoa"
)

// Extensions are what files of sound are called that can be read, in lower case and with the dot.
func Extensions() []string {
	return []string{wav.Extension, flac.Extension, ogg.Extension, ogg.AudioExtension, ogg.OpusExtension, mp3.Extension, qoa.Extension}
}

// Named is the format of a file by its extension, in lower case and with the dot, or "".
func Named(ext string) Container {
	switch ext {
	case wav.Extension:
		return WAV
	case flac.Extension:
		return FLAC
	case ogg.Extension, ogg.AudioExtension, ogg.OpusExtension:
		return Ogg
	case mp3.Extension:
		return MP3
	case qoa.Extension:
		return QOA
	}
	return ""
}

// Loop is the frames from Begin to before End.
type Loop struct {
	Begin, End int64
	Kind       LoopKind
	Count      int64 // how often it is played; 0 is for ever
}

// LoopKind is the way a loop is played.
type LoopKind uint32

const (
	Forward LoopKind = iota
	PingPong
	Backward
)

func (k LoopKind) String() string { return [...]string{"forward", "ping-pong", "backward"}[k] }

// Marker is a frame, or as many from there as Length, that has a name.
type Marker struct {
	Name          string
	Frame, Length int64
}

// File is an open file.
type File struct {
	Container Container
	Codec     string // "pcm", "float", "a-law", "mu-law", "adpcm", "ms-adpcm", "flac", "vorbis", "opus", "mp3", "qoa"
	Bits      int    // of a sample; 0 if that means nothing
	Format    sound.Format
	Frames    int64
	Loops     []Loop
	Markers   []Marker
	Notes     *Notes   // what Kiln wrote besides, if it made the file
	Tags      []string // "NAME=value" of Ogg, FLAC and MP3
	Warnings  []string // in plain words; damage met later adds one
	Size      int64    // bytes
	Opaque    error    // why the samples cannot be read, of a file that is well otherwise: [File.Pass] and [File.Copy] can

	in     io.ReaderAt
	rewind func() error
	read   func(dst []float32) (int, error)
	late   func() []string // warnings of a decoder
	ogg    *ogg.Reader
	mp3    *mp3.File
}

// Lossy reports whether sound was lost when the file was made.
func (f *File) Lossy() bool {
	switch f.Codec {
	case "vorbis", "opus", "mp3", "qoa", "adpcm", "ms-adpcm":
		return true
	}
	return false
}

// Seconds is how long the sound is.
func (f *File) Seconds() float64 { return float64(f.Frames) / float64(f.Format.Rate) }

// ErrFormat is the error of a file that is of no format that is read here.
var ErrFormat = errors.New("not a sound file")

// Truncated reports whether an error says that a file ends too early.
func Truncated(err error) bool {
	for _, e := range []error{wav.ErrTruncated, flac.ErrTruncated, ogg.ErrTruncated, mp3.ErrTruncated, qoa.ErrTruncated} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Unsupported reports whether an error says that a file is right, and not read here.
func Unsupported(err error) bool {
	for _, e := range []error{wav.ErrUnsupported, flac.ErrUnsupported, ogg.ErrUnsupported, mp3.ErrUnsupported, qoa.ErrUnsupported} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Bad reports whether an error says that a file is damaged.
func Bad(err error) bool {
	for _, e := range []error{wav.ErrDamaged, flac.ErrDamaged, ogg.ErrDamaged, mp3.ErrDamaged, qoa.ErrDamaged, wav.ErrTooLarge,
		flac.ErrTooLarge, qoa.ErrTooLarge} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// ContainerOf returns the container of a file by its first bytes.
func ContainerOf(head []byte) (Container, bool) {
	has := func(at int, s string) bool { return len(head) >= at+len(s) && string(head[at:at+len(s)]) == s }
	switch {
	case (has(0, "RIFF") || has(0, "RIFX") || has(0, "RF64") || has(0, "BW64")) && has(8, "WAVE"):
		return WAV, true
	case has(0, "fLaC"):
		return FLAC, true
	case has(0, "OggS"):
		return Ogg, true
	case has(0, "qoaf"):
		return QOA, true
	case has(0, "ID3"):
		return MP3, true
	}
	if _, ok := mp3.ParseHead(head); ok {
		return MP3, true
	}
	return "", false
}

// Open reads all of a file but its samples.
func Open(in io.ReaderAt, size int64) (f *File, err error) {
	defer caught(&err)
	head := make([]byte, min(size, 16))
	if _, err := in.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	kind, ok := ContainerOf(head)
	if !ok {
		return nil, ErrFormat
	}
	f = &File{Container: kind, in: in, Size: size, late: func() []string { return nil }}
	switch kind {
	case WAV:
		err = f.openWAV()
	case FLAC:
		err = f.openFLAC()
	case Ogg:
		err = f.openOgg()
	case QOA:
		err = f.openQOA()
	case MP3:
		if err = f.openMP3(); err != nil && string(head[:3]) == "ID3" { // a tag may stand before FLAC, too
			if g := *f; g.openFLAC() == nil {
				f, err = &g, nil
				f.Container = FLAC
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if err := f.Format.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, wav.ErrUnsupported)
	}
	return f, nil
}

// caught makes an error of a panic.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the decoder failed on it (%v): %w", p, ogg.ErrDamaged)
	}
}

var wavCodecs = [...]string{wav.PCM: "pcm", wav.Float: "float", wav.ALaw: "a-law", wav.MuLaw: "mu-law", wav.IMAADPCM: "adpcm",
	wav.MSADPCM: "ms-adpcm"}

func (f *File) openWAV() error {
	r, err := wav.NewReader(f.in, f.Size)
	if err != nil {
		return err
	}
	f.Codec, f.Bits, f.Frames = wavCodecs[r.Coding], r.Bits, r.Frames
	f.Format = sound.Format{Rate: r.Rate, Channels: r.Channels, Mask: sound.ChannelMask(r.Mask)}
	for _, l := range r.Loops {
		f.Loops = append(f.Loops, Loop{l.Begin, l.End, LoopKind(l.Type), int64(l.Count)})
	}
	for _, m := range r.Markers {
		f.Markers = append(f.Markers, Marker{m.Name, m.Frame, m.Length})
	}
	if n, err := ParseNotes(r.Private); err == nil {
		f.Notes = n
	}
	f.rewind = func() error { return r.SeekFrame(0) }
	f.read = r.Read
	f.late = func() []string { return r.Warnings }
	return nil
}

func (f *File) openFLAC() error {
	d, err := flac.NewDecoder(f.in, f.Size)
	if err != nil {
		return err
	}
	f.Codec, f.Bits, f.Frames = "flac", d.Bits, d.Samples
	f.Format = sound.Format{Rate: d.Rate, Channels: d.Channels, Mask: sound.ChannelMask(d.Mask)}
	for _, l := range d.Loops {
		f.Loops = append(f.Loops, Loop{Begin: l.Begin, End: l.End})
	}
	for _, m := range d.Markers {
		f.Markers = append(f.Markers, Marker{Name: m.Name, Frame: m.Sample})
	}
	for _, c := range d.Comments {
		f.Tags = append(f.Tags, c.Name+"="+c.Value)
	}
	f.tagged(false)
	var buf []int32
	scale := float32(math.Ldexp(1, 1-d.Bits))
	f.rewind = func() error { return d.SeekSample(0) }
	f.read = func(dst []float32) (int, error) {
		n := min(len(dst), 4096*d.Channels) / d.Channels * d.Channels
		if len(buf) < n {
			buf = make([]int32, n)
		}
		got, err := d.Read(buf[:n])
		for i, v := range buf[:got*d.Channels] {
			dst[i] = float32(v) * scale
		}
		return got, err
	}
	f.late = func() []string { return d.Warnings }
	return nil
}

func (f *File) openQOA() error {
	d, err := qoa.NewDecoder(f.in, f.Size)
	if err != nil {
		return err
	}
	f.Codec, f.Frames = "qoa", d.Samples
	f.Format = sound.Format{Rate: d.Rate, Channels: d.Channels}
	if f.Notes, err = notesAfterQOA(f.in, f.Size); err != nil {
		return err
	}
	if f.Notes != nil {
		f.Loops, f.Markers = f.Notes.Loops, f.Notes.Markers
	}
	buf := make([]int16, qoa.FrameSamples*d.Channels)
	f.rewind = func() error { return d.SeekSample(0) }
	f.read = func(dst []float32) (int, error) {
		n := min(len(dst), len(buf)) / d.Channels * d.Channels
		got, err := d.Read(buf[:n])
		for i, v := range buf[:got*d.Channels] {
			dst[i] = float32(v) / (1 << 15)
		}
		return got, err
	}
	f.late = func() []string { return d.Warnings }
	return nil
}

// tag gives the first of a name; capitals do not matter.
func (f *File) tag(name string) (string, bool) {
	for _, t := range f.Tags {
		if n, v, ok := strings.Cut(t, "="); ok && strings.EqualFold(n, name) {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// tagged reads the tags that players of games agree on: LOOPSTART and LOOPLENGTH or LOOPEND, in frames, and those that Kiln writes. loops
// says whether to read loops, which a decoder may have done.
func (f *File) tagged(loops bool) {
	if loops {
		f.loopTags()
	}
	for _, t := range f.Tags {
		name, value, _ := strings.Cut(t, "=")
		if !strings.EqualFold(name, markerTag) {
			continue
		}
		var m Marker
		frames, text, _ := strings.Cut(value, " ")
		at, length, _ := strings.Cut(frames, "+")
		var err, err2 error
		m.Frame, err = strconv.ParseInt(at, 10, 64)
		if length != "" {
			m.Length, err2 = strconv.ParseInt(length, 10, 64)
		}
		if m.Name = text; err == nil && err2 == nil && m.Frame >= 0 && m.Frame <= f.Frames && m.Length >= 0 &&
			m.Length <= f.Frames-m.Frame {
			f.Markers = append(f.Markers, m)
		}
	}
}

func (f *File) loopTags() {
	values := map[string]int64{}
	for _, names := range [][]string{{"LOOPSTART", "LOOP_START"}, {"LOOPLENGTH", "LOOP_LENGTH"}, {"LOOPEND", "LOOP_END"}} {
		for _, name := range names {
			text, ok := f.tag(name)
			if !ok {
				continue
			}
			v, err := strconv.ParseInt(text, 10, 64)
			if err != nil || v < 0 || v > math.MaxInt32*16 {
				f.warn("tag %s=%.40s is not a number of frames: there is no loop", name, text)
				return
			}
			values[names[0]] = v
		}
	}
	if len(values) == 0 {
		return
	}
	l := Loop{Begin: values["LOOPSTART"], End: f.Frames}
	if n, ok := values["LOOPLENGTH"]; ok {
		l.End = l.Begin + n
	} else if n, ok := values["LOOPEND"]; ok {
		l.End = n
	}
	if l.End > f.Frames {
		f.warn("the loop ends before frame %d, and there are %d: it ends there", l.End, f.Frames)
		l.End = f.Frames
	}
	if l.Begin >= l.End {
		f.warn("the loop from %d to %d is not among %d frames, and is not read", l.Begin, l.End, f.Frames)
		return
	}
	f.Loops = append(f.Loops, l)
}

func (f *File) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// AllWarnings are those of the file, and of what was decoded of it.
func (f *File) AllWarnings() []string { return append(f.late(), f.Warnings...) }

// Source is the sound from its first frame on. It ends the source that was there before.
func (f *File) Source() (sound.Source, error) {
	if f.Opaque != nil {
		return nil, f.Opaque
	}
	if err := f.rewind(); err != nil {
		return nil, err
	}
	return &source{f: f, left: f.Frames}, nil
}

// maxMissing is how many seconds of a file that is cut off are made up for by silence.
const maxMissing = 10

type source struct {
	f    *File
	left int64
}

func (s *source) Format() sound.Format { return s.f.Format }

// Read gives exactly as many frames as the file says: what the decoder lacks is silence.
func (s *source) Read(dst []float32) (frames int, err error) {
	defer caught(&err)
	ch := s.f.Format.Channels
	room := min(int64(len(dst)/ch), s.left)
	switch {
	case len(dst) < ch:
		return 0, errors.New("no room for a frame")
	case room == 0:
		return 0, io.EOF
	}
	n, err := s.f.read(dst[:room*int64(ch)])
	if n == 0 && err == io.EOF {
		if s.left > maxMissing*int64(s.f.Format.Rate) {
			return 0, fmt.Errorf("%d frames are missing at the end: %w", s.left, ogg.ErrTruncated)
		}
		s.f.warn("%d frames are missing at the end: there is silence", s.left)
		n, err = int(room), nil
		clear(dst[:n*ch])
		s.f.read = func(d []float32) (int, error) { clear(d); return len(d) / ch, nil }
	}
	if n > 0 {
		s.left -= int64(n)
		return n, nil
	}
	return 0, err
}
