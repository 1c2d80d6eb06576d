package command

import (
	"bytes"
	"os"
	"strconv"
)

// ownPeak is the peak memory of this process, in bytes. getrusage cannot be used: it includes what this process shared
// with the one that started it.
func ownPeak() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			n, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
			return n << 10
		}
	}
	return 0
}
