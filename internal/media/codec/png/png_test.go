package png

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"
	"image"
	"image/color"
	std "image/png"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/lanestest"
)

// straight returns the pixels of a picture of image/png as straight RGBA.
func straight(m image.Image) []byte {
	b := m.Bounds()
	pix := make([]byte, 0, 4*b.Dx()*b.Dy())
	for y := range b.Dy() {
		for x := range b.Dx() {
			c := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
			pix = append(pix, c.R, c.G, c.B, c.A)
		}
	}
	return pix
}

// same checks that a file, if it is read here, has the same pixels in image/png.
func same(t *testing.T, data []byte) (read bool) {
	t.Helper()
	pix, w, h, ok := decode(data)
	if !ok {
		return false
	}
	m, err := std.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("image/png does not read it: %v", err)
	}
	if b := m.Bounds(); b.Dx() != w || b.Dy() != h {
		t.Fatalf("%d x %d, image/png has %d x %d", w, h, b.Dx(), b.Dy())
	}
	if want := straight(m); !bytes.Equal(pix, want) {
		for i := range want {
			if pix[i] != want[i] {
				t.Fatalf("byte %d of %d is %d, image/png has %d", i, len(want), pix[i], want[i])
			}
		}
	}
	return true
}

// file builds a file from a compressed stream, which is split into parts.
func file(w, h, depth, kind int, palette, clear []byte, stream []byte, parts int) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(w)), uint32(h))
	b := appendPart([]byte(signature), "IHDR", append(head, byte(depth), byte(kind), 0, 0, 0))
	if palette != nil {
		b = appendPart(b, "PLTE", palette)
	}
	if clear != nil {
		b = appendPart(b, "tRNS", clear)
	}
	for i := range parts {
		b = appendPart(b, "IDAT", stream[len(stream)*i/parts:len(stream)*(i+1)/parts])
	}
	return appendPart(b, "IEND", nil)
}

func appendPart(b []byte, kind string, body []byte) []byte {
	c := append([]byte(kind), body...)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(body))), c...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(c))
}

func deflated(t testing.TB, raw []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = z.Write(raw)
	_ = z.Close()
	return b.Bytes()
}

// TestKinds reads random pictures of each kind, with each filter and with each kind of block.
func TestKinds(t *testing.T) {
	kinds := []struct{ depth, kind, bits int }{
		{1, grey, 1}, {2, grey, 2}, {4, grey, 4}, {8, grey, 8}, {8, rgb, 24}, {8, greyAlpha, 16}, {8, rgba, 32},
		{1, indexed, 1}, {2, indexed, 2}, {4, indexed, 4}, {8, indexed, 8},
	}
	r := rand.New(rand.NewSource(1))
	for _, k := range kinds {
		for _, size := range [][2]int{{1, 1}, {2, 3}, {7, 9}, {33, 70}, {500, 300}, {20000, 3}} {
			w, h := size[0], size[1]
			stride := 1 + (w*k.bits+7)/8
			for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, flate.BestSpeed, flate.BestCompression} {
				raw := make([]byte, stride*h)
				noise := 1 + r.Intn(255) // little noise has many matches
				for i := range raw {
					raw[i] = byte(r.Intn(256) % noise)
				}
				for y := range h {
					raw[y*stride] = byte(r.Intn(5))
				}
				var palette, clear []byte
				if k.kind == indexed {
					palette = make([]byte, 3*(1+r.Intn(1<<k.depth)))
					clear = make([]byte, r.Intn(len(palette)/3+1))
					r.Read(palette)
					r.Read(clear)
				}
				for _, parts := range []int{1, 2, 13, 100} {
					if !same(t, file(w, h, k.depth, k.kind, palette, clear, deflated(t, raw, level), parts)) {
						t.Fatalf("%+v, %d x %d, level %d, %d parts: not read", k, w, h, level, parts)
					}
				}
			}
		}
	}
}

// TestCorpus reads real files.
func TestCorpus(t *testing.T) {
	root := os.Getenv("KILN_CORPUS")
	if root == "" {
		t.Skip("KILN_CORPUS is not set: no real pictures to read")
	}
	files, read := 0, 0
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".png") {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil || len(data) < 8 || string(data[:8]) != signature {
			return err
		}
		files++
		if same(t, data) {
			read++
		} else {
			t.Logf("%s is left to image/png", name)
		}
		return nil
	})
	if err != nil || read < files*9/10 {
		t.Errorf("%d of %d files are read, %v", read, files, err)
	}
}

