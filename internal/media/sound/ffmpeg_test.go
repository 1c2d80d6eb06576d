package sound

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBesideFFmpeg compares with ffmpeg's filter ebur128 if ffmpeg is installed: on a sound made here, and on the
// sounds of real projects if KILN_CORPUS is their folder.
func TestBesideFFmpeg(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("there is no ffmpeg to compare with")
	}
	n := noise(9)
	const seconds, rate = 8, 44100
	samples := n.fill(2*rate*seconds, 0.2)
	for i := range samples {
		at := float64(i/2) / rate
		samples[i] += float32(0.3 * math.Sin(2*math.Pi*(60+500*at)*at))
		samples[i] *= float32(math.Exp2(-8 * math.Abs(math.Sin(at))))
	}
	raw := new(bytes.Buffer)
	if err := binary.Write(raw, binary.LittleEndian, samples); err != nil {
		t.Fatal(err)
	}
	beside(t, "made", Format{Rate: rate, Channels: 2}, raw.Bytes())

	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		return
	}
	err := filepath.WalkDir(corpus, func(file string, _ fs.DirEntry, err error) error {
		switch strings.ToLower(filepath.Ext(file)) {
		case ".wav", ".ogg", ".mp3", ".flac":
			probe, err := exec.Command("ffprobe", "-v", "error", "-select_streams", "a:0", "-show_entries", "stream=sample_rate,channels",
				"-of", "default=nk=1:nw=1", file).Output()
			var f Format
			if _, scan := fmt.Sscan(string(probe), &f.Rate, &f.Channels); err != nil || scan != nil {
				t.Errorf("%s: %v, %v", file, err, scan)
				return nil
			}
			raw, err := exec.Command("ffmpeg", "-v", "error", "-nostdin", "-i", file, "-map", "a:0", "-f", "f32le", "-").Output()
			if err != nil {
				t.Errorf("%s: %v", file, err)
				return nil
			}
			beside(t, filepath.Base(file), f, raw)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// beside compares the measurements of raw samples with those of ffmpeg.
func beside(t *testing.T, name string, f Format, raw []byte) {
	t.Helper()
	filter := "ebur128=peak=true:metadata=1,ametadata=print:file=-"
	if f.Rate < 44100 { // ffmpeg's filters are made for 48 kHz; near half of a low rate they are up to 0.3 LU off
		filter = "aresample=48000:filter_size=64," + filter
	}
	cmd := exec.Command("ffmpeg", "-v", "error", "-f", "f32le", "-ar", fmt.Sprint(f.Rate), "-ac", fmt.Sprint(f.Channels), "-i", "-",
		"-af", filter, "-f", "null", "-")
	cmd.Stdin = bytes.NewReader(raw)
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: ffmpeg: %v", name, err)
		return
	}
	theirs := map[string]float64{}
	highest := math.Inf(-1)
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "lavfi.r128."), "=")
		var v float64
		if _, err := fmt.Sscan(value, &v); err == nil {
			theirs[key] = v
			if key == "M" {
				highest = max(highest, v)
			}
		}
	}
	samples := make([]float32, len(raw)/4)
	if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, samples); err != nil {
		t.Error(err)
		return
	}
	l := measure(t, Samples(f, samples))
	t.Logf("%-28s %6d Hz %d ch %6.2f s  %-10v I %7.3f %+.3f  M %7.2f %+.2f  LRA %5.2f %+.2f  TP %6.3f %+.3f dB", name, f.Rate, f.Channels,
		float64(l.Frames)/float64(f.Rate), l.Basis, l.LUFS, l.LUFS-theirs["I"], l.MomentaryMax, l.MomentaryMax-highest, l.Range,
		l.Range-theirs["LRA"], l.TruePeak, Decibels(l.TruePeak)-Decibels(theirs["true_peak"]))
	if l.Basis == Integrated && l.LUFS > -69 && math.Abs(l.LUFS-theirs["I"]) > 0.05 {
		t.Errorf("%s: %.3f LUFS, ffmpeg has %.3f", name, l.LUFS, theirs["I"])
	}
}
