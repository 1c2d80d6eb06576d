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

// TestBesideFFmpeg compares with ffmpeg's filter ebur128 if ffmpeg is installed: on sounds made here, and on those of
// real projects if KILN_CORPUS is their folder.
//
// Both measure the same samples, and three things differ. All three are ffmpeg's: [likeFFmpeg] has them in place of ours,
// and its loudness is ffmpeg's to 0.002 LU at every rate.
//
//   - Its filters have the gain of the standard only at 48 kHz. At 192 kHz they are 0.03 dB softer, at 8 kHz 0.2 dB louder.
//   - It rounds the loudness of each block down to 0.01 LU, which makes the whole 0.005 LU softer in the mean.
//   - It compares what was rounded with the gate, which is rounded too, so that blocks up to 0.01 LU below the gate count.
//     By BS.1770-4 only those above it do.
//
// The first two are less than 0.05 LU from 44.1 kHz on. Sounds of lower rates are compared after ffmpeg has resampled them
// to 48 kHz. The third, as any change by 0.01 LU, decides whether a block at the gate counts, which can be 0.6 LU of a
// sound of a few seconds. Sounds with a block within 0.02 LU of the gate may have either loudness.
func TestBesideFFmpeg(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("there is no ffmpeg to compare with")
	}
	beside(t, "made", Format{Rate: 44100, Channels: 2}, sweep(44100, 2, 8))
	for _, rate := range []int{8000, 11025, 96000, 192000} {
		beside(t, "made", Format{Rate: rate, Channels: 1}, sweep(rate, 1, 4))
	}
	below := belowGate()
	mono := Format{Rate: 48000, Channels: 1}
	beside(t, "below the gate", mono, below)
	ours := measure(t, Samples(mono, below)).LUFS
	if theirs, _ := ebur128(t, mono, below, ""); ours-theirs["I"] < 0.5 {
		t.Errorf("%.3f LUFS, ffmpeg has %.3f: it does not count blocks below the gate any more", ours, theirs["I"])
	}

	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		return
	}
	err := filepath.WalkDir(corpus, func(file string, _ fs.DirEntry, err error) error {
		switch strings.ToLower(filepath.Ext(file)) {
		case ".wav", ".ogg", ".oga", ".mp3", ".flac":
			probe, err := exec.Command("ffprobe", "-v", "error", "-select_streams", "a:0", "-show_entries", "stream=sample_rate,channels",
				"-of", "default=nk=1:nw=1", file).Output()
			var f Format
			if _, scan := fmt.Sscan(string(probe), &f.Rate, &f.Channels); err != nil || scan != nil {
				t.Errorf("%s: %v, %v", file, err, scan)
				return nil
			}
			raw, err := exec.Command("ffmpeg", "-v", "error", "-nostdin", "-i", file, "-map", "a:0", "-f", "f32le", "-").Output()
			samples := make([]float32, len(raw)/4)
			if err == nil {
				err = binary.Read(bytes.NewReader(raw), binary.LittleEndian, samples)
			}
			if err != nil {
				t.Errorf("%s: %v", file, err)
				return nil
			}
			beside(t, filepath.Base(file), f, samples)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// sweep is noise and a rising tone, the level of which changes.
func sweep(rate, channels, seconds int) []float32 {
	n := noise(9)
	samples := n.fill(channels*rate*seconds, 0.2)
	for i := range samples {
		at := float64(i/channels) / float64(rate)
		samples[i] += float32(0.3 * math.Sin(2*math.Pi*(60+500*at)*at))
		samples[i] *= float32(math.Exp2(-8 * math.Abs(math.Sin(at))))
	}
	return samples
}

// belowGate is a loud tone of 4 s, then a soft one of 1 s, at 48 kHz. The blocks of the soft one are 0.004 LU below the
// gate, with the same two decimals.
func belowGate() []float32 {
	const rate, loud = 48000, 0.5
	// Of 47 blocks, 37 are loud, 7 soft, and 3 have three, two and one quarters of the loud tone.
	soft := loud * math.Sqrt(38.5/(470-8.5)) * math.Pow(10, -0.004/20)
	samples := make([]float32, 5*rate)
	for i := range samples {
		amplitude := loud
		if i >= 4*rate {
			amplitude = soft
		}
		samples[i] = float32(amplitude * math.Sin(2*math.Pi*1000*float64(i)/rate))
	}
	return samples
}

// ebur128 returns what ffmpeg's filter measures, and the highest momentary loudness.
func ebur128(t *testing.T, f Format, samples []float32, before string) (last map[string]float64, highest float64) {
	t.Helper()
	raw := new(bytes.Buffer)
	if err := binary.Write(raw, binary.LittleEndian, samples); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ffmpeg", "-v", "error", "-f", "f32le", "-ar", fmt.Sprint(f.Rate), "-ac", fmt.Sprint(f.Channels), "-i", "-",
		"-af", before+"ebur128=peak=true:metadata=1,ametadata=print:file=-", "-f", "null", "-")
	cmd.Stdin = raw
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("ffmpeg: %v", err)
	}
	last, highest = map[string]float64{}, math.Inf(-1)
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "lavfi.r128."), "=")
		var v float64
		if _, err := fmt.Sscan(value, &v); err == nil {
			last[key] = v
			if key == "M" {
				highest = max(highest, v)
			}
		}
	}
	return last, highest
}

