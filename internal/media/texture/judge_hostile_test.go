package texture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// hostileLimits are small, so that code that ignores them is noticed.
var hostileLimits = pixel.Limits{MaxSide: 4096, MaxBytes: 1 << 20}

// hostileMost is the memory, freed or not, that one file may take under hostileLimits. It is eight times the limit for
// pixels, for the decoder's own picture with 16 bits and the pictures of 8 bits and in floating point that are made
// from it; and 16 MiB for tables, inflate windows, and a colour profile of up to 4 MiB, whose buffer doubles as it
// grows.
const hostileMost = 8<<20 + 16<<20

// allocated returns the memory that work allocates in total.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// openHostile does what a processor does with every file that it opens.
func openHostile(name string, data []byte) error {
	if !IsFile(data) {
		_, err := pixel.DecodePicture(name, data, hostileLimits)
		return err
	}
	f, err := Open(data, hostileLimits)
	if err != nil {
		return err
	}
	_, err = f.Images()
	return err
}

// hugeNumbers are the bytes that replace a file's fields.
func hugeNumbers() [][]byte {
	var all [][]byte
	for _, v := range []uint32{4096, 65535, 1 << 20, 1<<31 - 1, 1<<32 - 1} {
		all = append(all, binary.LittleEndian.AppendUint32(nil, v), binary.BigEndian.AppendUint32(nil, v))
		if v < 1<<16 {
			all = append(all, binary.LittleEndian.AppendUint16(nil, uint16(v)), binary.BigEndian.AppendUint16(nil, uint16(v)))
		}
	}
	return append(all, []byte{0xff}, bytes.Repeat([]byte{0xff}, 8))
}

// goodFiles are pictures in every format that can be read, and textures.
func goodFiles(t *testing.T) map[string][]byte {
	t.Helper()
	dir := filepath.Join("..", "pixel", "testdata")
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range found {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = data
	}
	for _, container := range []string{"ktx2", "dds"} {
		for _, name := range []string{"rgba8", "bc7", "bc6h", "astc8x8"} { // each has another decoder or another block size
			if name == "astc8x8" && container == "dds" {
				continue
			}
			o := with(func(o *Options) { o.Container, o.Format, o.Quality = container, name, "fast" })
			files[name+"."+container] = encode(t, Images{Pictures: pictures(1, 5, 6)}, o, Tools{})
			if container == "ktx2" {
				o.Compress = "zstd"
				files[name+"_zstd.ktx2"] = encode(t, Images{Cube, pictures(6, 4, 4)}, o, Tools{})
			}
		}
	}
	return files
}

// TestHugeNumbersCostNothing replaces each number in a file's header by a huge one. Reading the file must stay within
// the memory that its limits allow.
func TestHugeNumbersCostNothing(t *testing.T) {
	for name, good := range goodFiles(t) {
		if err := openHostile(name, good); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		step := 1
		if !thorough.Enabled() {
			step = 4
		}
		for at := 0; at < min(len(good), 256); at += step {
			for _, huge := range hugeNumbers() {
				if at+len(huge) > len(good) {
					continue
				}
				bad := bytes.Clone(good)
				copy(bad[at:], huge)
				if filepath.Ext(name) == ".png" {
					fixPNG(bad)
				}
				var err error
				if n := allocated(func() { err = openHostile(name, bad) }); n > hostileMost {
					t.Errorf("%s with % x at %d: %d bytes allocated, %v", name, huge, at, n, err)
				}
			}
		}
	}
}

// fixPNG corrects the checksums, as far as chunks can be followed, so that the data behind them is read.
func fixPNG(data []byte) {
	for at := 8; at+12 <= len(data); {
		n := int(binary.BigEndian.Uint32(data[at:]))
		if n > len(data)-at-12 {
			return
		}
		binary.BigEndian.PutUint32(data[at+8+n:], crc32.ChecksumIEEE(data[at+4:at+8+n]))
		at += 12 + n
	}
}

