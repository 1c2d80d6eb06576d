package state

import (
	"errors"
	"os"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// writeFile replaces a file: written beside and renamed, so that it is whole or as it was if the process is
// killed. Unless it is to be synced, a checksum fails after a power failure, and what was in it is found out again.
func writeFile(path string, sync bool, data ...[]byte) (err error) {
	disk.RemoveLeft(path)
	tmp := disk.Temp(path)
	f, err := disk.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return disk.About(path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(tmp)
			err = disk.About(path, err)
		}
	}()
	for _, b := range data {
		if err == nil {
			_, err = f.Write(b)
		}
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return disk.Replace(tmp, path)
}
