package doctor

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func systemLimits(folders int64) []Limit {
	list := []Limit{openFiles()}
	for _, l := range []Limit{
		{"watched folders", 0, folders, "raise it: sysctl fs.inotify.max_user_watches=524288"},
		{"watchers", 0, 16, "raise it: sysctl fs.inotify.max_user_instances=512"},
	} {
		name := map[string]string{"watched folders": "max_user_watches", "watchers": "max_user_instances"}[l.Name]
		text, err := os.ReadFile("/proc/sys/fs/inotify/" + name)
		if err != nil {
			continue
		}
		if l.Value, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			list = append(list, l)
		}
	}
	return list
}

// cloneFile makes dst share the blocks of src.
func cloneFile(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	return unix.IoctlFileClone(int(out.Fd()), int(in.Fd()))
}
