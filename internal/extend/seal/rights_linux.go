//go:build amd64 || arm64

package seal

import "golang.org/x/sys/unix"

// Bits of PR_SET_SECUREBITS: root has no capabilities because it is root, and none of this changes any more.
const secureBits = 1<<0 | 1<<1 | // SECBIT_NOROOT, and locked
	1<<3 | // SECBIT_KEEP_CAPS_LOCKED: they are not kept
	1<<6 | 1<<7 // SECBIT_NO_CAP_AMBIENT_RAISE, and locked

// giveUpRights takes all capabilities from the calling thread, and from everything that it starts. They are what root
// may do besides the rights of the owner of a file, and part of them would lead around Landlock: with CAP_PERFMON, a
// process reads the memory of every other one. Without them it reads nothing of a process that has any, so nothing of
// Kiln that runs as root.
func giveUpRights() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has, none [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return err
	}
	if has == none { // of a usual user; programs get none from their files, either: install
		return nil
	}
	// These need CAP_SETPCAP; without it the next calls are enough, because a program never gets more than its thread
	// has (no_new_privs).
	unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0)
	for c := uintptr(0); c <= 63; c++ {
		if unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) != nil {
			break
		}
	}
	unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // Linux 4.3
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Capset(&header, &none[0])
}
