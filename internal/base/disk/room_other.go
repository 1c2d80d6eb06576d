//go:build !linux && !darwin && !freebsd && !windows

package disk

import "errors"

// Room returns how many bytes can still be written in a folder.
func Room(string) (int64, error) { return 0, errors.ErrUnsupported }
