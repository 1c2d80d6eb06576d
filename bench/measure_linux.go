package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

func peakOf(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}

// dieWithParent kills a build when this process ends, so that it does not keep a mounted file system busy.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}

// machine returns the name of the processor.
func machine() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// statNames calls statx, which package syscall does not have, for names relative to the open folder, and only for type,
// size, time and inode.
func statNames(dir string, names []string) error {
	const (
		fields   = 0x1 | 0x40 | 0x80 | 0x100 | 0x200 // type, mtime, ctime, inode, size
		noFollow = 0x100
	)
	number := uintptr(291)
	if runtime.GOARCH == "amd64" {
		number = 332
	}
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var buf [256]byte
	var path [256]byte
	for _, name := range names {
		path[copy(path[:255], name)] = 0
		_, _, errno := syscall.Syscall6(number, uintptr(fd), uintptr(unsafe.Pointer(&path)), noFollow, fields,
			uintptr(unsafe.Pointer(&buf)), 0)
		if errno != 0 {
			return fmt.Errorf("statx %s/%s: %w", dir, name, errno)
		}
	}
	return nil
}
