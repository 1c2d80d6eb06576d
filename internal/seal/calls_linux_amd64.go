package seal

import "golang.org/x/sys/unix"

const (
	arch     = unix.AUDIT_ARCH_X86_64
	callsX32 = 0x40000000 // numbers from here are those of the x32 interface
	fstatat  = unix.SYS_NEWFSTATAT
)

// oldCalls are those that only this architecture has.
var oldCalls = []call{
	{unix.SYS_OPEN, noFolder, 0, Read, 1, opening},
	{unix.SYS_STAT, noFolder, 0, Look, 0, always},
	{unix.SYS_LSTAT, noFolder, 0, Look, 0, always},
	{unix.SYS_ACCESS, noFolder, 0, Look, 0, always},
	{unix.SYS_READLINK, noFolder, 0, Look, 0, always},
}
