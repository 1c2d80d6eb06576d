package parcel

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// The header of a patch: "Patches" in docs/formats/parcel.md.
const (
	patchMagic   = "\x89KPTC\r\n\x1a"
	patchVersion = 1
	patchHeader  = 96
)

// Steps of a patch.
const (
	stepEnd byte = iota
	stepCopy
	stepData
)

// ErrPatch is wrapped by all errors about patches that do not fit or are damaged.
var ErrPatch = errors.New("patch")

// MakePatch writes a patch from a to b.
func MakePatch(w io.Writer, a io.ReaderAt, sizeA int64, b io.ReaderAt, sizeB int64) error {
	where := map[digest.Hash]int64{}
	hashA := digest.New()
	err := pieces(a, sizeA, func(at int64, c []byte) error {
		hashA.Write(c)
		h := digest.Of(c)
		if _, ok := where[h]; !ok {
			where[h] = at
		}
		return nil
	})
	if err != nil {
		return err
	}
	hashB, _, err := digest.Reader(io.NewSectionReader(b, 0, sizeB))
	if err != nil {
		return err
	}
	if _, err := w.Write(header(sizeA, sizeB, hashA.Sum(), hashB)); err != nil {
		return err
	}
	enc, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	if err != nil {
		return err
	}
	d := &differ{w: bufio.NewWriter(enc), a: a, sizeA: sizeA}
	err = pieces(b, sizeB, func(_ int64, c []byte) error {
		if at, ok := where[digest.Of(c)]; ok {
			return d.copy(at, int64(len(c)))
		}
		return d.literal(c)
	})
	if err == nil {
		err = d.flush()
	}
	if err == nil {
		d.w.WriteByte(stepEnd)
		err = d.w.Flush()
	}
	return errors.Join(err, enc.Close())
}

func header(sizeA, sizeB int64, hashA, hashB digest.Hash) []byte {
	b := append(make([]byte, 0, patchHeader), patchMagic...)
	b = le.AppendUint32(b, patchVersion)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, uint64(sizeA))
	b = le.AppendUint64(b, uint64(sizeB))
	return append(append(b, hashA[:]...), hashB[:]...)
}

// differ makes the steps: copies, as long as possible, and new bytes.
type differ struct {
	w        *bufio.Writer
	a        io.ReaderAt
	sizeA    int64
	from, to int64 // range of a to be copied
	data     []byte
}

// maxData is how many new bytes are kept before they are written. extend cannot take back what was written.
const maxData = 1 << 20

func (d *differ) copy(at, n int64) error {
	if len(d.data) == 0 && d.to == at && d.to > d.from {
		d.to += n
		return nil
	}
	back, err := d.extend(at)
	if err != nil {
		return err
	}
	d.data = d.data[:len(d.data)-back]
	if err := d.flush(); err != nil {
		return err
	}
	d.from, d.to = at-int64(back), at+n
	return nil
}

// extend returns how many of the last new bytes are also in a before at.
func (d *differ) extend(at int64) (int, error) {
	before := make([]byte, min(at, int64(len(d.data)), chunkMost))
	if _, err := d.a.ReadAt(before, at-int64(len(before))); err != nil && err != io.EOF {
		return 0, err
	}
	n := 0
	for n < len(before) && before[len(before)-1-n] == d.data[len(d.data)-1-n] {
		n++
	}
	return n, nil
}

func (d *differ) literal(c []byte) error {
	if len(d.data) == 0 && d.to > d.from {
		after := make([]byte, min(d.sizeA-d.to, int64(len(c))))
		if _, err := d.a.ReadAt(after, d.to); err != nil && err != io.EOF {
			return err
		}
		n := 0
		for n < len(after) && after[n] == c[n] {
			n++
		}
		d.to += int64(n)
		c = c[n:]
	}
	d.data = append(d.data, c...)
	if len(d.data) < maxData {
		return nil
	}
	return d.flush()
}

// flush writes what is pending.
func (d *differ) flush() error {
	if d.to > d.from {
		d.w.WriteByte(stepCopy)
		d.w.Write(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(d.from)), uint64(d.to-d.from)))
	}
	if len(d.data) > 0 {
		d.w.WriteByte(stepData)
		d.w.Write(binary.AppendUvarint(nil, uint64(len(d.data))))
		d.w.Write(d.data)
	}
	d.from, d.to, d.data = 0, 0, d.data[:0]
	_, err := d.w.Write(nil) // the writer keeps its first error
	return err
}

