//go:build !amd64 && !arm64

package astc

// lanes is always false here; the compiler needs the functions.
var lanes = false

func loadLanes(*uint8, int, *int32, *float32, *int32, *int32)                          {}
func splitLanes(*uint8, int, *int16, *float32)                                         {}
func quantizeLanes(_ *float32, _ int, _, _ *uint8)                                     {}
func infillLanes(_, _ *uint8, _, _ int, _ *int16)                                      {}
func weighLanes(_, _ *int16, _ *uint8, _, _ int, _ *int32)                             {}
func restLanes(*float32, *int16, *uint8, *[9][8]float32, int, *float32)                {}
func directLanes(*int32, *[4][8]uint32, int, *float32)                                 {}
func sumLanes(*int32, uint64, *int32)                                                  {}
func rankLanes(_, _, _, _ *float32, _ int, _, _, _ float32, _ key, _ *key) int         { return 0 }
func stepLanes(_ *float32, _ int, _, _ *float32)                                       {}
func roughLanes(_ *float32, _ int, _, _ *[12][12]float32, _, _, _ float32, _ *float32) {}
func resemble2Lanes(_, _ *[2]uint64, _, _ int, _ *uint8)                               {}
func resemble3Lanes(_, _ *[2]uint64, _, _ int, _ *uint8)                               {}
func pickLanes(_ *uint8, _, _ int, _, _ *uint32) int                                   { return 0 }
func projectLanes(*float32, *uint8, *[4][8]float32, int, *float32)                     {}
func mulLanes(_, _ *float32, _, _ int, _ *float32)                                     {}
func extremeLanes(_ *float32, _ *uint8, _, _ int, _, _ *float32)                       {}
func scaleLanes(*float32, *uint8, *[2][8]float32, int)                                 {}
func nearLanes(*float32, *[3][4]float32, int, int, *[2]uint64)                         {}
