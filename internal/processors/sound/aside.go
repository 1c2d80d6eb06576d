package sound

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kiln-pipeline/kiln/processor"
)

const (
	asideMemory = 2 << 20   // more bytes than this are in a file
	asidePiece  = 256 << 10 // the file is written in pieces of this size
)

// aside keeps an encoded sound until it is complete: in memory if it is short, otherwise in a file of the job's scratch
// folder. Most sounds of games are short, and creating, writing, reading and removing a file costs as much as encoding them.
type aside struct {
	job  processor.Job
	file *os.File
	buf  []byte // the whole sound; with a file, what is not yet written to it
	at   int    // position in buf, without a file
}

// newAside returns an empty one. Up to the expected number of bytes, its memory is not moved.
func newAside(job processor.Job, expected int64) *aside {
	return &aside{job: job, buf: make([]byte, 0, min(expected, asideMemory))}
}

func (a *aside) Write(p []byte) (int, error) {
	if a.file == nil && a.at+len(p) > asideMemory {
		if err := a.spill(); err != nil {
			return 0, err
		}
	}
	if a.file == nil {
		n := copy(a.buf[a.at:], p)
		a.buf = append(a.buf, p[n:]...)
		a.at += len(p)
		return len(p), nil
	}
	a.buf = append(a.buf, p...)
	if len(a.buf) < asidePiece {
		return len(p), nil
	}
	return len(p), a.flush()
}

// spill moves the sound to a file.
func (a *aside) spill() error {
	dir, err := a.job.Scratch()
	if err != nil {
		return err
	}
	if a.file, err = os.Create(filepath.Join(dir, "sound")); err != nil {
		return err
	}
	if err := a.flush(); err != nil {
		return err
	}
	_, err = a.file.Seek(int64(a.at), io.SeekStart)
	return err
}

func (a *aside) flush() error {
	_, err := a.file.Write(a.buf)
	a.buf = a.buf[:0]
	return err
}

func (a *aside) Seek(offset int64, whence int) (int64, error) {
	if a.file != nil {
		if err := a.flush(); err != nil {
			return 0, err
		}
		return a.file.Seek(offset, whence)
	}
	switch whence {
	case io.SeekCurrent:
		offset += int64(a.at)
	case io.SeekEnd:
		offset += int64(len(a.buf))
	}
	if offset < 0 || offset > int64(len(a.buf)) {
		return 0, fmt.Errorf("position %d of %d bytes", offset, len(a.buf))
	}
	a.at = int(offset)
	return offset, nil
}

// name returns the name of a file in the scratch folder that has the complete sound.
func (a *aside) name() (string, error) {
	if a.file == nil {
		if err := a.spill(); err != nil {
			return "", err
		}
	}
	return filepath.Base(a.file.Name()), a.flush()
}

// copy writes the complete sound.
func (a *aside) copy(to io.Writer) error {
	if a.file == nil {
		_, err := to.Write(a.buf)
		return err
	}
	if _, err := a.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(to, a.file)
	return err
}

func (a *aside) remove() {
	if a.file != nil {
		a.file.Close()
		os.Remove(a.file.Name())
	}
}
