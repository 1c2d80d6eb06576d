//go:build !amd64 && !arm64

package bcn

// lanes is always false here; the compiler needs the functions.
var lanes = false

func channelLanes(*[64]byte, int, *uint16) uint64 { return 0 }

func shapeGains(_ *[3][16]float32, _ *float32, _ *float32, _ *int32, _ *[24]int32) {}
func shapesAbove(_ *int32, _ int, _ int32, _ *uint16) int                          { return 0 }

func refineEnds(_ *uint32, _ *int32, _, _ int, _ *int32) int32 { return 0 }

func polishEnds(*uint32, int, *int32) int32 { return 0 }

func nearestLanes(*uint32, *[4]uint64, *[4]uint32) uint32 { return 0 }

func solveEight(*[6][8]int32, *int32, *[6][8]int32, *[8]int32) {}

func lineSums(*uint32, *[2][4]float32, *float32, *int32, *[6][8]int32) {}

func reachLanes(*uint32, *[2]uint32, *[2]int32) {}

func orderLanes(*uint32, *[2]uint32, *int32, *[16]uint8, *[3][16]int16, *[3][16]float32) float32 {
	return 0
}

func loadColors(*[64]byte, *uint32, *[4]int32, *[8]float32) bool { return false }
