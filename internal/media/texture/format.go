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
	side     int    // of a block, in pixels; 1 if it has no blocks

	ktx2, ktx2SRGB ktx2.Format // 0 if there is none
	dds, ddsSRGB   dds.Format
}

// formats are all formats that can be made, with the numbers of Vulkan (VkFormat) and DXGI.
var formats = []format{
	{"rgba8", "none", 4, false, 1, 37, 43, 28, 29},
	{"rg8", "none", 2, false, 1, 16, 0, 49, 0},
	{"r8", "none", 1, false, 1, 9, 0, 61, 0},
	{"rgba16f", "none", 4, true, 1, 97, 0, 10, 0},
	{"rgb9e5", "none", 3, true, 1, 123, 0, 67, 0},
	{"bc1", "bc", 3, false, 4, 131, 132, 71, 72},
	{"bc1a", "bc", 4, false, 4, 133, 134, 71, 72}, // bc1 with transparent pixels
	{"bc3", "bc", 4, false, 4, 137, 138, 77, 78},
	{"bc4", "bc", 1, false, 4, 139, 0, 80, 0},
	{"bc5", "bc", 2, false, 4, 141, 0, 83, 0},
	{"bc6h", "bc", 3, true, 4, 143, 0, 95, 0},
	{"bc7", "bc", 4, false, 4, 145, 146, 98, 99},
	{"etc2", "etc2", 3, false, 4, 147, 148, 0, 0},
	{"etc2a", "etc2", 4, false, 4, 151, 152, 0, 0},
	{"eacr11", "etc2", 1, false, 4, 153, 0, 0, 0},
	{"eacrg11", "etc2", 2, false, 4, 155, 0, 0, 0},
	{"astc4x4", "astc", 4, false, 4, 157, 158, 0, 0},
	{"astc6x6", "astc", 4, false, 6, 165, 166, 0, 0},
	{"astc8x8", "astc", 4, false, 8, 171, 172, 0, 0},
}

func formatNamed(name string) (format, error) {
	for _, f := range formats {
		if f.name == name {
			return f, nil
		}
	}
	return format{}, fmt.Errorf("texture format %q is unknown", name)
}

// choose returns the format for format = "auto". alpha means that some pixels are transparent, grey that the channels
// are equal, hdr that the file holds floating point.
func choose(use, family string, alpha, grey, hdr bool) string {
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
