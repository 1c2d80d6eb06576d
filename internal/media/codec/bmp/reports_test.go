package bmp

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestReports has what others have reported about golang.org/x/image/bmp, whose place this package takes, and about other readers.
func TestReports(t *testing.T) {
	two := []byte{1, 2, 3, 0, 4, 5, 6, 0}
	first, second, black := []byte{3, 2, 1, 255}, []byte{6, 5, 4, 255}, []byte{0, 0, 0, 255}
	many := make([]byte, 4*251)
	many[4*250] = 7
	for _, tt := range []struct {
		name string
		data []byte
		want []byte
		err  string
	}{
		{"golang/go#27767", file(108, 1, 1, 24, 0, 0, nil, 1, 2, 3, 0), first, ""},
		{"golang/go#27767, 124 bytes", file(124, 1, 1, 32, 0, 0, nil, 1, 2, 3, 99), []byte{3, 2, 1, 99}, ""},
		{"golang/go#58005", file(40, 2, 1, 4, 0, 2, two, 0x10, 0, 0, 0), slices.Concat(second, first), ""},
		{"golang/go#29711", file(40, 2, 1, 1, 0, 2, two, 0x40, 0, 0, 0), slices.Concat(first, second), ""},
		{"golang/go#54368", file(40, 1, 1, 32, 0, 0, nil, 1, 2, 3, 0), first, ""},
		{"golang/go#61240", file(40, 1, 1, 8, 0, 251, many, 250, 0, 0, 0), []byte{0, 0, 7, 255}, ""},
		{"golang/go#79576", file(40, 2, 1, 8, 0, 2, two, 1, 2, 0, 0), slices.Concat(second, black), ""},
		{"golang/go#10746", file(40, 0, 538771456, 24, 0, 0, nil), nil, "size 0 x 538771456: damaged"},
		{"golang/go#10396", file(40, 0x400000aa, 0x3c, 24, 0, 0, nil), nil, "1073741994 x 60 pixels: too large"},
		{"golang/go#10399", file(40, 16, 0x4000000c, 32, 0, 0, nil), nil, "16 x 1073741836 pixels: too large"},
		{"davidbyttow/govips#300", file(12, 1, 1, 24, 0, 0, nil, 1, 2, 3, 0), first, ""},
		{"davidbyttow/govips#465", file(40, 2, 1, 8, 1, 2, two, 2, 1, 0, 1), slices.Concat(second, second), ""},
		{"image-rs/image#2747, OS/2 of 64 bytes", file(64, 2, 1, 1, 0, 2, two, 0x40, 0, 0, 0), slices.Concat(first, second), ""},
		{"image-rs/image#2747, OS/2 with colours of 3 bytes", file(64, 2, 1, 1, 0, 2, []byte{1, 2, 3, 4, 5, 6}, 0x40, 0, 0, 0),
			slices.Concat(first, second), ""},
		{"image-rs/image#2747, colours without use", file(40, 2, 1, 8, 0, 300, append(bytes.Clone(two), make([]byte, 4*298)...), 1, 0, 0, 0),
			slices.Concat(second, first), ""},
		{"image-rs/image#2773", file(40, 3, 1, 8, 1, 2, two, 1, 1, 0, 2, 1, 0, 1, 1, 0, 1), slices.Concat(second, first, second), ""},
		{"image-rs/image#2773, the rest", file(40, 3, 1, 8, 1, 2, two, 1, 1, 0, 1), slices.Concat(second, first, first), ""},
		{"treeform/pixie#561", file(40, 1, 1, 1, 0, 0, two, 0x80, 0, 0, 0), second, ""},
		{"SixLabors/ImageSharp#3074", at(file(40, 1, 1, 8, 0, 0, two, 0, 0, 0, 0), 0x7fffffff), nil, "data ends too early"},
		{"delhoume/vliv#6", file(40, 1, -2, 24, 0, 0, nil, 1, 2, 3, 0, 4, 5, 6, 0), slices.Concat(first, second), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got, err := Decode(tt.data, 1<<20)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, not %q", err, tt.err)
				}
				return
			}
			if err != nil || !bytes.Equal(got, tt.want) {
				t.Errorf("%v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

// at moves the offset of the pixels.
func at(data []byte, offset int) []byte {
	copy(data[10:], u32(nil, offset))
	return data
}
