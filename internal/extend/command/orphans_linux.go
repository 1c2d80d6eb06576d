package command

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// EndOrphans ends what still runs of programs whose Kiln was killed: the kernel ends these with it (see dieWithParent), and not what they
// started. scratch is the folder of all jobs' scratch folders. Whoever has a home below it was started for a job, for every program gets
// one there, and whatever it starts after it. No job may be running.
//
// A process is found by a look at all of them, 30 µs each, so this is for after a build that did not come to its end.
func EndOrphans(scratch string) {
	homes := []string{"HOME=" + scratch + "/"}
	if real, err := filepath.EvalSymlinks(scratch); err == nil && real != scratch {
		homes = append(homes, "HOME="+real+"/")
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end) && endAll(homes); { // one that was just starting another is followed by that
		time.Sleep(time.Millisecond)
	}
}

// endAll ends the processes that have one of these in their environment, and tells whether there were any.
func endAll(homes []string) (any bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		p, err := os.FindProcess(pid) // it holds on to this process: another one may have the number later
		if err != nil {
			continue
		}
		if hasAny(environ(pid), homes) && p.Kill() == nil {
			any = true
		}
		p.Release()
	}
	return any
}

// maxEnviron is how much of an environment is read, in bytes. What Kiln gives is in the first few hundred.
const maxEnviron = 1 << 20

// environ is what a process was given; nothing of one that has ended, or is another user's.
func environ(pid int) []byte {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return nil
	}
	defer f.Close()
	env, _ := io.ReadAll(io.LimitReader(f, maxEnviron))
	return env
}

func hasAny(env []byte, beginnings []string) bool {
	for v := range bytes.SplitSeq(env, []byte{0}) {
		for _, b := range beginnings {
			if bytes.HasPrefix(v, []byte(b)) {
				return true
			}
		}
	}
	return false
}
