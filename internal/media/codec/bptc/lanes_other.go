//go:build !amd64 && !arm64

package bptc

// lanes is always false here; the compiler needs the functions.
var lanes = false

func estimateTwo(moments *float32, table *uint32, off, along *float32, groups int)      {}
func estimateTwoAlpha(moments *float32, table *uint32, off, along *float32, groups int) {}
func estimateThree(moments *float32, table *uint32, off, along *float32, groups int)    {}

func assignLanes(*int16, *int32, *[16]int32, *uint32, int32, *uint8, *int32) int32 { return 0 }
func roundLanes(_, _ *uint32, _, _ *float32, _ uint32, _ *uint8, _ *int32)         {}
func spanLanes(_ *int16, _ *uint32, _ int32, _ float32, _ *int32, _ *float32)      {}
func settle6(_ *batch6, _ *float32, _ int)                                         {}
func judge6(_ *batch6, _ *float32)                                                 {}
func restart7(_ *batch7, _ *float32, _ int, _ *uint32, _ uint32, _ int)            {}
