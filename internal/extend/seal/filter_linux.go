//go:build amd64 || arm64

package seal

import (
	"crypto/rand"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is a system call with a path.
type call struct {
	number uint32
	folder int // argument that holds the folder's descriptor, or noFolder
	path   int // argument that points to the path
	op     Op
	flags  int // argument that the condition checks
	when   condition
}

const noFolder = -1

// condition decides when the filter stops a call. It sees only numbers, no memory.
type condition uint8

const (
	always  condition = iota
	opening           // not if opened only for writing and created: that is an output, which need not be recorded
	named             // not about an open descriptor: C libraries use AT_EMPTY_PATH and no name for each file that they open
	foreign           // not from Kiln's own code in the new process, see place
)

// calls are all calls that the watcher sees: those that read a file, those that report whether there is one or what it
// is, and those that change one, because their error also reports that.
var calls = slices.Concat([]call{
	{unix.SYS_OPENAT, 0, 1, Read, 2, opening},
	{unix.SYS_OPENAT2, 0, 1, Read, 0, always}, // its flags are in memory
	{fstatat, 0, 1, Look, 3, named},
	{unix.SYS_STATX, 0, 1, Look, 2, named},
	{unix.SYS_EXECVE, noFolder, 0, Exec, 0, foreign},
	{unix.SYS_CHDIR, noFolder, 0, Look, 0, foreign},
	{unix.SYS_EXECVEAT, 0, 1, Exec, 0, always},
}, looks(0, 1,
	unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_GETXATTRAT, unix.SYS_LISTXATTRAT, unix.SYS_FILE_GETATTR,
	unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT,
	unix.SYS_UTIMENSAT, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
), looks(2, 3,
	unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT,
), looks(1, 2, unix.SYS_SYMLINKAT), looks(noFolder, 0,
	unix.SYS_STATFS, unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR,
	unix.SYS_TRUNCATE, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
), looks(noFolder, 1, unix.SYS_INOTIFY_ADD_WATCH), oldCalls)

// looks are calls with a path that open nothing.
func looks(folder, path int, numbers ...uint32) (all []call) {
	for _, n := range numbers {
		all = append(all, call{n, folder, path, Look, 0, always})
	}
	return all
}

// refused are calls by which a program could bypass the sandbox: io_uring opens files and sockets by itself, handles
// and events open them without a path, others change the meaning of paths, or the state of the whole machine. Without
// rights most of them fail anyway; with root's rights they would not. Programs do without them on older kernels, whose
// error is returned.
var refused = refusals(unix.ENOSYS,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_CLONE3, // its flags are in memory; all C libraries then use clone
	unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_MQ_OPEN,
)

var forbidden = refusals(unix.EPERM,
	unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PIDFD_GETFD,
	unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
)

// others are calls that access other processes. Landlock allows them only for the program's own; they are refused if
// there is no Landlock.
var others = refusals(unix.EPERM, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP)

type refusal struct {
	number uint32
	errno  syscall.Errno
}

func refusals(e syscall.Errno, numbers ...uint32) (all []refusal) {
	for _, n := range numbers {
		all = append(all, refusal{n, e})
	}
	return all
}

// namespaces are the flags of clone and unshare for new namespaces; that for time is only for unshare.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Offsets in struct seccomp_data, of 64 bits each except the first two.
const (
	atNumber = 0
	atArch   = 4
	atPlace  = 8
	atArgs   = 16
)

// program is a filter for the classic packet filter. A jump has the number of instructions that it skips.
type program []unix.SockFilter

func (p *program) do(code uint16, k uint32) {
	*p = append(*p, unix.SockFilter{Code: code, K: k})
}

func (p *program) load(at uint32) { p.do(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at) }
func (p *program) ret(k uint32)   { p.do(unix.BPF_RET|unix.BPF_K, k) }

// unless skips n instructions if the loaded number is not k.
func (p *program) unless(k uint32, n uint8) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: n})
}

