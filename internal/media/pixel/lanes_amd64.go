package pixel

import "golang.org/x/sys/cpu"

// lanes reports whether two pixels are computed at once. The results are the same.
var lanes = cpu.X86.HasAVX2
