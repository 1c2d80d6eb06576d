package disk

import "golang.org/x/sys/unix"

func bootID() string {
	s, _ := unix.Sysctl("kern.bootsessionuuid")
	return s
}
