//go:build amd64 || arm64

package seal

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probes ask about a path, each by another system call; what comes of it is of no interest.
var probes = map[string]func(path *byte, buf uintptr){
	"statfs":            func(p *byte, b uintptr) { call1(unix.SYS_STATFS, p, b) },
	"getxattr":          func(p *byte, b uintptr) { call1(unix.SYS_GETXATTR, p, b) },
	"lgetxattr":         func(p *byte, b uintptr) { call1(unix.SYS_LGETXATTR, p, b) },
	"listxattr":         func(p *byte, b uintptr) { call1(unix.SYS_LISTXATTR, p, 0) },
	"llistxattr":        func(p *byte, b uintptr) { call1(unix.SYS_LLISTXATTR, p, 0) },
	"getxattrat":        func(p *byte, b uintptr) { call2(unix.SYS_GETXATTRAT, p, b) },
	"listxattrat":       func(p *byte, b uintptr) { call2(unix.SYS_LISTXATTRAT, p, b) },
	"file_getattr":      func(p *byte, b uintptr) { call2(unix.SYS_FILE_GETATTR, p, b) },
	"faccessat":         func(p *byte, b uintptr) { call2(unix.SYS_FACCESSAT, p, 0) },
	"faccessat2":        func(p *byte, b uintptr) { call2(unix.SYS_FACCESSAT2, p, 0) },
	"readlinkat":        func(p *byte, b uintptr) { call2(unix.SYS_READLINKAT, p, b) },
	"statx":             func(p *byte, b uintptr) { call2(unix.SYS_STATX, p, 0) },
	"fstatat":           func(p *byte, b uintptr) { call2(fstatat, p, b) },
	"name_to_handle_at": func(p *byte, b uintptr) { call2(unix.SYS_NAME_TO_HANDLE_AT, p, b) },
	"inotify_add_watch": func(p *byte, b uintptr) {
		fd, _ := unix.InotifyInit()
		unix.Syscall(unix.SYS_INOTIFY_ADD_WATCH, uintptr(fd), uintptr(unsafe.Pointer(p)), unix.IN_MODIFY)
		unix.Close(fd)
	},
	"truncate":  func(p *byte, b uintptr) { call1(unix.SYS_TRUNCATE, p, 0) },
	"mkdirat":   func(p *byte, b uintptr) { call2(unix.SYS_MKDIRAT, p, 0) },
	"unlinkat":  func(p *byte, b uintptr) { call2(unix.SYS_UNLINKAT, p, 0) },
	"fchmodat":  func(p *byte, b uintptr) { call2(unix.SYS_FCHMODAT, p, 0) },
	"utimensat": func(p *byte, b uintptr) { call2(unix.SYS_UTIMENSAT, p, 0) },
	"renameat": func(p *byte, b uintptr) {
		other, _ := unix.BytePtrFromString("/proc/none")
		at := unix.AT_FDCWD
		unix.Syscall6(unix.SYS_RENAMEAT2, uintptr(at), uintptr(unsafe.Pointer(other)), uintptr(at), uintptr(unsafe.Pointer(p)), 0, 0)
	},
	"write": func(p *byte, b uintptr) { call2(unix.SYS_OPENAT, p, unix.O_WRONLY) },
	"path":  func(p *byte, b uintptr) { call2(unix.SYS_OPENAT, p, unix.O_PATH) },
}

func call1(number uintptr, path *byte, b uintptr) {
	unix.Syscall6(number, uintptr(unsafe.Pointer(path)), b, 0, 0, 0, 0)
}

func call2(number uintptr, path *byte, b uintptr) {
	at := unix.AT_FDCWD
	unix.Syscall6(number, uintptr(at), uintptr(unsafe.Pointer(path)), b, 0, 0, 0)
}

var probeBuffer [4096]byte

// probe is a mode of the helper: NAME PATH...
func probe(args []string) error {
	for _, path := range args[1:] {
		p, err := unix.BytePtrFromString(path)
		if err != nil {
			return err
		}
		probes[args[0]](p, uintptr(unsafe.Pointer(&probeBuffer)))
	}
	return nil
}

