package pixel

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"
)

// part is a chunk of a PNG. A name with a ! has a wrong checksum.
func part(name, body string) string {
	name, wrong := strings.CutSuffix(name, "!")
	sum := crc32.ChecksumIEEE([]byte(name + body))
	if wrong {
		sum ^= 1
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	return string(head) + name + body + string(binary.BigEndian.AppendUint32(nil, sum))
}

// pngOf is a PNG of a size, depth and kind, interlaced or not, with parts before its end.
func pngOf(width, height uint32, depth, kind, interlace byte, parts ...string) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	head = append(head, depth, kind, 0, 0, interlace)
	return []byte("\x89PNG\r\n\x1a\n" + part("IHDR", string(head)) + strings.Join(parts, "") + part("IEND", ""))
}

// idat is the part with the rows, each after the number of its filter.
func idat(rows string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(rows))
	_ = w.Close()
	return part("IDAT", b.String())
}

// bitText is a stream of bits, from a text of 0 and 1 whose first is the lowest of a byte; others are ignored.
func bitText(text string) string {
	var out []byte
	n := 0
	for _, c := range text {
		if c != '0' && c != '1' {
			continue
		}
		if n%8 == 0 {
			out = append(out, 0)
		}
		out[n/8] |= byte(c-'0') << (n % 8)
		n++
	}
	return string(out)
}

// The codes of a block of Deflate (RFC 1951, 3.2.7): the last one, of the dynamic kind; 257 literals, 1 distance; then the lengths
// of the codes of lengths.
const (
	dynamic = "1 01 00000 00000 "
	// 18 such lengths, in their order: those of 18, 0, 2 and 1 are 2. So their codes are 0: 00, 1: 01, 2: 10, 18: 11.
	fourLengths = dynamic + "0111" + "000 000 010 010 000 000 000 000 000 000 000 000 000 000 000 010 000 010 "
	// The literals 0, 7 and 256 have the codes 0, 10 and 11, and the distance has none.
	noDistance = fourLengths + "01 00 00 00 00 00 00 10 11 1111111 11 1100011 10 00 " + "0 10 11"
)

type report struct {
	name   string
	data   []byte
	want   string // pixels, or
	err    string // the message
	damage string
	gamma  bool
}

