// Package block is what the codecs of block-compressed textures share: how hard to try, and how an image is cut into
// blocks that are worked on side by side.
//
// Its rule: a block is coded by itself, from its own pixels alone, so the same image gives the same bytes however many
// workers there are.
package block

import (
	"sync"
	"sync/atomic"
)

// Quality says how much time an encoder takes for a block.
type Quality uint8

const (
	Fast   Quality = iota // for a look at once: while an artist waits
	Normal                // for every day
	Best                  // for a release
	Draft                 // below Fast, for a glance until a better one is there; BC7 alone has it
)

// Options of an encoder.
type Options struct {
	Quality Quality
	Workers int // at most so many goroutines; less than 1 is 1

	// Stop, when it is closed, ends the encoder before its next row of blocks. What it returns is of no use then.
	Stop <-chan struct{}
}

// Size of an image in blocks of some width and height, partial ones counted.
func Size(width, height, blockWidth, blockHeight int) (columns, rows int) {
	return (width + blockWidth - 1) / blockWidth, (height + blockHeight - 1) / blockHeight
}

// Rows calls work from up to workers goroutines and returns when all are done. Each call gets a function that hands
// out the rows of blocks 0..rows-1, each to one of them, and a negative number at the end. What a worker needs for itself it
// makes once, before it takes its first row.
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

// Rows is the function Rows with the options' workers, and ends when they say so.
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

// Gather copies the block at column and row out of an image of RGBA values, width by height, into dst, which is
// blockWidth*blockHeight*4 long. Beyond the right and the bottom edge the last pixel is repeated, so that a partial
// block is not led astray by colours that nobody sees.
func Gather[T byte | float32](dst, pix []T, width, height, blockWidth, blockHeight, column, row int) {
	x, y := column*blockWidth, row*blockHeight
	across := min(blockWidth, width-x)
	for j := range blockHeight {
		from := 4 * (min(y+j, height-1)*width + x)
		line := dst[4*j*blockWidth:][:4*blockWidth]
		copy(line, pix[from:from+4*across])
		for i := across; i < blockWidth; i++ {
			copy(line[4*i:4*i+4], line[4*across-4:4*across])
		}
	}
}

// Scatter is the reverse of Gather: it copies what of a block lies inside the image.
func Scatter[T byte | float32](pix, src []T, width, height, blockWidth, blockHeight, column, row int) {
	x, y := column*blockWidth, row*blockHeight
	across := min(blockWidth, width-x)
	for j := range min(blockHeight, height-y) {
		copy(pix[4*((y+j)*width+x):][:4*across], src[4*j*blockWidth:])
	}
}
