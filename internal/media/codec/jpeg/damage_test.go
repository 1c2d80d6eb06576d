package jpeg

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// TestBroken checks that broken files are read as libjpeg reads them: NAME.libjpeg.jpg is the output of its jpegtran, which
// copies the coefficients, for NAME.jpg.
func TestBroken(t *testing.T) {
	damaged := func(line string) string {
		return "from line " + line + " of 37 on, what could not be read is wrong or grey"
	}
	const coarse = "it ends too early; the finest detail is missing"
	for _, tt := range []struct{ name, want string }{
		{"411-opt-cut", "it ends too early: from line 16 of 37 on it is grey"},
		{"411-progrst-flip", damaged("24")},
		{"411-rst1-flip", damaged("0")},
		{"411-rst4-bytes", "it ends too early: from line 32 of 37 on it is grey"},
		{"411-scansrst-drop", ""}, // no warning, as in libjpeg
		{"420-prog-ff", damaged("32")},
		{"420-progrst-ff", damaged("0")},
		{"420-rstrow-dup", damaged("32")},
		{"422-base-ff", damaged("32")},
		{"422-prog-cut", coarse},
		{"422-prog-flip", damaged("32")},
		{"422-rst1-dup", damaged("24")},
		{"440-scans-drop", "it ends too early; some of its colours are missing"},
		{"444-rstrow-rstswap", damaged("16")},
		{"grey-prog-dup", "there are bytes in it that belong to nothing"},
		{"grey-rst4-drop", damaged("16")},
		{"420-progrst-cut", coarse}, // cut in the header of a scan, where libjpeg stops
		{"440-rst4-head", "!segment at byte 89: quantization table 9"},
		{"444-base-ff", "!segment at byte 809: unknown marker 0x90"},
		{"444-prog-ff", "!segment at byte 402: Huffman table 0x11 of 267 codes"},
	} {
		p, err := Decode(read(t, "broken/"+tt.name+".jpg"), 1<<20)
		if want, fails := strings.CutPrefix(tt.want, "!"); fails {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want %q", tt.name, err, want)
			}
			continue
		}
		if err != nil || p.Damage != tt.want {
			t.Errorf("%s: %v, %q, want %q", tt.name, err, p.Damage, tt.want)
			continue
		}
		if tt.name == "420-progrst-cut" {
			continue
		}
		want, err := Decode(read(t, "broken/"+tt.name+".libjpeg.jpg"), 1<<20)
		if err != nil || !bytes.Equal(p.Pix, want.Pix) {
			t.Errorf("%s: other pixels than libjpeg's, %v", tt.name, err)
		}
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestDamage damages files at random. What jpegtran copies from one must decode to the same pixels, and where it warns there
// must be a text of the damage.
func TestDamage(t *testing.T) {
	tools(t, "jpegtran")
	rng, count := rand.New(rand.NewPCG(thorough.Seed(t), 3)), thorough.OfPeers(150, 1000, 5000)
	read := 0
	for i := range count {
		r := anyJPEG(rng)
		r.adobe = min(r.adobe, 1) // libjpeg warns of 2, and of one thing only
		r.noTables = r.apart      // those of T.81, as jpegtran can write only coefficients that real tables have
		data := r.file(rng)
		if !r.apart {
			data = piped(t, data, "jpegtran", []string{"-progressive", "-optimize"}[i%2])
		}
		how := damage(rng, &data)
		var warnings bytes.Buffer
		cmd := exec.Command("jpegtran")
		cmd.Stdin, cmd.Stderr = bytes.NewReader(data), &warnings
		copied, err := cmd.Output()
		p, ours := Decode(data, 1<<26)
		if code := cmd.ProcessState.ExitCode(); code != 0 && code != 2 {
			continue // it cannot write every file, and stops at the end of the data in a header
		} else if err != nil && code != 2 {
			t.Fatal(err)
		}
		if ours != nil {
			if !strings.Contains(ours.Error(), "no picture") && !strings.Contains(ours.Error(), "ends too early") { // grey in libjpeg
				t.Errorf("%d: %v, %s: %v; libjpeg: %s", i, r, how, ours, warnings.Bytes())
			}
			continue
		}
		read++
		if strings.Contains(warnings.String(), "Invalid SOS parameters") || strings.Contains(warnings.String(), "Inconsistent progression") {
			continue // Kiln does not care, and libjpeg names only one thing
		}
		warned := warnings.Len() > 0
		if p.Damage == "" && warned || p.Damage != "" && p.Damage != extraBytes && !warned { // libjpeg misses some extra bytes
			t.Errorf("%d: %v, %s: %q; libjpeg: %s", i, r, how, p.Damage, warnings.Bytes())
		}
		if want, err := Decode(copied, 1<<26); err != nil || !bytes.Equal(p.Pix, want.Pix) {
			t.Errorf("%d: %v, %s: other pixels, %v; libjpeg: %s", i, r, how, err, warnings.Bytes())
		}
	}
	if read < count/3 {
		t.Errorf("only %d of %d could be read", read, count)
	}
}

// codesIn returns the places of all bytes of codes. Elsewhere, damage changes tables, and coefficients become larger than jpegtran
// can write.
func codesIn(data []byte) (places []int) {
	inside := false
	for i := 2; i+2 < len(data); { // without the end
		switch mark := data[i+1]; {
		case data[i] != 0xff || mark == 0 || mark >= markRST0 && mark <= markRST7:
			if inside {
				places = append(places, i)
			}
			i++
		default:
			inside = mark == markSOS
			i += 2 + int(binary.BigEndian.Uint16(data[i+2:]))
		}
	}
	return places
}

// damage changes something in the codes.
func damage(rng *rand.Rand, data *[]byte) string {
	places := codesIn(*data)
	at := places[rng.IntN(len(places))]
	switch n := min(1+rng.IntN(12), len(*data)-at); rng.IntN(6) {
	case 0:
		*data = (*data)[:at]
		return fmt.Sprint("cut at ", at)
	case 1:
		(*data)[at] ^= 1 << rng.IntN(8)
		return fmt.Sprint("a bit at ", at)
	case 2:
		*data = slices.Delete(*data, at, at+n)
		return fmt.Sprint(n, " bytes missing at ", at)
	case 3:
		*data = slices.Insert(*data, at, slices.Clone((*data)[at:at+n])...)
		return fmt.Sprint(n, " bytes twice at ", at)
	case 4:
		(*data)[at] = 0xff
		return fmt.Sprint("0xff at ", at)
	default:
		*data = append((*data)[:at:at], 0xff, 0xd9)
		return fmt.Sprint("ended at ", at)
	}
}
