package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// abandoned is the age at which a temporary file is deleted.
const abandoned = 24 * time.Hour

// Usage is how much a folder contains.
type Usage struct {
	Entries, Blobs int
	Bytes          int64 // of entries and blobs
	Oldest         time.Time
}

// Collected is what a collection deleted and kept.
type Collected struct {
	Files int
	Bytes int64
	Left  Usage
}

type file struct {
	path string
	size int64
	used time.Time
	blob bool
}

// list returns all files and their sums. A folder that was removed meanwhile is empty. It calls moved for each file.
func (f *Folder) list(moved func()) (files []file, all Usage, err error) {
	for _, kind := range []string{"entries", "blobs"} {
		err := filepath.WalkDir(filepath.Join(f.dir, kind), func(path string, e fs.DirEntry, err error) error {
			if moved(); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return nil // removed meanwhile
			}
			files = append(files, file{path, info.Size(), info.ModTime(), kind == "blobs"})
			return nil
		})
		if err != nil {
			return nil, all, err
		}
	}
	for _, x := range files {
		all.add(x, 1)
		if all.Oldest.IsZero() || x.used.Before(all.Oldest) {
			all.Oldest = x.used
		}
	}
	return files, all, nil
}

func (u *Usage) add(x file, by int) {
	if x.blob {
		u.Blobs += by
	} else {
		u.Entries += by
	}
	u.Bytes += int64(by) * x.size
}

// Usage counts the content of the folder. It calls moved for each file.
func (f *Folder) Usage(moved func()) (Usage, error) {
	_, all, err := f.list(moved)
	return all, err
}

// Limit is the maximum size of the folder, in bytes.
func (f *Folder) Limit() int64 { return f.limit }

// Dir is the folder, without the version.
func (f *Folder) Dir() string { return filepath.Dir(f.dir) }

// Collect deletes the least recently used files if there are more bytes than a limit, down to nine tenths of it, and
// old temporary files. It calls moved for each file.
func (f *Folder) Collect(limit int64, moved func()) (c Collected, err error) {
	files, left, err := f.list(moved)
	if err != nil || f.still {
		return Collected{Left: left}, err
	}
	f.tidy()
	if left.Bytes > limit {
		slices.SortFunc(files, func(a, b file) int {
			if n := a.used.Compare(b.used); n != 0 {
				return n
			}
			return strings.Compare(a.path, b.path)
		})
		for _, x := range files {
			if moved(); left.Bytes <= limit/10*9 {
				break
			}
			if err := disk.Remove(x.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				continue // another process reads it, on Windows
			}
			left.add(x, -1)
			c.Files++
			c.Bytes += x.size
			left.Oldest = x.used
		}
	}
	c.Left = left
	return c, f.setUsage(left.Bytes)
}

func (f *Folder) tidy() {
	entries, _ := os.ReadDir(filepath.Join(f.dir, "tmp"))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			disk.Remove(filepath.Join(f.dir, "tmp", e.Name()))
		}
	}
}
