package wav

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// variant is a WAV file of random samples, and what it is.
type variant struct {
	what   string
	data   []byte
	raised bool // the other decoder gets it with the bits of its bytes
	frames int64
}

// random returns a variant: each coding, number of bits and channels, plain or extensible, with other chunks around, in RIFF, RIFX, RF64,
// and with sizes as recorders and streams leave them.
func random(r *rand.Rand) variant {
	kinds := []struct {
		tag, bits, bytes int
	}{{1, 8, 1}, {1, 12, 2}, {1, 16, 2}, {1, 20, 3}, {1, 24, 3}, {1, 32, 4}, {3, 32, 4}, {3, 64, 8}, {6, 8, 1}, {7, 8, 1}}
	k := kinds[r.IntN(len(kinds))]
	channels, frames := 1+r.IntN(8), 1+r.IntN(300)
	block := channels * k.bytes
	big := r.IntN(5) == 0
	var order byteOrder = binary.LittleEndian
	if big {
		order = binary.BigEndian
	}
	chunk := func(id string, size uint32, body []byte) []byte { return chunkOf(order, id, size, body) }
	form := order.AppendUint16(order.AppendUint16(nil, uint16(k.tag)), uint16(channels))
	form = order.AppendUint32(order.AppendUint32(form, 44100), uint32(44100*block))
	form = order.AppendUint16(order.AppendUint16(form, uint16(block)), uint16(k.bits))
	what := fmt.Sprintf("tag %d, %d bits, %d channels", k.tag, k.bits, channels)
	if extensible := r.IntN(3) == 0 && !big; extensible {
		what += ", extensible"
		order.PutUint16(form, tagExtensible)
		order.PutUint16(form[14:], uint16(8*k.bytes))
		form = order.AppendUint16(order.AppendUint16(form, 22), uint16(k.bits))
		form = order.AppendUint16(order.AppendUint32(form, uint32(r.IntN(2)*(1<<channels-1))), uint16(k.tag))
		form = append(form, guidRest...)
	} else if r.IntN(2) == 0 {
		form = order.AppendUint16(form, 0)
	}
	samples := values(r, k.tag, k.bits, k.bytes, frames*block, order)
	other := func() []byte { return others(r, order) }
	size, id := uint32(len(samples)), "RIFF"
	if big {
		id = "RIFX"
	}
	end := other()
	var ds64 []byte
	switch r.IntN(8) {
	case 0:
		size, end = 0xffffffff, nil
	case 1:
		size, end = 0x7ffff000, nil
	case 2:
		if !big {
			id, size = "RF64", 0xffffffff
			body := order.AppendUint64(order.AppendUint64(nil, 0), uint64(len(samples)))
			ds64 = chunk("ds64", 28, append(body, make([]byte, 12)...))
		}
	}
	body := slices.Concat([]byte("WAVE"), ds64, other(), chunk("fmt ", uint32(len(form)), form), other(), chunk("data", size, samples), end)
	if ds64 != nil {
		order.PutUint64(body[12:], uint64(len(body)))
	}
	total := uint32(len(body))
	if end == nil && ds64 == nil && size > 1<<30 && len(samples)%2 == 1 {
		body = body[:len(body)-1] // a stream has no padding
	}
	if size > 1<<30 {
		total = 0xffffffff
	}
	what += fmt.Sprintf(", %s, data of %#x bytes", id, size)
	data := append(order.AppendUint32([]byte(id), total), body...)
	return variant{what: what, data: data, frames: int64(frames),
		raised: k.bits == 12 || k.bits == 20}
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func chunkOf(order byteOrder, id string, size uint32, body []byte) []byte {
	return append(append(order.AppendUint32([]byte(id), size), body...), make([]byte, len(body)%2)...)
}

// others returns up to two chunks that have no samples.
func others(r *rand.Rand, order byteOrder) (all []byte) {
	for range r.IntN(3) {
		id := []string{"JUNK", "LIST", "fact", "elm1", "PAD ", "iXML", "cue "}[r.IntN(7)]
		body := make([]byte, r.IntN(40))
		if id == "LIST" {
			body = append([]byte("INFOINAM"), order.AppendUint32(nil, 3)...)
			body = append(body, "ab\x00\x00"...)
		}
		all = append(all, chunkOf(order, id, uint32(len(body)), body)...)
	}
	return all
}

// values returns random samples, each of so many bits in so many bytes.
func values(r *rand.Rand, tag, bits, bytes, size int, order byteOrder) []byte {
	samples := make([]byte, size)
	for i := 0; i < len(samples); i += bytes {
		v := samples[i : i+bytes]
		switch {
		case tag == 3 && bits == 32:
			order.PutUint32(v, math.Float32bits(r.Float32()*2-1))
		case tag == 3:
			order.PutUint64(v, math.Float64bits(float64(r.Float32()*2-1)))
		default:
			for j := range v {
				v[j] = byte(r.IntN(256))
			}
			if unused := 8*bytes - bits; unused > 0 { // in the lowest bits
				low := 0
				if order == byteOrder(binary.BigEndian) {
					low = len(v) - 1
				}
				v[low] &^= 1<<unused - 1
			}
		}
	}
	return samples
}

// TestOthers compares random files with ffmpeg, and RIFX with sox. Samples of 12 and 20 bits, which they refuse or read otherwise, are
// compared with those of the same file that says 16 and 24.
func TestOthers(t *testing.T) {
	tool, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed: no other decoder to compare with")
	}
	seed := thorough.Seed(t)
	equal := 0
	for i := range thorough.OfPeers(25, 30, 120) {
		v := random(rand.New(rand.NewPCG(seed, uint64(i))))
		r, err := open(v.data)
		if err != nil {
			t.Errorf("%d, %s: %v", i, v.what, err)
			continue
		}
		got := all(t, r)
		if r.Frames != v.frames {
			t.Errorf("%d, %s: %d frames, want %d; %q", i, v.what, r.Frames, v.frames, r.Warnings)
			continue
		}
		other := v.data
		if v.raised {
			other = bytes.Clone(v.data)
			raise(other)
		}
		name := filepath.Join(t.TempDir(), "a.wav")
		if err := os.WriteFile(name, other, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(tool, "-nostdin", "-v", "error", "-i", name, "-c:a", "pcm_f64le", "-f", "f64le", "-")
		if string(other[:4]) == "RIFX" { // ffmpeg reads PCM of these as if it were that of RIFF
			if cmd = exec.Command("sox", "--ignore-length", name, "-t", "f64", "-"); cmd.Err != nil {
				continue
			}
		}
		raw, err := cmd.Output()
		if e, ok := err.(*exec.ExitError); ok {
			t.Logf("%s", e.Stderr)
		}
		if err != nil || len(raw) < 8*len(got) {
			t.Errorf("%d, %s: %s has %d samples of %d: %v", i, v.what, cmd.Path, len(raw)/8, len(got), err)
			continue
		}
		same := true
		for k, x := range got {
			if want := float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*k:]))); x != want && math.Abs(float64(x-want)) > 1e-7 {
				t.Errorf("%d, %s: sample %d is %v, %s has %v", i, v.what, k, x, cmd.Path, want)
				same = false
				break
			}
		}
		if same {
			equal++
		}
	}
	t.Logf("%d equal", equal)
}

// raise has a format of 12 and 20 bits say the bits of its bytes.
func raise(data []byte) {
	var order binary.ByteOrder = binary.LittleEndian
	if string(data[:4]) == "RIFX" {
		order = binary.BigEndian
	}
	at := bytes.Index(data, []byte("fmt "))
	f := data[at+8:]
	bits := uint16(8 * int(order.Uint16(f[12:])) / int(order.Uint16(f[2:])))
	order.PutUint16(f[14:], bits)
	if order.Uint16(f) == tagExtensible {
		order.PutUint16(f[18:], bits)
	}
}
