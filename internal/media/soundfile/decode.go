package soundfile

import (
	"errors"
	"fmt"
	"io"

	"github.com/jfreymuth/vorbis"
	"github.com/pion/opus"

	"github.com/kiln-pipeline/kiln/internal/media/codec/mp3"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ogg"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
)

func (f *File) openOgg() error {
	starts, err := ogg.Links(f.in, f.Size)
	if err != nil {
		return err
	}
	if len(starts) > 1 {
		err = f.openChain(starts)
	} else {
		err = f.openLink()
	}
	if err == nil {
		f.tagged(true)
	}
	return err
}

// openLink opens an Ogg file of one stream.
func (f *File) openLink() error {
	r, err := ogg.NewReader(f.in, f.Size)
	if err != nil {
		return err
	}
	f.ogg, f.Tags = r, r.Comments
	f.late = func() []string { return r.Warnings }
	if r.Codec == ogg.Opus {
		return f.openOpus(r)
	}
	return f.openVorbis(r)
}

// vorbisOrder has for each number of channels the position in a Vorbis frame (Vorbis I, 4.3.9) of each channel of WAV.
var vorbisOrder = [...][]int{3: {0, 2, 1}, 5: {0, 2, 1, 3, 4}, 6: {0, 2, 1, 5, 3, 4}, 7: {0, 2, 1, 6, 5, 3, 4}, 8: {0, 2, 1, 7,
	5, 6, 3, 4}}

// reorder changes frames from the order of Vorbis to that of WAV.
func reorder(buf []float32, channels int) {
	if channels >= len(vorbisOrder) || vorbisOrder[channels] == nil {
		return
	}
	var frame [8]float32
	for ; len(buf) >= channels; buf = buf[channels:] {
		for to, from := range vorbisOrder[channels] {
			frame[to] = buf[from]
		}
		copy(buf, frame[:channels])
	}
}

// packets decodes an Ogg stream packet by packet. Vorbis and Opus determine the begin and the end of the sound from
// granule positions in the same way.
type packets struct {
	r        *ogg.Reader
	channels int
	decode   func(packet []byte) ([]float32, error) // returns interleaved samples
	reset    func() error
	drop     int64 // decoded frames before the sound
	skip     int64 // frames still to be dropped
	left     []float32
	warned   bool
	f        *File
}

func (p *packets) rewind() error {
	p.r.Rewind()
	p.skip, p.left = p.drop, nil
	return p.reset()
}

func (p *packets) read(dst []float32) (int, error) {
	for len(p.left) == 0 {
		packet, err := p.r.Next()
		if err != nil {
			return 0, err
		}
		p.left, err = p.decode(packet.Data)
		if err != nil && !p.warned {
			p.warned = true
			p.f.warn("a packet of %s is damaged (%v), and is left out", p.r.Codec, err)
		}
		if p.skip > 0 {
			n := min(p.skip, int64(len(p.left)/p.channels))
			p.left, p.skip = p.left[n*int64(p.channels):], p.skip-n
		}
	}
	n := copy(dst[:len(dst)/p.channels*p.channels], p.left)
	p.left = p.left[n:]
	return n / p.channels, nil
}

// firstPage returns the granule position of the first page that has one, and the number of frames that its packets
// decode to.
func (p *packets) firstPage() (frames, granule int64, end bool, err error) {
	p.r.Rewind()
	if err := p.reset(); err != nil {
		return 0, 0, false, err
	}
	for {
		packet, err := p.r.Next()
		if err == io.EOF {
			return frames, p.r.Last, true, nil
		}
		if err != nil {
			return 0, 0, false, err
		}
		out, _ := p.decode(packet.Data)
		frames += int64(len(out) / p.channels)
		if packet.Granule >= 0 {
			return frames, packet.Granule, packet.End, nil
		}
	}
}

func (f *File) openVorbis(r *ogg.Reader) error {
	f.Codec, f.Format, f.Frames = "vorbis", sound.Format{Rate: r.Rate, Channels: r.Channels}, max(0, r.Last)
	var d vorbis.Decoder
	setup, ok := withClasses(r.Headers[2])
	if !ok {
		return fmt.Errorf("the codebooks of Vorbis: %w", ogg.ErrDamaged)
	}
	for _, h := range [][]byte{r.Headers[0], setup} { // the library trusts the numbers in comments, so package ogg reads them
		if err := d.ReadHeader(h); err != nil && r.Channels > 2 {
			f.Opaque = fmt.Errorf("%d channels of Vorbis: %w", r.Channels, ogg.ErrUnsupported) // the library does not support all files
			return nil
		} else if err != nil {
			return fmt.Errorf("the headers of Vorbis: %w", ogg.ErrDamaged)
		}
	}
	p := &packets{r: r, channels: r.Channels, f: f, reset: func() error { d.Clear(); return nil }}
	buf := make([]float32, d.BufferSize())
	p.decode = func(packet []byte) (out []float32, err error) {
		defer caught(&err)
		if len(packet) == 0 || packet[0]&1 != 0 {
			return nil, nil
		}
		out, err = d.DecodeInto(packet, buf)
		reorder(out, r.Channels)
		return out, err
	}
	frames, granule, end, err := p.firstPage()
	if err != nil {
		return err
	}
	// The first page states the position of its sound. If it decodes to more frames, the begin is cut off, or, if the
	// sound ends in this page, the end. If it decodes to fewer frames, the recording began in the middle of a stream.
	begin := granule - frames
	if end {
		begin = 0
	}
	if begin < 0 {
		p.drop, begin = -begin, 0
	}
	f.Frames = max(0, r.Last-begin)
	f.rewind, f.read = p.rewind, p.read
	return nil
}

