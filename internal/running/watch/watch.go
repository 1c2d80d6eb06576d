// Package watch reports which files change. The system reports changes where that works; elsewhere it checks everything
// at intervals.
//
// Rules:
//
//   - Nothing is lost. If changes may have been missed, for example because the kernel's queue overflowed, a batch
//     says so, and the caller has to check everything.
//   - A folder is watched before it is listed: what is created in a new folder is in the list or reported.
//   - The steps of a save come as one batch, when they are done: editors rename, copy, truncate and write in many
//     steps. The watcher waits for a file that a program still has open, but not longer than Most.
//   - A batch waits until it is taken, and includes changes that come meanwhile.
//   - Nothing runs while nothing changes, except polling.
//
// Why nothing is lost, step by step:
//
//   - From the system to the notifier: events come in order. An overflow of the queue is an event. If the channel is
//     closed, there are no more events, and polling begins.
//   - A folder with everything below is reported by its own name after it and those below are watched, whatever
//     happened to it before: if it is new, renamed or moved. So no earlier event is needed. A folder that loses its
//     name is forgotten, with what Pass knew about it.
//   - An event may have a name that its folder has lost and another one got: if a folder reported as removed exists,
//     it is watched again.
//   - What Pass reads is watched before Pass is called: single files are watched before trees.
//   - A folder that should be watched and cannot be is tried again every awayEvery, whatever else happens, and
//     reported as Lost when it can. If the system reports the end of the cause (the folder did not exist, or could
//     not be read), watching its parent is enough.
//   - Pending changes: a path is added after its folder is watched, and removed only by the batch that has it and was
//     received, on the same goroutine.
//   - Polling: a file so new that a change may not show in its times counts as changed at the next check too. A
//     folder that cannot be listed keeps its record, and is compared when it can. What appears and disappears between
//     two checks shows in the times of its folder; so does a folder that was missing just when it should have been
//     watched.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// Tree is a folder to watch with everything below.
type Tree struct {
	Path string                           // absolute
	Pass func(path string, dir bool) bool // what to skip; may be nil. Called by one goroutine at a time

	// Lists means that the follower lists the tree's folders, so it may have seen files that existed only between two
	// checks. A folder in which that is possible is reported. This only concerns polling.
	Lists bool

	// Forget reports that a folder was replaced: Pass may return other results below it. May be nil; called like Pass.
	Forget func(dir string)
}

// Options are what is watched, and how.
type Options struct {
	Trees []Tree        // no tree is inside another, unless that one skips it
	Files []string      // single files, absolute; they need not exist
	Quiet time.Duration // how long nothing must have changed; 0: DefaultQuiet
	Most  time.Duration // how long a change waits for others at most; 0: DefaultMost
	Poll  time.Duration // not 0: check everything at this interval, even if the system reports changes
}

// The defaults. Saving a file is many steps within a few milliseconds: vim's sequence of backup, write and rename takes
// 1 to 3 ms here, Blender's up to 12. The goal for the whole way from a saved file to the running game is 60 ms.
const (
	DefaultQuiet = 25 * time.Millisecond
	DefaultMost  = 500 * time.Millisecond
)

// Batch is a set of changes.
type Batch struct {
	Paths  []string  // absolute, sorted: new, changed or removed. A folder means everything below it
	Lost   bool      // anything else may have changed too
	Unsure bool      // the only reason for Lost is that the system cannot tell whether these are all changes
	Seen   time.Time // when the first of these changes was noticed
	Notes  diag.List // messages about how changes are found from now on
}

// Watcher watches.
type Watcher struct {
	opts    Options
	dirs    folders[*dir]
	files   map[string]bool // Options.Files
	pending pending
	gone    map[string]*dir // folders that should be watched and cannot be, usually because they do not exist; tried again every awayEvery

	batches chan Batch
	flushes chan chan Batch
	quit    chan struct{}
	over    sync.WaitGroup

	mu     sync.Mutex
	notify notifier // replaced only by run's goroutine
}

// dir is a watched folder.
type dir struct {
	tree *Tree // nil: watched only for single files
}

// event is one change reported by the system.
type event struct {
	path string
	kind kind
	dir  bool // known to be a folder
}

