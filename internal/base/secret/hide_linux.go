package secret

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Fields of /proc/self/stat, counted from the one after the name, which may contain spaces.
const (
	envStart = 47
	envEnd   = 48
)

// maxBlock is the maximum size of an environment, in bytes: a quarter of the largest stack that Linux gives arguments
// and environment.
const maxBlock = 64 << 20

// Hide keeps the secrets in the environment from other processes of this user: it overwrites their values where
// others can read them, and has the kernel refuse others access to this process' memory and descriptors, unless they
// have the right to trace all processes. It has to be called before any program is started. It does nothing if there
// are no secrets, so that a debugger can attach to Kiln then. [Exposed] reports why it failed.
func Hide() {
	if anywhere() {
		exposed = errors.Join(overwrite(), unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	}
}

// overwrite overwrites the values of secrets with zeros. It writes through /proc/self/mem, which fails where the
// memory is not as expected, and cannot crash.
func overwrite() error {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= envEnd {
		return errors.New("/proc/self/stat has no place of the environment")
	}
	start, err := strconv.ParseInt(fields[envStart], 10, 64)
	end, err2 := strconv.ParseInt(fields[envEnd], 10, 64)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	if end == start {
		return nil
	}
	if start <= 0 || end < start || end-start > maxBlock {
		return errors.New("/proc/self/stat has no place of the environment")
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	block := make([]byte, end-start)
	if _, err := io.ReadFull(io.NewSectionReader(mem, start, end-start), block); err != nil {
		return err
	}
	for at := 0; at < len(block); {
		entry := block[at:]
		if n := bytes.IndexByte(entry, 0); n >= 0 {
			entry = entry[:n]
		}
		name, value, _ := strings.Cut(string(entry), "=")
		if is(name, value) {
			if _, err := mem.WriteAt(make([]byte, len(value)), start+int64(at+len(entry)-len(value))); err != nil {
				return err
			}
		}
		at += len(entry) + 1
	}
	return nil
}
