// Package used is what games really loaded, in the order in which they did so: a text file a platform in the state folder, that a
// watcher appends to. It is nothing that a build could find out, so it is not a part of the content database. docs/live.md says what it is
// for.
//
// The rules:
//   - A line is `UUID SUB`, a resource. An empty line begins what another game, or the same one later, loaded that no game had before; what was known and it loaded just
//     before and just after stands with it, to say where it belongs.
//   - Each resource is new once. What cannot be written stays owed, and is written with what comes next.
//   - A line that is none means nothing; a kill may leave one.
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

// Key is a resource.
type Key struct {
	UUID string // of the asset, in lower case
	Sub  uint32 // of the product within it
}

// Limits of a file. A line has at most 48 bytes, and a new resource an empty line, two of known ones, and its own: 145 bytes. The rest
// is for lines that kills left.
const (
	mostKeys = 1 << 20
	maxSize  = mostKeys * 4 * 48 // bytes: 192 MiB
)

// File is that of a platform; state is the folder .kiln.
func File(state, platform string) string { return filepath.Join(folder(state), platform+extension) }

func folder(state string) string { return filepath.Join(state, "used") }

const extension = ".used"

// Platforms are those that there is a file of, sorted.
func Platforms(state string) []string {
	var names []string
	for _, f := range Files(state) {
		names = append(names, strings.TrimSuffix(filepath.Base(f), extension))
	}
	return names
}

// Files are those that there are.
func Files(state string) []string {
	entries, _ := os.ReadDir(folder(state)) // most projects have none
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == extension {
			files = append(files, filepath.Join(folder(state), e.Name()))
		}
	}
	return files
}

// Log takes down what games load.
type Log struct {
	state string
	most  int // keys of a platform

	mu     sync.Mutex
	seen   map[string]map[Key]bool // by platform
	writer map[string]*Play        // whose lines are the last ones
}

// Play is one run of a game.
type Play struct {
	last Key   // that it loaded
	kept bool  // it is the file's last line
	new  bool  // and no game had loaded it before
	owed []Key // that it loaded, and that could not be written
}

// NewLog keeps files in a state folder, which is made when there is something to keep.
func NewLog(state string) *Log {
	return &Log{state: state, most: mostKeys, seen: map[string]map[Key]bool{}, writer: map[string]*Play{}}
}

// Add takes down what a game loaded next, if no game had before. After an error it is taken down by the next call for that game that
// succeeds.
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
		if err := appendTo(File(l.state, platform), text); err != nil {
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

// seenOn are the keys that a platform's file has.
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

// lines are what is to be written of what is owed, and the play afterwards. What is fresh is marked as seen.
func (p *Play) lines(seen map[Key]bool, most int) (next Play, text string, fresh []Key) {
	var b strings.Builder
	next = *p
	next.owed = nil
	for _, k := range p.owed {
		isNew := !seen[k] && len(seen) < most
		if isNew && !next.kept {
			b.WriteByte('\n') // it ends what a kill may have left, too
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

// appendTo appends to a file, or leaves it as it was.
func appendTo(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := disk.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		if _, err = f.WriteString(text); err != nil {
			f.Truncate(info.Size()) // else there is a line that is none, or one that comes again
		}
	}
	return errors.Join(err, f.Close())
}

// Read reads a file: what games loaded, each piece in order. One that is not there is empty.
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

// Each reads a file key by key, and tells which ones begin a piece. One that is not there is empty.
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
