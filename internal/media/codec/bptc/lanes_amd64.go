package bptc

import "golang.org/x/sys/cpu"

// lanes reports whether the slowest functions process eight values at once. The output is the same.
var lanes = cpu.X86.HasAVX2