// ApplyPatch writes the result of a patch of a to w. After an error, what was written is not valid; ApplyPatchFile
// discards it.
func ApplyPatch(w io.Writer, a io.ReaderAt, sizeA int64, patch io.Reader) error {
	head := make([]byte, patchHeader)
	if _, err := io.ReadFull(patch, head); err != nil {
		return fmt.Errorf("%w: it is cut short: %w", ErrPatch, err)
	}
	sizeB := le.Uint64(head[24:])
	switch {
	case string(head[:8]) != patchMagic:
		return fmt.Errorf("%w: this is none", ErrPatch)
	case le.Uint32(head[8:]) != patchVersion || le.Uint32(head[12:]) != 0:
		return fmt.Errorf("%w: version %d with flags %#x is not known", ErrPatch, le.Uint32(head[8:]), le.Uint32(head[12:]))
	case le.Uint64(head[16:]) != uint64(sizeA):
		return fmt.Errorf("%w: it is for a file of %d bytes, not of %d", ErrPatch, le.Uint64(head[16:]), sizeA)
	case sizeB > 1<<62:
		return fmt.Errorf("%w: it makes a file of %d bytes", ErrPatch, sizeB)
	}
	hashA, _, err := digest.Reader(io.NewSectionReader(a, 0, sizeA))
	if err != nil {
		return err
	}
	if hashA != digest.Hash(head[32:64]) {
		return fmt.Errorf("%w: it is for another file of the same size", ErrPatch)
	}
	dec, err := zstd.NewReader(patch, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPatch, err)
	}
	defer dec.Close()
	hashB := digest.New()
	if err := steps(io.MultiWriter(w, hashB), a, sizeA, bufio.NewReader(dec), sizeB); err != nil {
		return err
	}
	if hashB.Sum() != digest.Hash(head[64:96]) {
		return fmt.Errorf("%w: what came out is not what should", ErrPatch)
	}
	return nil
}

// steps applies the steps, and checks the sizes of both files.
func steps(w io.Writer, a io.ReaderAt, sizeA int64, r *bufio.Reader, left uint64) error {
	for {
		kind, err := r.ReadByte()
		if err != nil {
			return fmt.Errorf("%w: its steps are cut short: %w", ErrPatch, err)
		}
		if kind == stepEnd {
			break
		}
		if kind > stepData {
			return fmt.Errorf("%w: there is no step %d", ErrPatch, kind)
		}
		var at uint64
		if kind == stepCopy {
			if at, err = binary.ReadUvarint(r); err != nil {
				return fmt.Errorf("%w: %w", ErrPatch, err)
			}
		}
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrPatch, err)
		}
		if n == 0 || n > left || kind == stepCopy && (at > uint64(sizeA) || n > uint64(sizeA)-at) {
			return fmt.Errorf("%w: a step of %d bytes leads out of the file", ErrPatch, n)
		}
		left -= n
		from := io.Reader(r)
		if kind == stepCopy {
			from = io.NewSectionReader(a, int64(at), int64(n))
		}
		if _, err := io.CopyN(w, from, int64(n)); err != nil {
			return fmt.Errorf("%w: %w", ErrPatch, err)
		}
	}
	if _, err := r.ReadByte(); err != io.EOF || left != 0 {
		return fmt.Errorf("%w: it ends at the wrong place", ErrPatch)
	}
	return nil
}

// MakePatchFile writes a patch from one file to another.
func MakePatchFile(patch, a, b string) error {
	return replace(patch, func(w *os.File) error {
		return withFile(a, func(fa *os.File, sizeA int64) error {
			return withFile(b, func(fb *os.File, sizeB int64) error { return MakePatch(w, fa, sizeA, fb, sizeB) })
		})
	})
}

// ApplyPatchFile writes the result of a patch of a to out, completely or not at all; out may be a.
func ApplyPatchFile(out, a, patch string) error {
	return replace(out, func(w *os.File) error {
		return withFile(a, func(fa *os.File, sizeA int64) error {
			return withFile(patch, func(fp *os.File, _ int64) error { return ApplyPatch(w, fa, sizeA, bufio.NewReader(fp)) })
		})
	})
}

func withFile(path string, use func(f *os.File, size int64) error) error {
	f, err := disk.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return use(f, info.Size())
}
