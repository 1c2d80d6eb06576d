package ogg

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
)

// cut cuts a stream to the given number of frames, and reads it again.
func cut(t *testing.T, data []byte, skip, frames int64) *Reader {
	t.Helper()
	var b bytes.Buffer
	if err := Cut(&b, open(t, data), 0xbeef, "v", []string{"A=b"}, skip, frames); err != nil {
		t.Fatalf("%d frames after %d: %v", frames, skip, err)
	}
	return open(t, b.Bytes())
}

func TestCut(t *testing.T) {
	data := opus(sizes, 3)
	for _, test := range []struct {
		skip, frames int64
		packets      int
	}{{312, 960*8 - 312, 8}, {312, 1000, 2}, {312, 960*3 - 312, 3}, {312, 1, 1}, {960*2 + 312, 1000, 4}} {
		r := cut(t, data, test.skip, test.frames)
		if r.Last != test.skip+test.frames || r.Skip != test.skip || r.Serial != 0xbeef || r.Vendor != "v" || len(r.Comments) != 1 {
			t.Errorf("%+v: %+v", test, r.Stream)
		}
		got, granules, gaps := packets(t, r)
		if len(got) != test.packets || gaps > 0 || granules[0] != min(960, r.Last) { // the first packet has its own page
			t.Errorf("%+v: packets %v at %v", test, got, granules)
		}
	}
	for _, frames := range []int64{960*8 - 311, 1 << 40} {
		if err := Cut(io.Discard, open(t, data), 1, "", nil, 312, frames); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d frames: %v", frames, err)
		}
	}
	if err := Cut(io.Discard, open(t, data), 1, "", nil, 1<<16, 1); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
}

func TestCutVorbis(t *testing.T) {
	data, err := os.ReadFile("../../placeholder/silence.ogg") // of oggenc: 4800 frames
	if err != nil {
		t.Fatal(err)
	}
	if m := modes(open(t, data).Headers[2]); len(m) != 2 || m[0] || !m[1] {
		t.Errorf("modes %v", m)
	}
	for _, frames := range []int64{1, 127, 128, 129, 1000, 4799, 4800} {
		if r := cut(t, data, 0, frames); r.Last != frames || r.Rate != 48000 {
			t.Errorf("%d: %+v", frames, r.Stream)
		}
	}
	if err := Cut(io.Discard, open(t, data), 1, "", nil, 0, 20000); !errors.Is(err, ErrTruncated) {
		t.Error(err)
	}
	for _, header := range [][]byte{nil, {0, 0}, {255}, bytes.Repeat([]byte{255}, 100)} {
		if m := modes(header); m != nil {
			t.Errorf("%x: %v", header, m)
		}
	}
}
