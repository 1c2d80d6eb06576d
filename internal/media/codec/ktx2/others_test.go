package ktx2

import (
	"bytes"
	"encoding/binary"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// zstdOf has the program zstd pack or unpack data.
func zstdOf(t *testing.T, data []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("zstd", append([]string{"-q", "-c"}, args...)...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("zstd %v: %v", args, err)
	}
	return out
}

// TestOthers exchanges levels with zstd. No other program that reads KTX2 is available: textures of each format, which it packs in
// all its ways, have to come back unchanged, and it has to unpack what this package packs.
func TestOthers(t *testing.T) {
	if _, err := exec.LookPath("zstd"); err != nil {
		t.Skip("zstd is not installed")
	}
	ways := []string{"-1", "-3 --no-check", "-19", "--fast=5", "-3 --no-content-size", "two frames"}
	files := 0
	for i, f := range every() {
		if i%thorough.OfPeers(9, 5, 1) != 0 {
			continue
		}
		in := plain(f, 37, 22, 2)
		whole, err := Encode(in)
		if err != nil {
			t.Fatal(err)
		}
		for j, way := range ways {
			if !thorough.Whole() && (i/9+j)%3 != 0 {
				continue
			}
			data := slices.Clone(whole)
			binary.LittleEndian.PutUint32(data[44:], schemeZstandard)
			for n, level := range in.Levels { // the packed levels follow the others, which nothing refers to any more
				packed := []byte(nil)
				if way == "two frames" {
					half := len(level) / 2
					packed = append(zstdOf(t, level[:half], "-3"), zstdOf(t, level[half:], "-3")...)
				} else {
					packed = zstdOf(t, level, strings.Fields(way)...)
				}
				binary.LittleEndian.PutUint64(data[levelsAt+n*levelEntry:], uint64(len(data)))
				binary.LittleEndian.PutUint64(data[levelsAt+n*levelEntry+8:], uint64(len(packed)))
				data = append(data, packed...)
			}
			out, err := Decode(data)
			if err != nil {
				t.Errorf("%v, %s: %v", f, way, err)
				continue
			}
			for n, level := range in.Levels {
				if !bytes.Equal(out.Levels[n], level) {
					t.Errorf("%v, %s: level %d differs", f, way, n)
				}
			}
			files++
		}
		in.Zstd = true
		own, err := Encode(in)
		if err != nil {
			t.Fatal(err)
		}
		for n, level := range in.Levels {
			at := levelsAt + n*levelEntry
			from, size := binary.LittleEndian.Uint64(own[at:]), binary.LittleEndian.Uint64(own[at+8:])
			if got := zstdOf(t, own[from:from+size], "-d"); !bytes.Equal(got, level) {
				t.Errorf("%v: zstd unpacks another level %d", f, n)
			}
		}
	}
	t.Logf("%d files are equal", files)
}