// beside compares the measurements of samples with those of ffmpeg.
func beside(t *testing.T, name string, f Format, samples []float32) {
	t.Helper()
	theirs, highest := ebur128(t, f, samples, "")
	l := measure(t, Samples(f, samples))
	t.Logf("%-28s %6d Hz %d ch %6.2f s  %-10v I %7.3f %+.3f  M %7.2f %+.2f  LRA %5.2f %+.2f  TP %6.3f %+.3f dB", name, f.Rate, f.Channels,
		float64(l.Frames)/float64(f.Rate), l.Basis, l.LUFS, l.LUFS-theirs["I"], l.MomentaryMax, l.MomentaryMax-highest, l.Range,
		l.Range-theirs["LRA"], l.TruePeak, Decibels(l.TruePeak)-Decibels(theirs["true_peak"]))
	if l.Basis != Integrated || l.LUFS < -69 {
		return
	}
	if like := likeFFmpeg(f, samples); f.Channels <= 2 && math.Abs(like-theirs["I"]) > 0.002 {
		t.Errorf("%s: ffmpeg's method is %.4f LUFS, ffmpeg has %.3f", name, like, theirs["I"])
	}
	if f.Rate < 44100 {
		theirs, _ = ebur128(t, f, samples, "aresample=48000:filter_size=256:cutoff=0.995,")
	}
	if near, other := nearGate(t, f, samples); math.Abs(l.LUFS-theirs["I"]) > 0.05 && !(near && math.Abs(other-theirs["I"]) <= 0.05) {
		t.Errorf("%s: %.3f LUFS, ffmpeg has %.3f", name, l.LUFS, theirs["I"])
	}
}

// nearGate reports whether a block lies within 0.02 LU of the relative gate, and returns the loudness with such blocks on
// the other side of it.
func nearGate(t *testing.T, f Format, samples []float32) (near bool, other float64) {
	t.Helper()
	m, err := NewMeter(Samples(f, samples), MeterOptions{})
	if err == nil {
		err = each(m, func([]float32) {})
	}
	if err != nil {
		t.Fatal(err)
	}
	var loud, kept []float64
	for _, p := range m.powers(shortHops / segmentHops) {
		if p > meanSquare(minLUFS) {
			loud = append(loud, p)
		}
	}
	gate := lufs(mean(loud)) - 10
	for _, p := range loud {
		above := lufs(p) > gate
		if math.Abs(lufs(p)-gate) < 0.02 {
			near, above = true, !above
		}
		if above {
			kept = append(kept, p)
		}
	}
	return near, lufs(mean(kept))
}

// likeFFmpeg measures one or two channels as ffmpeg does: with its filters, and with a count of blocks for each 0.01 LU
// in place of the blocks.
func likeFFmpeg(f Format, samples []float32) float64 {
	w := newWeighting(f.Rate)
	k := math.Tan(math.Pi * 1681.974450955533 / float64(f.Rate))
	kq, high := k/0.7071752369554196, math.Pow(10, 3.999843853973347/20)
	band := math.Pow(high, 0.4996667741545416)
	a0 := 1 + kq + k*k
	w.shelf = biquad{(high + band*kq + k*k) / a0, 2 * (k*k - high) / a0, (high - band*kq + k*k) / a0, 2 * (k*k - 1) / a0, (1 - kq + k*k) / a0}
	w.pass.b0, w.pass.b1, w.pass.b2 = 1, -2, 1

	frames, step, block := len(samples)/f.Channels, f.Rate/10, f.Rate*4/10
	squares := make([]float64, frames+1) // the sum before each frame
	for c := range f.Channels {
		st := new(weightState)
		for i := range frames {
			w.add(st, samples[i*f.Channels+c:][:1])
			squares[i+1] += st.sum
		}
	}
	const grain, lowest = 100, -70
	var counts [80*grain + 1]float64
	sum, n, result := 0.0, 0.0, float64(lowest)
	slot := func(lufs float64) int { return max(0, min(int((lufs-lowest)*grain), len(counts)-1)) }
	for end := (block + step - 1) / step * step; end <= frames; end += step {
		power := (squares[end] - squares[end-block]) / float64(block)
		if loudness := 10*math.Log10(power) - 0.691; loudness >= lowest {
			counts[slot(loudness)]++
			sum, n = sum+power, n+1
		}
	}
	kept, above := 0.0, 0.0
	for i := slot(10*math.Log10(sum/n) - 0.691 - 10); i < len(counts); i++ {
		kept += counts[i]
		above += counts[i] * math.Pow(10, (float64(i)/grain+lowest+0.691)/10)
	}
	if kept > 0 {
		result = 10*math.Log10(above/kept) - 0.691
	}
	return result
}
