//go:build !linux && !darwin && !freebsd && !windows

package disk

import "errors"

// Room is how many bytes can still be written where a folder is.
func Room(string) (int64, error) { return 0, errors.ErrUnsupported }
