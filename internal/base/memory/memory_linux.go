package memory

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Physical is the memory of the machine in bytes, or of Kiln's control group if that is less; 0 if not known.
func Physical() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	all := int64(info.Totalram) * int64(info.Unit)
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return all
	}
	return groupMemory(groups, all, func(file string) []byte {
		data, _ := os.ReadFile(file) // a group without this limit has no such file
		return data
	})
}

// groupMemory is the lowest limit of a process's control groups and their parents, if it is lower than all. A line has
// a number, controllers and a path, separated by colons; version 2 names no controllers. In a container the path may be
// that of the host machine, while the container sees only its own group, as the root.
func groupMemory(groups []byte, all int64, read func(file string) []byte) int64 {
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		mount, file := "/sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			mount, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for folder := path.Join("/", parts[2]); ; folder = path.Dir(folder) {
			text := string(bytes.TrimSpace(read(path.Join(mount, folder, file)))) // "max" means no limit, and is not a number
			if limit, err := strconv.ParseInt(text, 10, 64); err == nil && limit > 0 {
				all = min(all, limit)
			}
			if folder == "/" {
				break
			}
		}
	}
	return all
}
