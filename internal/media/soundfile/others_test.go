package soundfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/media/codec/mp3"
)

// need skips a test if a program is missing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed: nothing to compare with", p)
		}
	}
}

// run runs a program, and returns its standard output.
func run(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	var errors bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v, %s", program, strings.Join(args, " "), err, errors.Bytes())
	}
	return out
}

// floats reads what a program wrote as 32-bit floats.
func floats(raw []byte) []float32 {
	all := make([]float32, len(raw)/4)
	for i := range all {
		all[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return all
}

// ffmpeg decodes a file with ffmpeg; before are arguments for its decoder.
func ffmpeg(t *testing.T, file string, before ...string) []float32 {
	t.Helper()
	args := append([]string{"-nostdin", "-v", "error"}, before...)
	return floats(run(t, "ffmpeg", append(args, "-i", file, "-c:a", "pcm_f32le", "-f", "f32le", "-")...))
}

// music is a rising tone with bursts of noise, clicks, silence and other sound on the right; speech is pulses through the
// resonances of a mouth, and hissing. Neither comes near full scale, where some decoders clip.
func music(r *rand.Rand, channels, frames int) []float32 {
	all := make([]float32, frames*channels)
	low, high := 80+200*r.Float64(), 2000*r.Float64()
	for i := range frames {
		t := float64(i) / 48000
		v := 0.12*math.Sin(2*math.Pi*(low+high*t)*t) + 0.03*math.Sin(2*math.Pi*5200*t)
		if i/5000%3 == 1 {
			v += 0.2 * (r.Float64() - 0.5)
		}
		if i%7919 < 3 {
			v += 0.2
		}
		if i/9000%4 == 3 {
			v = 0
		}
		for c := range channels {
			all[i*channels+c] = float32(v * []float64{1, 0.4, 0.7, 0.2, 0.5, 0.3}[c])
			if c == 1 {
				all[i*channels+c] += float32(0.1 * math.Sin(2*math.Pi*330*t))
			}
		}
	}
	return all
}

func speech(r *rand.Rand, channels, frames int) []float32 {
	all := make([]float32, frames*channels)
	var state [3][2]float64
	phase := 0.0
	for i := range frames {
		t := float64(i) / 48000
		vowel := [4][3]float64{{700, 1100, 2500}, {300, 2200, 2900}, {500, 900, 2400}, {400, 1900, 2600}}[int(5*t)%4]
		x := 0.01 * r.NormFloat64()
		if phase += (110 + 40*math.Sin(8*t) + 5*r.Float64()) / 48000; phase >= 1 {
			phase, x = phase-1, 1
		}
		if int(5*t)%5 == 4 {
			x = 0.1 * r.NormFloat64()
		}
		sum := 0.0
		for k, f := range vowel {
			decay := math.Exp(-math.Pi * float64(80+40*k) / 48000)
			v := x + 2*decay*math.Cos(2*math.Pi*f/48000)*state[k][0] - decay*decay*state[k][1]
			state[k] = [2]float64{v, state[k][0]}
			sum += v * (1 - decay) / float64(1+k)
		}
		for c := range channels {
			all[i*channels+c] = float32(2 * sum / float64(1+c))
		}
	}
	return all
}

// waveFile writes samples of 48 kHz to a WAV file of 16 bits.
func waveFile(t *testing.T, channels int, all []float32) string {
	t.Helper()
	data := make([]byte, 0, 44+2*len(all))
	le := binary.LittleEndian
	data = append(le.AppendUint32(append(data, "RIFF"...), uint32(36+2*len(all))), "WAVEfmt \x10\x00\x00\x00\x01\x00"...)
	data = le.AppendUint32(le.AppendUint32(le.AppendUint16(data, uint16(channels)), 48000), uint32(96000*channels))
	data = append(le.AppendUint16(data, uint16(2*channels)), "\x10\x00data"...)
	data = le.AppendUint32(data, uint32(2*len(all)))
	for _, v := range all {
		data = le.AppendUint16(data, uint16(int16(v*32767)))
	}
	file := filepath.Join(t.TempDir(), "source.wav")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// agree compares our samples of a file with those of another decoder: as many, and at least so many dB from theirs.
func agree(t *testing.T, what, file string, theirs []float32, least float64) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, data)
	got := samples(t, f)
	if w := f.AllWarnings(); len(got) != len(theirs) || len(w) > 0 {
		t.Errorf("%s: %d samples, another decoder has %d; %q", what, len(got), len(theirs), w)
		return
	}
	if r := ratio(theirs, got); r < least {
		t.Errorf("%s: %.1f dB from another decoder, want %.0f", what, r, least)
	}
}

// TestOthersMP3 compares with mpg123, or else with ffmpeg, on files that lame wrote: of each version and rate, constant and variable bit
// rate, one and two channels; and with ffmpeg on the same files with other flags for stereo, so that the right channel is directions.
func TestOthersMP3(t *testing.T) {
	need(t, "ffmpeg")
	seed := thorough.Seed(t)
	_, err := exec.LookPath("mpg123")
	rates := []int{48000, 22050, 8000, 44100, 16000, 11025, 32000, 24000, 12000}
	for i := range thorough.OfPeers(9, 12, 60) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		rate, channels := rates[i%len(rates)], 1+r.IntN(2)
		if rate == 24000 && err != nil {
			continue // ffmpeg 5.1 reads these otherwise than mpg123 and lame
		}
		args := []string{"-b:a", []string{"32k", "64k", "160k"}[r.IntN(3)]}
		if r.IntN(2) == 0 {
			args = []string{"-q:a", fmt.Sprint(r.IntN(10))}
		}
		args = append(args, "-joint_stereo", fmt.Sprint(r.IntN(2)), "-reservoir", fmt.Sprint(r.IntN(2)))
		file := filepath.Join(t.TempDir(), "a.mp3")
		run(t, "ffmpeg", append(append([]string{"-nostdin", "-v", "error", "-i", waveFile(t, channels, music(r, channels, 40000+r.IntN(999))),
			"-ar", fmt.Sprint(rate), "-c:a", "libmp3lame"}, args...), file)...)
		what := fmt.Sprintf("%d: %d Hz, %d channels, %s", i, rate, channels, args)
		if err == nil {
			agree(t, what, file, floats(run(t, "mpg123", "-q", "-e", "f32", "-s", file)), 100)
		} else {
			agree(t, what, file, ffmpeg(t, file), 100)
		}
		if rate < 32000 { // the bits of scale factors would be others
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		flags := byte(r.IntN(4)) << 4
		eachFrame(data, func(n int, frame []byte) {
			if n > 0 && frame[3]>>6 == 1 {
				frame[3] = frame[3]&^0x30 | flags
			}
		})
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		agree(t, fmt.Sprintf("%s, flags %x", what, flags), file, ffmpeg(t, file), 100)
	}
}

// TestOthersVorbis compares with oggdec, which gives 16 bits, on files of oggenc: of each rate and quality, and with packets that a limit
// of bits cuts short. (ffmpeg does not cut the end of files of one page, and counts other frames at quality -1.)
func TestOthersVorbis(t *testing.T) {
	need(t, "oggdec", "oggenc")
	seed := thorough.Seed(t)
	for i := range thorough.OfPeers(6, 8, 40) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		channels := 1 + r.IntN(2)
		args := []string{"-q", fmt.Sprint(r.IntN(12) - 1)}
		switch i % 3 {
		case 1:
			args = append(args, "--resample", []string{"8000", "11025", "16000", "22050", "32000", "44100"}[r.IntN(6)])
		case 2:
			channels = 2
			b := fmt.Sprint(48 + r.IntN(100))
			args = []string{"--managed", "-b", b, "-m", b, "-M", b}
		}
		file := filepath.Join(t.TempDir(), "a.ogg")
		run(t, "oggenc", append(args, "-Q", "-o", file, waveFile(t, channels, music(r, channels, 40000+r.IntN(999))))...)
		agree(t, fmt.Sprintf("%d: %d channels, %s", i, channels, args), file, oggdec(t, file), 60)
	}
	for channels := 3; channels <= 6; channels++ {
		r := rand.New(rand.NewPCG(seed, uint64(channels)))
		file := filepath.Join(t.TempDir(), "many.ogg")
		run(t, "oggenc", "-Q", "-o", file, waveFile(t, channels, music(r, channels, 30000)))
		need(t, "ffmpeg") // oggdec leaves the channels in the order of Vorbis
		agree(t, fmt.Sprintf("%d channels", channels), file, ffmpeg(t, file, "-c:a", "vorbis"), 110)
	}
}

