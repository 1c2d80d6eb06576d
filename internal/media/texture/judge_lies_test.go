package texture

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// lieSide is the size that false headers claim: the largest that is accepted, a gibibyte in 8-bit pixels.
const lieSide = 16384

// lies returns files of every format whose headers claim this size, followed by about more bytes without content.
func lies(t *testing.T, side, more int) map[string][]byte {
	t.Helper()
	le, be := binary.LittleEndian, binary.BigEndian
	n, n16 := uint32(side), uint16(side)
	files := map[string][]byte{}
	good := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("..", "pixel", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	patched := func(name string, patch func(data []byte)) {
		data := good(name)
		patch(data)
		files[name] = append(data, make([]byte, more)...)
	}
	maps.Copy(files, lyingPNGs(t, n, more))
	maps.Copy(files, lyingTextures(t, side, more))
	for _, name := range []string{"rgb.jpg", "progressive.jpg", "cmyk.jpg", "grey.jpg"} {
		data := good(name)
		at := bytes.Index(data, []byte("\xff\xc0"))
		if at < 0 {
			at = bytes.Index(data, []byte("\xff\xc2"))
		}
		be.PutUint16(data[at+5:], n16)
		be.PutUint16(data[at+7:], n16)
		files[name] = append(data[:len(data)-2], make([]byte, more)...)
	}
	for _, name := range []string{"rgba.tga", "rle.tga"} {
		patched(name, func(data []byte) { le.PutUint16(data[12:], n16); le.PutUint16(data[14:], n16) })
	}
	patched("rgb.bmp", func(data []byte) { le.PutUint32(data[18:], n); le.PutUint32(data[22:], n) })
	packed := append(bytes.Clone(files["rgb.bmp"][:54]), make([]byte, 4*256)...)
	le.PutUint32(packed[10:], uint32(len(packed)))
	le.PutUint16(packed[28:], 8)
	le.PutUint32(packed[30:], 1) // BI_RLE8
	le.PutUint32(packed[46:], 256)
	files["rle.bmp"] = append(packed, 7, 1, 0)
	patched("rgba.psd", func(data []byte) { be.PutUint32(data[14:], n); be.PutUint32(data[18:], n) })
	patched("rgba.qoi", func(data []byte) { be.PutUint32(data[4:], n); be.PutUint32(data[8:], n) })
	patched("rgb.gif", func(data []byte) {
		le.PutUint16(data[6:], n16)
		le.PutUint16(data[8:], n16)
		at := bytes.Index(data[13+3*256:], []byte(",")) + 13 + 3*256
		le.PutUint16(data[at+5:], n16)
		le.PutUint16(data[at+7:], n16)
	})
	for _, name := range []string{"lossy.webp", "lossyrgb.webp"} {
		patched(name, func(data []byte) {
			at := bytes.Index(data, []byte("\x9d\x01\x2a"))
			le.PutUint16(data[at+3:], n16-1)
			le.PutUint16(data[at+5:], n16-1)
		})
	}
	for _, name := range []string{"deflate.tif", "lzw.tif", "packbits.tif", "palette.tif", "raw.tif"} {
		patched(name, func(data []byte) { // little-endian (II): the size is in the first two tags
			at := int(le.Uint32(data[4:])) + 2
			for ; le.Uint16(data[at:]) <= 278; at += 12 {
				if tag := le.Uint16(data[at:]); tag == 256 || tag == 257 || tag == 278 {
					le.PutUint16(data[at+2:], 4)
					le.PutUint32(data[at+8:], n)
				}
			}
		})
	}
	half := n / 2 // light of the full size would exceed the limits
	hdr := regexp.MustCompile(`-Y \d+ \+X \d+\n`).ReplaceAll(good("rgb.hdr"), []byte("-Y 8192 +X 8192\n"))
	files["rgb.hdr"] = append(hdr, make([]byte, more)...)
	patched("rgb.exr", func(data []byte) {
		for _, window := range []string{"dataWindow", "displayWindow"} {
			at := bytes.Index(data, []byte(window+"\x00box2i\x00")) + len(window) + 11
			le.PutUint32(data[at+8:], half-1)
			le.PutUint32(data[at+12:], half-1)
		}
	})
	return files
}

// lyingPNGs have pixels that are not zlib data, or a MiB of zeros and then nothing.
func lyingPNGs(t *testing.T, n uint32, more int) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	nothing := append([]byte("IDAT"), "no zlib"...)             // no zlib
	nothing = append(nothing, make([]byte, more)...)            //
	begun := append([]byte("IDAT"), deflated(t, 1<<20)...)      // a MiB of zeros, then nothing
	begun = append(begun[:len(begun)-8], make([]byte, more)...) //
	for kind, idat := range map[string][]byte{"nothing.png": nothing, "begun.png": begun} {
		data := pngFile(n, n, idat)
		files[kind] = data
		for _, c := range []struct {
			name                string
			bits, colour, laced byte
		}{{"deep-", 16, 6, 0}, {"grey-", 8, 0, 0}, {"bits-", 1, 0, 0}, {"laced-", 8, 6, 1}} {
			other := bytes.Clone(data)
			other[24], other[25], other[28] = c.bits, c.colour, c.laced
			fixPNG(other)
			files[c.name+kind] = other
		}
	}
	return files
}

func lyingTextures(t *testing.T, side, more int) map[string][]byte {
	t.Helper()
	le, n, files := binary.LittleEndian, uint32(side), map[string][]byte{}
	for _, zstd := range []bool{false, true} {
		texture := &ktx2.Texture{Format: ktx2.RGBA8, Width: 4, Height: 4, Levels: [][]byte{make([]byte, 64)}, Zstd: zstd}
		data, err := ktx2.Encode(texture)
		if err != nil {
			t.Fatal(err)
		}
		le.PutUint32(data[20:], n)
		le.PutUint32(data[24:], n)
		le.PutUint64(data[80+16:], 4*uint64(side)*uint64(side))
		name := "raw.ktx2"
		if zstd {
			data = append(data, make([]byte, more)...)
			le.PutUint64(data[80+8:], uint64(len(data))-le.Uint64(data[80:]))
			name = "zstd.ktx2"
		}
		files[name] = data
	}
	data, err := dds.Encode(&dds.Texture{Format: dds.RGBA8, Width: 4, Height: 4, Levels: [][]byte{make([]byte, 64)}})
	if err != nil {
		t.Fatal(err)
	}
	le.PutUint32(data[12:], n)
	le.PutUint32(data[16:], n)
	files["rgba.dds"] = append(data, make([]byte, more)...)
	return files
}

// TestAllocForALyingHead checks that a false header takes no memory: memory is allocated only for data that the file
// contains.
func TestAllocForALyingHead(t *testing.T) {
	const more = 48 << 10 // more than the minimum for a PNG or KTX2 of that size
	for _, more := range []int{100, more} {
		for name, data := range lies(t, lieSide, more) {
			t.Run(name, func(t *testing.T) {
				most := uint64(8<<20 + 256*len(data))
				var err error
				n := allocated(func() {
					if IsFile(data) {
						var f *File
						if f, err = Open(data, pixel.DefaultLimits()); err == nil {
							_, err = f.Images()
						}
						return
					}
					_, err = pixel.DecodePicture(name, data, pixel.DefaultLimits())
				})
				if err == nil {
					t.Error("it was read")
				}
				if n > most {
					t.Errorf("%d bytes of file cost %d, over %d: %v", len(data), n, most, err)
				}
			})
		}
	}
}
