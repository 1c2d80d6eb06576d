package doctor

import (
	"math"

	"golang.org/x/sys/windows"
)

// systemLimits returns nothing: Windows has no limits that matter for a build.
func systemLimits(int64) []Limit { return nil }

func freeSpace(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(min(free, math.MaxInt64)), err
}
