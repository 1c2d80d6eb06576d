// Package block has what the codecs of block-compressed textures share: the quality setting, and the division of an image
// into blocks that are coded in parallel.
//
// Each block is coded from its own pixels alone. So the same image gives the same bytes with any number of workers.
package block

import (
	"sync"
	"sync/atomic"
)

// Quality is the time that an encoder spends on a block.
type Quality uint8

const (
	Fast   Quality = iota // for previews, while an artist waits
	Normal                // for everyday builds
	Best                  // for a release
	Draft                 // below Fast, for a preview until a better one is ready; only BC7 has it
)

// Options of an encoder.
type Options struct {
	Quality Quality
	Workers int // the largest number of goroutines; less than 1 is 1

	// Closing Stop ends the encoder before its next row of blocks. Its result is then incomplete.
	Stop <-chan struct{}
}

// Size returns the size of an image in blocks, partial ones included.
func Size(width, height, blockWidth, blockHeight int) (columns, rows int) {
	return (width + blockWidth - 1) / blockWidth, (height + blockHeight - 1) / blockHeight
}

// Rows runs work on up to workers goroutines and returns when all are done. The function next hands out the rows of blocks
// 0..rows-1, each to one worker, and a negative number at the end. A worker allocates its own state once, before it takes
// its first row.
func Rows(rows, workers int, work func(next func() int)) {
	var at atomic.Int64
	next := func() int {
		if r := int(at.Add(1)) - 1; r < rows {
			return r
		}
		return -1
	}
	workers = min(workers, rows)
	if workers <= 1 {
		work(next)
		return
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { work(next) })
	}
	wg.Wait()
}

// Rows calls the function Rows with the workers of the options, and ends early when Stop is closed.
func (o *Options) Rows(rows int, work func(next func() int)) {
	if o.Stop == nil {
		Rows(rows, o.Workers, work)
		return
	}
	Rows(rows, o.Workers, func(next func() int) {
		work(func() int {
			select {
			case <-o.Stop:
				return -1
			default:
				return next()
			}
		})
	})
}

// Gather copies the block at column and row of an image of RGBA values, width by height, into dst, which has
// blockWidth*blockHeight*4 values. Beyond the right and the bottom edge it repeats the last pixel, so that invisible colours
// do not affect a partial block.
func Gather[T byte | float32](dst, pix []T, width, height, blockWidth, blockHeight, column, row int) {
	x, y := column*blockWidth, row*blockHeight
	across := min(blockWidth, width-x)
	for j := range blockHeight {
		from := 4 * (min(y+j, height-1)*width + x)
		line := dst[4*j*blockWidth:][:4*blockWidth]
		if across == 4 && blockWidth == 4 {
			*(*[16]T)(line) = *(*[16]T)(pix[from:]) // a copy of known size is not a call
			continue
		}
		copy(line, pix[from:from+4*across])
		for i := across; i < blockWidth; i++ {
			copy(line[4*i:4*i+4], line[4*across-4:4*across])
		}
	}
}

// Scatter is the reverse of Gather: it copies the part of a block that lies inside the image.
func Scatter[T byte | float32](pix, src []T, width, height, blockWidth, blockHeight, column, row int) {
	x, y := column*blockWidth, row*blockHeight
	across := min(blockWidth, width-x)
	for j := range min(blockHeight, height-y) {
		copy(pix[4*((y+j)*width+x):][:4*across], src[4*j*blockWidth:])
	}
}
