//go:build !amd64 && !arm64

package wav

// lanes is always false here; the compiler needs the function.
var lanes = false

func fromInt16(*float32, *byte, int) {}
