//go:build !linux

package cas

import "errors"

// reflink: see Linux. Elsewhere hard links are made.
func reflink(src, dst string) error { return errors.ErrUnsupported }
