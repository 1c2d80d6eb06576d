//go:build amd64 || arm64

package bcn

//go:generate go -C ../../../../asm run . bcn

//go:noescape
func channelLanes(pixels *[64]byte, at int, starts *uint16) uint64

//go:noescape
func polishEnds(pixels *uint32, last int, ends *int32) int32

//go:noescape
func refineEnds(pixels *uint32, sum *int32, last, rounds int, ends *int32) int32

//go:noescape
func solveEight(sums *[6][8]int32, x *int32, ends *[6][8]int32, errs *[8]int32)

//go:noescape
func lineSums(pixels *uint32, line *[2][4]float32, scale *float32, last *int32, sums *[6][8]int32)

//go:noescape
func reachLanes(pixels *uint32, axis *[2]uint32, ends *[2]int32)

//go:noescape
func nearestLanes(pixels *uint32, places *[4]uint64, codes *[4]uint32) uint32

//go:noescape
func loadColors(pixels *[64]byte, words *uint32, sum *[4]int32, powers *[8]float32) bool

//go:noescape
func orderLanes(pixels *uint32, axis *[2]uint32, sum *int32, places *[16]uint8, tails *[3][16]int16, sums *[3][16]float32) float32

//go:noescape
func shapeGains(sums *[3][16]float32, inverse *float32, scratch *float32, gains *int32, top *[24]int32)

//go:noescape
func shapesAbove(gains *int32, groups int, limit int32, found *uint16) int
