package command

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// EndOrphans ends processes left by programs of a killed Kiln: the kernel ends the programs with Kiln (see
// dieWithParent), but not the processes that they started. scratch is the folder of all jobs' scratch folders. A
// process with a home below it was started for a job, because every program gets such a home, and passes it on. No job
// may be running.
//
// All processes of the system are checked, 30 µs each, so this is for the build after one that did not finish.
func EndOrphans(scratch string) {
	homes := []string{"HOME=" + scratch + "/"}
	if real, err := filepath.EvalSymlinks(scratch); err == nil && real != scratch {
		homes = append(homes, "HOME="+real+"/")
	}
	// A process that was just starting another one may leave that.
	for end := time.Now().Add(time.Second); time.Now().Before(end) && endAll(homes); {
		time.Sleep(time.Millisecond)
	}
}

// endAll ends the processes with one of these in their environment, and reports whether there were any.
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
		p, err := os.FindProcess(pid) // this refers to the process, even if the number is used again later
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

// maxEnviron is how much of an environment is read, in bytes. Kiln's variables are in the first few hundred.
const maxEnviron = 1 << 20

// environ is the environment of a process; empty if it has ended, or belongs to another user.
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
