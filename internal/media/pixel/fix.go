package pixel

import (
	"fmt"
	"image/png"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
	fast "github.com/kiln-pipeline/kiln/internal/media/codec/png"
)

// As libpng does, Kiln reads some damaged files with a warning: it uses the parts that are intact, and Picture.Damage
// describes the damage. Package codec/jpeg does the same as libjpeg.

func configPNG(data []byte) (Config, error) {
	if len(data) >= 16 && string(data[12:16]) == "CgBI" {
		return Config{}, fmt.Errorf("the variant of PNG that Apple made (CgBI), which Xcode puts into apps; take the file that it was made of, "+
			"or convert it back with pngcrush -revert-iphone-optimizations FROM TO: %w", input.ErrUnsupported)
	}
	data, _ = fast.Repair(data)
	return config(png.DecodeConfig)(data)
}

func decodePNG(data []byte, _ int) (decoded, error) {
	data, what := fast.Repair(data)
	m, err := fast.Decode(data)
	if err == nil {
		return decoded{image: m, damage: what}, nil
	}
	if !strings.Contains(err.Error(), "too much pixel data") {
		return decoded{}, err
	}
	trimmed := fast.Trim(data)
	if trimmed == nil {
		return decoded{}, err
	}
	m, fault := fast.Decode(trimmed)
	if fault != nil {
		return decoded{}, err
	}
	if what != "" {
		what += "; "
	}
	return decoded{image: m, damage: what + "it has more pixels than its head says; they were left out"}, nil
}
