//go:build !wasip1

package wasmguest

import _ "embed"

//go:embed c/kiln_guest.h
var header string

// Header is kiln_guest.h: what a processor in C includes.
func Header() string { return header }
