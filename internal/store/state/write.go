package state

import (
	"errors"
	"os"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// writeFile replaces a file under a temporary name, so that it is complete or unchanged if the process is killed.
// Without sync, a power failure may damage it; its checksum then fails, and its content is found out again.
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
