//go:build wasip1

package wasmguest

import (
	"io/fs"
	"strings"
	"unsafe"
)

// The functions of the host: docs/formats/wasm-abi.md. A string is a pointer and a length.

//go:wasmimport kiln_v1 describe
func hostDescribe(ptr unsafe.Pointer, n uint32)

//go:wasmimport kiln_v1 asset
func hostAsset(what int32) int32

//go:wasmimport kiln_v1 settings
func hostSettings() int32

//go:wasmimport kiln_v1 open
func hostOpen(path string) int32

//go:wasmimport kiln_v1 exists
func hostExists(path string) int32

//go:wasmimport kiln_v1 glob
func hostGlob(pattern string) int32

//go:wasmimport kiln_v1 products
func hostProducts(ids string) int32

//go:wasmimport kiln_v1 listed
func hostListed(pattern string) int32

//go:wasmimport kiln_v1 try_products
func hostTryProducts(asset, platform, processor string) int32

//go:wasmimport kiln_v1 open_product
func hostOpenProduct(asset, name string) int32

//go:wasmimport kiln_v1 request_named
func hostRequest(name, processor, settings string, a unsafe.Pointer, an uint32, b string, about int32) int32

//go:wasmimport kiln_v1 adopt
func hostAdopt(asset, name, as, typ, extension string) int32

//go:wasmimport kiln_v1 run
func hostRun(command string, data unsafe.Pointer, n uint32) int32

//go:wasmimport kiln_v1 size
func hostSize(h int32) int64

//go:wasmimport kiln_v1 read
func hostRead(h int32, offset int64, ptr unsafe.Pointer, n uint32) int32

//go:wasmimport kiln_v1 reference
func hostReference(asset, name string, required int32) int32

//go:wasmimport kiln_v1 resource_id
func hostResourceID(name string) int32

//go:wasmimport kiln_v1 create
func hostCreate(name, typ, extension, references string) int32

//go:wasmimport kiln_v1 write
func hostWrite(h int32, ptr unsafe.Pointer, n uint32) int32

//go:wasmimport kiln_v1 close
func hostClose(h int32) int32

//go:wasmimport kiln_v1 warn
func hostWarn(text, hint, path string, line, column, length int32)

//go:wasmimport kiln_v1 fail
func hostFail(text, hint, path string, line, column, length, cause int32)

//go:wasmimport kiln_v1 error
func hostLastError() int32

const notFound = -2

// hostError is an error that the host returned. The host recognizes it when it is passed back.
type hostError struct {
	text   string
	handle int32
}

func (e *hostError) Error() string { return e.text }

// failed returns the error for a result below zero. path is the path that was requested.
func failed(result int32, op, path string) error {
	switch {
	case result >= 0:
		return nil
	case result == notFound && path != "": // a file that is searched in many places is often missing: save the call
		return &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
	}
	h := hostLastError()
	return &hostError{string(content(h)), h}
}

// content returns all data behind a handle.
func content(h int32) []byte {
	b := make([]byte, hostSize(h))
	n := 0
	for n < len(b) {
		got := hostRead(h, int64(n), pointer(b[n:]), uint32(min(len(b)-n, 1<<30)))
		if got <= 0 {
			break
		}
		n += int(got)
	}
	return b[:n]
}

// text returns the content of a handle, and closes it.
func text(h int32) string {
	b := content(h)
	hostClose(h)
	return string(b)
}

// texts returns the texts behind a handle, each of which ends in a zero byte.
func texts(h int32) []string {
	s := text(h)
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\x00"), "\x00")
}

func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
