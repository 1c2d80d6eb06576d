// Package soundfile opens sound files of several formats, and writes the formats for games.
//
// A file is read in pieces, so an hour of sound is never in memory as a whole. A damaged file is read as far as
// possible, with a warning. Kiln has its own decoders for WAV, FLAC and QOA. For Ogg and MP3, this package reads the
// container, which determines the exact begin and end of the sound, and libraries decode the packets of Vorbis, Opus
// and MP3. A panic of a library is handled as a damaged file.
//
//	soundfile.go   properties of a file
//	decode.go      its samples
//	chain.go       Ogg of several streams that follow one another
//	notes.go       gain, loops and markers as bytes
//	write.go       QOA, WAV, IMA ADPCM, FLAC
//	pass.go        a file unchanged, or with other tags
package soundfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/flac"
	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
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

// Extensions returns the extensions of sound files that can be read, in lower case and with the dot.
func Extensions() []string {
	return []string{wav.Extension, flac.Extension, ogg.Extension, ogg.AudioExtension, ogg.OpusExtension, mp3.Extension, qoa.Extension}
}

// Named returns the format for an extension, in lower case and with the dot, or "".
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

// Loop is a range of frames; End is the first frame after it.
type Loop struct {
	Begin, End int64
	Kind       LoopKind
	Count      int64 // how often it is played; 0 is forever
}

// LoopKind is the direction of a loop.
type LoopKind uint32

const (
	Forward LoopKind = iota
	PingPong
	Backward
)

func (k LoopKind) String() string { return [...]string{"forward", "ping-pong", "backward"}[k] }

// Marker is a named frame, or a named range of Length frames.
type Marker struct {
	Name          string
	Frame, Length int64
}

// File is an open file.
type File struct {
	Container Container
	Codec     string // "pcm", "float", "a-law", "mu-law", "adpcm", "ms-adpcm", "flac", "vorbis", "opus", "mp3", "qoa"
	Bits      int    // of a sample; 0 if the codec has none
	Format    sound.Format
	Frames    int64
	Loops     []Loop
	Markers   []Marker
	Notes     *Notes   // notes that Kiln wrote, if it made the file
	Tags      []string // "NAME=value" of Ogg, FLAC and MP3
	Warnings  []string // readable messages; damage found later adds one
	Size      int64    // in bytes
	Mixed     bool     // parts of it have other rates or channels than Format, to which they are converted
	Opaque    error    // why the samples of a valid file cannot be decoded; [File.Pass] and [File.Copy] still work

	in     io.ReaderAt
	rewind func() error
	read   func(dst []float32) (int, error)
	late   func() []string // returns the warnings of a decoder
	ogg    *ogg.Reader
	chain  *chain // of several streams that follow one another; nil if there is one
	mp3    *mp3.File
}

// Lossy reports whether the codec is lossy.
func (f *File) Lossy() bool {
	switch f.Codec {
	case "vorbis", "opus", "mp3", "qoa", "adpcm", "ms-adpcm":
		return true
	}
	return false
}

// Seconds returns the length of the sound.
func (f *File) Seconds() float64 { return float64(f.Frames) / float64(f.Format.Rate) }

// ErrFormat is returned for a file of an unknown format.
var ErrFormat = errors.New("this is not a sound file")

// Truncated reports whether the error is that a file ends too early.
func Truncated(err error) bool {
	for _, e := range []error{wav.ErrTruncated, flac.ErrTruncated, ogg.ErrTruncated, mp3.ErrTruncated, qoa.ErrTruncated} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Unsupported reports whether the error is that a valid file is not supported.
func Unsupported(err error) bool {
	for _, e := range []error{wav.ErrUnsupported, flac.ErrUnsupported, ogg.ErrUnsupported, mp3.ErrUnsupported, qoa.ErrUnsupported} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Bad reports whether the error is that a file is damaged.
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

// Open reads everything except the samples.
func Open(in io.ReaderAt, size int64) (f *File, err error) {
	defer caught(&err)
	head := make([]byte, min(size, input.KindSize))
	if _, err := in.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	kind, ok := ContainerOf(head)
	switch {
	case ok:
	case mp3.Begins(in, size): // after padding, or something else
		kind = MP3
	default:
		if kind := input.Kind(head); kind != "" {
			return nil, fmt.Errorf("%w but %s", ErrFormat, kind)
		}
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
		if err = f.openMP3(); err != nil && bytes.HasPrefix(head, []byte("ID3")) { // FLAC may begin with an ID3 tag too
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

// caught converts a panic to an error.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the decoder failed on it: %w", ogg.ErrDamaged)
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

// tag returns the first tag with a name, in upper or lower case.
func (f *File) tag(name string) (string, bool) {
	for _, t := range f.Tags {
		if n, v, ok := strings.Cut(t, "="); ok && strings.EqualFold(n, name) {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// tagged reads the common tags for loops, LOOPSTART and LOOPLENGTH or LOOPEND in frames, and Kiln's own tags. loops is
// false if a decoder has already read loops.
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

// AllWarnings returns the warnings about the file and from decoding so far.
func (f *File) AllWarnings() []string { return append(f.late(), f.Warnings...) }

// Source returns the sound from its first frame. It invalidates an earlier source.
func (f *File) Source() (sound.Source, error) {
	if f.Opaque != nil {
		return nil, f.Opaque
	}
	if err := f.rewind(); err != nil {
		return nil, err
	}
	return &source{f: f, left: f.Frames}, nil
}

// maxMissing is the number of seconds at the end of a truncated file that are replaced by silence.
const maxMissing = 10

type source struct {
	f    *File
	left int64
}

func (s *source) Format() sound.Format { return s.f.Format }

// Read returns exactly as many frames as the file states. Missing ones are silent.
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
