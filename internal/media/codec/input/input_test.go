package input

import (
	"errors"
	"math"
	"testing"
)

func TestPackBits(t *testing.T) {
	for _, tt := range []struct {
		src         string
		n           int
		want, loose string // "" is an error
	}{
		{"\x02abc\xfed", 6, "abcddd", "abcddd"},
		{"\x80\x00a\x80\xffb", 3, "abb", "abb"},
		{"\xfed", 2, "", "dd"},
		{"\x02abc", 2, "", "ab"},
		{"\x05abc", 3, "", "abc"},
		{"\x03abc", 4, "", ""},
		{"\xfe", 3, "", ""},
		{"\x80\x80\x80", 1, "", ""},
		{"", 1, "", ""},
		{"", 0, "", ""},
	} {
		for _, loose := range []bool{false, true} {
			want := tt.want
			if loose {
				want = tt.loose
			}
			dst := make([]byte, tt.n)
			err := PackBits(dst, []byte(tt.src), loose)
			if want == "" && tt.n > 0 {
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("%q, loose %v: %v, %q", tt.src, loose, err, dst)
				}
			} else if err != nil || string(dst) != want {
				t.Errorf("%q, loose %v: %v, %q, not %q", tt.src, loose, err, dst, want)
			}
		}
	}
}

func TestHalf(t *testing.T) {
	for v, want := range map[uint16]float64{0: 0, 1: 0x1p-24, 0x3ff: 1023 * 0x1p-24, 0x400: 0x1p-14, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504,
		0xfc00: math.Inf(-1)} {
		if got := Half(v); float64(got) != want {
			t.Errorf("%#x is %v, not %v", v, got, want)
		}
	}
	if got := Half(0x7e00); got == got {
		t.Errorf("not a number is %v", got)
	}
}

func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		width, height int
		want          error
	}{
		{1, 1, nil}, {MaxSide, MaxSide, nil}, {0, 1, ErrDamaged}, {1, -1, ErrDamaged}, {MaxSide + 1, 1, ErrTooLarge},
		{1, math.MaxInt, ErrTooLarge},
	} {
		if err := CheckSize(tt.width, tt.height); !errors.Is(err, tt.want) {
			t.Errorf("%d x %d: %v", tt.width, tt.height, err)
		}
	}
	if err := CheckPixels(10, 10, 100); err != nil {
		t.Error(err)
	}
	if err := CheckPixels(math.MaxInt32, math.MaxInt32, 1<<60); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}
