// Package folder keeps shared results in a folder, on this machine or on a network drive.
//
//	v1/entries/ab/cdef...   an entry by its key
//	v1/blobs/ab/cdef...     a blob by its hash
//	v1/tmp/                 temporary files
//	v1/usage                about how many bytes there are
//
// Any number of processes, on any number of machines, may use the folder at once. It has no locks: a file is
// written under a temporary name and renamed when it is complete, and files with the same name are equal or
// equally valid. A damaged file is deleted and is a miss. The least recently used files are deleted when
// there are more bytes than the limit.
//
// A file in the folder is never a hard link to a file elsewhere: bytes are copied in and out, so that
// editing a product does not change what others get.
package folder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/store/share"
)

// DefaultLimit is the default maximum size, in bytes.
const DefaultLimit = 20 << 30

// usedAgain is how often the use of a file is recorded at most. Otherwise each read would be a write too.
const usedAgain = time.Hour

// Folder is a share.Cache.
type Folder struct {
	dir   string // including the version
	limit int64
	still bool        // nothing is written or deleted
	mode  fs.FileMode // of the folder: what is made in it can be read and written by the same users, whatever the umask; 0: not known
	gid   int         // its group; -1: not known
	stamp string

	temp    atomic.Int64
	written atomic.Int64 // bytes since the last count
	made    sync.Map     // folders known to exist
}

var _ share.Cache = (*Folder)(nil)

// Open opens a folder, and creates it if necessary. limit is in bytes; 0 means DefaultLimit. With readOnly, nothing is
// deleted or written; only the times of what is used are set.
func Open(dir string, limit int64, readOnly bool) (*Folder, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	f := &Folder{dir: filepath.Join(dir, "v1"), limit: limit, still: readOnly, gid: -1, stamp: fmt.Sprintf("%x-", rand.Uint64())}
	if readOnly {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "open", Path: dir, Err: errors.New("it is not a folder")}
		}
		return f, err
	}
	if info, err := os.Stat(dir); err == nil { // it was there before: what its owner set counts
		f.mode, f.gid = info.Mode(), group(info)
	}
	if err := f.mkdir(filepath.Join(f.dir, "tmp")); err != nil {
		return nil, err
	}
	tag := filepath.Join(dir, "CACHEDIR.TAG") // so that backups skip the folder
	if _, err := os.Lstat(tag); err != nil {
		disk.Save(tag, []byte("Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of Kiln. It can be deleted at any time.\n"))
	}
	return f, nil
}

// mkdir makes a folder, and those above it.
func (f *Folder) mkdir(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if up := filepath.Dir(path); len(path) > len(f.dir) {
		if err := f.mkdir(up); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	f.settle(path, f.mode&(fs.ModePerm|fs.ModeSetgid))
	return nil
}

// settle gives what was made the group and the mode of the folder.
func (f *Folder) settle(path string, mode fs.FileMode) {
	info, err := os.Lstat(path)
	if err != nil || f.mode == 0 {
		return
	}
	setGroup(path, info, f.gid)
	if info.Mode()&(fs.ModePerm|fs.ModeSetgid) != mode {
		os.Chmod(path, mode) // where it fails, the mode is as the umask has it
	}
}

func (f *Folder) path(kind, name string) string {
	return filepath.Join(f.dir, kind, name[:2], name[2:])
}

func (f *Folder) blobPath(b share.Blob) string { return f.path("blobs", b.Hash.String()) }

// Get reads an entry.
func (f *Folder) Get(ctx context.Context, key share.Key) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path := f.path("entries", key.String())
	file, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > share.MaxValue {
		f.remove(path)
		return nil, fs.ErrNotExist
	}
	value := make([]byte, info.Size())
	if _, err := io.ReadFull(file, value); err != nil {
		return nil, err
	}
	f.touchSeen(path, info)
	return value, nil
}

// Put writes an entry.
func (f *Folder) Put(ctx context.Context, key share.Key, value []byte, _ []share.Blob) error {
	if err := f.writable(ctx); err != nil {
		return err
	}
	return f.write(f.path("entries", key.String()), func(to io.Writer) error {
		_, err := to.Write(value)
		return err
	})
}

func (f *Folder) writable(ctx context.Context) error {
	if f.still {
		return fmt.Errorf("the cache folder is only read: %w", fs.ErrPermission)
	}
	return ctx.Err()
}

