package flac

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// head is the header of a frame.
type head struct {
	number int64 // number of the frame, or of its first sample if frame sizes vary
	varies bool
	block  int // samples
	stereo int
	size   int // bytes
}

// parseHead reads the head of a frame of this file. It recognises a frame by its first 15 bits, the format, and the CRC.
//
//	0  15 bits of 0x7ffc, a bit that is set if sizes vary
//	2  4 bits size, 4 bits rate, 4 bits channels or stereo, 3 bits for bits per sample, a bit of 0
//	4  1 to 7 bytes number, encoded like UTF-8; up to 2 bytes size; up to 2 bytes rate; u8 CRC
func (d *Decoder) parseHead(b []byte) (h head, ok bool) {
	h, f, ok := readHead(b, d.Format)
	return h, ok && f == d.Format
}

// readHead is parseHead for a frame of any format; what its head leaves to the file is that of f.
func readHead(b []byte, f Format) (h head, is Format, ok bool) {
	if len(b) < 6 || b[0] != 0xff || b[1]&0xfe != 0xf8 || b[3]&1 != 0 {
		return h, f, false
	}
	h.varies = b[1]&1 == 1
	size, rate, channels, bits := int(b[2]>>4), int(b[2]&15), int(b[3]>>4), sizes[b[3]>>1&7]
	if bits == 0 && b[3]&0xe != 0 || channels > midSide {
		return h, f, false
	}
	if bits > 0 {
		f.Bits = bits
	}
	was := f.Channels
	f.Channels = 2
	if channels < leftSide {
		f.Channels = channels + 1
	}
	if f.Channels != was {
		f.Mask = 0
	}
	h.stereo = channels
	n := 0
	if h.number, n = parseNumber(b[4:]); n == 0 || n == 7 && !h.varies {
		return h, f, false
	}
	at := 4 + n
	next := func(bytes int) (v int) {
		for range bytes {
			if at < len(b) {
				v = v<<8 | int(b[at])
			}
			at++
		}
		return v
	}
	switch size {
	case 6:
		h.block = next(1) + 1
	case 7:
		h.block = next(2) + 1
	default:
		h.block = blockCode(size)
	}
	switch {
	case rate == 15:
		return h, f, false
	case rate == 14:
		f.Rate = next(2) * 10
	case rate == 13:
		f.Rate = next(2)
	case rate == 12:
		f.Rate = next(1) * 1000
	case rate > 0:
		f.Rate = rates[rate]
	}
	h.size = at + 1
	return h, f, h.block > 0 && h.block <= maxBlock && h.size <= len(b) && crc8(b[:h.size]) == 0
}

// changes returns an error if a frame of another format, or another file, begins at a position: what follows would be lost.
func (d *Decoder) changes(at int64) error {
	n := min(headSize, d.in.size-at)
	if n < 4 {
		return nil
	}
	b, err := d.bytes(at, int(n))
	if err != nil {
		return err
	}
	if string(b[:4]) == magic {
		return fmt.Errorf("another FLAC file begins at byte %d: %w", at, ErrUnsupported)
	}
	_, f, ok := readHead(b, d.Format)
	if !ok || f == d.Format {
		return nil
	}
	return fmt.Errorf("from byte %d on the format is %s, before it %s: %w", at, f, d.Format, ErrUnsupported)
}

// unread warns of what follows the last whole frame, if it is not a tag or padding.
func (d *Decoder) unread(at int64) error {
	if err := d.changes(at); err != nil || d.reported == at {
		return err
	}
	const most = 1 << 16 // of padding to be recognised
	rest := d.in.size - at
	b, err := d.bytes(at, int(min(rest, most)))
	switch {
	case err != nil:
		return err
	case rest == 0, rest == 128 && string(b[:3]) == "TAG", rest >= 8 && string(b[:8]) == "APETAGEX", len(bytes.Trim(b, "\x00")) == 0:
		return nil
	}
	d.reported = at
	d.warn("%d bytes after the last whole frame are not read", rest)
	return nil
}

// parseNumber reads a number of up to 36 bits, and returns its size in bytes, or 0 if it is invalid.
func parseNumber(b []byte) (v int64, n int) {
	ones := 0
	for b[0]<<ones&0x80 != 0 {
		ones++
	}
	switch {
	case ones == 0:
		return int64(b[0]), 1
	case ones == 1 || ones == 8 || len(b) < ones:
		return 0, 0
	}
	v = int64(b[0] & (0x7f >> ones))
	for _, c := range b[1:ones] {
		if c&0xc0 != 0x80 {
			return 0, 0
		}
		v = v<<6 | int64(c&0x3f)
	}
	return v, ones
}

