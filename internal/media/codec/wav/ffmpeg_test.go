package wav

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestFFmpeg compares the reader with ffmpeg on files that ffmpeg wrote.
func TestFFmpeg(t *testing.T) {
	tool, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed: no other decoder to compare with")
	}
	src, err := os.Create(filepath.Join(t.TempDir(), "src.wav"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	w, err := NewWriter(src, Format{Rate: 22050, Channels: 2, Coding: Float, Bits: 32}, Metadata{}, -1)
	if err != nil {
		t.Fatal(err)
	}
	samples := make([]float32, 2*5003)
	for i := range samples {
		samples[i] = float32(0.7 * math.Sin(float64(i)*0.01*float64(1+i%2)))
	}
	if err := w.Write(samples); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// For IMA ADPCM, ffmpeg computes (2n+1)/8 of a step and rounds it once; the recommended practices round each part. So
	// there are differences that accumulate up to the end of a block.
	for codec, most := range map[string]float64{"pcm_s24le": 0, "pcm_alaw": 0, "pcm_mulaw": 0, "adpcm_ima_wav": 0.02, "adpcm_ms": 0} {
		to := filepath.Join(t.TempDir(), "to.wav")
		if out, err := exec.Command(tool, "-v", "error", "-i", src.Name(), "-c:a", codec, to).CombinedOutput(); err != nil {
			t.Logf("%s: this ffmpeg does not write it: %v, %s", codec, err, out)
			continue
		}
		raw, err := exec.Command(tool, "-v", "error", "-i", to, "-f", "f32le", "-").Output()
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Errorf("%s: %v", codec, err)
			continue
		}
		got := all(t, r)
		if len(r.Warnings) > 0 || len(got) < 2*5003 || len(raw)/4 < len(got) {
			t.Errorf("%s: %d samples, ffmpeg %d; %q", codec, len(got), len(raw)/4, r.Warnings)
			continue
		}
		for i, v := range got {
			if want := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])); math.Abs(float64(v)-float64(want)) > most {
				t.Errorf("%s: sample %d is %v, and ffmpeg has %v", codec, i, v, want)
				break
			}
		}
	}
}
