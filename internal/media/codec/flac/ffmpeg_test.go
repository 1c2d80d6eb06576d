package flac

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// raw are samples as ffmpeg takes and gives them: the highest of 32 bits.
func raw(src []int32, bits int) (b []byte) {
	for _, v := range src {
		b = binary.LittleEndian.AppendUint32(b, uint32(v)<<(32-bits))
	}
	return b
}

// TestFFmpeg reads what ffmpeg writes, and has ffmpeg read what this writes. All of it has an MD5, which is checked too.
func TestFFmpeg(t *testing.T) {
	tool, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed, so nobody judges what is read")
	}
	run := func(args ...string) []byte {
		t.Helper()
		out, err := exec.Command(tool, append([]string{"-nostdin", "-v", "error"}, args...)...).Output()
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return out
	}
	dir := t.TempDir()
	for i := range 8 {
		f := Format{44100, i + 1, []int{16, 24}[i&1], masks[i+1]}
		src := tones(6000, f)
		from, ours, theirs := filepath.Join(dir, "src.raw"), filepath.Join(dir, "ours.flac"), filepath.Join(dir, "theirs.flac")
		if err := os.WriteFile(from, raw(src, f.Bits), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(ours, encode(t, f, Options{}, src), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := run("-i", ours, "-f", "s32le", "-"); string(got) != string(raw(src, f.Bits)) {
			t.Errorf("%+v: ffmpeg reads others than were written", f)
		}
		sample := map[int]string{16: "s16", 24: "s32"}[f.Bits]
		run("-y", "-f", "s32le", "-ar", "44100", "-ac", fmt.Sprint(f.Channels), "-i", from, "-sample_fmt", sample, "-compression_level",
			[]string{"0", "2", "5", "8", "12"}[i%5], theirs)
		data, err := os.ReadFile(theirs)
		if err != nil {
			t.Fatal(err)
		}
		want := run("-i", theirs, "-f", "s32le", "-")
		d := must(t, data)
		if got := raw(all(t, d, 1000), d.Bits); string(got) != string(want) || len(d.Warnings) > 0 || d.Bits != f.Bits {
			t.Errorf("%+v: %+v, others than ffmpeg reads: %q", f, d.Format, d.Warnings)
		}
	}
}

// TestCorpus reads real files, and writes them once more.
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
