//go:build !linux

package doctor

import "errors"

// cloneFile is supported only on Linux.
func cloneFile(string, string) error { return errors.ErrUnsupported }
