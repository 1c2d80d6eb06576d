//go:build !linux && !darwin && !windows

package cli

import (
	"errors"
	"os"
)

func singleKeys(*os.File) (restore func(), err error) { return nil, errors.ErrUnsupported }