// frame decodes the frame at a position.
func (d *Decoder) frame(at int64) (h head, err error) {
	var b [headSize]byte
	n := int(min(headSize, max(d.in.size-at, 0)))
	d.in.seek(at)
	for i := range n {
		b[i] = byte(d.in.read(8))
	}
	if d.in.err != nil {
		return h, d.in.err
	}
	h, ok := d.parseHead(b[:n])
	switch {
	case !ok && n < headSize && n > 0 && b[0] == 0xff:
		return h, fmt.Errorf("a head of %d bytes: %w", n, ErrTruncated)
	case !ok:
		return h, fmt.Errorf("no head of a frame: %w", ErrDamaged)
	}
	d.in.seek(at)
	for range h.size {
		d.in.read(8)
	}
	for c := range d.Channels {
		if cap(d.pcm[c]) < h.block {
			d.pcm[c] = make([]int64, h.block)
		}
		d.pcm[c] = d.pcm[c][:h.block]
		bits := d.Bits
		if h.stereo >= leftSide && c == 1 != (h.stereo == sideRight) {
			bits++ // the difference has one bit more
		}
		if err := d.subframe(d.pcm[c], bits); err != nil {
			return h, fmt.Errorf("channel %d: %w", c, err)
		}
	}
	if d.in.read(d.in.n & 7); d.in.err != nil {
		return h, d.in.err
	}
	want := d.in.sum()
	if got := uint16(d.in.read(16)); d.in.err != nil {
		return h, d.in.err
	} else if got != want {
		return h, fmt.Errorf("CRC is %04x, but the file has %04x: %w", want, got, ErrDamaged)
	}
	d.decorrelate(h)
	for c := range d.Channels {
		out, unused := int64(0), 64-d.Bits
		for _, v := range d.pcm[c] {
			out |= v<<unused>>unused ^ v
		}
		if out != 0 {
			return h, fmt.Errorf("channel %d has samples of more than %d bits: %w", c, d.Bits, ErrDamaged)
		}
	}
	return h, nil
}

func (d *Decoder) decorrelate(h head) {
	a := d.pcm[0]
	b := d.pcm[1]
	if h.stereo >= leftSide {
		b = b[:len(a)]
	}
	switch h.stereo {
	case leftSide:
		for i, v := range a {
			b[i] = v - b[i]
		}
	case sideRight:
		for i := range a {
			a[i] += b[i]
		}
	case midSide:
		for i, m := range a {
			s := b[i]
			m = m<<1 | s&1
			a[i], b[i] = (m+s)>>1, (m-s)>>1
		}
	}
}

// subframe decodes a channel: a bit of 0, 6 bits kind, a bit that is set if the lowest bits of all samples are 0; if so,
// their number less 1, in unary.
func (d *Decoder) subframe(x []int64, bits int) error {
	in := &d.in
	v := in.read(8)
	wasted := 0
	if v&1 != 0 {
		wasted = int(in.unary(MaxBits)) + 1
	}
	kind := int(v >> 1)
	if bits -= wasted; bits < 1 || kind > 63 {
		return fmt.Errorf("a subframe that begins with %02x, %d bits a sample: %w", v, bits, ErrDamaged)
	}
	var err error
	switch {
	case kind == 0:
		c := in.signed(uint(bits))
		for i := range x {
			x[i] = c
		}
	case kind == 1:
		d.warmUp(x, bits)
	case kind >= 8 && kind <= 12 && kind-8 <= len(x):
		order := kind - 8
		d.warmUp(x[:order], bits)
		if err = d.residual(x, order); err == nil {
			restoreFixed(x, order)
		}
	case kind >= 32 && kind-31 <= len(x):
		err = d.linear(x, kind-31, bits)
	default:
		return fmt.Errorf("subframe of kind %d, %d samples: %w", kind, len(x), ErrDamaged)
	}
	if err == nil {
		err = in.err
	}
	if err == nil && wasted > 0 {
		for i := range x {
			x[i] <<= wasted
		}
	}
	return err
}

func (d *Decoder) warmUp(x []int64, bits int) {
	for i := range x {
		if x[i] = d.in.signed(uint(bits)); d.in.err != nil {
			return
		}
	}
}

