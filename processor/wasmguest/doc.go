// Package wasmguest makes a processor that is written in Go against package processor a WebAssembly module:
//
//	var _ = wasmguest.Serve(Voxel{})
//
//	func main() {}
//
// It is compiled with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared; Kiln does that itself if the project file
// says wasm = { go = "tools/voxel" }. Everything in this package except Header exists only in that build. The interface is
// docs/formats/wasm-abi.md; c/kiln_guest.h has it for C, and Header is its text.
//
// A module has no tools, no environment, no scratch folder and no parts: these methods of its Job return an error. Its settings are
// booleans, integers, numbers, strings, and slices of these.
package wasmguest
