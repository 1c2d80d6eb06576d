package command

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
)

// maxLoaders is how many interpreters the kernel follows, and maxHeader how much of a program is read to find one, in bytes.
const (
	maxLoaders = 5
	maxHeader  = 4 << 10
)

// loaders are the programs that the kernel itself opens to run a program, which a trace does not show: the interpreter
// that a script names in its first line, and the dynamic loader of a binary.
func loaders(program string) []seal.Access {
	var all []seal.Access
	for range maxLoaders {
		program = loader(program)
		if !filepath.IsAbs(program) {
			break
		}
		program = filepath.Clean(program)
		all = append(all, lookAt(program, seal.Exec))
	}
	return all
}

// loader is the one that a program names, or "".
func loader(program string) string {
	f, err := os.Open(program)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, maxHeader)
	n, _ := f.ReadAt(head, 0)
	head = head[:n]
	if line, ok := strings.CutPrefix(string(head), "#!"); ok {
		line, _, _ = strings.Cut(line, "\n")
		if words := strings.Fields(line); len(words) > 0 {
			return words[0]
		}
		return ""
	}
	return elfLoader(head)
}

// elfLoader reads the path in the segment PT_INTERP of a 64-bit little-endian binary (System V ABI, chapters 4 and 5).
// Linkers put it directly after the headers.
func elfLoader(head []byte) string {
	const interp, entrySize = 3, 56
	if len(head) < 64 || string(head[:6]) != "\x7fELF\x02\x01" {
		return ""
	}
	at := binary.LittleEndian.Uint64(head[32:])
	size := uint64(binary.LittleEndian.Uint16(head[54:]))
	for range binary.LittleEndian.Uint16(head[56:]) {
		if size < entrySize || at > uint64(len(head)) || uint64(len(head))-at < size {
			return ""
		}
		e := head[at:]
		from, n := binary.LittleEndian.Uint64(e[8:]), binary.LittleEndian.Uint64(e[32:])
		if binary.LittleEndian.Uint32(e) == interp {
			if from > uint64(len(head)) || n > uint64(len(head))-from {
				return ""
			}
			return strings.TrimRight(string(head[from:from+n]), "\x00")
		}
		at += size
	}
	return ""
}
