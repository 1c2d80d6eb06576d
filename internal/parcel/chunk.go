package parcel

import (
	"io"
)

// Sizes of chunks in bytes. 16 KiB is where a patch of the usual change is smallest: less, and the list of chunks weighs more than
// what it saves.
const (
	chunkLeast = 4 << 10
	chunkUsual = 16 << 10
	chunkMost  = 64 << 10
)

// gear has a number without pattern for each byte: SplitMix64 from 0 on.
var gear = makeGear()

func makeGear() (table [256]uint64) {
	var x uint64
	for i := range table {
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		table[i] = z ^ z>>31
	}
	return table
}

// cut finds where the first chunk of b ends: FastCDC (Xia et al., USENIX ATC 2016) with normalised chunking, a stricter mask
// before the usual size and a laxer one behind it. b that is shorter than chunkMost is the end of the file.
func cut(b []byte) int {
	const strict, lax = uint64(1<<16-1) << 48, uint64(1<<12-1) << 48
	n := min(len(b), chunkMost)
	if n <= chunkLeast {
		return n
	}
	var h uint64
	i := chunkLeast
	for ; i < min(n, chunkUsual); i++ {
		if h = h<<1 + gear[b[i]]; h&strict == 0 {
			return i + 1
		}
	}
	for ; i < n; i++ {
		if h = h<<1 + gear[b[i]]; h&lax == 0 {
			return i + 1
		}
	}
	return n
}

// chunks calls f with each chunk of r and where it begins. The bytes are f's until it returns.
func chunks(r io.Reader, f func(at int64, b []byte) error) error {
	buf := make([]byte, 1<<20)
	var at int64
	from, to, end := 0, 0, false
	for {
		if !end && to-from < chunkMost {
			copy(buf, buf[from:to])
			from, to = 0, to-from
			n, err := io.ReadFull(r, buf[to:])
			to += n
			if end = err == io.EOF || err == io.ErrUnexpectedEOF; err != nil && !end {
				return err
			}
		}
		if from == to {
			return nil
		}
		n := cut(buf[from:to])
		if err := f(at, buf[from:from+n]); err != nil {
			return err
		}
		at += int64(n)
		from += n
	}
}
