package texture

import (
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/role"
	"github.com/kiln-pipeline/kiln/processor"
)

// Named returns what the name of a source file says of its use. The files beside it are recorded only if they matter.
func Named(job processor.Job, file string) (role.Named, error) {
	pattern := role.Beside(file)
	if pattern == "" {
		return role.Of(file, nil), nil
	}
	beside, err := job.Glob(pattern)
	return role.Of(file, beside), err
}

// For returns the options for a file of that name, with a use other than auto.
func (o Options) For(named role.Named) Options {
	if o.Use == "auto" || o.Use == "" {
		o.Use = named.Use
		if o.Use == role.Color && o.packed() {
			o.Use = role.Mask
		}
	}
	return o
}

// packed reports whether the channels come from several pictures. They are then not colours.
func (o Options) packed() bool { return o.R != "" || o.G != "" || o.B != "" }

// Doubt returns what in a picture contradicts the use that its name states, and the use that it probably has; "" if nothing does.
func Doubt(named role.Named, m *pixel.Image) (why, use string) {
	switch {
	case named.Use == role.Normal && !directions(m):
		return fmt.Sprintf("named %q like a normal map, but most of its pixels are not directions", named.Because), role.Color
	case named.Use == role.Mask && !named.Packed && coloured(m):
		return fmt.Sprintf("named %q like a mask, but it has colours", named.Because), role.Color
	case named.Like == role.Normal && surface(m):
		return fmt.Sprintf("named %q like a normal map, which its pixels confirm, but it is built as colours, because no other picture "+
			"of the same thing is beside it", named.Alone), role.Normal
	}
	return "", ""
}
