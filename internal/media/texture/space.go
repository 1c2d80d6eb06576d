package texture

import "encoding/binary"

// Colour spaces of textures.
const (
	SpaceSRGB   = "sRGB"   // colours
	SpaceLinear = "linear" // measurements, of 8 bits or less
	SpaceLight  = "light"  // floating point, or whole numbers of 16 bits, which may be colours or measurements
)

// SpaceHead is the number of bytes of a texture file that SpaceOf needs.
const SpaceHead = 1024

// SpaceOf returns the colour space of a texture file by its first bytes, or "" if the file does not state it.
func SpaceOf(head []byte) string {
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(head[at:]) }
	switch {
	case len(head) >= 80 && string(head[1:7]) == "KTX 20":
		descriptor := int(u32(48)) // Khronos Data Format 1.3: the transfer function is byte 10 of the basic block
		switch format := u32(12); {
		case descriptor < 0 || descriptor > len(head)-15:
			return ""
		case format >= 70 && format <= 123, format == 131, format == 132, format >= 1000066000 && format <= 1000066013:
			return SpaceLight // formats of 16 bits and more, RGB9E5, BC6H, ASTC HDR
		case head[descriptor+14] == 2:
			return SpaceSRGB
		}
		return SpaceLinear
	case len(head) >= 148 && string(head[:4]) == "DDS " && string(head[84:88]) == "DX10":
		switch u32(128) {
		case 29, 72, 75, 78, 91, 93, 99:
			return SpaceSRGB
		case 2, 6, 10, 11, 16, 34, 35, 41, 54, 56, 67, 95, 96:
			return SpaceLight
		}
		return SpaceLinear
	}
	return ""
}
