package gif

import (
	"bytes"
	"strings"
	"testing"
)

// TestReports has what others have reported about image/gif and compress/lzw, whose place this package takes, and about other
// readers: the first frame, and how many there are.
func TestReports(t *testing.T) {
	rows := []byte{0, 1, 2, 3}
	lzw := packed(2, rows...)
	plain := frame(0, 0, 2, 2, 0, lzw)
	full := []int{4} // codes for more pixels than the table has space for
	for i := range 90 * 90 {
		full = append(full, i*i/7&3)
	}
	all := make([]byte, 0, 90*90)
	for _, code := range full[1:] {
		all = append(all, byte(code))
	}
	netscape := "!\xff\x0bNETSCAPE2.0\x03\x01" + u16(0) + "\x00"
	for _, tt := range []struct {
		name    string
		data    []byte
		want    []byte
		frames  int
		plays   int
		flaw    string
		strange bool
		end     string // what is wrong after the last frame
		err     string
	}{
		{name: "golang/go#15059", data: file(2, 1, frame(0, 0, 2, 1, 0, packed(4, 1, 9))), want: pixels(1, 3), strange: true},
		{name: "golang/go#16146", data: file(2, 2, frame(0, 0, 2, 2, 0, strings.TrimSuffix(lzw, "\x00")+"\x01\x00\x00")), want: pixels(rows...)},
		{name: "golang/go#35503", data: file(2, 2, frame(0, 0, 2, 2, 0, packed(2, 0, 1, 2, 3, 3, 3, 3))), want: pixels(rows...)},
		{name: "golang/go#9856", data: file(2, 2, frame(0, 0, 2, 2, 0, "\x02\x02"+lzw[2:4]+"\x00")), want: pixels(rows...)},
		// no end of the codes
		{name: "golang/go#38958", data: file(2, 2, frame(0, 0, 2, 2, 0, packed(2, 0, 1, 2))), err: "data ends too early"},
		{name: "golang/go#20856", data: file(2, 2, frame(0, 1, 2, 2, 0, lzw)), want: pixels(rows...), flaw: "which was enlarged"},
		{name: "golang/go#20804", data: file(2, 2, plain, "\x01\x02\x03"), want: pixels(rows...), end: "a block of kind 0x1: damaged"},
		{name: "golang/go#38853", data: file(2, 2, "\x00", plain, "\x00\x00"), want: pixels(rows...)},
		{name: "golang/go#11150", data: []byte("GIF89a" + u16(2, 2) + "\x00\x00\x00" + plain + ";"), err: "no palette: damaged"},
		{name: "golang/go#48050", data: []byte("8\x99\xbax\x99\x99" + string(file(2, 2, plain)[6:])), err: "no signature: damaged"},
		{name: "golang/go#11288", data: file(2, 2, "!\xf9\x06\x05\x00\x00\x01\x09\x09\x00", plain), want: pixels(0, 4, 2, 3)},
		{name: "golang/go#13724", data: file(2, 2, control(0, 0, 2), frame(0, 0, 2, 2, hasPalette|1, palette+lzw)), want: pixels(0, 1, 4, 3)},
		{name: "golang/go#33748", data: file(1, 1, frame(0, 0, 1, 1, 0, "\x02\x01\x28\x00")), want: pixels(0)},
		{name: "golang/go#20692", data: file(1, 1, frame(0, 0, 1, 1, 0, packed(2, 0, 1, 1, 2))), want: pixels(0)},
		{name: "golang/go#41142", data: file(2, 2, plain, frame(0, 0, 2, 2, 0, packed(2, 1))), want: pixels(rows...), frames: 2},
		{name: "golang/go#22237", data: file(2, 2, strings.Repeat(plain, 3000)), want: pixels(rows...), frames: 3000},
		{name: "golang/go#15768", data: file(2, 2, netscape, plain, plain), want: pixels(rows...), frames: 2, plays: -1},
		{name: "golang/go#20597", data: file(90, 90, frame(0, 0, 90, 90, 0, packedBits(2, full...))), want: pixels(all...)},
		// Codes that begin with two bits: clear 2, 0, then the end of three bits, 3.
		{name: "image-rs/image-gif#97", data: file(1, 1, frame(0, 0, 1, 1, 0, "\x01\x01\x32\x00")), want: pixels(0)},
		{name: "image-rs/image-gif#97, more", data: file(2, 2, frame(0, 0, 2, 2, 0, packedBits(1, 2, 0, 4, 1, 3))), want: pixels(0, 0, 0, 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Parse(tt.data)
			var got []byte
			var strange bool
			if err == nil {
				got, strange, err = f.Frames[0].Decode()
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, not %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, tt.want) || strange != tt.strange || len(f.Frames) != max(1, tt.frames) {
				t.Errorf("%v, %v, %d frames", got, strange, len(f.Frames))
			}
			if !strings.Contains(f.Flaw, tt.flaw) || (f.Flaw == "") != (tt.flaw == "") || f.Plays != 1+tt.plays {
				t.Errorf("flaw %q, plays %d", f.Flaw, f.Plays)
			}
			if (f.End == nil) != (tt.end == "") || f.End != nil && f.End.Error() != tt.end {
				t.Errorf("end: %v", f.End)
			}
		})
	}
}

// packedBits are codes that begin with one bit more than bits, and get longer as in the table of a reader.
func packedBits(bits int, codes ...int) string {
	var out []byte
	n, width, next := 0, bits+1, 1<<bits+1
	for _, c := range codes {
		for i := range width {
			if n%8 == 0 {
				out = append(out, 0)
			}
			out[n/8] |= byte(c>>i&1) << (n % 8)
			n++
		}
		if c == 1<<bits {
			continue
		}
		if next++; next == 1<<width && width < 12 {
			width++
		}
	}
	text := string(rune(bits))
	for len(out) > 0 {
		n := min(100, len(out))
		text, out = text+string(rune(n))+string(out[:n]), out[n:]
	}
	return text + "\x00"
}
