package ktx2

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Encode makes a file.
func Encode(t *Texture) ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if strings.ContainsRune(t.Writer, 0) {
		return nil, fmt.Errorf("writer %q: %w", t.Writer, ErrUnsupported)
	}
	dfd, kvd := t.descriptor(), t.keyValues()
	dfdAt := levelsAt + levelEntry*len(t.Levels)
	kvdAt := dfdAt + len(dfd)
	end := align(kvdAt + len(kvd))
	offsets := make([]int, len(t.Levels))
	for n := len(t.Levels) - 1; n >= 0; n-- {
		offsets[n] = end
		end += len(t.Levels[n])
		if n > 0 {
			end = align(end)
		}
	}

	le := binary.LittleEndian
	b := make([]byte, 0, end)
	b = append(b, identifier...)
	for _, v := range []int{int(t.Format), 1, t.Width, t.Height, 0, 0, 1, len(t.Levels), 0, dfdAt, len(dfd), kvdAt, len(kvd)} {
		b = le.AppendUint32(b, uint32(v))
	}
	b = append(b, make([]byte, 16)...) // no supercompression global data
	for n, l := range t.Levels {
		b = le.AppendUint64(b, uint64(offsets[n]))
		b = le.AppendUint64(b, uint64(len(l)))
		b = le.AppendUint64(b, uint64(len(l)))
	}
	b = append(b, dfd...)
	b = append(b, kvd...)
	for n := len(t.Levels) - 1; n >= 0; n-- {
		b = append(b, make([]byte, offsets[n]-len(b))...)
		b = append(b, t.Levels[n]...)
	}
	return b, nil
}

// align rounds up to 4, which is the alignment of all that is in a file: of levels it is the least
// common multiple of 4 and the pixel size, and no format here has pixels of 3 bytes.
func align(n int) int { return (n + 3) &^ 3 }

// Names of the Khronos Data Format Specification that both directions need.
const (
	modelRGBSDA        = 1 // KHR_DF_MODEL_RGBSDA
	primariesBT709     = 1 // KHR_DF_PRIMARIES_BT709, which are those of sRGB
	transferLinear     = 1 // KHR_DF_TRANSFER_LINEAR
	transferSRGB       = 2 // KHR_DF_TRANSFER_SRGB
	flagPremultiplied  = 1 // KHR_DF_FLAG_ALPHA_PREMULTIPLIED
	channelAlpha       = 15
	qualifierLinear    = 0x10 // KHR_DF_SAMPLE_DATATYPE_LINEAR: not sRGB-encoded, though the others are
	descriptorVersion  = 2    // KHR_DF_VERSIONNUMBER_1_3
	descriptorHeadSize = 24
	sampleSize         = 16
)

// descriptor is the data format descriptor: its total size and one basic block.
//
//	 0  u32  total size, these four bytes included
//	 4  u32  vendor 0 (Khronos), type 0 (basic)
//	 8  u16  version, u16 size of the block
//	12  u8   colour model, u8 primaries, u8 transfer function, u8 flags
//	16  u8   block width - 1, height - 1, depth - 1, and of a fourth dimension: all 0
//	20  u8   bytes of a pixel, and of seven further planes: 0
//	28  16 bytes a channel: u16 bit offset, u8 bit length - 1, u8 channel and qualifiers,
//	    4 x u8 position 0, u32 lower 0, u32 upper 255
func (t *Texture) descriptor() []byte {
	channels := t.Format.PixelSize()
	block := descriptorHeadSize + sampleSize*channels
	transfer, flags := byte(transferLinear), byte(0)
	if t.Format == RGBA8SRGB {
		transfer = transferSRGB
	}
	if t.Premultiplied {
		flags = flagPremultiplied
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(4+block))
	b = le.AppendUint32(b, 0)
	b = le.AppendUint16(b, descriptorVersion)
	b = le.AppendUint16(b, uint16(block))
	b = append(b, modelRGBSDA, primariesBT709, transfer, flags)
	b = append(b, 0, 0, 0, 0, byte(channels), 0, 0, 0, 0, 0, 0, 0)
	for c := range channels {
		channel := byte(c)
		if c == 3 {
			channel = channelAlpha
			if transfer == transferSRGB {
				channel |= qualifierLinear
			}
		}
		b = le.AppendUint16(b, uint16(8*c))
		b = append(b, 7, channel, 0, 0, 0, 0)
		b = le.AppendUint32(b, 0)
		b = le.AppendUint32(b, 255)
	}
	return b
}

// Keys, in the order that a file must have them in.
const (
	keyOrientation = "KTXorientation"
	keyWriter      = "KTXwriter"
)

func (t *Texture) keyValues() []byte {
	var b []byte
	add := func(key, value string) {
		entry := key + "\x00" + value + "\x00"
		b = binary.LittleEndian.AppendUint32(b, uint32(len(entry)))
		b = append(b, entry...)
		b = append(b, make([]byte, align(len(b))-len(b))...)
	}
	orientation := "rd"
	if t.BottomUp {
		orientation = "ru"
	}
	add(keyOrientation, orientation)
	if t.Writer != "" {
		add(keyWriter, t.Writer)
	}
	return b
}
