//go:build amd64 || arm64

package bptc

//go:generate go -C ../../../../asm run . bptc

//go:noescape
func estimateTwo(moments *float32, table *uint32, off, along *float32, groups int)

//go:noescape
func estimateTwoAlpha(moments *float32, table *uint32, off, along *float32, groups int)

//go:noescape
func estimateThree(moments *float32, table *uint32, off, along *float32, groups int)

//go:noescape
func assignLanes(pix *int16, shown *int32, weights *[16]int32, masks *uint32, levels int32, index *uint8, sums *int32) int32

//go:noescape
func roundLanes(mode *uint32, both *uint32, ends *float32, q *float32, parities uint32, stored *uint8, shown *int32)

//go:noescape
func spanLanes(pix *int16, masks *uint32, n int32, inverse float32, sum *int32, ends *float32)

//go:noescape
func settle6(batch *batch6, pix *float32, rounds int)

//go:noescape
func judge6(batch *batch6, pix *float32)

//go:noescape
func restart7(batch *batch7, pix *float32, n int, mode *uint32, parities uint32, rounds int)
