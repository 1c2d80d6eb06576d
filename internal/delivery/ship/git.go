package ship

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// maxIndex is how large an index of git is that is read.
const maxIndex = 256 << 20

// inGit reports whether the index of the git repository that a folder is in has a file of the folder. It reads the index itself, because
// git need not be installed where a build runs. It is false for an index that it cannot read: one with SHA-256, or one that is split.
func inGit(dir, name string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for {
		if index, ok := gitIndex(dir); ok {
			info, err := os.Stat(index)
			if err != nil || info.Size() > maxIndex {
				return false
			}
			data, err := disk.ReadFile(index)
			return err == nil && indexed(data, name)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir, name = up, filepath.Base(dir)+"/"+name
	}
}

// gitIndex is the index of a working tree at a folder. In a worktree and in a submodule, .git is a file with the path.
func gitIndex(dir string) (file string, ok bool) {
	git := filepath.Join(dir, ".git")
	info, err := os.Stat(git)
	if err != nil {
		return "", false
	}
	if !info.IsDir() {
		text, err := disk.ReadText(git, 1<<16)
		to, is := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
		if err != nil || !is {
			return "", false
		}
		git = filepath.FromSlash(to)
		if !filepath.IsAbs(git) {
			git = filepath.Join(dir, git)
		}
	}
	return filepath.Join(git, "index"), true
}

// indexed reports whether an index has an entry with a path. The format is that of gitformat-index(5), versions 2 to 4: "DIRC", version and
// number of entries (u32, big-endian). An entry has 62 bytes, of which the last two are flags; two more flags if bit 14 of these is set;
// and the path with a zero after it, up to a multiple of 8. In version 4 the path is a number of bytes to remove from the path before, the
// rest, and one zero.
func indexed(data []byte, path string) bool {
	const fixed = 62
	if len(data) < 12 || string(data[:4]) != "DIRC" {
		return false
	}
	version, n := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return false
	}
	at := 12
	var name []byte
	for range n {
		start := at
		if at += fixed; at > len(data) {
			return false
		}
		if data[at-2]&0x40 != 0 {
			at += 2
		}
		if version == 4 {
			cut, used := gitNumber(data[min(at, len(data)):])
			if used == 0 || cut > len(name) {
				return false
			}
			at, name = at+used, name[:len(name)-cut]
		} else {
			name = name[:0]
		}
		end := bytes.IndexByte(data[min(at, len(data)):], 0)
		if end < 0 {
			return false
		}
		name = append(name, data[at:at+end]...)
		if string(name) == path {
			return true
		}
		if at += end + 1; version < 4 {
			at = start + (at-1-start)/8*8 + 8
		}
	}
	return false
}

// gitNumber reads a number of git's in as many bytes as it has, 7 bits in each; used is 0 if there is none.
func gitNumber(data []byte) (n, used int) {
	for i, b := range data[:min(len(data), 4)] {
		if n = n<<7 | int(b&0x7f); b&0x80 == 0 {
			return n, i + 1
		}
		n++
	}
	return 0, 0
}