// deflated returns n deflated zeros.
func deflated(t *testing.T, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	zeros := make([]byte, 1<<20)
	for ; n > 0; n -= len(zeros) {
		if _, err := w.Write(zeros[:min(n, len(zeros))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func pngFile(width, height uint32, chunks ...[]byte) []byte {
	head := append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("IHDR"), width), height), 8, 2, 0, 0, 0)
	data := []byte("\x89PNG\r\n\x1a\n")
	for _, c := range append(append([][]byte{head}, chunks...), []byte("IEND")) {
		data = binary.BigEndian.AppendUint32(data, uint32(len(c)-4))
		data = binary.BigEndian.AppendUint32(append(data, c...), crc32.ChecksumIEEE(c))
	}
	return data
}

// tiffFile is a grey picture of 8 bits in one strip of deflated bytes.
func tiffFile(width, height uint32, strip []byte) []byte {
	entries := [][3]uint32{
		{256, 4, width}, {257, 4, height}, {258, 3, 8}, {259, 3, 8}, {262, 3, 1}, {273, 4, 8}, {277, 3, 1}, {278, 4, height}, {279, 4, uint32(len(strip))},
	}
	data := append([]byte("II*\x00"), 0, 0, 0, 0)
	data = append(data, strip...)
	binary.LittleEndian.PutUint32(data[4:], uint32(len(data)))
	data = binary.LittleEndian.AppendUint16(data, uint16(len(entries)))
	for _, e := range entries {
		data = binary.LittleEndian.AppendUint16(data, uint16(e[0]))
		data = binary.LittleEndian.AppendUint16(data, uint16(e[1]))
		data = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(data, 1), e[2])
	}
	return append(data, 0, 0, 0, 0)
}

// ktx2Bomb is a texture of zeros, compressed by Zstandard.
func ktx2Bomb(t *testing.T, f ktx2.Format, width, height, layers int) []byte {
	t.Helper()
	w, h, n := f.Block()
	level := make([]byte, (width+w-1)/w*((height+h-1)/h)*n*max(1, layers))
	data, err := ktx2.Encode(&ktx2.Texture{Format: f, Width: width, Height: height, Layers: layers, Levels: [][]byte{level}, Zstd: true})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestBombs reads small valid files that expand to large pictures.
func TestBombs(t *testing.T) {
	const huge = 256 << 20
	zeros := deflated(t, huge)
	for _, tt := range []struct {
		name    string
		data    []byte
		refused bool
	}{
		{"more data than pixels.png", pngFile(1, 1, append([]byte("IDAT"), zeros...)), false},
		{"pixels.png", pngFile(4096, 4096, append([]byte("IDAT"), zeros...)), true},
		{"a side.png", pngFile(1<<20, 16, append([]byte("IDAT"), zeros...)), true},
		{"a profile.png", pngFile(1, 1, append([]byte("iCCPx\x00\x00"), zeros...), append([]byte("IDAT"), deflated(t, 4)...)), false},
		{"more data than pixels.tif", tiffFile(1, 1, zeros), false},
		{"pixels.tif", tiffFile(16384, 16384, zeros), true},
		{"pixels.ktx2", ktx2Bomb(t, ktx2.BC7, 4096, 4096, 0), true},
		{"blocks of 144 pixels.ktx2", ktx2Bomb(t, ktx2.ASTC(12, 12, false), 3000, 3000, 0), true},
		{"layers that are small while packed.ktx2", ktx2Bomb(t, ktx2.ASTC(12, 12, false), 512, 512, 30), true},
		{"layers of light.ktx2", ktx2Bomb(t, ktx2.BC6H, 256, 256, 14), true},
		{"right at the limit.ktx2", ktx2Bomb(t, ktx2.ASTC(12, 12, false), 512, 512, 0), false},
		{"right at the limit of light.ktx2", ktx2Bomb(t, ktx2.BC6H, 256, 256, 0), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			n := allocated(func() { err = openHostile(tt.name, tt.data) })
			if tt.refused != (err != nil) {
				t.Errorf("got error %v", err)
			}
			if n > hostileMost {
				t.Errorf("%d bytes of file cost %d", len(tt.data), n)
			}
			t.Logf("%d bytes of file cost %d: %v", len(tt.data), n, err)
		})
	}
}
