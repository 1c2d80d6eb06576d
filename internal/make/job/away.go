package job

import (
	"context"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/processor"
)

// Away runs the processors of jobs on other machines. Everything that a processor asked and made there is asked and
// made again here, by the Job of a local run, so that the same is recorded.
type Away interface {
	// Process does the work of the processor of a job's task. It returns engine.ErrHere if it did not.
	Process(ctx context.Context, j *Job, t *Task) error
	// Ended is called for each run that ended, on any machine.
	Ended(*engine.Result)
}

// Moved reports where the processor runs, and what is known of that so far; nil: here. If it runs here as well, that is what is shown.
func (j *Job) Moved(at *engine.Remote) {
	if at == nil || !j.run.Rival() {
		j.w.Reporter.JobMoved(j.t.Name, at)
	}
}

// Elsewhere notes that the job waits for another machine, and may start here as well if that takes longer than patience. The function that
// it returns ends the wait.
func (j *Job) Elsewhere(patience time.Duration) (end func()) { return j.run.Elsewhere(patience) }

// Rival reports whether the job runs here as well.
func (j *Job) Rival() bool { return j.run.Rival() }

// Last is the newest trace of the job's task, or nil.
func (j *Job) Last() *engine.Trace { return j.run.Last() }

// Rewind forgets what was recorded since the processor started.
func (j *Job) Rewind() { j.run.Rewind(j.started) }

// Unrecorded is a Job with the same source whose observations are not recorded. It cannot bring other tasks up to date.
func (j *Job) Unrecorded(ctx context.Context) *Job {
	return &Job{w: j.w, t: j.t, run: engine.Unrecorded(ctx), given: j.given}
}

// RanAway notes that the processor worked on another machine.
func (j *Job) RanAway(at engine.Remote) {
	j.Moved(&at)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.away = &at
}

// Content records that a source file is read, and returns the hash of its content. It does not read the file if the hash is known.
func (j *Job) Content(path string) (digest.Hash, error) {
	path = j.sourceOf(path)
	if j.given != nil && path == j.given.path && path != "" {
		return j.given.hash, j.over()
	}
	if err := j.allowed(path); err != nil {
		return digest.Hash{}, err
	}
	i, _, ok := j.w.Table.Find(path)
	if !ok {
		j.run.See(SawFile, path, digest.Hash{})
		return digest.Hash{}, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	h, err := j.w.Table.Hash(i)
	if err != nil {
		return h, j.mayPass(j.unreadable(path, err))
	}
	j.run.See(SawFile, path, h)
	return h, nil
}

// ProductContent records that the content of a product is read, and returns its hash.
func (j *Job) ProductContent(p processor.Product) (digest.Hash, error) {
	made, err := j.productOf(p)
	if err != nil {
		return digest.Hash{}, err
	}
	return made.Hash, nil
}

// Below returns the path below the project folder of something that a worker is to have there as well. ok is false if it is elsewhere, or a
// link in the project folder leads to it: a program on the worker would not see the link.
func (w *World) Below(file string) (below string, ok bool) {
	dir, file := w.realDir(), filepath.Clean(file)
	real, err := filepath.EvalSymlinks(file)
	below, err2 := filepath.Rel(dir, real)
	ok = err == nil && err2 == nil && filepath.IsLocal(below) && (file == filepath.Join(dir, below) || file == filepath.Join(w.dir, below))
	return filepath.ToSlash(below), ok
}

// realDir is the project folder without links, as its path is for a program that runs in it.
func (w *World) realDir() string {
	if real, err := filepath.EvalSymlinks(w.dir); err == nil {
		return real
	}
	return w.dir
}

// Entries are what is in a folder, but for what is Kiln's own.
func (w *World) Entries(folder string) ([]fs.DirEntry, error) { return entriesOf(folder, w.hidden) }

// Beside are the names, from the project folder, of something in a folder above it. Above the topmost folder is the topmost folder
// again, up to that many levels.
func (w *World) Beside(file string, levels int) (names []string) {
	if !filepath.IsAbs(file) {
		return nil
	}
	up := InProject
	for dir := filepath.Dir(w.realDir()); levels > 0; dir = filepath.Dir(dir) {
		up += "../"
		if levels--; filepath.Dir(file) == dir {
			names = append(names, up+filepath.Base(file))
		}
	}
	return names
}
