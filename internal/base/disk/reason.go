package disk

import (
	"errors"
	"io/fs"
	"os"
)

// Reason removes the paths from an error of the disk.
func Reason(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}
