package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// volumes gives each tool a new file system, because an ext4 from which many files were deleted is up to five times
// slower for a while. Each is an ext4 in a file, mounted through a loop device. If that is not possible, it is a
// folder.
type volumes struct {
	dir     string
	plain   string          // why only folders are used; empty if file systems are
	mounted map[string]bool // by name
}

// newVolumes tries to make and mount a file system below dir.
func newVolumes(dir string) *volumes {
	v := &volumes{dir: dir, mounted: map[string]bool{}}
	switch {
	case runtime.GOOS != "linux":
		v.plain = "only Linux mounts files"
	case os.Geteuid() != 0:
		v.plain = "only root may mount"
	default:
		if _, err := v.fresh("try", folderSize); err != nil {
			v.plain = err.Error()
		}
		v.drop("try")
	}
	return v
}

// kind describes in words where a clean build is made.
func (v *volumes) kind() string {
	if v.plain != "" {
		return "clean builds are made in a plain folder, since " + v.plain
	}
	return "every clean build is made on a fresh ext4 (loop-mounted)"
}

// fresh returns an empty folder with a name, on a new file system with room for a project of this many assets.
func (v *volumes) fresh(name string, assets int) (string, error) {
	if err := v.drop(name); err != nil {
		return "", err
	}
	mount := filepath.Join(v.dir, name)
	if err := os.MkdirAll(filepath.Join(mount, "project"), 0o777); err != nil || v.plain != "" {
		return filepath.Join(mount, "project"), err
	}
	// Sources, products and a cache of both take 12 KiB for each asset. The rest is for state and inode tables.
	image := v.image(name)
	f, err := os.Create(image)
	if err != nil {
		return "", err
	}
	if err := errors.Join(f.Truncate(256<<20+int64(assets)*20<<10), f.Close()); err != nil {
		return "", err
	}
	mkfs := []string{"-q", "-F", "-N", strconv.Itoa(20_000 + 6*assets), "-E", "nodiscard"}
	if assets >= million {
		mkfs = append(mkfs, "-O", "inline_data") // tiny files are stored in their inodes, and take no blocks
	}
	if err := command("mkfs.ext4", append(mkfs, image)...); err != nil {
		return "", err
	}
	if err := command("mount", "-o", "loop", image, mount); err != nil {
		return "", err
	}
	v.mounted[name] = true
	dir := filepath.Join(mount, "project")
	return dir, os.MkdirAll(dir, 0o777)
}

func (v *volumes) image(name string) string { return filepath.Join(v.dir, name+".ext4") }

// drop removes what fresh made.
func (v *volumes) drop(name string) error {
	mount := filepath.Join(v.dir, name)
	if v.mounted[name] {
		if err := unmount(mount); err != nil {
			return err // remove nothing, because that would be file by file
		}
		delete(v.mounted, name)
	}
	if err := os.RemoveAll(v.image(name)); err != nil {
		return err
	}
	return os.RemoveAll(mount)
}

// unmount waits for a process that has just been killed. After that it detaches the file system, which ends with its
// last user.
func unmount(mount string) error {
	for range 10 {
		if command("umount", mount) == nil {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return command("umount", "-l", mount)
}

// close removes everything.
func (v *volumes) close() error {
	var errs []error
	for name := range v.mounted {
		errs = append(errs, v.drop(name))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.RemoveAll(v.dir)
}

// flush writes pending data of a file system to disk, so that this does not happen while a tool is measured.
func flush(dir string) {
	if runtime.GOOS == "linux" {
		command("sync", "-f", dir)
	}
}

func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w %s", name, err, out)
	}
	return nil
}