func refuse(e syscall.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// filter is the filter of a sandbox.
func (b Box) filter(landlock int) program {
	var p program
	p.load(atArch)
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arch, Jt: 1})
	p.ret(unix.SECCOMP_RET_KILL_PROCESS) // a 32-bit program: its calls have other numbers
	p.load(atNumber)
	if callsX32 != 0 {
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: callsX32, Jf: 1})
		p.ret(refuse(unix.ENOSYS))
	}
	if !b.Network {
		p.sockets()
	}
	reject := slices.Concat(refused, forbidden)
	if landlock == 0 {
		reject = append(reject, others...)
	}
	for _, r := range reject {
		p.unless(r.number, 1)
		p.ret(refuse(r.errno))
	}
	p.never(unix.SYS_CLONE, namespaces)
	p.never(unix.SYS_UNSHARE, namespaces|unix.CLONE_NEWTIME)
	for _, number := range []uint32{unix.SYS_SHMGET, unix.SYS_SEMGET, unix.SYS_MSGGET} { // named objects stay when the program ends
		p.never(number, ^uint32(unix.IPC_PRIVATE))
	}
	if b.Trace {
		for _, c := range calls {
			p.watch(c)
		}
	}
	if b.groups {
		p.leaving()
	}
	p.ret(unix.SECCOMP_RET_ALLOW)
	return p
}

// leaving stops the calls by which a process leaves its group, except the one by which a new process gets a group of
// its own.
func (p *program) leaving() {
	p.unless(unix.SYS_SETSID, 1)
	p.ret(unix.SECCOMP_RET_USER_NOTIF)
	p.unless(unix.SYS_SETPGID, 4)
	p.load(atArgs + 8 + 4)
	p.unless(uint32(ownGroup()), 1)
	p.ret(unix.SECCOMP_RET_ALLOW)
	p.ret(unix.SECCOMP_RET_USER_NOTIF)
}

// ownGroup is a number that no program can guess. The kernel uses the lower half of an argument as the number of a
// group and ignores the upper one, which the filter sees.
var ownGroup = sync.OnceValue(func() uint32 {
	var b [4]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint32(b[:]) | 1
})

// OwnGroup is the value of syscall.SysProcAttr.Pgid for a program that gets a group of its own. The filter of a
// [Thread] recognises the call by it.
func OwnGroup() int {
	if !threads() {
		return 0
	}
	return int(ownGroup()) << 32
}

// never refuses a call if one of these bits is set in its first argument.
func (p *program) never(number, bits uint32) {
	p.unless(number, 5)
	p.load(atArgs)
	p.do(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, bits)
	p.unless(0, 1)
	p.ret(unix.SECCOMP_RET_ALLOW)
	p.ret(refuse(unix.EPERM))
}

// sockets allows those between processes of this machine and to its kernel.
func (p *program) sockets() {
	p.unless(unix.SYS_SOCKET, 6)
	p.load(atArgs)
	p.unless(unix.AF_UNIX, 1)
	p.ret(unix.SECCOMP_RET_ALLOW)
	p.unless(unix.AF_NETLINK, 1)
	p.ret(unix.SECCOMP_RET_ALLOW)
	p.ret(refuse(unix.EACCES))
}

// watch stops a call. Before and after, the call's number is loaded.
func (p *program) watch(c call) {
	var block program
	argument := uint32(atArgs + 8*c.flags)
	switch c.when {
	case opening:
		block.load(argument)
		block.do(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, unix.O_ACCMODE|unix.O_CREAT)
		block.unless(unix.O_WRONLY|unix.O_CREAT, 1)
		block.ret(unix.SECCOMP_RET_ALLOW)
	case named:
		block.load(argument)
		block.unless(unix.AT_EMPTY_PATH, 1)
		block.ret(unix.SECCOMP_RET_ALLOW)
	case foreign:
		block.load(atPlace)
		block.unless(uint32(place()), 3)
		block.load(atPlace + 4)
		block.unless(uint32(place()>>32), 1)
		block.ret(unix.SECCOMP_RET_ALLOW)
	}
	block.ret(unix.SECCOMP_RET_USER_NOTIF)
	p.unless(c.number, uint8(len(block)))
	*p = append(*p, block...)
}

