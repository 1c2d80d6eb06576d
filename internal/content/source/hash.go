package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// ErrChanged means that a file changed while it was read.
var ErrChanged = errors.New("the file changed while it was read")

// A file modified less than racyWindow before its content was read may be modified again without a change of its
// times: Linux stamps files with the time of the last timer tick, at most 10 ms apart, and some clocks tick
// slower. A time without nanoseconds comes from a file system that counts in seconds (FAT: two).
const (
	racyWindow       = 20 * time.Millisecond
	racyWindowCoarse = 2 * time.Second
)

// Age is by how much a file that was just written is to be older, so that every later change shows in its stat. On file systems that
// count in seconds it is not enough.
const Age = 2 * racyWindow

// TooYoung reports whether a file with this stat that is read now may be changed once more without a change of its
// stat.
func (s Stat) TooYoung(now time.Time) bool { return racy(s.MTime, now) }

// Settles returns the time from now until every change of a file with this stat shows in its stat; 0: it would at once.
func (s Stat) Settles(now time.Time) time.Duration {
	switch {
	case !racy(s.MTime, now):
		return 0
	case s.MTime%int64(time.Second) == 0:
		return racyWindowCoarse
	}
	return racyWindow
}

// Aged sets the modification time of a file that was just written back by more than a tick of its file system's clock,
// and returns its stat: any later write then shows. If the time cannot be set, the stat is TooYoung.
func Aged(path string) (Stat, error) {
	var st Stat
	for _, window := range []time.Duration{racyWindow, racyWindowCoarse} {
		now := time.Now()
		os.Chtimes(path, time.Time{}, now.Add(-2*window))
		var err error
		if st, _, err = StatPath(path); err != nil || !st.TooYoung(now) {
			return st, err
		}
	}
	return st, nil
}

func racy(mtime int64, now time.Time) bool {
	window := racyWindow
	if mtime%int64(time.Second) == 0 {
		window = racyWindowCoarse
	}
	return now.UnixNano()-mtime < int64(window)
}

// Know records the content hash of a file that had this stat. now is a time before the content was read.
func (t *Table) Know(i Index, st Stat, h digest.Hash, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &t.Files[i]
	f.Stat, f.Hash, f.Racy = st, h, racy(st.MTime, now)
	if t.since != nil {
		t.learnt = append(t.learnt, i)
	}
}

// Hash returns the content hash of a file. It reads the file only if the hash is not known.
func (t *Table) Hash(i Index) (digest.Hash, error) {
	if f := t.At(i); !f.Hash.IsZero() {
		return f.Hash, nil
	}
	root, p := t.PathOf(i)
	h, st, now, err := hashFile(t.Abs(root, p))
	if err != nil {
		return digest.Hash{}, err
	}
	t.Know(i, st, h, now)
	return h, nil
}

// HashAll hashes files whose hash is not known, in parallel. Errors are left to the later caller of Hash.
func (t *Table) HashAll(files []Index, workers int) {
	parallel(workers, len(files), func(i int) { t.Hash(files[i]) })
}

// HashFile hashes a file that is not in a table.
func HashFile(path string) (digest.Hash, error) {
	h, _, _, err := hashFile(path)
	return h, err
}

// hashFile hashes a file and checks that it did not change meanwhile; it tries a few times.
func hashFile(path string) (digest.Hash, Stat, time.Time, error) {
	for range 3 {
		now := time.Now()
		h, before, after, err := hashOnce(path)
		if err != nil {
			return digest.Hash{}, Stat{}, now, err
		}
		if before == after {
			return h, before, now, nil
		}
	}
	return digest.Hash{}, Stat{}, time.Time{}, fmt.Errorf("%s: %w", path, ErrChanged)
}

// smallFile is the size up to which a file is read at once.
const smallFile = 64 << 10

// small has buffers for such files, with a byte more to notice growth. Separate buffers for each of 10,000 files of 4
// KiB were more than half of the memory of a build in which all were touched, and a quarter of its processor time.
var small = sync.Pool{New: func() any { return new([smallFile + 1]byte) }}

func hashOnce(path string) (h digest.Hash, before, after Stat, err error) {
	f, err := disk.Open(path)
	if err != nil {
		return h, before, after, err
	}
	defer f.Close()
	if before, err = StatFile(f); err != nil {
		return h, before, after, err
	}
	n := int64(0)
	if before.Size <= smallFile {
		buf := small.Get().(*[smallFile + 1]byte)
		defer small.Put(buf)
		m, rerr := io.ReadFull(f, buf[:before.Size+1])
		if rerr != nil && rerr != io.EOF && rerr != io.ErrUnexpectedEOF {
			return h, before, after, rerr
		}
		h, n = digest.Of(buf[:m]), int64(m)
	} else if h, n, err = digest.Reader(f); err != nil {
		return h, before, after, err
	}
	after, err = StatFile(f)
	if n != before.Size {
		after.Size = n
	}
	return h, before, after, err
}
