//go:build !linux

package cas

import (
	"errors"
	"os"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// ErrOdd means that a file to be stored is not a regular file.
var ErrOdd = errors.New("it is not a file")

// Adopt makes a blob of a file by moving it. Only Linux can report whether a process still writes to it.
func (*Store) Adopt(*os.File, string) (digest.Hash, int64, error) {
	return digest.Hash{}, 0, errors.ErrUnsupported
}
