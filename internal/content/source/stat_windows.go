package source

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// dir is an open folder. Others can rename and remove it meanwhile.
type dir struct {
	f      *os.File
	kernel string // the path for the kernel; "": there is none
}

// openDir opens a folder. Without follow, a symbolic link to a folder is an error.
func openDir(path string, follow bool) (dir, error) {
	flags := uint32(windows.FILE_FLAG_BACKUP_SEMANTICS)
	if !follow {
		flags |= windows.FILE_FLAG_OPEN_REPARSE_POINT
	}
	f, err := open(path, windows.FILE_LIST_DIRECTORY|windows.FILE_READ_ATTRIBUTES, flags)
	if err != nil {
		return dir{}, err
	}
	var info basicInfo
	if err = info.of(f); err == nil && info.attributes&windows.FILE_ATTRIBUTE_DIRECTORY == 0 {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	if err == nil && !follow && info.attributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0 { // not all of these are links
		if at, lerr := os.Lstat(path); lerr != nil || at.Mode()&fs.ModeSymlink != 0 {
			err = &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
		}
	}
	if err != nil {
		f.Close()
		return dir{}, err
	}
	return dir{f, kernelPath(path)}, nil
}

// kernelPath is a path without what only layers above the kernel understand: forward slashes, "..", the working folder.
func kernelPath(path string) string {
	full, err := windows.FullPath(path)
	if err != nil {
		return ""
	}
	full = strings.TrimSuffix(full, `\`)
	for _, prefix := range []string{`\\?\`, `\\.\`} {
		if rest, ok := strings.CutPrefix(full, prefix); ok {
			return `\??\` + rest
		}
	}
	if rest, ok := strings.CutPrefix(full, `\\`); ok {
		return `\??\UNC\` + rest
	}
	return `\??\` + full
}

func open(path string, access, flags uint32) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err == nil {
		const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
		var h windows.Handle
		if h, err = windows.CreateFile(name, access, share, nil, windows.OPEN_EXISTING, flags, 0); err == nil {
			return os.NewFile(uintptr(h), path), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: err}
}

func (d dir) close() { d.f.Close() }

// self is the folder's own stat.
func (d dir) self() (Stat, error) {
	var info basicInfo
	err := info.of(d.f)
	return Stat{MTime: unixNano(info.modified), CTime: unixNano(info.changed)}, err
}

// list lists the folder.
func (d dir) list() ([]fs.DirEntry, error) { return d.f.ReadDir(-1) }

// stat does not follow symbolic links. It uses the only call that opens no file and returns the change time; os.Lstat
// does not return it.
func (d dir) stat(name string) (Stat, fs.FileMode, error) {
	var info networkOpenInfo
	if !info.of(d, name) || info.attributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0 { // not all of these are links
		path := d.f.Name() + `\` + name
		at, err := os.Lstat(path)
		if err != nil {
			return Stat{}, 0, err
		}
		f, err := open(path, windows.FILE_READ_ATTRIBUTES, windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT)
		if err != nil {
			return Stat{}, 0, err
		}
		defer f.Close()
		st, err := StatFile(f)
		return st, at.Mode().Type(), err
	}
	st := Stat{Size: info.size, MTime: unixNano(info.modified), CTime: unixNano(info.changed)}
	if info.attributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0 {
		st.Size = 0
		return st, fs.ModeDir, nil
	}
	return st, 0, nil
}

// of returns false if the file does not exist. Its path must be in the kernel's form, with no forward
// slash.
func (i *networkOpenInfo) of(d dir, name string) bool {
	text, err := windows.NewNTUnicodeString(d.kernel + `\` + name)
	if err != nil {
		return false
	}
	object := windows.OBJECT_ATTRIBUTES{ObjectName: text, Attributes: windows.OBJ_CASE_INSENSITIVE}
	object.Length = uint32(unsafe.Sizeof(object))
	status, _, _ := ntQueryFullAttributesFile.Call(uintptr(unsafe.Pointer(&object)), uintptr(unsafe.Pointer(i)))
	return status == 0
}

var ntQueryFullAttributesFile = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtQueryFullAttributesFile")

// networkOpenInfo is FILE_NETWORK_OPEN_INFORMATION of the Windows driver kit, 56 bytes; times are in 100 ns since 1601.
type networkOpenInfo struct {
	created, accessed, modified, changed int64
	allocated, size                      int64
	attributes, _                        uint32
}

// basicInfo is FILE_BASIC_INFO, 40 bytes.
type basicInfo struct {
	created, accessed, modified, changed int64
	attributes, _                        uint32
}

// of queries an open file.
func (b *basicInfo) of(f *os.File) error {
	err := windows.GetFileInformationByHandleEx(windows.Handle(f.Fd()), windows.FileBasicInfo, (*byte)(unsafe.Pointer(b)), uint32(unsafe.Sizeof(*b)))
	if err != nil {
		return &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return nil
}

// unixNano converts to nanoseconds since 1970. 0 stays 0: the file system has no such time, as FAT has no change time.
func unixNano(t int64) int64 {
	const unixEpoch = 116_444_736_000_000_000 // from 1601 to 1970
	if t == 0 {
		return 0
	}
	return (t - unixEpoch) * 100
}

// StatFile returns the stat of an open file.
func StatFile(f *os.File) (Stat, error) {
	at, err := f.Stat()
	if err != nil {
		return Stat{}, err
	}
	var info basicInfo
	if err := info.of(f); err != nil {
		return Stat{}, err
	}
	st := Stat{Size: at.Size(), MTime: unixNano(info.modified), CTime: unixNano(info.changed)}
	if at.IsDir() {
		st.Size = 0
	}
	return st, nil
}

// StatPath returns the stat of a path; links are followed.
func StatPath(path string) (Stat, fs.FileMode, error) {
	f, err := open(path, windows.FILE_READ_ATTRIBUTES, windows.FILE_FLAG_BACKUP_SEMANTICS)
	if err != nil {
		return Stat{}, 0, err
	}
	defer f.Close()
	at, err := f.Stat()
	if err != nil {
		return Stat{}, 0, err
	}
	st, err := StatFile(f)
	return st, at.Mode().Type(), err
}
