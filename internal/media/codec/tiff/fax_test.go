package tiff

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// bitsOf packs codes that are written as 0 and 1, with spaces between them. A | fills up to a byte.
func bitsOf(codes string) (out []byte) {
	n := 0
	for _, c := range codes {
		switch c {
		case '|':
			n = (n + 7) / 8 * 8
		case '0', '1':
			if n/8 == len(out) {
				out = append(out, 0)
			}
			out[n/8] |= byte(c-'0') << (7 - n%8)
			n++
		}
	}
	return out
}

// Codes of T.4: runs of white of 0, 2, 3, 4, 8 pixels, and of black of 2, 3, 4; the end of a line.
const (
	w0, w2, w3, w4, w8 = "00110101 ", "0111 ", "1000 ", "1011 ", "10011 "
	b2, b3, b4         = "11 ", "10 ", "011 "
	eol                = "000000000001 "
	v0, vr1, vl1       = "1 ", "011 ", "010 "
	pass, horizontal   = "0001 ", "001 "
)

func TestFax(t *testing.T) {
	for _, tt := range []struct {
		name        string
		compression int
		options     int
		codes       string
		want        string // rows of 8 pixels
		flaw        string
	}{
		{"rows from bytes on", fax2, 0, w3 + b2 + w3 + "|" + w0 + b4 + w4 + "|", "00011000 11110000", ""},
		{"rows from words on", fax2Word, 0, w3 + b2 + w3 + "|" + w0 + b4 + w4 + "|", "00011000 11110000", ""}, // the first row takes 10 bits
		{"rows without ends", group3, 0, w3 + b2 + w3 + w0 + b4 + w4, "00011000 11110000", ""},
		{"rows with ends", group3, 0, eol + w3 + b2 + w3 + eol + w0 + b4 + w4 + strings.Repeat(eol, 6), "00011000 11110000", ""},
		{"ends at bytes", group3, 4, "0000" + eol + w3 + b2 + w3 + "000000" + eol + w0 + b4 + w4, "00011000 11110000", ""},
		{"rows by the one above", group3, 1, eol + "1" + w3 + b2 + w3 + eol + "0" + vr1 + v0 + v0 + eol + "1" + w8,
			"00011000 00001000 00000000", ""},
		{"by the one above", group4, 0, horizontal + w3 + b2 + v0 + vl1 + v0 + v0 + pass + v0 + eol + eol, "00011000 00111000 00000000", ""},
		{"black throughout", group4, 0, horizontal + w0 + "000101 " + v0 + v0, "11111111 11111111", ""},
		{"ended before its last row", group4, 0, v0 + eol + eol, "00000000 00000000", "ends before row 1"},
		{"ends of a fax before its last row", group3, 0, eol + w8 + strings.Repeat(eol, 6), "00000000 00000000", "ends before row 1"},
		{"a damaged row", group3, 0, eol + w3 + "00000000 1111" + eol + w0 + b4 + w4, "00000000 11110000", "row 0 of the fax is damaged"},
		{"a row that is too long", group3, 0, w4 + b2 + w8 + w0 + b4 + w4, "00001100 11110000", "too long"},
	} {
		rows := strings.Fields(tt.want)
		got := make([]byte, len(rows))
		flaw, err := unpackFax(got, bitsOf(tt.codes), 8, tt.compression, tt.options)
		if want := bitsOf(tt.want); err != nil || !bytes.Equal(got, want) || !strings.Contains(flaw, tt.flaw) || tt.flaw == "" && flaw != "" {
			t.Errorf("%s: %08b with %q, %v; want %08b", tt.name, got, flaw, err, want)
		}
	}
	for name, codes := range map[string]string{"cut off": horizontal + w3, "no code": "0000000011111111 00000000", "before the row": v0 + v0 + horizontal + w3 + b3 + "000010 000010"} {
		if _, err := unpackFax(make([]byte, 4), bitsOf(codes), 8, group4, 0); !errors.Is(err, input.ErrTruncated) && !errors.Is(err, input.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := unpackFax(make([]byte, 1), bitsOf("0000001111 "), 8, group4, 0); !errors.Is(err, input.ErrUnsupported) {
		t.Errorf("rows that are not packed: %v", err)
	}
}

// TestFaxPolarity: white runs are 0, which a file may call black.
func TestFaxPolarity(t *testing.T) {
	for photometric, want := range map[int]uint16{whiteIsZero: 0xffff, blackIsZero: 0} {
		m, err := Decode(file(binary.LittleEndian, tags(8, 1, 1, photometric, 1, tagCompression, group4), bitsOf(v0)), 8)
		if err != nil || m.Pix[0] != want {
			t.Errorf("photometric %d: %v, %v", photometric, m, err)
		}
	}
}

// TestFaxAgainstLibtiff has tiffcp pack pictures, with few and with many changes of colour, as faxes of all kinds.
func TestFaxAgainstLibtiff(t *testing.T) {
	if _, err := exec.LookPath("tiffcp"); err != nil {
		t.Skip("tiffcp of libtiff is not installed")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	for _, width := range []int{1, 37, 3000} {
		const height = 40
		stride := (width + 7) / 8
		pixels := make([]byte, stride*height)
		for y := range height {
			for x, black := 0, false; x < width; x++ {
				if r.IntN(1+2*y*y) == 0 {
					black = !black
				}
				if black {
					pixels[y*stride+x/8] |= 0x80 >> (x % 8)
				}
			}
		}
		from := filepath.Join(dir, "a.tif")
		if err := os.WriteFile(from, file(binary.LittleEndian, tags(width, height, 1, whiteIsZero, 1), pixels), 0o644); err != nil {
			t.Fatal(err)
		}
		want, err := Decode(file(binary.LittleEndian, tags(width, height, 1, whiteIsZero, 1), pixels), width*height)
		if err != nil {
			t.Fatal(err)
		}
		for _, packing := range []string{"g3:1d", "g3:2d", "g3:1d:fill", "g3:2d:fill", "g4"} {
			for _, rows := range []string{"7", "40"} {
				for _, order := range []string{"lsb2msb", "msb2lsb"} {
					to := filepath.Join(dir, "b.tif")
					if out, err := exec.Command("tiffcp", "-c", packing, "-r", rows, "-f", order, from, to).CombinedOutput(); err != nil {
						t.Fatalf("%v: %s", err, out)
					}
					data, err := os.ReadFile(to)
					if err != nil {
						t.Fatal(err)
					}
					name := fmt.Sprint(width, packing, rows, order)
					if got, err := Decode(data, width*height); err != nil || !slices.Equal(got.Pix, want.Pix) || got.Damage != "" {
						t.Errorf("%s: other pixels, %v", name, err)
					}
				}
			}
		}
	}
}
