//go:build !amd64 && !arm64

package pixel

// lanes is always false here; the compiler needs the functions.
var lanes = false

func halve(_, _, _ *uint32, _ int)                                   {}
func applyLanes(_ *uint64, _ *uint32, _ *int, _ *int32, _, _, _ int) {}
func addLineLanes(_, _ *uint64, _ int32, _ int)                      {}
func divideLanes(_ *uint32, _ *uint64, _, _, _ uint64, _ int)        {}
