package build

import "golang.org/x/sys/unix"

// physicalMemory of the machine in bytes; 0 if it cannot be told.
func physicalMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