// oggdec decodes a file with oggdec.
func oggdec(t *testing.T, file string) []float32 {
	t.Helper()
	raw := run(t, "oggdec", "-Q", "-R", "-o", "-", file)
	all := make([]float32, len(raw)/2)
	for i := range all {
		all[i] = float32(int16(binary.LittleEndian.Uint16(raw[2*i:]))) / (1 << 15)
	}
	return all
}

// TestOthersOpus compares with libopus, which gives 16 bits, on files of opusenc: music of each bit rate at which the transform codec is
// chosen, and packet length; and speech, of which the library computes the predictor in floats and libopus in integers.
func TestOthersOpus(t *testing.T) {
	need(t, "ffmpeg", "opusenc")
	seed := thorough.Seed(t)
	for i := range thorough.Of(8, 60) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		channels := 1 + r.IntN(2)
		size := []string{"2.5", "5", "10", "20", "40", "60"}[r.IntN(6)]
		args, all, least := []string{"--music", "--bitrate", fmt.Sprint(64 + 32*r.IntN(5))}, music(r, channels, 40000+r.IntN(999)), 60.0
		if i%2 == 1 {
			args, all, least = []string{"--speech", "--bitrate", fmt.Sprint(6 + r.IntN(26))}, speech(r, channels, 90000), 30
		}
		args = append(args, "--framesize", size, []string{"--vbr", "--cvbr", "--hard-cbr"}[r.IntN(3)])
		file := filepath.Join(t.TempDir(), "a.opus")
		run(t, "opusenc", append(args, "--quiet", waveFile(t, channels, all), file)...)
		agree(t, fmt.Sprintf("%d: %d channels, %s", i, channels, args), file, ffmpeg(t, file, "-c:a", "libopus"), least)
	}
}

// eachFrame calls f for each frame of an MP3 file, with its number.
func eachFrame(data []byte, f func(n int, frame []byte)) {
	at := 0
	if bytes.HasPrefix(data, []byte("ID3")) {
		at = 10 + int(data[6])<<21 + int(data[7])<<14 + int(data[8])<<7 + int(data[9])
	}
	for n := 0; at+4 <= len(data) && data[at] == 0xff; n++ {
		size := frameSize(data[at:])
		if size == 0 || at+size > len(data) {
			return
		}
		f(n, data[at:at+size])
		at += size
	}
}

func frameSize(b []byte) int {
	h, ok := mp3.ParseHead(b)
	if !ok {
		return 0
	}
	return h.Size
}
