package flac

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// TestOthers decodes random files of the program flac: each depth, block size, level and number of channels, with and without a known
// number of samples.
func TestOthers(t *testing.T) {
	tool, err := exec.LookPath("flac")
	if err != nil {
		t.Skip("flac is not installed: no other encoder to compare with")
	}
	seed := thorough.Seed(t)
	from := filepath.Join(t.TempDir(), "a.raw")
	for i := range thorough.OfPeers(40, 60, 300) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		f := Format{[]int{8000, 44100, 96000, 12345}[r.IntN(4)], 1 + r.IntN(8), []int{8, 16, 24}[r.IntN(3)], 0}
		src := tones(1+r.IntN(9000), f)
		for k := range src {
			switch i % 4 {
			case 1: // noise, which is stored as it is
				src[k] = int32(r.Uint32()) >> (32 - f.Bits)
			case 2: // bits that are not used
				src[k] &^= 7
			case 3: // silence, and the greatest values
				src[k] = []int32{0, 1<<(f.Bits-1) - 1, -1 << (f.Bits - 1)}[k/2000%3]
			}
		}
		var raw []byte
		for _, v := range src {
			for b := range f.Bits / 8 {
				raw = append(raw, byte(v>>(8*b)))
			}
		}
		if err := os.WriteFile(from, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"--totally-silent", "--force-raw-format", "--lax", "--endian=little", "--sign=signed",
			fmt.Sprintf("--sample-rate=%d", f.Rate),
			fmt.Sprintf("--channels=%d", f.Channels), fmt.Sprintf("--bps=%d", f.Bits), fmt.Sprintf("--blocksize=%d", 16+r.IntN(5000)),
			fmt.Sprintf("-%d", r.IntN(9)), "-c"}
		cmd := exec.Command(tool, append(args, from)...)
		if r.IntN(2) == 0 { // by a pipe: the number of samples is not known
			cmd = exec.Command(tool, append(args, "-")...)
			in, err := os.Open(from)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			cmd.Stdin = in
		}
		data, err := cmd.Output()
		if err != nil {
			t.Errorf("%d, %+v: flac: %v", i, f, err)
			continue
		}
		d := must(t, data)
		if got := all(t, d, 1000); !slices.Equal(got,
			src) || d.Bits != f.Bits || d.Rate != f.Rate || d.Channels != f.Channels || len(d.Warnings) > 0 {
			t.Errorf("%d, %+v, %s: %+v, %d values of %d, %q", i, f, args, d.Format, len(got), len(src), d.Warnings)
		}
	}
}
