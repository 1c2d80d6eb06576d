package memory

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	length, load                                                                          uint32
	physical, freePhysical, pageFile, freePageFile, virtual, freeVirtual, extendedVirtual uint64
}

// Physical is the memory of the machine in bytes; 0 if not known.
func Physical() int64 {
	s := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	if ok, _, _ := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx").Call(uintptr(unsafe.Pointer(&s))); ok == 0 {
		return 0
	}
	return int64(s.physical)
}
