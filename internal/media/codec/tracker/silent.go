package tracker

import "encoding/binary"

// Silent returns a module with one empty pattern, the smallest that players accept.
func Silent(f Format) []byte {
	le := binary.LittleEndian
	switch f {
	case MOD:
		const channels, rows = 4, 64
		b := make([]byte, modHeader+channels*rows*4)
		copy(b, "silence")
		b[950], b[951] = 1, 127
		copy(b[1080:], "M.K.")
		return b
	case XM:
		b := make([]byte, 336+9)
		copy(b, "Extended Module: silence")
		b[37] = 0x1a
		copy(b[38:], "Kiln")
		le.PutUint16(b[58:], 0x104)
		le.PutUint32(b[60:], 276)
		for at, v := range map[int]uint16{64: 1, 68: 2, 70: 1, 74: 1, 76: 6, 78: 125, 336 + 5: 64} { // 64 rows without data
			le.PutUint16(b[at:], v)
		}
		le.PutUint32(b[336:], 9)
		return b
	case S3M:
		b := make([]byte, 96+2+2+12+16+2+64)
		copy(b, "silence")
		b[28], b[29] = 0x1a, 16
		for at, v := range map[int]uint16{32: 2, 36: 1, 40: 0x1320, 42: 2, 98: 8} { // the pattern is at 8 * 16
			le.PutUint16(b[at:], v)
		}
		copy(b[44:], "SCRM\x40\x06\x7d\xb0")
		for i := range 32 {
			b[64+i] = 255
		}
		b[64], b[65], b[97] = 0, 8, 255 // a channel on the left and one on the right; the second order ends the song
		le.PutUint16(b[128:], 2+64)
		return b
	}
	b := make([]byte, 192+2+4+8+64)
	copy(b, "IMPMsilence")
	for at, v := range map[int]uint16{30: 0x1004, 32: 2, 38: 1, 40: 0x214, 42: 0x200, 44: 9} {
		le.PutUint16(b[at:], v)
	}
	copy(b[48:], "\x80\x30\x06\x7d\x80")
	for i := range 64 {
		b[64+i], b[128+i] = 32|128, 64
	}
	b[64], b[65], b[193] = 32, 32, 255
	le.PutUint32(b[194:], 198)
	le.PutUint16(b[198:], 64) // bytes, one for each empty row
	le.PutUint16(b[200:], 64) // rows
	return b
}
