package pixel

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image/png"
	"slices"
	"strings"

	fast "github.com/kiln-pipeline/kiln/internal/media/codec/png"
)

// As libpng does, Kiln reads some damaged files with a warning: it uses the parts that are intact, and Picture.Damage
// describes the damage. Package codec/jpeg does the same as libjpeg.

// fixPNG removes damaged chunks that are not needed for the picture (their first letter is in lower case), and lists
// them. If there are none, it returns data unchanged.
func fixPNG(data []byte) (fixed []byte, what string) {
	const signature, frame = 8, 12 // a chunk is u32 size, 4 letters, bytes, u32 checksum
	var bad []string
	for at := signature; at < len(data); {
		rest := data[at:]
		if len(rest) < 8 {
			break
		}
		name, size := string(rest[4:8]), uint64(binary.BigEndian.Uint32(rest))
		ancillary := rest[4]&0x20 != 0
		whole := size+frame <= uint64(len(rest))
		if !whole {
			break // the end is missing, which is another error
		}
		chunk := rest[:size+frame]
		if ancillary && crc32.ChecksumIEEE(chunk[4:8+size]) != binary.BigEndian.Uint32(chunk[8+size:]) {
			if bad == nil {
				fixed = append(fixed, data[:at]...)
			}
			if !slices.Contains(bad, name) {
				bad = append(bad, name)
			}
		} else if bad != nil {
			fixed = append(fixed, chunk...)
		}
		if at += len(chunk); name == "IEND" {
			break
		}
	}
	if bad == nil {
		return data, ""
	}
	return fixed, fmt.Sprintf("the checksum of the part %s is wrong; it was left out", strings.Join(bad, ", "))
}

func configPNG(data []byte) (Config, error) {
	data, _ = fixPNG(data)
	return config(png.DecodeConfig)(data)
}

func decodePNG(data []byte, _ int) (decoded, error) {
	data, what := fixPNG(data)
	m, err := fast.Decode(data)
	return decoded{image: m, damage: what}, err
}
