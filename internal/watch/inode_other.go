//go:build !unix

package watch

import "io/fs"

// inodeOf is not known here.
func inodeOf(fs.FileInfo) any { return nil }
