//go:build unix

package watch

import "golang.org/x/sys/unix"

// lookOf returns the stat of a file, without following links.
func lookOf(path string) (look, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return look{}, err
	}
	mode := uint32(st.Mode)
	return look{
		size: st.Size, mtime: st.Mtim.Nano(), changed: st.Ctim.Nano(), inode: uint64(st.Ino), mode: mode, dir: mode&unix.S_IFMT == unix.S_IFDIR,
	}, nil
}

// identityOf returns the identity of a folder, to which a link may lead.
func identityOf(path string) identity {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return identity{}
	}
	return identity{uint64(st.Dev), uint64(st.Ino)}
}
