//go:build !amd64 && !arm64

package etc2

// lanes is always false here; the compiler needs the functions.
var lanes = false

func priceLanes(_ *int16, _ *[4]int16, _, _, _ *int16, _, _ int, _ *int32, _ *uint16, _ *[4]uint16) {}
func clampLanes(*int16, *int32, *uint16, uint64, int)                                               {}
func paintCost(*int16, *[4]uint64) int32                                                            { return 0 }
func paintSums(*int16, *[4]uint64, *[4][8]int16, *[4]uint32) int32                                  { return 0 }
func levelLanes(*[16]int16, *[2]int16, *int16, int, *int32, *[16]int16)                             {}
func startLanes(*int16, *[2]uint64, *[8][4]int32)                                                   {}
func clusterLanes(*int16, *[2]uint64)                                                               {}
func clusterHueLanes(*int16, *[2]uint64)                                                            {}
func polishLanes(*int16, *[2][4]int16, int, int, int32) int32                                       { return 0 }
func halvesLanes(*[64]byte, *int16, *int16)                                                         {}
func planesLanes(*[64]byte, *[4][4]int32)                                                           {}
func planeCostLanes(*[64]byte, *int32) int32                                                        { return 0 }
