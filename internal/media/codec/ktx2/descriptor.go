package ktx2

import (
	"encoding/binary"
	"fmt"
)

const (
	primariesBT709     = 1 // KHR_DF_PRIMARIES_BT709, the primaries of sRGB
	flagPremultiplied  = 1 // KHR_DF_FLAG_ALPHA_PREMULTIPLIED
	descriptorVersion  = 2 // KHR_DF_VERSIONNUMBER_1_3
	descriptorHeadSize = 24
	sampleSize         = 16
)

// descriptor returns the data format descriptor: its total size and one basic block.
//
//	 0  u32  total size, including these four bytes
//	 4  u32  vendor 0 (Khronos), type 0 (basic)
//	 8  u16  version, u16 size of the block
//	12  u8   colour model, u8 primaries, u8 transfer function, u8 flags
//	16  u8   block width - 1, height - 1, depth - 1, and of a fourth dimension
//	20  u8   bytes of a block, and of seven further planes: 0
//	28  16 bytes per sample: u16 bit offset, u8 bit length - 1, u8 channel and qualifiers,
//	    4 x u8 position 0, u32 lower, u32 upper
//
// Supercompression does not change it. Up to revision 3, the specification required 0 for the bytes of a supercompressed
// block.
func (t *Texture) descriptor() []byte {
	form, _ := t.Format.info()
	block := descriptorHeadSize + sampleSize*len(form.samples)
	flags := byte(0)
	if t.Premultiplied {
		flags = flagPremultiplied
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(4+block))
	b = le.AppendUint32(b, 0)
	b = le.AppendUint16(b, descriptorVersion)
	b = le.AppendUint16(b, uint16(block))
	b = append(b, form.model, primariesBT709, form.transfer, flags)
	b = append(b, form.width-1, form.height-1, 0, 0, form.bytes, 0, 0, 0, 0, 0, 0, 0)
	for _, s := range form.samples {
		b = le.AppendUint16(b, uint16(s.offset))
		b = append(b, s.length-1, s.channel, 0, 0, 0, 0)
		b = le.AppendUint32(b, s.lower)
		b = le.AppendUint32(b, s.upper)
	}
	return b
}

// readDescriptor checks that the descriptor does not contradict the format. It ignores primaries, which change nothing in
// this package, and samples, which repeat vkFormat with variations between programs.
func (t *Texture) readDescriptor(dfd []byte) error {
	if len(dfd) < 4+descriptorHeadSize {
		return ErrTruncated
	}
	le := binary.LittleEndian
	if le.Uint32(dfd) != uint32(len(dfd)) || le.Uint32(dfd[4:]) != 0 {
		return fmt.Errorf("no basic block in %d bytes: %w", len(dfd), ErrDamaged)
	}
	form, _ := t.Format.info()
	if dfd[12] != form.model {
		return fmt.Errorf("colour model %d in %v: %w", dfd[12], t.Format, ErrDamaged)
	}
	if transfer := dfd[14]; transfer != form.transfer && (transfer != transferUnspecified || form.transfer == transferSRGB) {
		return fmt.Errorf("transfer function %d in %v: %w", transfer, t.Format, ErrUnsupported)
	}
	if dfd[16] != form.width-1 || dfd[17] != form.height-1 || dfd[18] != 0 || dfd[19] != 0 {
		return fmt.Errorf("blocks of %d x %d in %v: %w", int(dfd[16])+1, int(dfd[17])+1, t.Format, ErrDamaged)
	}
	if bytes := dfd[20]; bytes != form.bytes && (bytes != 0 || !t.Zstd) {
		return fmt.Errorf("blocks of %d bytes in %v: %w", bytes, t.Format, ErrDamaged)
	}
	t.Premultiplied = dfd[15]&flagPremultiplied != 0
	return nil
}
