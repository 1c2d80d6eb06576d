// Command sound compares Kiln's processing of sound with the installed peers, and prints a table with seconds of
// processor time and the results. Peers that are not installed are listed and left out.
//
//	go run ./bench/sound                      a synthetic piece of 60 s
//	go run ./bench/sound -f music.wav         a file
//	go run ./bench/sound -npm FOLDER          with npm's qoa-format, installed in this folder
//	go run ./bench/sound -folder FOLDER       also loudness and FLAC of all sounds in a folder
//	go run ./bench/sound -import 200          also the import of this many short sounds, compared with Godot 3
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
	rt "github.com/kiln-pipeline/kiln/kilnrt/sound"
)

func main() {
	file := flag.String("f", "", "a WAV file of 16 bits; without one, a synthetic piece of 60 s at 44,100 Hz")
	npm := flag.String("npm", "", "folder in which npm's qoa-format is installed")
	folder := flag.String("folder", "", "folder of sounds to compare with ffmpeg and flac")
	imports := flag.Int("import", 0, "how many sounds to import beside godot3-server")
	flag.Parse()
	if err := run(*file, *npm, *folder, *imports); err != nil {
		fmt.Fprintln(os.Stderr, "sound:", err)
		os.Exit(1)
	}
}

type bench struct {
	dir, in string
	pcm     []byte // a WAV file of 16 bits
	seconds float64
}