// Missing checks blobs by name and size only: the caller that fetches them checks their bytes.
func (f *Folder) Missing(ctx context.Context, blobs []share.Blob) (missing []share.Blob, err error) {
	for _, b := range blobs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		path := f.blobPath(b)
		info, err := os.Lstat(path)
		switch {
		case err == nil && info.Mode().IsRegular() && info.Size() == b.Size:
			f.touchSeen(path, info)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		default:
			missing = append(missing, b)
		}
	}
	return missing, nil
}

// Fetch copies a blob.
func (f *Folder) Fetch(ctx context.Context, b share.Blob, to io.Writer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path := f.blobPath(b)
	file, err := disk.Open(path)
	if err != nil {
		return err
	}
	err = share.Receive(to, &until{ctx, file}, b)
	file.Close()
	switch {
	case err == nil:
		f.touch(path)
	case errors.Is(err, share.ErrDamaged):
		f.remove(path)
	}
	return err
}

// Store copies a blob into the folder.
func (f *Folder) Store(ctx context.Context, b share.Blob, open func() (io.ReadCloser, error)) error {
	if err := f.writable(ctx); err != nil {
		return err
	}
	from, err := open()
	if err != nil {
		return err
	}
	defer from.Close()
	return f.write(f.blobPath(b), func(to io.Writer) error { return share.Receive(to, &until{ctx, from}, b) })
}

// until reads until a context is done.
type until struct {
	ctx  context.Context
	from io.Reader
}

func (u *until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.from.Read(p)
}

// write writes a file, completely or not at all.
func (f *Folder) write(path string, fill func(io.Writer) error) error {
	file, err := f.create()
	if err != nil {
		return err
	}
	tmp := file.Name()
	n := &counter{to: file}
	err = fill(n)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		f.settle(tmp, f.mode&0o666)
		err = f.name(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	f.written.Add(n.n)
	return nil
}

func (f *Folder) create() (*os.File, error) {
	tmp := filepath.Join(f.dir, "tmp", fmt.Sprintf("%s%d", f.stamp, f.temp.Add(1)))
	file, err := disk.Create(tmp, 0o666)
	if errors.Is(err, fs.ErrNotExist) { // the folder was emptied meanwhile
		if err := f.mkdir(filepath.Dir(tmp)); err != nil {
			return nil, err
		}
		file, err = disk.Create(tmp, 0o666)
	}
	return file, err
}

// name renames a temporary file. Known folders are remembered; if one was removed, it is created again.
func (f *Folder) name(tmp, path string) error {
	dir := filepath.Dir(path)
	if _, ok := f.made.Load(dir); !ok {
		if err := f.mkdir(dir); err != nil {
			return err
		}
		f.made.Store(dir, true)
	}
	err := disk.Replace(tmp, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.mkdir(dir); err != nil {
			return err
		}
		err = disk.Replace(tmp, path)
	}
	if err == nil {
		return nil
	}
	if info, serr := os.Lstat(path); serr == nil && info.Mode().IsRegular() {
		return os.Remove(tmp) // on Windows another process reads it: the existing file is equally valid
	}
	return err
}

type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

func (f *Folder) remove(path string) {
	if !f.still {
		disk.Remove(path) // if this fails, the next reader finds the damage again
	}
}

// touch records that a file was used.
func (f *Folder) touch(path string) {
	if info, err := os.Lstat(path); err == nil {
		f.touchSeen(path, info)
	}
}

func (f *Folder) touchSeen(path string, info fs.FileInfo) {
	if time.Since(info.ModTime()) > usedAgain { // by readers too: what they use is not to be deleted by others
		touchNow(path) // it fails for a user without write access
	}
}

// Close deletes files if the folder may be above its limit.
func (f *Folder) Close() error {
	written := f.written.Swap(0)
	if f.still || written == 0 {
		return nil
	}
	usage, ok := f.usage()
	if usage += written; ok && usage <= f.limit {
		return f.setUsage(usage)
	}
	_, err := f.Collect(f.limit, func() {})
	return err
}

func (f *Folder) usagePath() string { return filepath.Join(f.dir, "usage") }

// usage is the estimated number of bytes. Processes that end at the same time may miss each other's; the next count
// corrects it.
func (f *Folder) usage() (bytesThere int64, ok bool) {
	data, err := disk.ReadFile(f.usagePath())
	if err != nil || len(data) > 32 {
		return 0, false
	}
	_, err = fmt.Fscanf(bytes.NewReader(data), "%d\n", &bytesThere)
	return bytesThere, err == nil && bytesThere >= 0
}

func (f *Folder) setUsage(n int64) error {
	return f.write(f.usagePath(), func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "%d\n", n)
		return err
	})
}
