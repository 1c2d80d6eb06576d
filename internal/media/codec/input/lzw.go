package input

import "fmt"

const longestLZW = 12 // bits of a code

// LZW unpacks src until dst is full. Plain values have the given number of bits, 1 to 8. Two codes follow them: one clears the
// table, the other ends the data. Each further code stands for the bytes of the code before and the first of the code after it;
// when the table is full, it stays as it is. Codes have one bit more than values, and more of them as the table grows. The first
// bit of a code is the lowest of a byte; if early is set, as in TIFF 6.0, it is the highest, and codes grow one code earlier.
func LZW(dst, src []byte, bits int, early bool) error {
	clear, end := 1<<bits, 1<<bits+1
	var from [1 << longestLZW]int // where in dst the bytes of a code are
	var size [1 << longestLZW]int
	next, width, ahead := end+1, bits+1, 0 // the code that comes next, the bits of a code
	if early {
		ahead = 1
	}
	var buffer, n = uint32(0), 0
	for at, last := 0, -1; at < len(dst); { // last is where the bytes of the code before are
		for ; n < width; n, src = n+8, src[1:] {
			if len(src) == 0 {
				return ErrTruncated
			}
			if early {
				buffer = buffer<<8 | uint32(src[0])
			} else {
				buffer |= uint32(src[0]) << n
			}
		}
		n -= width
		code := int(buffer & (1<<width - 1))
		if early {
			code = int(buffer >> n & (1<<width - 1))
		} else {
			buffer >>= width
		}
		switch {
		case code == clear:
			next, width, last = end+1, bits+1, -1
			continue
		case code == end:
			return ErrTruncated
		case last >= 0 && next < len(from):
			from[next], size[next] = last, at-last+1
			next++
		}
		if code >= next {
			return fmt.Errorf("code %d of %d: %w", code, next, ErrDamaged)
		}
		last = at
		if code < clear {
			dst[at] = byte(code)
			at++
		} else {
			for _, v := range window(dst, from[code], size[code], at) {
				dst[at] = v
				at++
			}
		}
		if next+ahead >= 1<<width && width < longestLZW {
			width++
		}
	}
	return nil
}

// window returns bytes of dst, as many as there is space for from at on. They may reach one byte beyond at, which is written
// before it is read.
func window(dst []byte, from, size, at int) []byte {
	return dst[from:][:min(size, len(dst)-at)]
}