// restoreFixed restores samples from differences of an order.
func restoreFixed(x []int64, order int) {
	switch order {
	case 1:
		for i := 1; i < len(x); i++ {
			x[i] += x[i-1]
		}
	case 2:
		for i := 2; i < len(x); i++ {
			x[i] += 2*x[i-1] - x[i-2]
		}
	case 3:
		for i := 3; i < len(x); i++ {
			x[i] += 3*(x[i-1]-x[i-2]) + x[i-3]
		}
	case 4:
		for i := 4; i < len(x); i++ {
			x[i] += 4*(x[i-1]+x[i-3]) - 6*x[i-2] - x[i-4]
		}
	}
}

// linear decodes a subframe with its own weights: 4 bits for the bits of a weight less 1, 5 bits for the shift of the sum,
// then the weights.
func (d *Decoder) linear(x []int64, order, bits int) error {
	in := &d.in
	d.warmUp(x[:order], bits)
	precision, shift := uint(in.read(4))+1, in.signed(5)
	if precision == 16 || shift < 0 {
		return fmt.Errorf("weights of %d bits, shifted by %d: %w", precision, shift, ErrDamaged)
	}
	var room [maxOrder]int64
	weights := room[:order] // weight of the oldest sample first
	for i := range weights {
		weights[order-1-i] = in.signed(precision)
	}
	if err := d.residual(x, order); err != nil {
		return err
	}
	for i := order; i < len(x); i++ {
		before := x[i-order : i]
		before = before[:len(weights)]
		sum := int64(0)
		for j, w := range weights {
			sum += w * before[j]
		}
		x[i] += sum >> (uint(shift) & 31)
	}
	return nil
}

// residual reads the errors of a predictor in 2^n parts, each with a parameter: 2 bits size of the parameters, 4 bits n.
func (d *Decoder) residual(x []int64, order int) error {
	in := &d.in
	method, parts := in.read(2), uint(in.read(4))
	size := len(x) >> parts
	if method > 1 || size<<parts != len(x) || size < order {
		return fmt.Errorf("residual of kind %d, %d samples in 2^%d parts, order %d: %w", method, len(x), parts, order, ErrDamaged)
	}
	bits := uint(4 + method)
	for at := 0; at < len(x); at += size {
		part := x[max(at, order) : at+size]
		if k := uint(in.read(bits)); k < 1<<bits-1 {
			in.rice(part, k)
		} else {
			d.warmUp(part, int(in.read(5)))
		}
		if in.err != nil {
			return in.err
		}
	}
	return in.err
}

// appendHead is the reverse of parseHead.
func appendHead(b []byte, f Format, number int64, block, stereo int) []byte {
	size, rate, bits := 7, 0, 0
	for code := 1; code < 16; code++ {
		if blockCode(code) == block {
			size = code
		}
	}
	if size == 7 && block <= 256 {
		size = 6
	}
	for code := 1; code < len(rates); code++ {
		if rates[code] == f.Rate {
			rate = code
		}
	}
	switch {
	case rate > 0:
	case f.Rate%1000 == 0 && f.Rate < 256000:
		rate = 12
	case f.Rate < 1<<16:
		rate = 13
	case f.Rate%10 == 0 && f.Rate < 10<<16:
		rate = 14
	}
	for code, v := range sizes {
		if v == f.Bits {
			bits = code
		}
	}
	start := len(b)
	b = append(b, 0xff, 0xf8, byte(size<<4|rate), byte(stereo<<4|bits<<1))
	b = appendNumber(b, number)
	switch size {
	case 6:
		b = append(b, byte(block-1))
	case 7:
		b = binary.BigEndian.AppendUint16(b, uint16(block-1))
	}
	switch rate {
	case 12:
		b = append(b, byte(f.Rate/1000))
	case 13:
		b = binary.BigEndian.AppendUint16(b, uint16(f.Rate))
	case 14:
		b = binary.BigEndian.AppendUint16(b, uint16(f.Rate/10))
	}
	return append(b, crc8(b[start:]))
}

// appendNumber is the reverse of parseNumber.
func appendNumber(b []byte, v int64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	more := 1 // bytes
	for v>>(6*more) >= 1<<(6-more) {
		more++
	}
	b = append(b, ^byte(0xff>>(more+1))|byte(v>>(6*more)))
	for more--; more >= 0; more-- {
		b = append(b, 0x80|byte(v>>(6*more))&0x3f)
	}
	return b
}
