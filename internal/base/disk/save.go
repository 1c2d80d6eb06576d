package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// TempPrefix is the prefix of temporary files that will be renamed.
const TempPrefix = ".kiln-"

// Temp is the temporary name of a file, different for each process.
func Temp(file string) string {
	return filepath.Join(filepath.Dir(file), fmt.Sprintf("%s%d-%s", TempPrefix, os.Getpid(), filepath.Base(file)))
}

// IsTemp reports whether a file's name is a temporary one, of any process.
func IsTemp(file string) bool {
	rest, ours := strings.CutPrefix(filepath.Base(file), TempPrefix)
	pid, _, ok := strings.Cut(rest, "-")
	_, err := strconv.ParseUint(pid, 10, 64)
	return ours && ok && err == nil
}

// Save replaces the content of a file permanently: after it returns, a power failure does not restore the old content,
// and a power failure before leaves the file with the old or the new content. Its mode is kept; if it is a symbolic
// link, its target is replaced. Only one goroutine may save a file at a time; several processes may.
func Save(file string, data []byte) error { return SaveAged(file, data, 0) }

// SaveAged is Save for a file whose modification time is to be so long ago. If that cannot be set, it is now.
func SaveAged(file string, data []byte, age time.Duration) error {
	file, err := follow(file)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0)
	switch info, err := os.Lstat(file); {
	case err == nil && info.IsDir():
		return &os.PathError{Op: "write", Path: file, Err: syscall.EISDIR}
	case err == nil && !info.Mode().IsRegular():
		return &os.PathError{Op: "write", Path: file, Err: errors.New("it is not a regular file")}
	case err == nil:
		mode = info.Mode().Perm()
	}
	RemoveLeft(file)
	tmp := Temp(file)
	err = saveAs(tmp, data, mode)
	if err == nil && age > 0 {
		os.Chtimes(tmp, time.Time{}, time.Now().Add(-age))
	}
	if err == nil {
		err = Replace(tmp, file)
	}
	if err != nil {
		os.Remove(tmp)
		return About(file, err)
	}
	return SyncFolder(filepath.Dir(file))
}

// About turns an error about a file's temporary name into one about the file.
func About(file string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return &fs.PathError{Op: pe.Op, Path: file, Err: pe.Err}
	case errors.As(err, &le):
		return &fs.PathError{Op: le.Op, Path: file, Err: le.Err}
	}
	return err
}

// saveAs writes a new file and waits until it is on the disk. Mode 0 means the default.
func saveAs(tmp string, data []byte, mode fs.FileMode) error {
	f, err := OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil && mode != 0 {
		err = os.Chmod(tmp, mode)
	}
	return err
}

// follow resolves symbolic links to a file that may not exist yet.
func follow(file string) (string, error) {
	for range 40 {
		link, err := os.Readlink(file)
		if err != nil {
			return file, nil // it is not a link, or does not exist, or opening it will report the error
		}
		if !filepath.IsAbs(link) {
			dir, _ := filepath.Split(file)
			link = dir + link // not cleaned: ".." after a link is not the folder of the link
		}
		dir, base := filepath.Split(link)
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", err
		}
		file = filepath.Join(dir, base)
	}
	return "", &os.PathError{Op: "open", Path: file, Err: errors.New("too many levels of symbolic links")}
}

// RemoveLeft removes temporary files that ended processes left beside a file.
func RemoveLeft(file string) {
	if real, err := follow(file); err == nil {
		file = real
	}
	dir, base := filepath.Split(file)
	if dir == "" {
		dir = "."
	}
	f, err := Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for _, name := range names {
		rest, ours := strings.CutPrefix(name, TempPrefix)
		pid, same := strings.CutSuffix(rest, "-"+base)
		if n, err := strconv.Atoi(pid); ours && same && err == nil && (n == os.Getpid() || !alive(n)) {
			os.Remove(filepath.Join(dir, name))
		}
	}
}

// Keep writes a file completely or not at all, and creates its folder. It does not sync, because it is for caches.
// Several processes may write the same file.
func Keep(file string, data []byte) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
