// Package copy is the processor that copies a source file unchanged. It is the default for every
// extension that no other processor claims.
//
// A file is streamed, so its size does not matter; and a project may have tens of thousands of
// files, so a small one costs no allocation here.
package copy

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/kiln-pipeline/kiln/processor"
)

// bufferSize is 128 KiB: a large file takes few system calls, and a worker's buffer still is in its
// second-level cache when the bytes are hashed.
const bufferSize = 128 << 10

// productType is the type of every product this package makes.
const productType = "file"

// New makes the processor.
func New() processor.Processor {
	return &copier{buffers: sync.Pool{New: func() any { return new([bufferSize]byte) }}}
}

type copier struct {
	buffers sync.Pool // of *[bufferSize]byte
}

func (c *copier) Info() processor.Info {
	return processor.Info{
		Name:    "copy",
		Version: 1,
		Summary: "the file as it is",
		Products: []processor.ProductType{
			{Type: productType, Doc: "The source file's own bytes, under its own name."},
		},
		Memory: 1 << 20,
	}
}

func (c *copier) Process(ctx context.Context, job processor.Job) (err error) {
	in, err := job.Open(job.Asset().Path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := job.Create(processor.Output{Type: productType})
	if err != nil {
		return err
	}
	// It is always closed, so that nothing stays open; the product of a failed job does not count.
	defer func() { err = errors.Join(err, out.Close()) }()

	buf := c.buffers.Get().(*[bufferSize]byte)
	defer c.buffers.Put(buf)
	return stream(ctx, out, in, buf[:])
}

// stream is io.CopyBuffer that ends with the context and always uses the buffer: io.CopyBuffer uses
// the file's WriteTo instead, which allocates 32 KiB each time.
func stream(ctx context.Context, w io.Writer, r io.Reader, buf []byte) error {
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
