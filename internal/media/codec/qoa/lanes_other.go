//go:build !amd64 && !arm64

package qoa

// lanes is always false here; the compiler needs the function.
var lanes = false

func tryAll(*int16, int, *[8]int16, *[160]int16, *[1188]int16) {}

func tryWide(*int16, int, *[8]int16, *[160]int16, *[1188]int16) {}
