package png

import "golang.org/x/sys/cpu"

// lanes reports whether all channels of a pixel are computed at once. The pixels are the same.
var lanes = cpu.X86.HasAVX2
