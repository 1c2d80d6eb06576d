//go:build !unix

package watch

import "os"

// lookOf returns the stat of a file, without following links.
func lookOf(path string) (look, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return look{}, err
	}
	return look{size: info.Size(), mtime: info.ModTime().UnixNano(), mode: uint32(info.Mode()), dir: info.IsDir()}, nil
}

// identityOf returns none.
func identityOf(string) identity { return identity{} }
