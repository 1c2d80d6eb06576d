//go:build amd64 || arm64

package astc

//go:generate go -C ../../../../asm run . astc

//go:noescape
func loadLanes(texels *uint8, n int, texel *int32, value *float32, moments, all *int32)

//go:noescape
func splitLanes(texels *uint8, groups int, words *int16, channels *float32)

//go:noescape
func quantizeLanes(grid *float32, groups int, near, out *uint8)

//go:noescape
func infillLanes(weights, table *uint8, groups, tables int, out *int16)

//go:noescape
func weighLanes(spread, words *int16, part *uint8, partition, groups int, out *int32)

//go:noescape
func restLanes(channels *float32, spread *int16, part *uint8, table *[9][8]float32, groups int, rest *float32)

//go:noescape
func directLanes(s *int32, use *[4][8]uint32, groups int, out *float32)

//go:noescape
func sumLanes(moments *int32, mask uint64, out *int32)

//go:noescape
func rankLanes(spread, share, steps, noise *float32, shapes int, values, extra, limit float32, id key, found *key) int

//go:noescape
func stepLanes(ideal *float32, n int, table, out *float32)

//go:noescape
func resemble2Lanes(masks, clusters *[2]uint64, samples, groups int, wrong *uint8)

//go:noescape
func resemble3Lanes(masks, clusters *[2]uint64, samples, groups int, wrong *uint8)

//go:noescape
func pickLanes(wrong *uint8, limit, groups int, below, same *uint32) int

//go:noescape
func projectLanes(channels *float32, part *uint8, axes *[4][8]float32, groups int, ideal *float32)

//go:noescape
func mulLanes(matrix, v *float32, n, registers int, out *float32)

//go:noescape
func roughLanes(ideal *float32, width int, across, down *[12][12]float32, total, power, loss float32, out *float32)

//go:noescape
func extremeLanes(ideal *float32, part *uint8, partition, groups int, low, high *float32)

//go:noescape
func scaleLanes(ideal *float32, part *uint8, table *[2][8]float32, groups int)

//go:noescape
func nearLanes(channels *float32, centers *[3][4]float32, count, groups int, masks *[2]uint64)
