package wav

import "golang.org/x/sys/cpu"

// lanes reports whether samples of 16 bits are converted sixteen at a time. The results are the same.
var lanes = cpu.X86.HasAVX2
