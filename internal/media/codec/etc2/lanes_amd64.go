package etc2

import "golang.org/x/sys/cpu"

// lanes reports whether many candidates, or many pixels, are priced at once. The output is the same.
var lanes = cpu.X86.HasAVX2
