package disk

import "golang.org/x/sys/unix"

// Boot tells this start of the computer from others; "" where that is not known, and then nobody notices that it lost power.
func Boot() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
}
