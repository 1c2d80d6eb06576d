//go:build wasip1

// Command guest is the processor of package acts as a WebAssembly module.
package main

import (
	"github.com/kiln-pipeline/kiln/internal/proof/drive/acts"
	"github.com/kiln-pipeline/kiln/processor/wasmguest"
)

var _ = wasmguest.Serve(acts.Actor{Name: "module", Extension: ".mod"})

func main() {}
