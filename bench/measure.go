package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
)

// measure is the cost of one run of a tool.
type measure struct {
	Wall time.Duration
	CPU  time.Duration // user and system time, of the tool and the processes that it started and waited for
	Peak int64         // bytes of memory of the largest process; 0 if the system does not report it
}

// meterFlag makes this program run another one and write the cost to a file. The process in between is needed because
// on Linux the peak memory of a process includes the time before its exec: otherwise a tool would seem as large as the
// benchmark with its lists of files.
const meterFlag = "-meter"

// someFailed is the exit code of a tool when a job failed and the others are done. The meter uses it too.
const someFailed = 1

// runMeter is the process in between. args are the file for the measure, and the command.
func runMeter(args []string) error {
	runtime.LockOSThread() // dieWithParent ties the command to the thread
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	dieWithParent(cmd)
	start := time.Now()
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == someFailed) {
		return err
	}
	m := measure{time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peakOf(cmd.ProcessState)}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(args[0], data, 0o666), err)
}

// run measures a command in a folder. failing allows failed jobs. It also returns the end of the command's output.
func run(ctx context.Context, dir string, command []string, failing bool) (measure, []byte, error) {
	var m measure
	self, err := os.Executable()
	if err != nil {
		return m, nil, err
	}
	f, err := os.CreateTemp("", "bench-*.json")
	if err != nil {
		return m, nil, err
	}
	f.Close()
	defer os.Remove(f.Name())
	var said tail
	cmd := exec.CommandContext(ctx, self, append([]string{meterFlag, f.Name()}, command...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
	dieWithParent(cmd)
	if err := cmd.Run(); err != nil && !(failing && cmd.ProcessState.ExitCode() == someFailed) {
		return m, said.data, fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.data))
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		return m, said.data, err
	}
	return m, said.data, json.Unmarshal(data, &m)
}

// tail keeps the last bytes that are written to it.
type tail struct{ data []byte }

func (t *tail) Write(b []byte) (int, error) {
	const most = 8 << 10
	t.data = append(t.data, b...)
	if extra := len(t.data) - most; extra > 0 {
		t.data = append(t.data[:0], t.data[extra:]...)
	}
	return len(b), nil
}

// statAll is the minimum for a build in which nothing changed: a stat of each source and product, folder by folder,
// from as many goroutines as there are processors.
func statAll(p *project, t tool) (measure, error) {
	workers := runtime.NumCPU()
	errs := make([]error, workers)
	start := time.Now()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			var names []string
			for f := w; f < p.folders() && errs[w] == nil; f += workers {
				names = names[:0]
				for i := f * folderSize; i < (f+1)*folderSize; i++ {
					names = append(names, filepath.Base(assetName(i)))
				}
				folder := folderName(f)
				errs[w] = errors.Join(
					statNames(filepath.Join(p.dir, "assets", folder), names),
					statNames(filepath.Join(t.output(p), folder), append(names, filepath.Base(t.joinName(f)))))
			}
		})
	}
	wg.Wait()
	return measure{Wall: time.Since(start)}, errors.Join(errs...)
}

// spawnAll is the minimum for commands: the time for starting cp for each file, on all processors.
func spawnAll(dir string, n int) (time.Duration, error) {
	workers := runtime.NumCPU()
	src := filepath.Join(dir, "spawn.src")
	if err := os.WriteFile(src, content(nil, 0, 0, assetSize), 0o666); err != nil {
		return 0, err
	}
	defer os.Remove(src)
	errs := make([]error, workers)
	start := time.Now()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			dst := filepath.Join(dir, "spawn."+strconv.Itoa(w))
			defer os.Remove(dst)
			for i := w; i < n && errs[w] == nil; i += workers {
				errs[w] = exec.Command("cp", src, dst).Run()
			}
		})
	}
	wg.Wait()
	return time.Since(start) / time.Duration(n), errors.Join(errs...)
}

// median returns the median of several runs, for each number separately.
func median(runs []measure) measure {
	return measure{
		Wall: medianOf(runs, func(m measure) time.Duration { return m.Wall }),
		CPU:  medianOf(runs, func(m measure) time.Duration { return m.CPU }),
		Peak: medianOf(runs, func(m measure) int64 { return m.Peak }),
	}
}

func medianOf[T time.Duration | int64](runs []measure, get func(measure) T) T {
	all := make([]T, len(runs))
	for i, m := range runs {
		all[i] = get(m)
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}
