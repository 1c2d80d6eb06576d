//go:build wasip1

// Command guest is package tilemap as a WebAssembly module. The project file names this folder, and Kiln compiles it.
package main

import (
	"github.com/kiln-pipeline/kiln/examples/own-processors/tools/tilemap"
	"github.com/kiln-pipeline/kiln/processor/wasmguest"
)

var _ = wasmguest.Serve(tilemap.New())

func main() {}