func run(file, npm, folder string, imports int) error {
	dir, err := os.MkdirTemp("", "kiln-sound")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, in: filepath.Join(dir, "in.wav")}
	if b.pcm, err = input(file); err != nil {
		return err
	}
	if err := os.WriteFile(b.in, b.pcm, 0o666); err != nil {
		return err
	}
	f, err := b.open()
	if err != nil {
		return err
	}
	b.seconds = f.Seconds()
	fmt.Printf("%.0f s, %d Hz, %d channels\n\n| | | seconds of CPU | |\n|---|---|---|---|\n", b.seconds, f.Format.Rate, f.Format.Channels)
	steps := []func() error{b.loudness, b.resample, b.flac, func() error { return b.qoa(npm) }, b.adpcm}
	if folder != "" {
		steps = append(steps, func() error { return b.folder(folder) })
	}
	if imports > 0 {
		steps = append(steps, func() error { return b.imports(imports) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// input returns a file, or a mix of noise, tones and hits that is the same each time.
func input(file string) ([]byte, error) {
	if file != "" {
		return os.ReadFile(file)
	}
	const rate, seconds = 44100, 60
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]float32, 0, 2*rate*seconds)
	var low, hit float64
	for i := range rate * seconds {
		t := float64(i) / rate
		if i%11025 == 0 {
			hit = 0.5
		}
		hit *= 0.9995
		low += (r.NormFloat64()*0.1 - low) * 0.05
		chord := 0.0
		for k, hz := range []float64{110, 164.8, 220, 277.2, 440} {
			chord += 0.06 * math.Sin(2*math.Pi*hz*t+float64(k)) * (0.6 + 0.4*math.Sin(t*float64(k+1)*0.7))
		}
		noise := hit * r.NormFloat64() * 0.2
		all = append(all, float32(chord+low+noise), float32(chord*0.8-low+noise*0.7))
	}
	var b bytes.Buffer
	w, err := wav.NewWriter(&b, wav.Format{Rate: rate, Channels: 2, Coding: wav.PCM, Bits: 16}, wav.Metadata{}, rate*seconds)
	if err == nil {
		err = w.Write(all)
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

func (b *bench) open() (*soundfile.File, error) {
	return soundfile.Open(bytes.NewReader(b.pcm), int64(len(b.pcm)))
}

// ours runs a piece of work several times, and returns the least time.
func ours(work func() error) (least time.Duration, err error) {
	for i := range 3 {
		from := cpu()
		if err := work(); err != nil {
			return 0, err
		}
		if t := cpu() - from; i == 0 || t < least {
			least = t
		}
	}
	return least, nil
}

// peer runs a program, and returns its time and its output. The time is 0 if it is not installed.
func peer(name string, args ...string) (time.Duration, string) {
	var said []byte
	var least time.Duration
	for i := range 3 {
		cmd := exec.Command(name, args...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return 0, err.Error()
		}
		if t := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); i == 0 || t < least {
			least, said = t, out
		}
	}
	return least, string(said)
}

func row(what, who string, t time.Duration, words string) {
	fmt.Printf("| %s | %s | %.2f | %s |\n", what, who, t.Seconds(), words)
}

func missing(what, who, why string) { fmt.Printf("| %s | %s | - | %s |\n", what, who, why) }

func (b *bench) loudness() error {
	var l sound.Loudness
	t, err := ours(func() error {
		f, err := b.open()
		if err != nil {
			return err
		}
		src, err := f.Source()
		if err == nil {
			l, err = sound.Measure(src, sound.MeterOptions{})
		}
		return err
	})
	if err != nil {
		return err
	}
	const what = "loudness with true peak"
	row(what, "kiln", t, fmt.Sprintf("%.2f LUFS, range %.2f LU, %.2f dBTP", l.LUFS, l.Range, sound.Decibels(l.TruePeak)))
	pt, said := peer("ffmpeg", "-hide_banner", "-i", b.in, "-af", "ebur128=peak=true", "-f", "null", "-")
	if pt == 0 {
		missing(what, "ffmpeg", said)
		return nil
	}
	get := func(name string) string {
		all := regexp.MustCompile(name+`:\s+(-?[\d.]+)`).FindAllStringSubmatch(said, -1)
		if len(all) == 0 {
			return "?"
		}
		return all[len(all)-1][1]
	}
	row(what, "ffmpeg", pt, fmt.Sprintf("%s LUFS, range %s LU, %s dBTP", get("I"), get("LRA"), get("Peak")))
	return nil
}

func (b *bench) resample() error {
	const what = "to 48,000 Hz"
	t, err := ours(func() error {
		f, err := b.open()
		if err != nil {
			return err
		}
		src, err := f.Source()
		if err != nil {
			return err
		}
		r, err := sound.Resample(src, sound.Conversion{Rate: 48000})
		if err != nil {
			return err
		}
		buf := make([]float32, 8192*f.Format.Channels)
		for err == nil {
			_, err = r.Read(buf)
		}
		if err == io.EOF {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	row(what, "kiln", t, "rejection 120 dB or more")
	for _, p := range [][]string{{"sox", b.in, filepath.Join(b.dir, "sox.wav"), "rate", "-v", "48000"},
		{"ffmpeg", "-v", "error", "-y", "-i", b.in, "-ar", "48000", filepath.Join(b.dir, "ff.wav")}} {
		if pt, said := peer(p[0], p[1:]...); pt > 0 {
			row(what, p[0], pt, "")
		} else {
			missing(what, p[0], said)
		}
	}
	return nil
}

// seeker is a file in memory.
type seeker struct {
	b  []byte
	at int
}

func (s *seeker) Write(p []byte) (int, error) {
	if need := s.at + len(p); need > len(s.b) {
		s.b = append(s.b, make([]byte, need-len(s.b))...)
	}
	copy(s.b[s.at:], p)
	s.at += len(p)
	return len(p), nil
}

func (s *seeker) Seek(offset int64, whence int) (int64, error) {
	s.at = map[int]int{io.SeekStart: 0, io.SeekCurrent: s.at, io.SeekEnd: len(s.b)}[whence] + int(offset)
	return int64(s.at), nil
}

// encoded returns the sound encoded by one of Kiln's encoders, and the time that took.
func (b *bench) encoded(write func(o *soundfile.Output, to *seeker, src sound.Source) error) ([]byte, time.Duration, error) {
	var out []byte
	t, err := ours(func() error {
		f, err := b.open()
		if err != nil {
			return err
		}
		src, err := f.Source()
		if err != nil {
			return err
		}
		to := &seeker{b: make([]byte, 0, len(b.pcm))}
		err = write(&soundfile.Output{Frames: f.Frames, Notes: &soundfile.Notes{Silent: true}, Bits: 16, Block: 1024}, to, src)
		out = to.b
		return err
	})
	return out, t, err
}

func (b *bench) flac() error {
	const what = "FLAC"
	data, t, err := b.encoded(func(o *soundfile.Output, to *seeker, src sound.Source) error { return o.FLAC(to, src) })
	if err != nil {
		return err
	}
	row(what, "kiln", t, fmt.Sprintf("%d bytes", len(data)))
	out := filepath.Join(b.dir, "peer.flac")
	for _, level := range []string{"-5", "-8"} {
		pt, said := peer("flac", "-s", "-f", level, b.in, "-o", out)
		if pt == 0 {
			missing(what, "flac "+level, said)
			return nil
		}
		s, err := os.Stat(out)
		if err != nil {
			return err
		}
		row(what, "flac "+level, pt, fmt.Sprintf("%d bytes", s.Size()))
	}
	mine := filepath.Join(b.dir, "mine.flac")
	if err := os.WriteFile(mine, data, 0o666); err != nil {
		return err
	}
	if pt, said := peer("flac", "-s", "-t", mine); pt > 0 {
		row(what, "flac -t of kiln's", pt, "whole")
	} else {
		missing(what, "flac -t of kiln's", said)
	}
	return nil
}

// ratio returns the ratio of the sound to the error of a decoded file, in dB.
func (b *bench) ratio(data []byte) (float64, time.Duration, error) {
	f, err := b.open()
	if err != nil {
		return 0, 0, err
	}
	src, err := f.Source()
	if err != nil {
		return 0, 0, err
	}
	want, err := sound.All(src)
	if err != nil {
		return 0, 0, err
	}
	s, err := rt.Open(data)
	if err != nil {
		return 0, 0, err
	}
	got := make([]int16, len(want))
	t, err := ours(func() error { s.Play().Read(got); return nil })
	var power, noise float64
	for i, v := range want {
		d := float64(v) - float64(got[i])/32768
		power, noise = power+float64(v)*float64(v), noise+d*d
	}
	return 10 * math.Log10(power/noise), t, err
}

func (b *bench) qoa(npm string) error {
	data, t, err := b.encoded(func(o *soundfile.Output, to *seeker, src sound.Source) error { return o.QOA(to, src) })
	if err != nil {
		return err
	}
	snr, dt, err := b.ratio(data)
	if err != nil {
		return err
	}
	rate := func(t time.Duration) string {
		return strconv.FormatFloat(float64(len(b.pcm))/1e6/t.Seconds(), 'f', 0, 64) + " MB/s of PCM"
	}
	row("QOA", "kiln", t, fmt.Sprintf("%d bytes, SNR %.2f dB, %s", len(data), snr, rate(t)))
	row("QOA decoded", "kilnrt/sound", dt, rate(dt))
	if npm == "" {
		missing("QOA", "npm qoa-format", "say where it is installed: -npm FOLDER")
		return nil
	}
	mine := filepath.Join(b.dir, "mine.qoa")
	if err := os.WriteFile(mine, data, 0o666); err != nil {
		return err
	}
	out, err := exec.Command("node", "bench/sound/peers.mjs", npm, b.in, mine).Output()
	if err != nil {
		missing("QOA", "npm qoa-format", err.Error())
		return nil
	}
	var p struct {
		Encoding, Decoding, SNR, Ours float64
		OursFrames                    int64
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return err
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	row("QOA", "npm qoa-format", seconds(p.Encoding),
		fmt.Sprintf("SNR %.2f dB, %s; of kiln's file it reads %d frames, SNR %.2f dB", p.SNR, rate(seconds(p.Encoding)),
			p.OursFrames, p.Ours))
	row("QOA decoded", "npm qoa-format", seconds(p.Decoding), rate(seconds(p.Decoding)))
	return nil
}

func (b *bench) adpcm() error {
	data, t, err := b.encoded(func(o *soundfile.Output, to *seeker, src sound.Source) error {
		return o.WAV(to, src, wav.IMAADPCM, wav.Metadata{})
	})
	if err != nil {
		return err
	}
	snr, dt, err := b.ratio(data)
	if err != nil {
		return err
	}
	row("IMA ADPCM", "kiln", t, fmt.Sprintf("%d bytes, SNR %.2f dB", len(data), snr))
	row("IMA ADPCM decoded", "kilnrt/sound", dt, "")
	return nil
}
