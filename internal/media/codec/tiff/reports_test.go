package tiff

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// lzwCodes are codes of TIFF 6.0, which get longer as in the table of a reader.
func lzwCodes(list ...int) []byte {
	var out []byte
	var buffer uint64
	n, width, next := 0, 9, 257
	for _, c := range list {
		buffer, n = buffer<<width|uint64(c), n+width
		for ; n >= 8; n -= 8 {
			out = append(out, byte(buffer>>(n-8)))
		}
		if c == 256 {
			width, next = 9, 257
			continue
		}
		if next++; next+1 >= 1<<width && width < 12 {
			width++
		}
	}
	return append(out, byte(buffer<<(8-n)))
}

// fullTable are the codes of plain values until the table is full but for its last place, then those that follow.
func fullTable(then ...int) (list []int, values []byte) {
	list = []int{256}
	for i := range 4095 - 258 + 1 {
		v := byte(i*i/3 + i + 7)
		list, values = append(list, int(v)), append(values, v)
	}
	return append(list, then...), values
}

// TestReports has what others have reported about golang.org/x/image/tiff, with its packages lzw and ccitt, whose place this
// package takes, and about other readers.
func TestReports(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	packed := func(w int, compression int, data []byte) []byte {
		return file(le, tags(w, 1, 8, blackIsZero, 1, tagCompression, compression), data)
	}
	fax := func(w, h, compression int, data ...byte) []byte {
		return file(le, tags(w, h, 1, whiteIsZero, 1, tagCompression, compression), data)
	}
	last := func() (data []byte, want []uint16) { // the code of the last place, before it is in the table and after
		list, values := fullTable(4095, 4095, 300)
		v := values[len(values)-1]
		values = append(values, v, v, v, v, values[42], values[43])
		for i := range 500 { // and on without a clear code
			list, values = append(list, i&255), append(values, byte(i))
		}
		return packed(len(values), lzw, lzwCodes(list...)), greys(values...)
	}
	lastData, lastWant := last()
	long := func() (data []byte, want []uint16) { // no clear code for longer than a number of 16 bits can count
		list, values := fullTable()
		for i := range 70000 {
			list, values = append(list, i*i&255), append(values, byte(i*i))
		}
		list, values = append(list, 258, 259), append(values, values[0], values[1], values[1], values[2])
		return packed(len(values), lzw, lzwCodes(list...)), greys(values...)
	}
	longData, longWant := long()
	for _, tt := range []struct {
		name string
		data []byte
		want []uint16
		err  string
	}{
		{"golang/go#11413", file(le, tags(1, 1, 8, rgb, 5, tagExtra, 0), []byte{1, 2, 3, 4, 5}), widen(1, 2, 3, 255), ""},
		{"golang/go#24657", file(be, tags(3, 1, 16, blackIsZero, 1, tagTileWidth, 2, tagTileHeight, 1), []byte{0, 1, 0, 2}, []byte{0, 3, 9, 9}),
			[]uint16{1, 1, 1, 0xffff, 2, 2, 2, 0xffff, 3, 3, 3, 0xffff}, ""},
		{"golang/go#36121", file(le, tags(3, 2, 8, blackIsZero, 1, tagTileWidth, 2, tagTileHeight, 2), []byte{1, 2, 4, 5}, []byte{3, 99, 6, 99}),
			greys(1, 2, 3, 4, 5, 6), ""},
		{"golang/go#30827", packed(3, lzw, lzwCodes(256, 7, 258)), greys(7, 7, 7), ""},
		{"golang/go#81347", packed(2, lzw, lzwCodes(256, 7, 258, 8, 8)), greys(7, 7), ""},
		{"golang/go#81125", longData, longWant, ""},
		{"golang/go#81125, the last place", lastData, lastWant, ""},
		{"golang/go#11386", packed(5, lzw, lzwCodes(256, 7, 9, 400)), nil, "block 0: code 400 of 260: damaged"},
		{"image-rs/image-tiff#191", packed(3, lzw, append(codes(256, 7, 258), 0xff, 0xff, 0xff)), greys(7, 7, 7), ""},
		{"image-rs/image#706", packed(3, lzw, codes(256, 7, 258, 129)), greys(7, 7, 7), ""}, // an end of another length
		{"haraldk/TwelveMonkeys#84", longData, longWant, ""},
		{"image-rs/image-tiff#407", packed(3, lzw, lowest(9, 256, 7, 258, 257)), greys(7, 7, 7), ""},
		{"golang/go#10712", file(le, tags(4, 4, 16, blackIsZero, 1), []byte{1, 2, 3}), nil, "block 0: data ends too early"},
		{"golang/go#10394", file(le, tags(9, 1, 1, blackIsZero, 1), []byte{0xff}), nil, "block 0: data ends too early"},
		{"golang/go#10395", file(le, map[int][]int{tagWidth: {4}, tagHeight: {4}, tagBits: {8}, tagPhotometric: {1}, tagStrips: {1 << 30},
			tagStripSizes: {16}}),
			nil, "block 0: data ends too early"},
		// A row of 8 white pixels of group 4 is a 1; then twice the code for an end, 000000000001.
		{"golang/go#19443", fax(8, 2, group4, 0b11000000, 0b00000100, 0b00000000, 0b01000000), greys(slices.Repeat([]byte{255}, 16)...), ""},
		{"golang/go#34809", fax(8, 2, group4, 0b11000000), greys(slices.Repeat([]byte{255}, 16)...), ""},
		{"golang/go#39705", fax(8, 1, group3, 0b00000000, 0b00011001, 0b10000000), greys(slices.Repeat([]byte{255}, 8)...), ""},
		{"hhrutter/tiff#2", fax(8, 2, fax2, 0b10011000, 0b10011000), greys(slices.Repeat([]byte{255}, 16)...), ""},
		{"haraldk/TwelveMonkeys#975", file(le, tags(1, 1, 8, blackIsZero, 2, tagExtra, 999), []byte{9, 3}), widen(9, 9, 9, 3), ""},
		{"slyrus/retrospectiff#6", file(le, tags(1, 1, 8, rgb, 3, tagPlanes, 2), []byte{1}, []byte{2}, []byte{3}), widen(1, 2, 3, 255), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Decode(tt.data, 1<<20)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, not %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.Pix, tt.want) {
				t.Errorf("%.30v of %d, want %.30v of %d", m.Pix, len(m.Pix), tt.want, len(tt.want))
			}
		})
	}
}
