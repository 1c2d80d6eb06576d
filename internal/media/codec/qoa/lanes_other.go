//go:build !amd64

package qoa

// lanes is always false here; the compiler needs the function.
var lanes = false

func tryAll(*int32, int, *[4]uint32, *[152]int32, *[400]uint32) {}
