//go:build amd64 || arm64

package pixel

//go:generate go -C ../../../asm run . pixel

//go:noescape
func halve(dst, above, below *uint32, n int)

//go:noescape
func applyLanes(dst *uint64, src *uint32, first *int, weights *int32, taps, one, n int)

//go:noescape
func addLineLanes(sum, line *uint64, weight int32, n int)

//go:noescape
func divideLanes(dst *uint32, sum *uint64, area, inverse, most uint64, n int)
