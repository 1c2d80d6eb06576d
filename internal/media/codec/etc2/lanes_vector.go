//go:build amd64 || arm64

package etc2

//go:generate go -C ../../../../asm run . etc2

//go:noescape
func priceLanes(half *int16, start *[4]int16, red, green, blue *int16, bits, groups int, keys *int32, codes *uint16, clamped *[4]uint16)

//go:noescape
func clampLanes(pixels *int16, keys *int32, codes *uint16, clamped uint64, bits int)

//go:noescape
func paintCost(pixels *int16, paint *[4]uint64) int32

//go:noescape
func paintSums(pixels *int16, paint *[4]uint64, sums *[4][8]int16, masks *[4]uint32) int32

//go:noescape
func levelLanes(pixels *[16]int16, bounds *[2]int16, choices *int16, n int, results *int32, index *[16]int16)

//go:noescape
func startLanes(pixels *int16, colours *[2]uint64, costs *[8][4]int32)

//go:noescape
func clusterLanes(pixels *int16, means *[2]uint64)

//go:noescape
func clusterHueLanes(pixels *int16, means *[2]uint64)

//go:noescape
func polishLanes(pixels *int16, colours *[2][4]int16, h, distance int, cost int32) int32

//go:noescape
func halvesLanes(src *[64]byte, pixels *int16, halves *int16)

//go:noescape
func planesLanes(src *[64]byte, sums *[4][4]int32)

//go:noescape
func planeCostLanes(src *[64]byte, planes *int32) int32
