//go:build !unix

package watch

import "os"

// lookOf looks at a file, and does not follow links.
func lookOf(path string) (look, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return look{}, err
	}
	return look{size: info.Size(), mtime: info.ModTime().UnixNano(), mode: uint32(info.Mode()), dir: info.IsDir()}, nil
}
