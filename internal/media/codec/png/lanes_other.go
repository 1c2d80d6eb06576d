//go:build !amd64 && !arm64

package png

// lanes is always false here; the compiler needs the functions.
var lanes = false

func paethLanes(_, _, _ *byte, _ int, _ uint32) {}

func averageLanes(_, _, _ *byte, _ int, _ uint32) {}
