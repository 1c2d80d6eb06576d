package bptc

import "golang.org/x/sys/cpu"

//go:generate go -C asm run .

// lanes says whether eight of what takes most time are done at once. It changes no byte.
var lanes = cpu.X86.HasAVX2

//go:noescape
func estimateTwo(moments *float32, table *uint32, off, along *float32, groups int)

//go:noescape
func estimateTwoAlpha(moments *float32, table *uint32, off, along *float32, groups int)

//go:noescape
func estimateThree(moments *float32, table *uint32, off, along *float32, groups int)
