//go:build !linux

package cas

import "errors"

// reflink is only supported on Linux. Elsewhere hard links are used.
func reflink(src, dst string) error { return errors.ErrUnsupported }
