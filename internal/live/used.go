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

// Used keeps which resources games really loaded, in the order in which they did so first: a text file a platform, `UUID SUB` a line,
// appended to. It is nothing that a build could find out, so it is no part of the content database.
type Used struct {
	dir string

	mu   sync.Mutex
	seen map[string]map[Key]bool // by platform
}

// maxUsed bounds a file: 2^20 lines of at most 48 bytes.
const maxUsed = 1 << 20

// NewUsed keeps files in a folder, which is made when there is something to keep.
func NewUsed(dir string) *Used { return &Used{dir: dir, seen: map[string]map[Key]bool{}} }

func (u *Used) path(platform string) string { return filepath.Join(u.dir, platform+".used") }

// Add appends what is not in the platform's file yet.
func (u *Used) Add(platform string, keys []Key) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := u.seen[platform]
	if seen == nil {
		seen = map[Key]bool{}
		before, err := ReadUsed(u.path(platform))
		if err != nil {
			return err
		}
		for _, k := range before {
			seen[k] = true
		}
		u.seen[platform] = seen
	}
	var b strings.Builder
	for _, k := range keys {
		if !seen[k] && len(seen) < maxUsed {
			seen[k] = true
			fmt.Fprintf(&b, "%s %d\n", k.UUID, k.Sub)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	if err := os.MkdirAll(u.dir, 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(u.path(platform), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.String())
	return errors.Join(err, f.Close())
}

// ReadUsed reads a platform's file: what games loaded, in order. One that is not there is empty; lines that are none are passed over, as
// the last one is if a watcher was killed while it wrote.
func ReadUsed(path string) ([]Key, error) {
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

func parseUsed(r io.Reader) ([]Key, error) {
	var keys []Key
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4096)
	for lines.Scan() && len(keys) < maxUsed {
		uuid, sub, ok := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseUint(sub, 10, 32)
		if ok && err == nil && len(uuid) == 36 {
			keys = append(keys, Key{uuid, uint32(n)})
		}
	}
	return keys, lines.Err()
}
