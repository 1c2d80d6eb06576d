// Package wasmguest makes a WebAssembly module of a processor that is written in Go against package processor:
//
//	var _ = wasmguest.Serve(Voxel{})
//
//	func main() {}
//
// It is compiled with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared; Kiln does that itself if the project file
// has wasm = { go = "tools/voxel" }. Everything in this package except Header exists only in that build.
// docs/formats/wasm-abi.md describes the interface; c/kiln_guest.h is the interface for C, and Header returns its text.
//
// A module has no tools, no environment, no scratch folder and no parts: these methods of its Job return an error. Its
// settings are booleans, integers, numbers, strings, and slices of these.
package wasmguest
