package live

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
)

// Used keeps which resources games really loaded, in the order in which they did so: a text file a platform, `UUID SUB` a line, appended to. An empty line begins what
// another game, or the same one later, loaded that no game had before; what was known and it loaded just before and just after stands with it, to say where it
// belongs. It is nothing that a build could find out, so it is no part of the content database.
type Used struct {
	dir string

	mu     sync.Mutex
	seen   map[string]map[Key]bool // by platform
	writer map[string]*Play        // whose lines are the last ones
}

// Play is one run of a game.
type Play struct {
	last Key  // that it loaded
	kept bool // it is the file's last line
	new  bool // and no game had loaded it before
}

// maxUsed bounds what is kept of a platform: 2^20 resources, and at most two lines more for each that say where they belong, of at most 48 bytes.
const maxUsed = 1 << 20

// NewUsed keeps files in a folder, which is made when there is something to keep.
func NewUsed(dir string) *Used {
	return &Used{dir: dir, seen: map[string]map[Key]bool{}, writer: map[string]*Play{}}
}

func (u *Used) path(platform string) string { return filepath.Join(u.dir, platform+".used") }

// Add takes down what a game loaded next, if no game had before.
func (u *Used) Add(platform string, play *Play, keys []Key) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := u.seen[platform]
	if seen == nil {
		seen = map[Key]bool{}
		before, err := ReadUsed(u.path(platform))
		if err != nil {
			return err
		}
		for _, loaded := range before {
			for _, k := range loaded {
				seen[k] = true
			}
		}
		u.seen[platform] = seen
	}
	if w := u.writer[platform]; w != play {
		if w != nil {
			w.kept = false
		}
		u.writer[platform], play.kept = play, false
	}
	var b strings.Builder
	for _, k := range keys {
		fresh := !seen[k] && len(seen) < maxUsed
		if fresh && !play.kept && len(seen) > 0 {
			b.WriteByte('\n')
			if seen[play.last] {
				fmt.Fprintf(&b, "%s %d\n", play.last.UUID, play.last.Sub)
			}
		}
		write := fresh || play.kept && play.new && seen[k]
		if write {
			fmt.Fprintf(&b, "%s %d\n", k.UUID, k.Sub)
		}
		if fresh {
			seen[k] = true
		}
		play.last, play.kept, play.new = k, write, fresh
	}
	if b.Len() == 0 {
		return nil
	}
	return u.append(platform, b.String())
}

func (u *Used) append(platform, text string) error {
	if err := os.MkdirAll(u.dir, 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(u.path(platform), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// ReadUsed reads a platform's file: what games loaded, each piece in order. One that is not there is empty; lines that are none are passed over, as
// the last one is if a watcher was killed while it wrote.
func ReadUsed(path string) ([][]Key, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseUsed(f)
}

func parseUsed(r io.Reader) ([][]Key, error) {
	var all [][]Key
	begins := true
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4096)
	for n := 0; lines.Scan() && n < 4*maxUsed; n++ {
		uuid, sub, ok := strings.Cut(lines.Text(), " ")
		number, err := strconv.ParseUint(sub, 10, 32)
		if !ok || err != nil || len(uuid) != 36 {
			begins = begins || lines.Text() == ""
			continue
		}
		if begins {
			all, begins = append(all, nil), false
		}
		last := &all[len(all)-1]
		*last = append(*last, Key{uuid, uint32(number)})
	}
	return all, lines.Err()
}
