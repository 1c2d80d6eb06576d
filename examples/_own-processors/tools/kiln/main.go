// Command kiln is Kiln with this project's processor in Go: go run ./tools/kiln build
package main

import (
	"github.com/kiln-pipeline/kiln"
	"github.com/kiln-pipeline/kiln/examples/own-processors/tools/tilemap"
)

func main() { kiln.Main(kiln.With(tilemap.New())) }