// TestDamage changes each byte of small files: what is still read is what image/png reads.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for _, level := range []int{flate.NoCompression, flate.BestCompression, flate.HuffmanOnly} {
		raw := make([]byte, 20*(1+4*20))
		for i := range raw {
			raw[i] = byte(r.Intn(6))
		}
		for y := range 20 {
			raw[81*y] = byte(y % 5)
		}
		good := file(20, 20, 8, rgba, nil, nil, deflated(t, raw, level), 2)
		for i := range good {
			for _, v := range []byte{good[i] ^ 1<<r.Intn(8), byte(r.Intn(256))} {
				bad := bytes.Clone(good)
				bad[i] = v
				same(t, bad)
				same(t, repaired(bad))
			}
			if i > 0 && same(t, good[:i]) {
				t.Fatalf("the first %d bytes of %d are read", i, len(good))
			}
		}
	}
}

func TestAdler(t *testing.T) {
	r := rand.New(rand.NewSource(6))
	for range 300 {
		s, want := adler{a: 1}, adler32.New()
		for range 3 {
			p := bytes.Repeat([]byte{255}, r.Intn(200_000))
			if r.Intn(3) > 0 {
				r.Read(p)
			}
			s.add(p)
			_, _ = want.Write(p)
		}
		if got := uint32(s.b<<16 | s.a); got != want.Sum32() {
			t.Fatalf("%x, want %x", got, want.Sum32())
		}
	}
}

// TestLanes compares the rows of vector code with those of Go.
func TestLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	defer func() { lanes = true }()
	r := rand.New(rand.NewSource(3))
	for range 20_000 {
		n := 4 * (1 + r.Intn(20))
		src, above, fast, slow := make([]byte, n), make([]byte, n), make([]byte, n), make([]byte, n)
		r.Read(src)
		r.Read(above)
		for i := range src {
			if r.Intn(3) == 0 {
				src[i], above[i] = byte(-r.Intn(2)), byte(-r.Intn(2))
			}
		}
		for _, filter := range []byte{none, sub, up, average, paeth} {
			for _, opaque := range []uint32{0, 0xff000000} {
				lanes = true
				colours(filter, fast, src, above, opaque)
				lanes = false
				colours(filter, slow, src, above, opaque)
				if !bytes.Equal(fast, slow) {
					t.Fatalf("filter %d, %x above %x: %x, want %x", filter, src, above, fast, slow)
				}
			}
		}
	}
}

func TestGenerated(t *testing.T) { lanestest.Generated(t, "png") }

// repaired returns a file with right checksums of its parts.
func repaired(data []byte) []byte {
	for b := data[8:]; len(b) >= 12; {
		size := uint64(binary.BigEndian.Uint32(b))
		if size > uint64(len(b)-12) {
			break
		}
		binary.BigEndian.PutUint32(b[8+size:], crc32.ChecksumIEEE(b[4:8+size]))
		b = b[12+size:]
	}
	return data
}

// TestMemory checks that a file that is larger than its head says costs nothing.
func TestMemory(t *testing.T) {
	more := file(1, 1, 8, rgba, nil, nil, deflated(t, make([]byte, 1<<20), 9), 1)
	if n := testing.AllocsPerRun(1, func() {
		if _, _, _, ok := decode(more); ok {
			t.Error("too many pixels are read")
		}
	}); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzInflate holds the inflater to compress/flate, whatever the bytes are.
func FuzzInflate(f *testing.F) {
	for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, flate.BestSpeed, flate.BestCompression} {
		f.Add(deflated(f, []byte(strings.Repeat("kiln, kilns; a fire in a kiln. ", 40)), level)[2:], uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		want, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), 1<<20))
		at := min(int(cut), len(data))
		z := &inflater{more: [][]byte{data[:at], data[at:]}, limit: len(want) + 1, out: make([]byte, len(want)+1+slack)}
		ok := z.fill()
		if ok && z.at <= len(want) && (err != nil || !bytes.Equal(z.out[:z.at], want)) {
			t.Errorf("%d bytes; compress/flate has %d, %v", z.at, len(want), err)
		}
		if !ok && err == nil && len(want) < 1<<20 {
			t.Error("compress/flate reads it")
		}
	})
}

// FuzzDecode holds the pixels to those of image/png.
func FuzzDecode(f *testing.F) {
	for _, kind := range []int{grey, rgb, indexed, greyAlpha, rgba} {
		raw := bytes.Repeat([]byte{4, 3, 2, 1, 0}, 40)
		f.Add(file(2, 3, 8, kind, []byte{1, 2, 3, 4, 5, 6}, nil, deflated(f, raw, 9), 1))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := std.DecodeConfig(bytes.NewReader(data)); err != nil || c.Width*c.Height > 1<<20 {
			return
		}
		same(t, data)
		if len(data) > 8 {
			same(t, repaired(data))
		}
	})
}