func (f *File) openOpus(r *ogg.Reader) error {
	p := &packets{r: r, channels: r.Channels, f: f}
	if r.Mapping != 0 {
		f.Opaque = fmt.Errorf("%d channels of Opus in several streams: %w", r.Channels, ogg.ErrUnsupported)
	}
	var d opus.Decoder
	p.reset = func() (err error) {
		d, err = opus.NewDecoderWithOutput(48000, r.Channels)
		return err
	}
	gain := float32(sound.Amplitude(float64(r.Gain) / 256))
	buf := make([]float32, 5760*r.Channels)
	p.decode = func(packet []byte) (out []float32, err error) {
		n := ogg.OpusFrames(packet) * int64(r.Channels)
		defer func() {
			if err != nil { // silence of the same length keeps later packets in their place
				out = buf[:n]
				clear(out)
			}
		}()
		defer caught(&err)
		got, err := d.DecodeToFloat32(packet, buf)
		if err != nil {
			return nil, err
		}
		if int64(got*r.Channels) != n {
			return nil, errors.New("its length is not what its head says")
		}
		if r.Gain != 0 {
			for i := range buf[:n] {
				buf[i] *= gain
			}
		}
		return buf[:n], nil
	}
	f.Codec, f.Format = "opus", sound.Format{Rate: 48000, Channels: r.Channels}
	r.Rewind()
	var frames, granule int64
	end := false
	for granule = -1; granule < 0 && !end; {
		packet, err := r.Next()
		if err == io.EOF {
			granule, end = r.Last, true
			break
		}
		if err != nil {
			return err
		}
		frames += ogg.OpusFrames(packet.Data)
		granule, end = packet.Granule, packet.End
	}
	begin := granule - frames
	if end || begin < 0 {
		begin = 0
	}
	p.drop = r.Skip
	f.Frames = r.Last - begin - r.Skip
	if f.Frames <= 0 {
		return fmt.Errorf("%d frames, of which %d come before the sound: %w", r.Last-begin, r.Skip, ogg.ErrTruncated)
	}
	f.rewind, f.read = p.rewind, p.read
	return nil
}

func (f *File) openMP3() error {
	m, err := mp3.Read(f.in, f.Size)
	if err != nil {
		return err
	}
	if m.Layer != 3 {
		return fmt.Errorf("MPEG audio of layer %d: %w", m.Layer, mp3.ErrUnsupported)
	}
	f.mp3, f.Codec, f.Frames = m, "mp3", m.Samples
	f.Format = sound.Format{Rate: m.Rate, Channels: m.Channels}
	f.Warnings = append(f.Warnings, m.Warnings...)
	for _, t := range m.Texts {
		f.Tags = append(f.Tags, t.Name+"="+t.Value)
	}
	f.tagged(true)
	d := &mp3Reader{f: f}
	f.rewind, f.read = d.rewind, d.read
	return nil
}

// mp3Reader reads the sound of an MP3 file.
type mp3Reader struct {
	f      *File
	r      *mp3.Reader
	skip   int64
	buf    []float32
	warned bool
}

func (r *mp3Reader) rewind() error {
	r.r, r.skip = r.f.mp3.NewReader(r.f.in), r.f.mp3.Skip
	return nil
}

func (r *mp3Reader) read(dst []float32) (int, error) {
	for r.skip > 0 {
		if r.buf == nil {
			r.buf = make([]float32, 1152*r.f.Format.Channels)
		}
		got, err := r.r.Read(r.buf[:min(r.skip, 1152)*int64(r.f.Format.Channels)])
		if err != nil {
			return 0, err
		}
		r.skip -= int64(got)
	}
	n, err := r.r.Read(dst)
	if d := r.r.Damage(); d != nil && !r.warned {
		r.warned = true
		r.f.warn("%v: there is silence in its place", d)
	}
	return n, err
}
