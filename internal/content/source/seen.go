package source

import (
	"iter"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// Presence compares a file with its earlier stat.
type Presence uint8

const (
	Same Presence = iota
	Differs
	Missing
)

// Compare returns which files have changed, by path below base: size, modification time and inode. The change time is
// ignored, because it changes when another name is linked to the file. Folder returns the path of each folder, and the
// files and stats that were recorded in it.
func Compare(base string, folders int, folder func(int) (string, iter.Seq2[string, Stat]), workers int) map[string]Presence {
	differ := map[string]Presence{}
	var mu sync.Mutex
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(max(1, workers), folders) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < folders; i = int(next.Add(1)) - 1 {
				path, files := folder(i)
				compareFolder(filepath.Join(base, filepath.FromSlash(path)), files, func(name string, p Presence) {
					mu.Lock()
					differ[join(path, name)] = p
					mu.Unlock()
				})
			}
		})
	}
	wg.Wait()
	return differ
}

func compareFolder(abs string, files iter.Seq2[string, Stat], differs func(string, Presence)) {
	d, err := openDir(abs, true)
	if err != nil {
		for name := range files {
			differs(name, Missing)
		}
		return
	}
	defer d.close()
	for name, was := range files {
		st, mode, err := d.stat(name)
		switch {
		case err != nil:
			differs(name, Missing)
		case mode != 0 || st.Size != was.Size || st.MTime != was.MTime || st.Inode != was.Inode:
			differs(name, Differs)
		}
	}
}