type kind uint8

const (
	changed kind = iota // changed, perhaps not for the last time; for a folder: new
	opened              // a program is writing it; written will follow
	written             // written and closed
	moved               // has a new name
	removed
	stirred // a watched folder: its entries are reported, but others may have come and gone
	lost    // events were lost
)

// notifier is how a system reports changes.
type notifier interface {
	// add watches a folder's entries and, with top, whether it is removed itself. Events that were not sent yet may
	// have its new or its old name.
	add(dir string, top bool) error
	// remove forgets a folder that is no longer in its place, and everything below.
	remove(dir string)
	// events sends the events since the last, in order.
	events() <-chan []event
	// sync returns true after all earlier events were sent. It returns false if it cannot tell.
	sync() bool
	close()
}

// limitError means that the system allows no more watches for this user, with a hint how to change
// that.
type limitError struct{ text, hint string }

func (l *limitError) Error() string { return l.text }

// New starts a watcher. Batches contain the changes after New returned.
func New(o Options) (*Watcher, error) { return newWith(o, newNotifier) }

func newWith(o Options, system func() (notifier, error)) (*Watcher, error) {
	if o.Quiet == 0 {
		o.Quiet = DefaultQuiet
	}
	if o.Most == 0 {
		o.Most = DefaultMost
	}
	w := &Watcher{
		opts: o, files: map[string]bool{}, batches: make(chan Batch), flushes: make(chan chan Batch), quit: make(chan struct{}),
	}
	w.pending.quiet, w.pending.most = o.Quiet, o.Most
	for _, f := range o.Files {
		w.files[f] = true
	}
	if err := w.begin(system); err != nil {
		return nil, err
	}
	w.over.Go(w.run)
	return w, nil
}

// Batches is the channel of changes.
func (w *Watcher) Batches() <-chan Batch { return w.batches }

// Close ends it.
func (w *Watcher) Close() {
	close(w.quit)
	w.over.Wait()
	w.notify.close()
}

// Flush returns at once all changes before the call, settled or not. They do not come as a batch any more. If the
// system cannot tell whether these are all, Lost is set.
func (w *Watcher) Flush(ctx context.Context) Batch {
	w.mu.Lock()
	n := w.notify
	w.mu.Unlock()
	sure := n.sync()
	reply := make(chan Batch, 1)
	select {
	case w.flushes <- reply:
	case <-w.quit:
		return Batch{Lost: true}
	case <-ctx.Done():
		return Batch{Lost: true}
	}
	b := <-reply
	b.Unsure = !b.Lost && !sure
	b.Lost = b.Lost || !sure
	return b
}

// begin chooses how changes are found, and watches everything.
func (w *Watcher) begin(system func() (notifier, error)) error {
	every := w.opts.Poll
	if every == 0 {
		if where, fs := w.network(); fs != "" {
			m := &diag.Message{Severity: diag.Note, Code: diag.WatchPolls, Pos: diag.Pos{File: where}}
			m.Text = fmt.Sprintf("this folder is on another machine (%s), which does not report changes: all files are compared every %v", fs, pollEvery)
			w.pending.note(m.WithHint("keep the project on a disk of this machine, so that changes are seen at once"))
			every = pollEvery
		}
	}
	if every == 0 {
		n, err := system()
		if err == nil {
			w.notify = n
			if err = w.watchAll(); err == nil {
				return nil
			}
			n.close()
		}
		w.pending.note(limitMessage(err))
		every = pollEvery
	}
	w.notify = newPoller(every)
	return w.watchAll()
}

// network finds a tree on a file system of another machine, and the name of that file system.
func (w *Watcher) network() (path, fs string) {
	for i := range w.opts.Trees {
		if fs := networkName(w.opts.Trees[i].Path); fs != "" {
			return w.opts.Trees[i].Path, fs
		}
	}
	return "", ""
}

