package texture

import (
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
)

// format is a pixel format: its name in settings, and its names in the containers.
type format struct {
	name     string
	family   string // its family
	channels int    // number of channels that it keeps, from red on
	float    bool   // holds light over 1
	deep     bool   // holds whole numbers of 16 bits
	side     int    // of a block, in pixels; 1 if it has no blocks

	ktx2, ktx2SRGB ktx2.Format // 0 if there is none
	dds, ddsSRGB   dds.Format
}

// formats are all formats that can be made, with the numbers of Vulkan (VkFormat) and DXGI.
var formats = []format{
	{"rgba8", "none", 4, false, false, 1, 37, 43, 28, 29},
	{"rg8", "none", 2, false, false, 1, 16, 0, 49, 0},
	{"r8", "none", 1, false, false, 1, 9, 0, 61, 0},
	{"rgba16", "none", 4, false, true, 1, 91, 0, 11, 0},
	{"rg16", "none", 2, false, true, 1, 77, 0, 35, 0},
	{"r16", "none", 1, false, true, 1, 70, 0, 56, 0},
	{"rgba16f", "none", 4, true, false, 1, 97, 0, 10, 0},
	{"rgb9e5", "none", 3, true, false, 1, 123, 0, 67, 0},
	{"bc1", "bc", 3, false, false, 4, 131, 132, 71, 72},
	{"bc1a", "bc", 4, false, false, 4, 133, 134, 71, 72}, // bc1 with transparent pixels
	{"bc3", "bc", 4, false, false, 4, 137, 138, 77, 78},
	{"bc4", "bc", 1, false, false, 4, 139, 0, 80, 0},
	{"bc5", "bc", 2, false, false, 4, 141, 0, 83, 0},
	{"bc6h", "bc", 3, true, false, 4, 143, 0, 95, 0},
	{"bc7", "bc", 4, false, false, 4, 145, 146, 98, 99},
	{"etc2", "etc2", 3, false, false, 4, 147, 148, 0, 0},
	{"etc2a", "etc2", 4, false, false, 4, 151, 152, 0, 0},
	{"eacr11", "etc2", 1, false, false, 4, 153, 0, 0, 0},
	{"eacrg11", "etc2", 2, false, false, 4, 155, 0, 0, 0},
	{"astc4x4", "astc", 4, false, false, 4, 157, 158, 0, 0},
	{"astc6x6", "astc", 4, false, false, 6, 165, 166, 0, 0},
	{"astc8x8", "astc", 4, false, false, 8, 171, 172, 0, 0},
}

// linear reports whether it is made of pictures in floating point. It has no sRGB then: colours become light.
func (f format) linear() bool { return f.float || f.deep }

func formatNamed(name string) (format, error) {
	for _, f := range formats {
		if f.name == name {
			return f, nil
		}
	}
	return format{}, fmt.Errorf("texture format %q is unknown", name)
}

// choose returns the format for format = "auto". alpha means that some pixels are transparent, grey that the channels
// are equal, hdr that the file holds floating point, deep that it holds whole numbers of 16 bits. The web has textures of such
// numbers only by an extension, so they are for platforms without a family or with that of PCs and consoles.
func choose(use, family string, alpha, grey, hdr, deep bool) string {
	pick := func(yes bool, a, b string) string {
		if yes {
			return a
		}
		return b
	}
	switch {
	case family == "bc" && use == "hdr":
		return "bc6h"
	case (family == "etc2" || family == "astc") && use == "hdr":
		return "rgb9e5"
	case use == "hdr", use == "data" && hdr:
		return "rgba16f"
	case use == "data" && deep && family != "etc2" && family != "astc":
		return pick(grey && !alpha, "r16", "rgba16")
	case use == "data": // exact, because each bit of a data table may matter
		return "rgba8"
	}
	switch family {
	case "bc":
		if use == "normal" {
			return "bc5"
		}
		return pick(use == "mask" && grey && !alpha, "bc4", "bc7")
	case "etc2":
		if use == "normal" {
			return "eacrg11"
		}
		return pick(use == "mask" && grey && !alpha, "eacr11", pick(alpha, "etc2a", "etc2"))
	case "astc":
		return pick(use == "color" || use == "mask", "astc6x6", "astc4x4")
	}
	return "rgba8"
}
