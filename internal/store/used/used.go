// Package used stores what games loaded, in order: a text file for each platform in the state folder, to which a
// watcher appends. A build cannot find this out, so it is not part of the content database. docs/live.md describes its
// use.
//
// The rules:
//   - A line is `UUID SUB`, a resource. An empty line starts what another game, or the same one later, loaded for the
//     first time. The known resources that the game loaded just before and just after are included, to show the position.
//   - Each resource is new once. What cannot be written is kept, and written with the next resources.
//   - An invalid line is ignored; a kill may leave one.
package used

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// Key identifies a resource.
type Key struct {
	UUID string // of the asset, in lower case
	Sub  uint32 // of the product within it
}

// Limits of a file. A line has at most 48 bytes, and a new resource needs an empty line, two of known ones, and its
// own: 145 bytes. The rest is for incomplete lines.
const (
	mostKeys = 1 << 20
	maxSize  = mostKeys * 4 * 48 // bytes: 192 MiB
)

// File is the path of a platform's file; state is the folder .kiln.
func File(state, platform string) string { return filepath.Join(folder(state), platform+extension) }

func folder(state string) string { return filepath.Join(state, "used") }

const extension = ".used"

// Platforms returns the platforms that have a file, sorted.
func Platforms(state string) []string {
	var names []string
	for _, f := range Files(state) {
		names = append(names, strings.TrimSuffix(filepath.Base(f), extension))
	}
	return names
}

// Files returns the files that exist.
func Files(state string) []string {
	entries, _ := os.ReadDir(folder(state)) // most projects have no such folder
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == extension {
			files = append(files, filepath.Join(folder(state), e.Name()))
		}
	}
	return files
}

// Log records what games load.
type Log struct {
	state string
	most  int // maximum number of keys of a platform

	mu     sync.Mutex
	seen   map[string]map[Key]bool // by platform
	writer map[string]*Play        // the game that wrote the last lines
}

// Play is one run of a game.
type Play struct {
	last Key   // last resource that it loaded
	kept bool  // it is in the file's last line
	new  bool  // and it is new in the file
	owed []Key // resources that it loaded and that could not be written
}

// NewLog returns a log in a state folder. The folder is created when there is something to write.
func NewLog(state string) *Log {
	return &Log{state: state, most: mostKeys, seen: map[string]map[Key]bool{}, writer: map[string]*Play{}}
}

// Add records what a game loaded next, if no game loaded it before. After an error, the next successful call for that
// game records it.
func (l *Log) Add(platform string, play *Play, keys []Key) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	play.owed = append(play.owed, keys...)
	seen, err := l.seenOn(platform)
	if err != nil {
		return err
	}
	if w := l.writer[platform]; w != play {
		if w != nil {
			w.kept = false
		}
		l.writer[platform], play.kept = play, false
	}
	next, text, fresh := play.lines(seen, l.most)
	if text != "" {
		if err := appendTo(disk.NewBounds(l.state, nil), File(l.state, platform), text); err != nil {
			for _, k := range fresh {
				delete(seen, k)
			}
			play.kept = false
			return err
		}
	}
	*play = next
	return nil
}

// seenOn returns the keys in a platform's file.
func (l *Log) seenOn(platform string) (map[Key]bool, error) {
	seen := l.seen[platform]
	if seen == nil {
		seen = map[Key]bool{}
		if err := Each(File(l.state, platform), func(k Key, _ bool) { seen[k] = true }); err != nil {
			return nil, err
		}
		l.seen[platform] = seen
	}
	return seen, nil
}

// lines returns the text for the resources not written yet, and the play afterwards. fresh ones are marked
// as seen.
func (p *Play) lines(seen map[Key]bool, most int) (next Play, text string, fresh []Key) {
	var b strings.Builder
	next = *p
	next.owed = nil
	for _, k := range p.owed {
		isNew := !seen[k] && len(seen) < most
		if isNew && !next.kept {
			b.WriteByte('\n') // it also ends an incomplete line
			if seen[next.last] {
				next.last.write(&b)
			}
		}
		write := isNew || next.kept && next.new && seen[k]
		if write {
			k.write(&b)
		}
		if isNew {
			seen[k] = true
			fresh = append(fresh, k)
		}
		next.last, next.kept, next.new = k, write, isNew
	}
	return next, b.String(), fresh
}

func (k Key) write(b *strings.Builder) { fmt.Fprintf(b, "%s %d\n", k.UUID, k.Sub) }

// appendTo appends to a file, or leaves it unchanged. A link in Kiln's folder does not lead out of it.
func appendTo(in *disk.Bounds, path, text string) error {
	if err := in.ForWriting(path); err != nil {
		return err
	}
	f, err := disk.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		if _, err = f.WriteString(text); err != nil {
			f.Truncate(info.Size()) // otherwise there is an invalid or repeated line
		}
	}
	return errors.Join(err, f.Close())
}

// Read reads a file: what games loaded, each piece in order. A missing file is empty.
func Read(path string) ([][]Key, error) {
	var all [][]Key
	err := Each(path, func(k Key, begins bool) {
		if begins {
			all = append(all, nil)
		}
		last := &all[len(all)-1]
		*last = append(*last, k)
	})
	return all, err
}

// Each reads a file key by key, and reports which ones begin a piece. A missing file is empty.
func Each(path string, found func(k Key, begins bool)) error {
	f, err := disk.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return parse(io.LimitReader(f, maxSize), found)
}

func parse(r io.Reader, found func(k Key, begins bool)) error {
	begins := true
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4096)
	for lines.Scan() {
		uuid, sub, ok := strings.Cut(lines.Text(), " ")
		number, err := strconv.ParseUint(sub, 10, 32)
		if !ok || err != nil || len(uuid) != 36 {
			begins = begins || lines.Text() == ""
			continue
		}
		found(Key{uuid, uint32(number)}, begins)
		begins = false
	}
	return lines.Err()
}