// subfolders returns the names of the folders in a folder, without links.
func subfolders(path string) ([]string, error) {
	f, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var names []string
	entries, err := f.ReadDir(-1)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// watchAll watches every existing folder. Single files come first, because Pass may read them.
func (w *Watcher) watchAll() error {
	w.dirs, w.gone = folders[*dir]{}, map[string]*dir{}
	for f := range w.files {
		if err := w.watchFor(filepath.Dir(f)); err != nil {
			return err
		}
	}
	for i := range w.opts.Trees {
		t := &w.opts.Trees[i]
		if err := w.watchTree(t, t.Path); err != nil {
			return err
		}
	}
	return nil
}

// watchFor watches a folder because of single files in it; if it does not exist, one of its
// parents.
func (w *Watcher) watchFor(folder string) error {
	if w.dirs.has(folder) {
		return nil
	}
	err := w.notify.add(folder, true)
	switch {
	case err == nil:
		w.dirs.put(folder, &dir{})
	case isLimit(err):
		return err
	default:
		w.gone[folder] = &dir{}
	}
	return nil
}

// watchTree watches a folder and everything below. If a folder has been removed meanwhile, or may not be read, its
// parent reports when that changes. If it cannot be watched for another reason, for example because no file can be
// opened at the moment, it is tried again, and so is the top.
func (w *Watcher) watchTree(t *Tree, path string) error {
	err := w.notify.add(path, path == t.Path)
	if isLimit(err) {
		return err
	}
	var subs []string
	if err == nil {
		w.dirs.put(path, &dir{t})
		subs, err = subfolders(path)
	}
	if err != nil && (path == t.Path || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.ENOTDIR)) {
		w.gone[path] = &dir{t}
	}
	for _, sub := range subs {
		if sub = filepath.Join(path, sub); t.Pass == nil || !t.Pass(sub, true) {
			if err := w.watchTree(t, sub); err != nil {
				return err
			}
		}
	}
	return nil
}

// run receives events and sends batches.
func (w *Watcher) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	looked := time.Now() // checked at intervals for missing folders, however often something else changes
	for {
		now := time.Now()
		if len(w.gone) == 0 {
			looked = now
		} else if now.Sub(looked) >= awayEvery {
			w.lookForGone()
			looked = now
		}
		var out chan Batch
		var batch Batch
		wait := time.Duration(-1)
		if w.pending.any() {
			if wait = w.pending.due(now); wait <= 0 {
				batch, out, wait = w.pending.ready(now), w.batches, -1
			}
		}
		if rest := looked.Add(awayEvery).Sub(now); len(w.gone) > 0 && (wait < 0 || wait > rest) {
			wait = rest
		}
		var tick <-chan time.Time
		if wait >= 0 {
			timer.Reset(wait)
			tick = timer.C
		}
		select {
		case <-w.quit:
			return
		case events, ok := <-w.notify.events():
			if !ok {
				w.poll(errors.New("the system no longer reports changes"), time.Now())
				continue
			}
			w.take(events)
		case out <- batch:
			w.pending.taken(&batch)
		case reply := <-w.flushes:
			w.drain()
			w.lookForGone() // the caller may have just created one
			batch = w.pending.all()
			w.pending.taken(&batch)
			reply <- batch
		case <-tick:
		}
	}
}

// drain receives the events that the notifier has sent already.
func (w *Watcher) drain() {
	for {
		select {
		case events, ok := <-w.notify.events():
			if !ok {
				return // run finds that too
			}
			w.take(events)
		default:
			return
		}
	}
}

// take handles events, and watches new folders.
func (w *Watcher) take(events []event) {
	now := time.Now()
	for _, e := range events {
		if e.kind == lost {
			w.lose(now)
			continue
		}
		if e.kind == stirred {
			w.stir(e.path, now)
			continue
		}
		d, watched := w.dirs.get(filepath.Dir(e.path))
		if w.dirs.has(e.path) && (e.kind == removed || e.kind == moved) {
			w.forget(e.path)
			if e.kind == removed {
				w.pending.add(e, now)
			}
			w.missing(e.path) // another folder of a tree may have its name already, so it is looked up
			if e.kind == removed {
				if info, err := os.Lstat(e.path); err != nil || !info.IsDir() {
					continue
				}
				e.kind, e.dir = moved, true // another folder has its name now, for which there may be no other event
			}
		}
		if !watched {
			continue // of a folder that is no longer watched
		}
		if d.tree == nil || d.tree.Pass != nil && d.tree.Pass(e.path, e.dir) {
			if w.files[e.path] {
				w.pending.add(e, now)
			}
			continue
		}
		if e.dir && e.kind != removed && !w.dirs.has(e.path) {
			if err := w.watchTree(d.tree, e.path); err != nil {
				w.poll(err, now)
				return
			}
		}
		w.pending.add(e, now)
	}
}

