package sound

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/placeholder"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
	"github.com/kiln-pipeline/kiln/processor"
)

// Opus and Vorbis are encoded by external programs. They get the sound as WAV with floats in a sealed view, and their
// output is read back: packets are kept, and Kiln writes pages, comments and serial number. So the random serial
// numbers and the comments about the encoder's command line that these programs write never reach a product.

// encoder is a program that converts WAV to Ogg.
type encoder struct {
	program string
	args    func(s *Settings, in string, channels int) []string
}

// made is the output of each encoder, relative to the view.
const made = "sound.ogg"

// encoders by codec, the best first. The arguments depend only on settings, so that the output is as repeatable as
// possible.
var encoders = map[string][]encoder{
	"opus": {
		{"opusenc", func(s *Settings, in string, channels int) []string {
			return []string{"--quiet", "--serial", "0", "--discard-comments", "--discard-pictures",
				"--bitrate", strconv.Itoa(s.bitrateFor(channels)), in, "../out/" + made}
		}},
		{"ffmpeg", func(s *Settings, in string, channels int) []string {
			return ffmpeg(in, "libopus", "-b:a", strconv.Itoa(s.bitrateFor(channels))+"k")
		}},
	},
	"vorbis": {
		{"oggenc", func(s *Settings, in string, _ int) []string {
			return append([]string{"-Q", "--serial", "0", "-o", "../out/" + made}, append(s.vorbis("-q", "-b", ""), in)...)
		}},
		{"ffmpeg", func(s *Settings, in string, _ int) []string {
			return ffmpeg(in, "libvorbis", s.vorbis("-q:a", "-b:a", "k")...)
		}},
	},
}

// ffmpeg uses one thread, and writes neither its version nor a random number.
func ffmpeg(in, codec string, rate ...string) []string {
	args := []string{"-nostdin", "-hide_banner", "-loglevel", "error", "-threads", "1", "-f", "wav", "-i", in, "-map", "0:a:0",
		"-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact", "-c:a", codec}
	return append(append(args, rate...), "-f", "ogg", "../out/"+made)
}

// vorbis returns the arguments for a quality, of which 4 is about 128 kbit/s for music, or for a rate. Not every rate
// is possible for all numbers of channels and frames a second, but every quality is.
func (s *Settings) vorbis(quality, bitrate, unit string) []string {
	if s.Bitrate > 0 {
		return []string{bitrate, strconv.Itoa(s.Bitrate) + unit}
	}
	return []string{quality, "4"}
}

// byProgram reports whether a program encodes a codec.
func byProgram(codec string) bool { return encoders[codec] != nil }

// encoder returns the first program that is installed. It is also recorded that those before it are
// not.
func (t *task) encoder() (*encoder, error) {
	all := encoders[t.codec]
	for i := range all {
		_, err := t.job.Tool(all[i].program)
		if err == nil {
			return &all[i], nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, &processor.Problem{Code: string(diag.SoundEncoder),
		Text: fmt.Sprintf("codec %q needs the program %s or %s, and neither is on PATH", t.codec, all[0].program, all[1].program),
		Hint: "run `kiln doctor`, which shows how to install them, or set codec = \"qoa\" for this platform"}
}

// edge is how many frames of a loop a program gets beyond its ends: more than the longest block of these codecs.
const edge = 8192

// edges are samples before and after the sound for a program.
type edges struct {
	format        sound.Format
	before, after []float32
}

// around returns the edges of a loop that ends with the sound. An encoder would see a step to silence there and produce
// a click at the seam. So the beginning of the loop is appended, and its end is prepended if it begins with the sound.
// The additional frames are cut off again, in whole packets and by the granule position, exact to the frame. At the
// beginning only Opus supports that.
func (t *task) around() (e edges, err error) {
	e.format = t.format
	if t.by == nil || len(t.loops) == 0 || t.loops[0].Kind != soundfile.Forward || t.loops[0].End != t.frames {
		return e, nil
	}
	src, err := t.chain()
	if err != nil {
		return e, err
	}
	e.before, e.after, err = sound.LoopEdges(src, t.loops[0].Begin, t.loops[0].End, edge)
	if t.codec != "opus" {
		e.before = nil
	}
	return e, err
}

func (e *edges) lead() int64 { return int64(len(e.before) / e.format.Channels) }
func (e *edges) tail() int64 { return int64(len(e.after) / e.format.Channels) }

// join adds the edges to a sound, and applies a gain in dB to its samples.
func (e *edges) join(src sound.Source, gain float64) sound.Source {
	a := sound.Amplitude(gain)
	return sound.Join(sound.Gain(sound.Samples(e.format, e.before), a), src, sound.Gain(sound.Samples(e.format, e.after), a))
}

// programTime is how long a program may take in addition to the length of the sound: encoders are many times faster
// than that.
const programTime = 10 * time.Minute

// compressed encodes the sound, a file in the scratch folder, with a program.
func (t *task) compressed(wav string, around edges) (*soundfile.File, error) {
	by, in, frames := t.by, t.job.Asset().Path, around.lead()+t.frames+around.tail()
	r, err := t.job.Run(t.ctx, processor.Command{
		Args:    append([]string{by.program}, by.args(t.s, "./"+in, t.format.Channels)...),
		Scratch: map[string]string{in: wav},
		Timeout: programTime + time.Duration(frames/int64(t.format.Rate))*time.Second,
	})
	if err != nil {
		return nil, err
	}
	f, err := soundfile.Open(bytes.NewReader(r.Files[made]), int64(len(r.Files[made])))
	switch {
	case err != nil:
		err = fmt.Errorf("%s made a file that cannot be read: %w", by.program, err)
	case f.Codec != t.codec || f.Format.Channels != t.format.Channels || f.Format.Rate != t.format.Rate || f.Frames != frames:
		err = fmt.Errorf("%s made %d frames of %s with %d channels at %d Hz, and was given %d with %d at %d Hz", by.program,
			f.Frames, f.Codec, f.Format.Channels, f.Format.Rate, frames, t.format.Channels, t.format.Rate)
	}
	if err != nil {
		return nil, &processor.Problem{Code: string(diag.SoundEncoded), Text: err.Error(), Err: err,
			Hint: "use another version of it, or another codec"}
	}
	return f, nil
}

// stoodFor reports whether the source is a placeholder, whose product has to be made without programs. A processor's
// contract does not include that.
func stoodFor(job processor.Job) bool {
	_, ok := job.(interface{ StandsIn() })
	return ok
}

// silence is a placeholder in a codec that programs encode.
func silence(codec string) (*soundfile.File, error) {
	data := placeholder.Vorbis()
	if codec == "opus" {
		data = placeholder.Opus()
	}
	return soundfile.Open(bytes.NewReader(data), int64(len(data)))
}
