package bcn

import "golang.org/x/sys/cpu"

// lanes reports whether the errors of many lines, pixels or shapes are computed at once. The output is the same.
var lanes = cpu.X86.HasAVX2

// wider reports whether both channels of BC5 are encoded at once, with AVX-512. The output is the same.
var wider = lanes && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL

//go:noescape
func channelsWide(pixels *[64]byte, starts *uint16, values *[3072]byte, block *[16]byte)
