package memory

import "golang.org/x/sys/unix"

// Physical is the memory of the machine in bytes; 0 if not known.
func Physical() int64 {
	bytes, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(bytes)
}