// place is the address, as the kernel sees it, of the instruction in Kiln that makes raw system calls.
//
// Between fork and exec, Go's own code runs in the new process while its parent waits, and the parent then holds what
// the garbage collector wants to stop. A watcher that must answer exec would wait for the collector, and the collector
// for the parent: a deadlock. So the filter allows exec and chdir from that address. In another program the same
// address would have to be the same instruction; then the program that it executes is noticed by the first file that it
// opens.
//
// A filter that answers a call with twelve bits of the address as the error number finds the address, independently of
// Go's internals.
var place = sync.OnceValue(func() uint64 {
	at := make(chan uint64)
	go func() { // the thread ends with it, and so does the filter
		runtime.LockOSThread()
		var p program
		for shift := range 2 {
			for piece := range 3 {
				p.load(atNumber)
				p.unless(unix.SYS_GETPPID, 7)
				p.load(atArgs)
				p.unless(uint32(3*shift+piece+1), 5)
				p.load(uint32(atPlace + 4*shift))
				p.do(unix.BPF_ALU|unix.BPF_RSH|unix.BPF_K, uint32(12*piece))
				p.do(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xfff)
				p.do(unix.BPF_ALU|unix.BPF_OR|unix.BPF_K, unix.SECCOMP_RET_ERRNO)
				p.do(unix.BPF_RET|unix.BPF_A, 0)
			}
		}
		p.ret(unix.SECCOMP_RET_ALLOW)
		if _, err := p.install(0); err != nil {
			at <- 0
			return
		}
		var sum uint64
		for shift := range 2 {
			for piece := range 3 {
				_, _, errno := unix.RawSyscall(unix.SYS_GETPPID, uintptr(3*shift+piece+1), 0, 0)
				sum |= uint64(errno) << (32*shift + 12*piece)
			}
		}
		at <- sum
	}()
	return <-at
})

// install installs the filter on the calling thread.
func (p program) install(flags uintptr) (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// signalsMended reports whether Landlock allows a sandboxed thread to send signals to other threads of its process, as
// Go's runtime does: erratum 2 of version 6.
var signalsMended = sync.OnceValue(func() bool {
	errata, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	return errno == 0 && errata&2 != 0
})

// devices are open descriptors of those devices that every program may write to; some are missing in some
// containers.
var devices = sync.OnceValue(func() (fds []int) {
	for _, path := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"} {
		if fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
			fds = append(fds, fd)
		}
	}
	return fds
})

// landlock restricts the calling thread: no writing outside of the sandbox's folders, no signals out of it, and, unless
// the network is allowed, no connection to abstract sockets outside.
func (b Box) landlock(version int) error {
	const file = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rights := uint64(file | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER)
	if version < truncateVersion {
		rights &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version < refersVersion {
		rights &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	rules, size := unix.LandlockRulesetAttr{Handled_access_fs: rights}, unsafe.Sizeof(unix.LandlockRulesetAttr{}.Handled_access_fs)
	if version >= scopes {
		size = unsafe.Offsetof(rules.Quiet_access_fs)
		if !b.Network {
			rules.Scoped |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		}
		if signalsMended() {
			rules.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), size, 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(set))
	add := func(fd int, rights uint64) error {
		rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
		_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, set, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	}
	allow := func(path string, rights uint64) error {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return add(fd, rights)
	}
	for _, folder := range b.Writable {
		if err := allow(folder, rights); err != nil {
			return err
		}
	}
	for _, device := range devices() {
		if err := add(device, rights&file); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
