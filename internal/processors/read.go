package processors

import (
	"errors"
	"io"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
)

// Reads reports whether one of Kiln's processors makes products of a damaged file, with a warning at most. known is false if the processor
// is not one of these.
func Reads(processor, file string, in io.ReaderAt, size int64) (ok, known bool) {
	for i := range Kinds {
		if k := &Kinds[i]; k.Read != nil && k.Processor().Info().Name == processor {
			_, f := Of(file)
			return k.Read(f, file, in, size) == nil, true
		}
	}
	return false, false
}

var errNotWhole = errors.New("the file is not whole")

func readImage(_ *Format, file string, in io.ReaderAt, size int64) error {
	data, err := io.ReadAll(io.NewSectionReader(in, 0, size))
	if err == nil {
		_, _, err = pixel.DecodeDamaged(file, data, pixel.DefaultLimits())
	}
	return err
}

// readModel accepts no model: all of it has to be there.
func readModel(*Format, string, io.ReaderAt, int64) error { return errNotWhole }

func readDocument(f *Format, _ string, in io.ReaderAt, size int64) error {
	if f == nil || f.Parse == nil {
		return nil
	}
	data, err := io.ReadAll(io.NewSectionReader(in, 0, size))
	if err == nil {
		_, err = f.Parse(data)
	}
	return err
}

func readSound(_ *Format, _ string, in io.ReaderAt, size int64) error {
	f, err := soundfile.Open(in, size)
	if err == nil && f.Frames == 0 {
		return errNotWhole
	}
	return err
}
