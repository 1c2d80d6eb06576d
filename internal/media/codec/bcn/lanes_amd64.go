package bcn

import "golang.org/x/sys/cpu"

// lanes reports whether the errors of many lines, pixels or shapes are computed at once. The output is the same.
var lanes = cpu.X86.HasAVX2
