package seal

import "golang.org/x/sys/unix"

const (
	arch     = unix.AUDIT_ARCH_AARCH64
	callsX32 = 0 // there is no such interface
	fstatat  = unix.SYS_FSTATAT
)

// oldCalls are calls that only other architectures have: here every call takes a folder.
var oldCalls []call
