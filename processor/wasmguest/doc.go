// Package wasmguest makes a WebAssembly module of a processor that is written in Go against package processor:
//
//	var _ = wasmguest.Serve(Voxel{})
//
//	func main() {}
//
// It is compiled with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared; Kiln does that by itself where the project file
// says wasm = { go = "tools/voxel" }. All else in this package but Header is there in that build only. The functions behind it are
// those of docs/formats/wasm-abi.md; c/kiln_guest.h has them for C, and Header is its text.
//
// A module gets no tools, no environment and no scratch folder, and asks for no parts: these methods of its Job answer with an error. Its
// settings are booleans, whole numbers, numbers, strings, and slices of those.
package wasmguest