// TestProbes: whatever tells a program whether there is a file, or what it is, is seen.
func TestProbes(t *testing.T) {
	for name := range probes {
		dir := files(t, map[string]string{"a": "1", "scratch/own": ""})
		seen, err := inBox(t, Box{Network: true, Trace: true, Writable: []string{dir + "/scratch"}, Skip: []string{dir + "/scratch"}}, dir, "probe", name, "a", dir+"/none/x", "scratch/own")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		op := "look"
		if name == "write" || name == "path" {
			op = "read"
		}
		if got, want := lines(seen, dir), []string{op + " a", op + " none/x missing"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if Supported().Trace != nil {
		return
	}
	dir := files(t, map[string]string{"a/b": "", "sh": ""}) // of a program that is not this one: see place
	cmd := exec.Command("/bin/sh", "-c", "cd a; cd none 2>/dev/null; :")
	cmd.Dir = dir
	seen, err := runIn(Box{Network: true, Trace: true}, cmd)
	if got := lines(seen, dir); err != nil || !slices.Contains(got, "look a") || !slices.Contains(got, "look a/none missing") {
		t.Errorf("%v, %q", err, got)
	}
}

// forbiddenCalls is a mode of the helper: none of the calls may work, nor say anything but that.
func forbiddenCalls() error {
	for _, r := range slices.Concat(refused, forbidden) {
		if _, _, errno := unix.Syscall6(uintptr(r.number), ^uintptr(0), 0, 0, 0, 0, 0); errno != r.errno {
			return fmt.Errorf("call %d: %v", r.number, errno)
		}
	}
	for _, flag := range []uintptr{unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWNET, unix.CLONE_NEWTIME} {
		if err := unix.Unshare(int(flag)); err != unix.EPERM {
			return fmt.Errorf("unshare %#x: %v", flag, err)
		}
	}
	if err := unix.Unshare(unix.CLONE_SYSVSEM); err != nil {
		return fmt.Errorf("unshare of what is the program's own: %w", err)
	}
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}
	if err := cmd.Run(); !errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("clone: %v", err)
	}
	if _, err := unix.SysvShmGet(0x6b696c6e, 4096, unix.IPC_CREAT|0o600); err != unix.EPERM {
		return fmt.Errorf("shared memory with a name: %v", err)
	}
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		return fmt.Errorf("shared memory without one: %w", err)
	}
	_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	return err
}

func TestForbiddenCalls(t *testing.T) {
	if !Supported().Network {
		t.Skip("this system refuses seccomp filters")
	}
	for _, b := range []Box{{}, {Network: true}, {Trace: true}} {
		if _, err := inBox(t, b, t.TempDir(), "forbidden"); err != nil {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

// reach is a mode of the helper: a signal to another process, and a socket with a name that is in no folder.
func reach(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := unix.Kill(pid, 0); err != unix.EPERM {
		return fmt.Errorf("signal: %v", err)
	}
	c, err := net.Dial("unix", args[1])
	if err == nil {
		c.Close()
	}
	if (err == nil) != (args[2] == "network") || err != nil && !errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("socket: %v", err)
	}
	child := exec.Command("/bin/sleep", "1000") // its own it may end
	if err := child.Start(); err != nil {
		return err
	}
	if err := child.Process.Kill(); err != nil {
		return err
	}
	child.Wait()
	return nil
}

func TestReachesNobody(t *testing.T) {
	if s := Supported(); s.Writes < scopes || !signalsMended() {
		t.Skipf("%+v", s)
	}
	name := "@" + filepath.Base(t.TempDir()) + strconv.Itoa(os.Getpid())
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, network := range []bool{false, true} {
		word := map[bool]string{true: "network"}[network]
		if _, err := inBox(t, Box{Network: network}, t.TempDir(), "reach", strconv.Itoa(os.Getpid()), name, word); err != nil {
			t.Errorf("network %v: %v", network, err)
		}
	}
}

func TestLacks(t *testing.T) {
	for _, c := range []struct {
		s    Support
		want []string
	}{
		{Support{Writes: scopes, Signals: true, Network: true}, nil},
		{Support{Writes: 4, Network: true}, []string{"signals", "abstract"}},
		{Support{Writes: 2, Network: true}, []string{"short", "signals", "abstract"}},
		{Support{Writes: 1, Network: true}, []string{"move", "short", "signals", "abstract"}},
		{Support{Signals: true, Writes: scopes}, []string{"network"}},
		{Support{Network: true}, []string{"anywhere", "signals", "abstract"}},
	} {
		got := c.s.Lacks()
		ok := len(got) == len(c.want)
		for i := range c.want {
			ok = ok && strings.Contains(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%+v: %q", c.s, got)
		}
	}
}
