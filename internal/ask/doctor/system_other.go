//go:build !linux

package doctor

import "errors"

// cloneFile is what Kiln does on Linux only.
func cloneFile(string, string) error { return errors.ErrUnsupported }
