// Package processors is the list of the processors that Kiln brings along. There is no registration: what is not
// in the list is not there.
package processors

import (
	"github.com/kiln-pipeline/kiln/internal/processors/atlas"
	"github.com/kiln-pipeline/kiln/internal/processors/copy"
	"github.com/kiln-pipeline/kiln/internal/processors/data"
	"github.com/kiln-pipeline/kiln/internal/processors/gltf"
	"github.com/kiln-pipeline/kiln/internal/processors/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// All are Kiln's own processors, in the order they are shown.
func All() []processor.Processor {
	return []processor.Processor{texture.New(), atlas.New(), gltf.New(), data.New(), copy.New()}
}