// reportsOfPNG has what others have reported about image/png, compress/flate and compress/zlib, which read PNGs that are not of
// the usual kinds, and about other readers.
func reportsOfPNG() []report {
	const clear, two = "\x00\x00\x00\x00\x00\x00", "\x01\x02\x03\x04\x05\x06"
	zlibOf := func(deflated string, sum uint32) string {
		return part("IDAT", "\x78\x9c"+deflated+string(binary.BigEndian.AppendUint32(nil, sum)))
	}
	return []report{
		{name: "golang/go#19553", data: pngOf(2, 1, 8, 0, 0, part("tRNS", "\x00\xff"), part("bKGD", "\x00\xff"), idat("\x00\x10\xff")),
			want: "\x10\x10\x10\xff\xff\xff\xff\x00"},
		{name: "golang/go#17511", data: pngOf(2, 1, 8, 2, 0, part("tRNS", "\x00\x04\x00\x05\x00\x06"), idat("\x00"+two)),
			want: "\x01\x02\x03\xff\x04\x05\x06\x00"},
		{name: "golang/go#54142", data: pngOf(2, 1, 8, 2, 0, part("PLTE", two), part("tRNS", "\x00\x04\x00\x05\x00\x06"), idat("\x00"+two)),
			want: "\x01\x02\x03\xff\x04\x05\x06\x00"},
		{name: "golang/go#10414", data: pngOf(2, 1, 1, 3, 0, part("PLTE", two), part("tRNS", "\x09"), part("tRNS", "\x07\x08"), idat("\x00\x40")),
			want: "\x01\x02\x03\x09\x04\x05\x06\xff", damage: "transparent colours at a wrong place were left out"},
		{name: "golang/go#10423", data: pngOf(1, 1, 8, 3, 0, part("tRNS", "\x09"), part("PLTE", two), idat("\x00\x01")),
			want: "\x04\x05\x06\xff", damage: "transparent colours at a wrong place were left out"},
		{name: "golang/go#54325", data: pngOf(3, 1, 4, 3, 0, part("PLTE", clear+two), part("tRNS", "\x00"), idat("\x00\x02\x30")),
			want: "\x00\x00\x00\x00\x01\x02\x03\xff\x04\x05\x06\xff"},
		// One pixel wide, there are only the first, the third and the fifth pass, and the seventh; others have no rows at all.
		{name: "golang/go#11604", data: pngOf(1, 6, 8, 0, 1, idat("\x00\x0a\x00\x0e\x00\x0c\x00\x0b\x00\x0d\x00\x0f")),
			want: grey("\x0a\x0b\x0c\x0d\x0e\x0f")},
		{name: "golang/go#12545", data: pngOf(0, 1024, 4, 0, 0, part("IDAT", "8\x11cn\x00")),
			err: "PNG image is damaged: non-positive dimension"},
		{name: "golang/go#10493", data: pngOf(48, 48, 8, 6, 0)[:40], err: "PNG image ends too early"},
		{name: "golang/go#14936", data: pngOf(1, 1, 8, 0, 0, idat("\x00\x09"), part("IDAT", "")), want: grey("\x09")},
		{name: "golang/go#14936, another image", data: pngOf(1, 1, 8, 0, 0, idat("\x00\x09"), idat("\x00\x33")), want: grey("\x09")},
		{name: "golang/go#20899", data: pngOf(1, 1, 1, 0, 0, idat("\x00\x80\x00\x00")), want: grey("\xff"),
			damage: "it has more pixels than its head says"},
		{name: "golang/go#43382", data: pngOf(1, 1, 8, 0, 0, part("iCCP!", "x\x00\x00\x78"), idat("\x00\x09")), want: grey("\x09"),
			damage: "the checksum of the part iCCP is wrong"},
		{name: "golang/go#20613", data: pngOf(1, 1, 8, 0, 0, part("gAMA", "\x00\x01\x86\xa0"), idat("\x00\x09")), want: grey("\x09"),
			gamma: true},
		{name: "golang/go#22304", data: pngOf(0x7ffffffe, 0x7ffffffe, 8, 6, 0, idat("\x00")), err: "dimension overflow"},
		{name: "golang/go#38435", data: pngOf(0x08000000, 1, 8, 6, 0, idat("\x00")), err: "134217728 x 1 pixels"},
		{name: "golang/go#53778", data: pngOf(12000, 12000, 8, 6, 0, idat("\x00")), err: "bytes cannot hold 12000 x 12000 pixels"},
		{name: "golang/go#11030", data: pngOf(1, 1, 8, 0, 0, zlibOf(bitText(noDistance), 0x00090008)), want: grey("\x07")},
		{name: "golang/go#11033", data: pngOf(1, 1, 16, 0, 0, zlibOf(bitText(strings.TrimSuffix(noDistance, "11")+"10 11"), 0x0018000f)),
			want: grey("\x07")},
		{name: "golang/go#10426", data: pngOf(1, 1, 8, 0, 0, zlibOf(bitText(dynamic+"1111"+strings.Repeat("100 ", 19)), 0)),
			err: "PNG image is damaged: flate"},
		{name: "pnggroup/libpng#822", data: pngOf(1, 1, 8, 3, 0, part("PLTE", two), idat("\x00\x02")), want: grey("\x00")},
		{name: "image-rs/image-png#682", data: pngOf(1, 1, 1, 3, 0, part("PLTE", "\x01\x02\x03\x04"), idat("\x00\x00")), err: "bad PLTE length"},
		{name: "w3c/png#320", data: pngOf(1, 1, 8, 0, 0, part("s\x01IT", "\x08"), idat("\x00\x09")), want: grey("\x09")},
	}
}

func grey(values string) string {
	out := ""
	for i := range len(values) {
		out += strings.Repeat(values[i:i+1], 3) + "\xff"
	}
	return out
}

func TestReports(t *testing.T) {
	for _, tt := range reportsOfPNG() {
		t.Run(tt.name, func(t *testing.T) {
			p, err := DecodePicture("a.png", tt.data, DefaultLimits())
			if tt.err != "" {
				var e *Error
				if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("%v, not %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(p.Eight.Pix); got != tt.want {
				t.Errorf("%x, not %x", got, tt.want)
			}
			if !strings.Contains(p.Damage, tt.damage) || (p.Damage == "") != (tt.damage == "") || (p.Gamma == 1) != tt.gamma {
				t.Errorf("damage %q, gamma %v", p.Damage, p.Gamma)
			}
		})
	}
}
