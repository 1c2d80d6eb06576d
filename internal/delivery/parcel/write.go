package parcel

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Write writes a parcel of the resources under a temporary name, and renames it when it is
// complete.
func Write(path string, rs []Resource, o Options) error {
	c, err := prepare(rs, o)
	if err != nil {
		return err
	}
	return write(path, c, o, nil)
}

// write copies contents from the existing parcel, if there is one, and closes it, because Windows cannot replace an
// open file.
func write(path string, c *contents, o Options, was *kilnrt.Parcel) error {
	order, err := loadOrder(c.items, o.First)
	if err != nil {
		return err
	}
	return replace(path, func(f *os.File) error {
		w := &writer{f: f, pos: kilnrt.DataStart}
		if err := w.payloads(c.items, order, o); err != nil {
			return err
		}
		x, err := c.index(o.Dictionary)
		if err != nil {
			return err
		}
		if x.sections[kilnrt.SectionSignature], err = o.signature(x.digest); err != nil {
			return err
		}
		h := &kilnrt.Header{Generation: 1, Count: len(c.items), Order: o.Order}
		if err := w.index(h, x); err != nil {
			return err
		}
		// Readers do not see the file before it is complete, so replace syncs it once.
		if err := w.put(h.Encode(), 0); err != nil || was == nil {
			return err
		}
		return was.Close()
	})
}

// replace writes a file beside path, and renames it when it is on the disk.
func replace(path string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".kiln-"+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // no effect after the rename
	defer f.Close()
	// The file system has modes.
	if err := f.Chmod(0o644); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return disk.Replace(f.Name(), path)
}

// file is what a parcel is written to.
type file interface {
	io.WriterAt
	Sync() error
}

// writer appends to a file.
type writer struct {
	f       file
	pos     int64 // position of the next bytes
	written int64
	small   []byte // bytes not in the file yet, which end at pos
	begun   int64  // up to here the system was asked to write to the disk
}

// Sizes in bytes. A write of 64 KiB is as fast per byte as a larger one; writing resources of 100 bytes one by one
// reached 10 MB/s. The disk starts to write after 8 MiB: packing 1 GB took 450 ms instead of 800, most of which was
// waiting at the end.
const (
	smallWrites = 64 << 10
	beginAfter  = 8 << 20
)

// recordAlign is the alignment of pages of records, in bytes. The format requires 16; a record at a multiple of its own
// size is in two cache lines, otherwise in three.
const recordAlign = kilnrt.RecordSize

// append writes bytes at the next multiple of align, and returns their position.
func (w *writer) append(b []byte, align int) (int64, error) {
	at := w.align(align)
	gap := at - w.pos
	if len(b) < smallWrites && len(w.small) > 0 && len(w.small)+int(gap)+len(b) <= smallWrites {
		w.small = append(append(w.small, make([]byte, gap)...), b...)
		w.pos = at + int64(len(b))
		return at, nil
	}
	if err := w.flush(); err != nil {
		return at, err
	}
	if w.pos = at; len(b) < smallWrites {
		w.small = append(w.small, b...)
		w.pos += int64(len(b))
		return at, nil
	}
	w.pos += int64(len(b))
	return at, w.put(b, at)
}

// flush writes what append has kept.
func (w *writer) flush() error {
	b := w.small
	w.small = w.small[:0]
	return w.put(b, w.pos-int64(len(b)))
}

func (w *writer) put(b []byte, at int64) error {
	if len(b) == 0 {
		return nil
	}
	n, err := w.f.WriteAt(b, at)
	w.written += int64(n)
	if end := at + int64(n); end-w.begun >= beginAfter {
		beginWriting(w.f, w.begun, end-w.begun)
		w.begun = end
	}
	return err
}

// align is the next multiple of align. Gaps between larger pieces are never written: in a new file they are holes, read
// as zeros.
func (w *writer) align(align int) int64 { return (w.pos + int64(align) - 1) &^ (int64(align) - 1) }

// payloads writes the content of items in the given order, equal contents once, and sets their positions.
func (w *writer) payloads(items []item, order []int, o Options) error {
	align := map[blobKey]int{}
	var jobs []*item
	for _, i := range order {
		it := &items[i]
		if it.Size == 0 {
			it.at = blob{}
			continue
		}
		if _, ok := align[it.key()]; !ok {
			jobs = append(jobs, it)
		}
		align[it.key()] = max(align[it.key()], it.Align)
	}
	places := make(map[blobKey]blob, len(jobs))
	l := newLoader(o)
	var err error
	if len(o.Dictionary) > 0 { // which may be wrong
		_, err = l.enc()
	}
	if err != nil {
		return err
	}
	err = l.each(jobs, func(it *item, b []byte, crc uint32) error {
		at, err := w.append(b, align[it.key()])
		places[it.key()] = blob{at, int64(len(b)), crc}
		return err
	}, func(it *item) error {
		b, err := w.stream(it, align[it.key()])
		places[it.key()] = b
		return err
	})
	if err != nil {
		return err
	}
	for _, i := range order {
		if it := &items[i]; it.Size > 0 {
			it.at = places[it.key()]
		}
	}
	return nil
}

// stream writes content that is too large for memory.
func (w *writer) stream(it *item, align int) (blob, error) {
	r, err := it.Open()
	if err != nil {
		return blob{}, err
	}
	defer r.Close()
	if err := w.flush(); err != nil {
		return blob{}, err
	}
	w.pos = w.align(align)
	b := blob{offset: w.pos}
	h := digest.New()
	buf := make([]byte, 1<<20)
	for {
		n, err := io.ReadFull(r, buf)
		h.Write(buf[:n])
		b.crc = crc32.Update(b.crc, crc32.IEEETable, buf[:n])
		b.size += int64(n)
		if b.size > it.Size {
			break
		}
		if _, err := w.append(buf[:n], 1); err != nil {
			return blob{}, err
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return blob{}, err
		}
	}
	if b.size != it.Size || h.Sum() != it.Hash {
		return blob{}, changed(it)
	}
	return b, nil
}

