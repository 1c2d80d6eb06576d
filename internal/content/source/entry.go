package source

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// entry is one entry of a folder: a file, a folder, or neither if it is ignored or missing; both if it is a link to a
// folder.
func (s *scan) entry(f *folder, d dir, name string, mode fs.FileMode) (File, *folder) {
	if !utf8.ValidString(name) {
		return File{Name: name, Trouble: NotUTF8}, nil
	}
	rel := join(f.Path, name)
	var file File
	switch {
	case mode&fs.ModeSymlink != 0:
		return s.linkEntry(f, name)
	case mode.IsDir():
		sub := f.sub(name)
		sub.links, sub.force = f.links, f.force
		if s.excluded(sub.real) {
			s.pass(f, name, true, "Kiln writes it")
			return File{}, nil
		}
		if ignored(f.ignore, rel, true) {
			s.pass(f, name, true, "")
			return File{}, nil
		}
		return File{}, sub
	case !mode.IsRegular():
		file = File{Name: name, Trouble: Irregular}
	default:
		st, now, err := d.stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && now != 0:
			return File{}, nil // removed since it was listed, or of another kind
		case err != nil:
			file = File{Name: name, Trouble: Unseen}
		default:
			file = s.file(f, name, st)
		}
	}
	if file.Trouble != IgnoreList && (file.Trouble != Unseen || name != IgnoreFile) && ignored(f.ignore, rel, false) {
		s.pass(f, name, false, "")
		return File{}, nil
	}
	return file, nil
}

// linkEntry is the entry of a symbolic link. Whether it is ignored may depend on its target, which may change without a
// change of this folder, so an ignored link is recorded. A link with an ignore file's name is always recorded, because
// an ignore file is never ignored.
func (s *scan) linkEntry(f *folder, name string) (File, *folder) {
	file, to := s.link(f, name)
	rel := join(f.Path, name)
	asFile, asFolder := ignored(f.ignore, rel, false), ignored(f.ignore, rel, true)
	switch {
	case file.Trouble == IgnoreList:
	case to == nil && !asFile && (file.Trouble != Dangling || !asFolder), to != nil && !asFolder:
	case asFile != asFolder, name == IgnoreFile:
		s.pass(f, name, asFolder, "")
		return File{Name: name, Trouble: IgnoredLink}, nil
	default:
		s.pass(f, name, to != nil, "")
		return File{}, nil
	}
	return file, to
}

// file is the entry of a regular file; it keeps its hash if nothing changed.
func (s *scan) file(f *folder, name string, st Stat) File {
	if name == IgnoreFile {
		return File{Name: name, Stat: st, Trouble: IgnoreList, Racy: racy(st.MTime, time.Now())}
	}
	rel := join(f.Path, name)
	if candidate(name) != nil {
		by := decides(f.ignore, rel, false) // a pattern has the last word
		if k := litter(s.abs(f.Root, rel), name, st.Size); k != nil && by == nil {
			s.pass(f, name, false, k.What)
			return File{Name: name, Stat: st, Trouble: Litter, Racy: racy(st.MTime, time.Now())}
		}
	}
	if s.prev != nil && !s.o.Hash {
		if i, ok := s.prev.FindIn(f.Root, rel); ok {
			if old := s.prev.At(i); old.Stat == st && !old.Racy && old.visible() {
				if old.Trouble == Linked {
					old.Trouble = Fine
				}
				return old
			}
		}
	}
	return File{Name: name, Stat: st, Trouble: lfs(s.abs(f.Root, rel), st.Size)}
}

// link follows a symbolic link, if it stays inside the roots and is not part of a loop. It returns a file, perhaps with
// a trouble, and a folder if the link leads to one.
func (s *scan) link(f *folder, name string) (File, *folder) {
	abs := filepath.FromSlash(s.abs(f.Root, join(f.Path, name)))
	target, err := filepath.EvalSymlinks(abs)
	if err != nil {
		if strings.Contains(err.Error(), "too many links") { // it has no error value of its own
			return File{Name: name, Trouble: Loop}, nil
		}
		return File{Name: name, Trouble: Dangling}, nil
	}
	st, mode, err := StatPath(abs)
	switch {
	case err != nil:
		return File{Name: name, Trouble: Dangling}, nil
	case !s.inside(target) || s.excluded(target):
		return File{Name: name, Trouble: Escapes}, nil
	case mode.IsDir():
		sub := f.sub(name)
		sub.real, sub.links, sub.force = target, append(slices.Clip(f.links), f.real), true
		if slices.ContainsFunc(sub.links, func(at string) bool { return within(at, target) }) {
			return File{Name: name, Trouble: Loop}, nil
		}
		return File{Name: name, Trouble: LinkedFolder}, sub
	case mode != 0:
		return File{Name: name, Trouble: Irregular}, nil
	}
	file := s.file(f, name, st)
	if file.Trouble == Fine {
		file.Trouble = Linked
	}
	return file, nil
}

func (s *scan) inside(target string) bool {
	return slices.ContainsFunc(s.o.Roots, func(r string) bool { return within(target, filepath.FromSlash(r)) })
}

func (s *scan) excluded(real string) bool {
	return slices.ContainsFunc(s.o.Exclude, func(x string) bool { return within(real, x) })
}

// within reports whether a path is a folder or below it.
func within(p, folder string) bool {
	return p == folder || strings.HasPrefix(p, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator))
}

// lfsPrefix begins every Git LFS pointer (git-lfs spec, version 1). Pointers are
// about 130 bytes long, and under 1,024 by the specification.
var lfsPrefix = []byte("version https://git-lfs.github.com/spec/v1\n")

func lfs(abs string, size int64) Trouble {
	if size < int64(len(lfsPrefix)) || size >= 1024 {
		return Fine
	}
	f, err := disk.Open(abs)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return Fine // reading it will report the error
	}
	if err != nil {
		return Unseen
	}
	defer f.Close()
	head := make([]byte, len(lfsPrefix))
	switch _, err := io.ReadFull(f, head); {
	case err == nil && bytes.Equal(head, lfsPrefix):
		return LFSPointer
	case err == nil, err == io.EOF, err == io.ErrUnexpectedEOF:
		return Fine
	}
	return Unseen
}
