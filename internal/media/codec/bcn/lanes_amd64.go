package bcn

import "golang.org/x/sys/cpu"

//go:generate go -C ../../../../asm run . bcn

// lanes says whether the errors of eight lines are found at once. It changes no byte.
var lanes = cpu.X86.HasAVX2

//go:noescape
func lineErrors(values *[16]uint8, low, high *[8]int16, table *int16, errs *[8]int32)
