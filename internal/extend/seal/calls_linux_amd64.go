package seal

import (
	"slices"

	"golang.org/x/sys/unix"
)

const (
	arch     = unix.AUDIT_ARCH_X86_64
	callsX32 = 0x40000000 // numbers from here are those of the x32 interface
	fstatat  = unix.SYS_NEWFSTATAT
)

// oldCalls are calls that only this architecture has. creat only writes.
var oldCalls = slices.Concat([]call{{unix.SYS_OPEN, noFolder, 0, Read, 1, opening}, {unix.SYS_USELIB, noFolder, 0, Read, 0, always}}, looks(noFolder, 0,
	unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK,
	unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_MKNOD, unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_LINK, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN,
	unix.SYS_UTIME, unix.SYS_UTIMES,
), looks(noFolder, 1, unix.SYS_RENAME, unix.SYS_LINK, unix.SYS_SYMLINK), looks(0, 1, unix.SYS_FUTIMESAT))
