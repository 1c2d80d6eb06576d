package disk

import (
	"os"

	"golang.org/x/sys/windows"
)

// Room returns how many bytes can still be written in a folder.
func Room(folder string) (int64, error) {
	name, err := windows.UTF16PtrFromString(folder)
	var room uint64
	if err == nil {
		err = windows.GetDiskFreeSpaceEx(name, &room, nil, nil)
	}
	if err != nil {
		return 0, &os.PathError{Op: "statfs", Path: folder, Err: err}
	}
	return int64(room), nil
}
