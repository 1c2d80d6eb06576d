package source

import (
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// Presence of a file compared with how it was seen.
type Presence uint8

const (
	Same Presence = iota
	Differs
	Missing
)

// Seen is a file as it was.
type Seen struct {
	File string // below some folder, forward slashes
	Stat Stat
}

// Compare tells for each of many files below a folder whether it is as it was seen: size, modification time and inode. The change time
// is left out, since it changes when another name is linked to the file. Neighbours in one folder cost less than others.
func Compare(base string, seen []Seen, workers int) []Presence {
	out := make([]Presence, len(seen))
	const batch = 512
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(max(1, workers), (len(seen)+batch-1)/batch) {
		wg.Go(func() {
			for {
				from := int(next.Add(batch)) - batch
				if from >= len(seen) {
					return
				}
				to := min(from+batch, len(seen))
				compare(base, seen[from:to], out[from:to])
			}
		})
	}
	wg.Wait()
	return out
}

func compare(base string, seen []Seen, out []Presence) {
	for i := 0; i < len(seen); {
		folder, _ := split(seen[i].File)
		n := 1
		for i+n < len(seen) {
			if f, _ := split(seen[i+n].File); f != folder {
				break
			}
			n++
		}
		compareFolder(filepath.Join(base, filepath.FromSlash(folder)), seen[i:i+n], out[i:i+n])
		i += n
	}
}

func compareFolder(abs string, seen []Seen, out []Presence) {
	d, err := openDir(abs, true)
	if err != nil {
		for i := range out {
			out[i] = Missing
		}
		return
	}
	defer d.close()
	for i := range seen {
		st, mode, err := d.stat(seen[i].File[strings.LastIndexByte(seen[i].File, '/')+1:])
		switch {
		case err != nil:
			out[i] = Missing
		case mode != 0 || st.Size != seen[i].Stat.Size || st.MTime != seen[i].Stat.MTime || st.Inode != seen[i].Stat.Inode:
			out[i] = Differs
		}
	}
}