// stir records that entries of a folder may have come and gone. Listing it and everything below costs no more than the
// check which found that.
func (w *Watcher) stir(folder string, now time.Time) {
	d, watched := w.dirs.get(folder)
	if !watched {
		return
	}
	if d.tree != nil {
		if err := w.watchBack(d.tree, folder, now); err != nil {
			w.poll(err, now)
			return
		}
		if d.tree.Lists {
			w.pending.add(event{path: folder, kind: changed, dir: true}, now)
		}
	}
	for f := range w.files {
		// An existing one has been reported if it was missing.
		if _, err := os.Lstat(f); filepath.Dir(f) == folder && errors.Is(err, fs.ErrNotExist) {
			w.pending.add(event{path: f, kind: removed}, now)
		}
	}
}

// watchBack watches the folders in a folder that were missing just when they should have been watched, and exist again
// before the next check, which finds them unchanged.
func (w *Watcher) watchBack(t *Tree, folder string, now time.Time) error {
	subs, _ := subfolders(folder) // if it cannot be listed, a check reports that
	for _, sub := range subs {
		if sub = filepath.Join(folder, sub); w.dirs.has(sub) || t.Pass != nil && t.Pass(sub, true) {
			continue
		}
		if err := w.watchTree(t, sub); err != nil {
			return err
		}
		w.pending.add(event{path: sub, kind: moved, dir: true}, now)
	}
	return nil
}

// forget stops watching a folder and everything below.
func (w *Watcher) forget(path string) {
	w.notify.remove(path)
	if d, _ := w.dirs.get(path); d.tree != nil && d.tree.Forget != nil {
		d.tree.Forget(path)
	}
	w.dirs.cut(path)
}

// missing records that a requested folder is missing, so that it is looked for.
func (w *Watcher) missing(path string) {
	for i := range w.opts.Trees {
		if t := &w.opts.Trees[i]; within(t.Path, path) && !w.dirs.has(t.Path) {
			w.gone[t.Path] = &dir{t}
		}
	}
	for f := range w.files {
		if folder := filepath.Dir(f); within(folder, path) && !w.dirs.has(folder) {
			w.gone[folder] = &dir{}
		}
	}
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator))
}

// awayEvery is the interval at which a missing folder is looked for.
const awayEvery = 500 * time.Millisecond

// lookForGone checks whether missing folders exist again. Their content counts as lost, because
// nothing has reported it.
func (w *Watcher) lookForGone() {
	gone := w.gone
	w.gone = map[string]*dir{}
	for path, d := range gone {
		err := error(nil)
		if d.tree != nil {
			err = w.watchTree(d.tree, path)
		} else {
			err = w.watchFor(path)
		}
		if err != nil {
			w.poll(err, time.Now())
			return
		}
		if w.gone[path] == nil && w.dirs.has(path) {
			w.pending.lose(time.Now())
		}
	}
}

// lose records that events were lost, and watches new folders.
func (w *Watcher) lose(now time.Time) {
	w.pending.lose(now)
	if err := w.watchAll(); err != nil {
		w.poll(err, now)
	}
}

// poll switches to polling.
func (w *Watcher) poll(why error, now time.Time) {
	w.notify.close()
	w.mu.Lock()
	w.notify = newPoller(pollEvery)
	w.mu.Unlock()
	w.pending.note(limitMessage(why))
	w.pending.lose(now)
	w.watchAll() // a poller has no limits
}

func isLimit(err error) bool { return errors.As(err, new(*limitError)) }

func limitMessage(err error) *diag.Message {
	m := diag.Warningf(diag.WatchPolls, diag.Pos{}, "%v: all files are compared every %v instead", err, pollEvery)
	var limit *limitError
	if errors.As(err, &limit) {
		return m.WithHint("%s", limit.hint)
	}
	return m
}
