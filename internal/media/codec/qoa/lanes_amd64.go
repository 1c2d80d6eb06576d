package qoa

import "golang.org/x/sys/cpu"

// lanes reports whether a slice is encoded with all scales at once. The output is the same.
var lanes = cpu.X86.HasAVX2
