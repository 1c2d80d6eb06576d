package cli

import "github.com/kiln-pipeline/kiln/internal/ship"

// replace writes a file beside and renames it, so that it is whole or as it was.
func replace(file string, text []byte) error { return ship.Replace(file, text) }
