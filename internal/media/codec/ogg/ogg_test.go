package ogg

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// opus returns a stream of Opus: packets of the given sizes, perPage on a page, each of 960 frames.
func opus(sizes []int, perPage int, comments ...string) []byte {
	head := append([]byte("OpusHead\x01\x02"), 0x38, 1, 0x80, 0xbb, 0, 0, 0, 0, 0)
	var b []byte
	for _, p := range headers(7, [][]byte{head, Opus.commentPacket("test", comments)}) {
		b = append(b, p...)
	}
	number := uint32(bytes.Count(b, []byte("OggS")))
	for at := 0; at < len(sizes); at += perPage {
		var packets [][]byte
		for k, n := range sizes[at:min(at+perPage, len(sizes))] {
			packets = append(packets, bytes.Repeat([]byte{0x98, byte(at + k)}, n/2+1)[:n]) // CELT, 20 ms
		}
		p := page{serial: 7, granule: int64(960 * (at + len(packets)))}
		if at+perPage >= len(sizes) {
			p.flags = 4
		}
		for _, data := range packets {
			for n := len(data); ; n -= 255 {
				p.segments = append(p.segments, byte(min(n, 255)))
				if n < 255 {
					break
				}
			}
			p.data = append(p.data, data...)
		}
		b = p.append(b, number)
		number++
	}
	return b
}

func packets(t testing.TB, r *Reader) (sizes []int, granules []int64, gaps int) {
	t.Helper()
	r.Rewind()
	for {
		p, err := r.Next()
		if err == io.EOF {
			return sizes, granules, gaps
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Gap {
			gaps++
		}
		sizes, granules = append(sizes, len(p.Data)), append(granules, p.Granule)
	}
}

func open(t testing.TB, data []byte) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var sizes = []int{1, 254, 255, 256, 510, 2000, 3, 4}

func TestPackets(t *testing.T) {
	r := open(t, opus(sizes, 3, "LOOPSTART=5", "TITLE=a=b"))
	if r.Codec != Opus || r.Channels != 2 || r.Rate != 48000 || r.Skip != 312 || r.Last != 960*8 || r.Serial != 7 {
		t.Errorf("%+v", r.Stream)
	}
	if v, ok := r.Comment("loopstart"); !ok || v != "5" {
		t.Errorf("comments %q", r.Comments)
	}
	if v, _ := r.Comment("title"); v != "a=b" {
		t.Errorf("title %q", v)
	}
	for range 2 {
		got, granules, gaps := packets(t, r)
		if !slices.Equal(got, sizes) || !slices.Equal(granules, []int64{-1, -1, 2880, -1, -1, 5760, -1, 7680}) || gaps > 0 {
			t.Errorf("packets %v, granules %v, %d gaps", got, granules, gaps)
		}
	}
}

// Other streams, junk between pages and a damaged page do not affect the rest.
func TestOthers(t *testing.T) {
	data := opus(sizes, 3)
	second := bytes.Index(data[1:], []byte("OggS")) + 1
	other := page{flags: 2, serial: 9, segments: []byte{3}, data: []byte("abc")}.append(nil, 0)
	mixed := slices.Concat(other, data[:second], []byte("junk"), data[second:])
	if got, _, _ := packets(t, open(t, mixed)); !slices.Equal(got, sizes) {
		t.Errorf("packets %v among others", got)
	}
	bad := slices.Clone(data)
	bad[bytes.LastIndex(bad[:bytes.LastIndex(bad, []byte("OggS"))], []byte("OggS"))+40] ^= 1 // the page before the last
	r := open(t, bad)
	got, _, gaps := packets(t, r)
	if !slices.Equal(got, []int{1, 254, 255, 3, 4}) || gaps != 1 || len(r.Warnings) == 0 {
		t.Errorf("packets %v, %d gaps, warnings %q", got, gaps, r.Warnings)
	}
}

// Rewrite changes only comments and serial number, not packets and granule positions.
func TestRewrite(t *testing.T) {
	for _, data := range [][]byte{opus(sizes, 3), opus(sizes, 3)[:len(opus(sizes, 3))-2], opus([]int{9}, 1)} {
		r, err := NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		want, granules, _ := packets(t, r)
		var b bytes.Buffer
		long := "LONG=" + strings.Repeat("x", 100_000) // two pages of comments
		if err := Rewrite(&b, r, 0xbeef, "v", []string{"A=1", long}); err != nil {
			t.Fatal(err)
		}
		again := open(t, b.Bytes())
		got, g, gaps := packets(t, again)
		if !slices.Equal(got, want) || !slices.Equal(g, granules) || gaps > 0 || again.Serial != 0xbeef || again.Vendor != "v" ||
			!slices.Equal(again.Comments, []string{"A=1", long}) {
			t.Errorf("packets %v, granules %v, serial %x, %d comments", got, g, again.Serial, len(again.Comments))
		}
		for no, rest := uint32(0), b.Bytes(); len(rest) > 0; no++ {
			p, ok := parse(rest)
			if !ok || binary.LittleEndian.Uint32(rest[18:]) != no {
				t.Fatalf("page %d is damaged, or has another number", no)
			}
			if last := int(p.size) == len(rest); last != (p.flags&4 != 0) {
				t.Errorf("page %d: last %v, flags %x", no, last, p.flags)
			}
			rest = rest[p.size:]
		}
	}
}

func TestOpusFrames(t *testing.T) {
	for _, c := range []struct {
		packet []byte
		want   int64
	}{
		{nil, 0}, {[]byte{0}, 480}, {[]byte{3 << 3}, 2880}, {[]byte{12 << 3}, 480}, {[]byte{16 << 3}, 120}, {[]byte{31<<3 | 1}, 1920},
		{[]byte{31<<3 | 3}, 0}, {[]byte{31<<3 | 3, 6}, 5760}, {[]byte{31<<3 | 3, 7}, 0},
	} {
		if got := OpusFrames(c.packet); got != c.want {
			t.Errorf("% x: %d, want %d", c.packet, got, c.want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(opus(sizes, 3, "A=1"))
	f.Add(opus(sizes, 3)[:200])
	for _, name := range []string{"silence.ogg", "silence.opus"} {
		data, err := os.ReadFile("../../placeholder/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for n := 0; ; n++ {
			if _, err := r.Next(); err != nil {
				break
			}
			if n > len(data) {
				t.Fatal("more packets than bytes")
			}
		}
		var b bytes.Buffer
		if Rewrite(&b, r, 1, "", nil) == nil {
			if _, err := NewReader(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil {
				t.Errorf("what was written is not read: %v", err)
			}
		}
		b.Reset()
		if Cut(&b, r, 1, "", nil, r.Skip, 1000) == nil {
			if again, err := NewReader(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil || again.Last != again.Skip+1000 {
				t.Errorf("what was cut is not read: %v", err)
			}
		}
	})
}
