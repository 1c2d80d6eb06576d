package disk

import (
	"os"
	"strings"
)

// Boot tells this start of the computer from others; "" where that is not known, and then nobody notices that it lost power.
func Boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}
