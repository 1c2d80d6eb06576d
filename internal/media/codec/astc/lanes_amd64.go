package astc

import "golang.org/x/sys/cpu"

// lanes reports whether the slowest functions use AVX2, for eight or sixteen values at once. The output is the same.
var lanes = cpu.X86.HasAVX2