func changed(it *item) error {
	return fmt.Errorf("%w: the content of %s is not what its hash says", ErrResource, it.Label())
}

// index writes records and sections, and sets their positions in the header.
func (w *writer) index(h *kilnrt.Header, x *index) error {
	const page = kilnrt.PageSize * kilnrt.RecordSize
	first, err := w.append(x.records, recordAlign)
	if err != nil {
		return err
	}
	h.Bits, h.Types, h.Digest = x.bits, x.types, x.digest
	x.sections[kilnrt.SectionDirectory] = directory(x.records, func(k int) int64 { return first + int64(k)*page })
	for i, b := range x.sections {
		if err := w.section(h, i, b); err != nil {
			return err
		}
	}
	h.End = w.pos
	return w.flush()
}

func (w *writer) section(h *kilnrt.Header, i int, b []byte) error {
	h.Sections[i] = kilnrt.Section{}
	if len(b) == 0 {
		return nil
	}
	at, err := w.append(b, 16)
	h.Sections[i] = kilnrt.Section{Offset: at, Size: int64(len(b)), CRC: crc32.ChecksumIEEE(b)}
	return err
}

// slot makes everything written valid, when it is on the disk.
func (w *writer) slot(h *kilnrt.Header, slot int) error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return err
	}
	if err := w.put(h.Encode(), int64(slot)*kilnrt.SlotPitch); err != nil {
		return err
	}
	return w.f.Sync()
}

// inMemory is the size up to which uncompressed content is read at once.
const inMemory = 16 << 20

// loader reads, hashes and compresses contents, several at once.
type loader struct {
	workers int
	enc     func() (*zstd.Encoder, error) // it has some MB, which most parcels do not need
	buffers sync.Pool                     // of *[]byte
}

func newLoader(o Options) *loader {
	l := &loader{workers: max(1, o.Workers)}
	// One goroutine for each block would be in addition to the workers; the format does not allow a window of
	// more than 8 MiB.
	opts := []zstd.EOption{zstd.WithEncoderConcurrency(l.workers), zstd.WithWindowSize(8 << 20), zstd.WithEncoderCRC(false)}
	switch d := o.Dictionary; {
	case len(d) >= 4 && le.Uint32(d) == 0xec30a437:
		opts = append(opts, zstd.WithEncoderDict(d))
	case len(d) > 0:
		opts = append(opts, zstd.WithEncoderDictRaw(0, d))
	}
	l.enc = sync.OnceValues(func() (*zstd.Encoder, error) { return zstd.NewWriter(nil, opts...) })
	return l
}

// each calls f with the stored bytes of each item, in order, and large for those that are too large for it. The
// bytes are valid until f returns.
func (l *loader) each(jobs []*item, f func(it *item, b []byte, crc uint32) error, large func(*item) error) error {
	type result struct {
		b   []byte
		buf *[]byte // for reuse
		crc uint32
		err error
	}
	results := make([]chan result, len(jobs))
	next, stop := make(chan int), make(chan struct{})
	ahead := make(chan struct{}, 2*l.workers) // limits the memory
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for i := range results {
		results[i] = make(chan result, 1)
	}
	for range l.workers {
		wg.Go(func() {
			for i := range next {
				var r result
				if !isLarge(jobs[i]) {
					r.b, r.buf, r.err = l.load(jobs[i])
					r.crc = crc32.ChecksumIEEE(r.b)
				}
				results[i] <- r
			}
		})
	}
	wg.Go(func() {
		defer close(next)
		for i := range jobs {
			select {
			case ahead <- struct{}{}:
				next <- i
			case <-stop:
				return
			}
		}
	})
	for i, it := range jobs {
		r := <-results[i]
		<-ahead
		err := r.err
		if err == nil && isLarge(it) {
			err = large(it)
		} else if err == nil {
			err = f(it, r.b, r.crc)
		}
		if err != nil {
			return err
		}
		if r.buf != nil {
			l.buffers.Put(r.buf)
		}
	}
	return nil
}

func isLarge(it *item) bool { return it.codec == kilnrt.None && it.Size > inMemory }

// load returns the stored bytes of an item, and their buffer if it can be reused.
func (l *loader) load(it *item) ([]byte, *[]byte, error) {
	if it.stored != nil {
		b, err := it.stored.Raw()
		if err == nil && crc32.ChecksumIEEE(b) != it.stored.CRC {
			err = changed(it)
		}
		return b, nil, err
	}
	content, buf, err := l.read(it)
	if err != nil || it.codec == kilnrt.None {
		return content, buf, err
	}
	enc, err := l.enc()
	if err != nil {
		return nil, nil, err
	}
	b := enc.EncodeAll(content, nil)
	l.buffers.Put(buf)
	return b, nil, nil
}

// read returns the content of an item, and checks size and hash.
func (l *loader) read(it *item) ([]byte, *[]byte, error) {
	r, err := it.Open()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	buf, _ := l.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	if int64(cap(*buf)) < it.Size+1 {
		*buf = make([]byte, it.Size+1)
	}
	b := (*buf)[:it.Size+1] // one more, to notice additional bytes
	n, err := io.ReadFull(r, b)
	switch {
	case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
		return nil, nil, fmt.Errorf("%s: %w", it.Label(), err)
	case int64(n) != it.Size || digest.Of(b[:n]) != it.Hash:
		return nil, nil, changed(it)
	}
	return b[:n], buf, nil
}
