package sound

import (
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
)

// Settings of the sound processor.
type Settings struct {
	Codec    string `toml:"codec" values:"auto,keep,qoa,pcm,wav,float,adpcm,flac,opus,vorbis" doc:"auto: qoa; keep of Ogg, Opus, MP3, QOA."`
	Bitrate  int    `toml:"bitrate" min:"0" max:"2048" doc:"Of opus and vorbis, in kbit/s. 0: good quality, by the number of channels."`
	Channels string `toml:"channels" values:"keep,mono,stereo" doc:"Mix to one or two channels, by ITU-R BS.775."`
	Rate     int    `toml:"rate" min:"0" max:"384000" doc:"Frames a second; 0 keeps those of the source."`
	MaxRate  int    `toml:"max_rate" min:"0" max:"384000" doc:"Resample what has more frames a second. 0: no limit."`

	Trim       bool    `toml:"trim" doc:"Cut silence off both ends. A loop is never cut into."`
	TrimLevel  float64 `toml:"trim_level" min:"-144" max:"0" doc:"What counts as silence for trim, in dBFS."`
	TrimMargin float64 `toml:"trim_margin" min:"0" max:"10" doc:"Silence that trim leaves at each end, in seconds."`
	FadeIn     float64 `toml:"fade_in" min:"0" max:"600" doc:"Seconds."`
	FadeOut    float64 `toml:"fade_out" min:"0" max:"600" doc:"Seconds."`
	FadeCurve  string  `toml:"fade_curve" values:"linear,equal-power" doc:"How fades rise and fall."`

	Loop      string `toml:"loop" values:"file,none,forward,ping-pong,backward" doc:"file: as the file says. Others than none: as below."`
	LoopBegin int64  `toml:"loop_begin" min:"0" doc:"First frame of the loop, in frames of the source."`
	LoopEnd   int64  `toml:"loop_end" min:"0" doc:"The frame after the last one, in frames of the source. 0: the end."`

	Loudness float64 `toml:"loudness" min:"-70" max:"0" doc:"What the gain brings the sound to, in LUFS, such as -23. 0: no gain."`
	TruePeak float64 `toml:"true_peak" min:"-20" max:"0" doc:"The gain never lifts peaks above this, in dBTP."`
	Gain     float64 `toml:"gain" min:"-60" max:"60" doc:"Added to the gain, in dB."`
	Bake     bool    `toml:"bake" doc:"Apply the gain to the samples, in place of storing it for the game to apply."`
	DualMono bool    `toml:"dual_mono" doc:"Measure one channel as played by two speakers, which is 3 LU louder."`

	Stream      string  `toml:"stream" values:"auto,yes,no" doc:"Note in the product that the game should read it while it plays."`
	StreamAbove float64 `toml:"stream_above" min:"0" max:"36000" doc:"Seconds above which stream = \"auto\" is yes."`
	Block       int     `toml:"block" min:"0" max:"8192" doc:"Bytes of a block of ADPCM for each channel. 0 goes by the rate."`
	Dither      bool    `toml:"dither" doc:"Dither what becomes PCM of 16 bits."`
	Variations  bool    `toml:"variations" doc:"The first of step_01.wav, step_02.wav and so on also makes a list of them."`
}

// Defaults of the settings.
func Defaults() Settings {
	return Settings{
		Codec: "auto", Channels: "keep", TrimLevel: -60, TrimMargin: 0.005, FadeCurve: "linear", Loop: "file", TruePeak: -1, Stream: "auto",
		StreamAbove: 10, Variations: true,
	}
}

// codec is the codec of the product.
func (s *Settings) codec(f *soundfile.File) string {
	switch {
	case s.Codec == "wav":
		return "pcm"
	case s.Codec == "auto" && !f.Mixed && f.Lossy() && f.Container != soundfile.WAV:
		return "keep"
	case s.Codec == "auto":
		return "qoa"
	case s.Codec == f.Codec && !f.Mixed && f.Lossy() && f.Container != soundfile.WAV && s.Bitrate == 0 && len(s.changes(f)) == 0:
		return "keep" // encoding again would only lose quality
	}
	return s.Codec
}

// changes are the settings that change samples of a file.
func (s *Settings) changes(f *soundfile.File) (names []string) {
	for _, c := range []struct {
		name string
		set  bool
	}{
		{"channels", s.Channels == "mono" && f.Format.Channels != 1 || s.Channels == "stereo" && f.Format.Channels != 2},
		{"rate", s.Rate != 0 && s.Rate != f.Format.Rate},
		{"max_rate", s.MaxRate != 0 && s.MaxRate < f.Format.Rate},
		{"trim", s.Trim}, {"fade_in", s.FadeIn > 0}, {"fade_out", s.FadeOut > 0}, {"bake", s.Bake},
	} {
		if c.set {
			names = append(names, c.name)
		}
	}
	return names
}

// extensions of products by codec; with keep, the source's own.
var extensions = map[string]string{
	"qoa": ".qoa", "pcm": ".wav", "float": ".wav", "adpcm": ".wav", "flac": ".flac", "opus": ".opus", "vorbis": ".ogg",
}

// blockFor is the size of a block for each channel.
func (s *Settings) blockFor(rate int) int {
	switch {
	case s.Block >= 8:
		return s.Block / 4 * 4
	case rate > 30000:
		return 1024
	case rate > 15000:
		return 512
	}
	return 256
}

// bitrateFor is the bit rate of Opus in kbit/s that its authors recommend for music.
func (s *Settings) bitrateFor(channels int) int {
	switch {
	case s.Bitrate > 0:
		return s.Bitrate
	case channels == 1:
		return 64
	}
	return 48 * channels
}
