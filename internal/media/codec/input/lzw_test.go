package input

import (
	"bytes"
	"compress/lzw"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// pack is an encoder that goes on with a full table, unless it is told to clear it.
func pack(src []byte, bits int, early, clears bool) (out []byte) {
	var buffer uint64
	n, width, next := 0, bits+1, 1<<bits+2
	put := func(code int) {
		if early {
			buffer, n = buffer<<width|uint64(code), n+width
			for ; n >= 8; n -= 8 {
				out = append(out, byte(buffer>>(n-8)))
			}
			return
		}
		buffer, n = buffer|uint64(code)<<n, n+width
		for ; n >= 8; n, buffer = n-8, buffer>>8 {
			out = append(out, byte(buffer))
		}
	}
	grow := func() {
		limit := next
		if early {
			limit++
		}
		if limit > 1<<width && width < longestLZW { // the decoder is one code behind
			width++
		}
	}
	table := map[string]int{}
	code := func(s []byte) int {
		if len(s) == 1 {
			return int(s[0])
		}
		return table[string(s)]
	}
	put(1 << bits)
	word := src[:0:0]
	for i, v := range src {
		longer := append(word[:len(word):len(word)], v)
		if _, ok := table[string(longer)]; ok || len(word) == 0 {
			word = longer
			continue
		}
		put(code(word))
		if next < 1<<longestLZW {
			table[string(longer)] = next
			next++
		}
		grow()
		if clears && next == 1<<longestLZW-2 {
			put(1 << bits)
			table, next, width = map[string]int{}, 1<<bits+2, bits+1
		}
		word = src[i : i+1 : i+1]
	}
	if len(word) > 0 {
		put(code(word))
		next++
		grow()
	}
	put(1<<bits + 1)
	switch {
	case n > 0 && early:
		out = append(out, byte(buffer<<(8-n)))
	case n > 0:
		out = append(out, byte(buffer))
	}
	return out
}

// TestLZW has tables that are cleared, and tables that stay full.
func TestLZW(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for bits := 1; bits <= 8; bits++ {
		for _, size := range []int{1, 2, 3, 5, 300, 5000, 20000} {
			for _, letters := range []int{1, 2, 1 << bits} {
				src := make([]byte, size)
				for i := range src {
					src[i] = byte(r.IntN(min(letters, 1<<bits)))
				}
				for form := range 4 {
					early, clears := form%2 > 0, form > 1
					got := make([]byte, size)
					if err := LZW(got, pack(src, bits, early, clears), bits, early); err != nil || !bytes.Equal(got, src) {
						t.Errorf("%d bits, %d bytes, early %v, clears %v: %v", bits, size, early, clears, err)
					}
				}
			}
		}
	}
}

// TestLZWOfStandard has what compress/lzw writes.
func TestLZWOfStandard(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	src := make([]byte, 200000)
	for i := range src {
		src[i] = byte(r.IntN(1 + i%7))
	}
	var b bytes.Buffer
	w := lzw.NewWriter(&b, lzw.LSB, 3)
	if _, err := w.Write(src); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(src))
	if err := LZW(got, b.Bytes(), 3, false); err != nil || !bytes.Equal(got, src) {
		t.Error(err)
	}
}

func TestLZWRefuses(t *testing.T) {
	for name, want := range map[string]error{
		"":                 ErrTruncated, // no data
		"\x80":             ErrTruncated, // half a code
		"\x80\x40\x40":     ErrTruncated, // clear, end
		"\x80\x20\xff\xff": ErrDamaged,   // clear, 128, a code that is none
		"\x80\x40\xc0\x00": ErrDamaged,   // clear, and the code that would come next
	} {
		if err := LZW(make([]byte, 5), []byte(name), 8, true); !errors.Is(err, want) {
			t.Errorf("%x: %v, want %v", name, err, want)
		}
	}
}

func FuzzLZW(f *testing.F) {
	for form := range 4 {
		f.Add(pack([]byte("banana banana bandana"), 8, form%2 > 0, form > 1), byte(8), form%2 > 0, 30)
	}
	f.Fuzz(func(t *testing.T, src []byte, bits byte, early bool, size int) {
		if bits < 1 || bits > 8 || size < 0 || size > 1<<16 {
			return
		}
		dst := make([]byte, size)
		if err := LZW(dst, src, int(bits), early); err != nil && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		for _, v := range dst {
			if int(v) >= 1<<bits {
				t.Fatal(fmt.Sprint("a value of ", v, " with ", bits, " bits"))
			}
		}
	})
}
