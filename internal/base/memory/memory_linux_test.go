package memory

import "testing"

// What a container may have counts, not what the machine has.
func TestGroupMemory(t *testing.T) {
	const all = 64 << 30
	files := map[string]string{
		"/sys/fs/cgroup/memory.max":                                  "max\n",
		"/sys/fs/cgroup/user/memory.max":                             "2147483648\n",
		"/sys/fs/cgroup/user/kiln/memory.max":                        "4294967296\n",
		"/sys/fs/cgroup/user/free/memory.max":                        "max\n",
		"/sys/fs/cgroup/memory/docker/12/memory.limit_in_bytes":      "536870912\n",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes":                "9223372036854771712\n", // no limit, as version 1 says it
		"/sys/fs/cgroup/cpu/docker/12/memory.limit_in_bytes":         "1\n",
		"/sys/fs/cgroup/memory/docker/damaged/memory.limit_in_bytes": "a lot\n",
	}
	for groups, want := range map[string]int64{
		"0::/\n":                               all,
		"0::/user/kiln\n":                      2 << 30, // of the group around it
		"0::/user/free":                        2 << 30,
		"0::/gone/away\n":                      all,
		"4:cpu,cpuacct:/docker/12\n":           all,
		"4:memory:/docker/12\n0::/\n":          512 << 20,
		"4:hugetlb,memory:/docker/12\n0::/a\n": 512 << 20,
		"4:memory:/outside/of/it\n":            all,
		"4:memory:/docker/damaged\n":           all,
		"":                                     all,
		"what is this":                         all,
	} {
		if got := groupMemory([]byte(groups), all, func(file string) []byte { return []byte(files[file]) }); got != want {
			t.Errorf("%q: %d, want %d", groups, got, want)
		}
	}
	if m := Physical(); m < 64<<20 {
		t.Errorf("this machine has %d bytes", m)
	}
}
