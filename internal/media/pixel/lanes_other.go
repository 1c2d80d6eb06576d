//go:build !amd64 && !arm64

package pixel

// lanes is always false here; the compiler needs the function.
var lanes = false

func halve(_, _, _ *uint32, _ int) {}
