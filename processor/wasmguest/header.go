//go:build !wasip1

package wasmguest

import _ "embed"

//go:embed c/kiln_guest.h
var header string

// Header returns the text of kiln_guest.h, which a processor in C includes.
func Header() string { return header }
