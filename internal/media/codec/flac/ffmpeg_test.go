package flac

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// raw returns samples in the form of ffmpeg: in the highest of 32 bits.
func raw(src []int32, bits int) (b []byte) {
	for _, v := range src {
		b = binary.LittleEndian.AppendUint32(b, uint32(v)<<(32-bits))
	}
	return b
}

// TestFFmpeg decodes the output of ffmpeg, and has ffmpeg decode the output of this package. All files have an MD5, which is
// checked, too.
func TestFFmpeg(t *testing.T) {
	tool, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed: no other decoder to compare with")
	}
	dir := t.TempDir()
	from, ours := filepath.Join(dir, "src.raw"), filepath.Join(dir, "ours.flac")
	back, theirs := filepath.Join(dir, "back.raw"), filepath.Join(dir, "theirs.flac")
	for _, c := range []struct {
		channels, bits int
		format, level  string
	}{{1, 16, "s16", "0"}, {2, 24, "s32", "5"}, {2, 16, "s16", "12"}, {8, 24, "s32", "8"}} {
		f := Format{44100, c.channels, c.bits, masks[c.channels]}
		src := tones(6000, f)
		if err := errors.Join(os.WriteFile(from, raw(src, f.Bits), 0o600), os.WriteFile(ours, encode(t, f, Options{}, src), 0o600)); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(tool, "-nostdin", "-v", "error", "-y",
			"-f", "s32le", "-ar", "44100", "-ac", fmt.Sprint(f.Channels), "-i", from, "-i", ours,
			"-map", "1", "-f", "s32le", back,
			"-map", "0", "-sample_fmt", c.format, "-compression_level", c.level, theirs).CombinedOutput()
		if err != nil {
			t.Fatalf("%v, %s", err, out)
		}
		if got, err := os.ReadFile(back); err != nil || string(got) != string(raw(src, f.Bits)) {
			t.Errorf("%+v: ffmpeg reads others than were written: %v", f, err)
		}
		data, err := os.ReadFile(theirs)
		if err != nil {
			t.Fatal(err)
		}
		d := must(t, data)
		if got := all(t, d, 1000); !slices.Equal(got, src) || len(d.Warnings) > 0 || d.Bits != f.Bits || d.hashed != 6000 {
			t.Errorf("%+v: %+v, others than ffmpeg has written: %q", f, d.Format, d.Warnings)
		}
	}
}

// TestCorpus decodes real files, and encodes them again.
func TestCorpus(t *testing.T) {
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS is not set: no real sounds to read")
	}
	files, err := filepath.Glob(filepath.Join(corpus, "*", "examples", "audio", "resources", "*.flac"))
	if err != nil || len(files) == 0 {
		t.Skipf("no FLAC files in %s: %v", corpus, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := must(t, data)
		src := all(t, d, 4000)
		if len(d.Warnings) > 0 || d.hashed != d.Samples {
			t.Errorf("%s: %q, %d of %d samples in the MD5", file, d.Warnings, d.hashed, d.Samples)
		}
		if again := encode(t, d.Format, Options{}, src); len(again) > len(data) {
			t.Errorf("%s: %d bytes, and %d when it is written again", file, len(data), len(again))
		}
	}
}
