// Package watch tells which files change. It is told by the system where that works, and looks at everything now and then where it does
// not.
//
// Rules:
//
//   - Nothing is lost. Where changes may have gone unnoticed, as when the kernel's queue overflowed, a batch says so, and everything is to be
//     looked at.
//   - A folder is watched before it is listed: what is made in a new folder is either in the list or told of.
//   - Saves come as one batch, when they are done: editors rename, copy, truncate and write in many steps. A file that a program still has open
//     is waited for, and not longer than Most.
//   - A batch waits until it is taken, and takes in what changes meanwhile.
//   - As long as nothing changes nothing runs, but for polling.
//
// Why nothing is lost, step by step:
//
//   - The system to the notifier: events come in order. That the queue overflowed is an event; that there will be no more is the end of the channel, and
//     everything is looked at from then on.
//   - A folder with all below is told of by its own name after it and those below are watched, whatever happened to it before: it is new, has another's
//     name, came from elsewhere. So no event is needed from the time before. A folder that loses its name is forgotten, with what Pass knew of it.
//   - An event may be told by a name that its folder has lost, and another one got: one that is said to be gone is watched anew if it is there.
//   - What Pass reads is watched before it is asked: single files are watched before trees.
//   - A folder that should be watched and cannot be is tried again every awayEvery, however much else goes on, and is told of as Lost when it can. Where
//     the system tells of the cause's end, as with a folder that is not there or may not be read, the folder that holds it is enough.
//   - To pending, and out of it: a path is added after its folder is watched, and taken away only by the batch that has it and was received, on the same
//     goroutine.
//   - Polling: a file so new that a change need not show in its times counts as changed at the next look as well. A folder that cannot be listed
//     is kept as it was, and compared when it can. What comes and goes between two looks is seen by the times of its folder; so is a folder that was away
//     just when it was to be watched.
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

// Tree is a folder to watch with all folders below.
type Tree struct {
	Path string                           // absolute
	Pass func(path string, dir bool) bool // what is passed over; may be nil. Called by one goroutine at a time

	// Lists says that whoever follows the tree lists its folders, so that he may have seen what came and went between two looks: a folder in
	// which something may have is told of. Only a notifier that looks now and then does not know.
	Lists bool

	// Forget says that a folder is not what it was: Pass may answer otherwise for what is in it. May be nil; called as Pass is.
	Forget func(dir string)
}

// Options say what is watched, and how.
type Options struct {
	Trees []Tree        // none in another, but where that one passes it over
	Files []string      // single files, absolute, which need not be there
	Quiet time.Duration // how long nothing must have changed; 0: DefaultQuiet
	Most  time.Duration // how long a change waits at most for others; 0: DefaultMost
	Poll  time.Duration // not 0: look at everything so often, whatever the system can do
}

// The defaults. Saving a file is many steps within a few milliseconds: vim's dance of backup, write and rename takes 1 to 3 ms here,
// Blender's up to 12. The bar for the whole way from a saved file to the running game is 60 ms.
const (
	DefaultQuiet = 25 * time.Millisecond
	DefaultMost  = 500 * time.Millisecond
)

// Batch is what changed.
type Batch struct {
	Paths  []string  // absolute, sorted: new, changed or gone. A folder means all below it
	Lost   bool      // anything may have changed besides
	Unsure bool      // Lost is only because the system cannot tell whether this is all
	Seen   time.Time // when the first of these changes was seen
	Notes  diag.List // how changes are looked for from now on
}

// Watcher watches.
type Watcher struct {
	opts    Options
	dirs    folders[*dir]
	files   map[string]bool // Options.Files
	pending pending
	gone    map[string]*dir // folders that should be watched and cannot be, most often because they are not there; tried again every awayEvery

	batches chan Batch
	flushes chan chan Batch
	quit    chan struct{}
	over    sync.WaitGroup

	mu     sync.Mutex
	notify notifier // replaced by run's goroutine alone
}

// dir is a watched folder.
type dir struct {
	tree *Tree // nil: for single files only
}

// event is one change as the system tells it.
type event struct {
	path string
	kind kind
	dir  bool // known to be a folder
}

type kind uint8

const (
	changed kind = iota // in some way, maybe not the last; new, if it is a folder
	opened              // a program is writing it; written will come
	written             // and no longer open
	moved               // has this name now, and came from elsewhere
	removed
	stirred // a watched folder: what is in it now is told of, but more may have come and gone
	lost    // events were
)

// notifier is the way in which a system tells of changes.
type notifier interface {
	// add watches a folder's entries, and, if it is one that was asked for, whether it goes away itself. Events that were not sent yet may be
	// of its new or of its old name.
	add(dir string, top bool) error
	// remove forgets a folder that is gone from its place, and all below.
	remove(dir string)
	// events are those that came since the last, in order.
	events() <-chan []event
	// sync has what happened before sent before it returns true. False: it cannot tell.
	sync() bool
	close()
}

// limitError says that the system watches no more for this user, and how to have it do so.
type limitError struct{ text, hint string }

func (l *limitError) Error() string { return l.text }

// New watches. Batches come when something changed after New returned.
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

// Batches is where changes come.
func (w *Watcher) Batches() <-chan Batch { return w.batches }

// Close ends it.
func (w *Watcher) Close() {
	close(w.quit)
	w.over.Wait()
	w.notify.close()
}

// Flush gives at once all that changed before the call, settled or not. What it gives does not come as a batch any more. Where the system
// cannot tell whether that is all, it is Lost.
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

// begin chooses how changes are looked for, and watches everything.
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

// network finds a tree on a file system of another machine, and names that.
func (w *Watcher) network() (path, fs string) {
	for i := range w.opts.Trees {
		if fs := networkName(w.opts.Trees[i].Path); fs != "" {
			return w.opts.Trees[i].Path, fs
		}
	}
	return "", ""
}

// subfolders are the names of the folders in a folder, links left out.
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

// watchAll watches every folder that there is. Single files come first: Pass may read them.
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

// watchFor watches a folder because of single files in it; one above it as long as it is not there.
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

// watchTree watches a folder and all below. One that is gone meanwhile, or may not be looked at, is told of by the folder that holds it
// when that is so no more. One that cannot be watched for another reason, as when no file can be opened for a moment, is tried again, and
// so is the top.
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

// run takes events and gives batches.
func (w *Watcher) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	looked := time.Now() // for folders that are gone; however often something else changes
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
			w.lookForGone() // one that is back has been changed by whoever asks now
			batch = w.pending.all()
			w.pending.taken(&batch)
			reply <- batch
		case <-tick:
		}
	}
}

// drain takes what the notifier has sent already.
func (w *Watcher) drain() {
	for {
		select {
		case events, ok := <-w.notify.events():
			if !ok {
				return // run sees it, too
			}
			w.take(events)
		default:
			return
		}
	}
}

// take takes in events, and watches folders that are new.
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
			w.missing(e.path) // of a tree, another folder may have its name already: it is looked for
			if e.kind == removed {
				if info, err := os.Lstat(e.path); err != nil || !info.IsDir() {
					continue
				}
				e.kind, e.dir = moved, true // another folder has its name by now, of which nobody need tell again
			}
		}
		if !watched {
			continue // of a folder that is not watched any more
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

// stir notes that something may have come and gone in a folder. To list it and all below costs no more than the look which found that.
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
		if _, err := os.Lstat(f); filepath.Dir(f) == folder && errors.Is(err, fs.ErrNotExist) { // one that is there has been told of, if it was away
			w.pending.add(event{path: f, kind: removed}, now)
		}
	}
}

// watchBack watches the folders in a folder that were away just when they were to be watched, and back before the next look, to which they
// are what they were.
func (w *Watcher) watchBack(t *Tree, folder string, now time.Time) error {
	subs, _ := subfolders(folder) // if it cannot be listed, a look says so
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

// forget watches a folder, and those below, no more.
func (w *Watcher) forget(path string) {
	w.notify.remove(path)
	if d, _ := w.dirs.get(path); d.tree != nil && d.tree.Forget != nil {
		d.tree.Forget(path)
	}
	w.dirs.cut(path)
}

// missing notes that a folder that was asked for is gone, so that it is looked for.
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

// awayEvery is how often a folder that should be watched and cannot be is looked for.
const awayEvery = 500 * time.Millisecond

// lookForGone looks whether folders are back. What is in them counts as lost: nobody was told of it.
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

// lose notes that events were lost, and watches the folders that are new.
func (w *Watcher) lose(now time.Time) {
	w.pending.lose(now)
	if err := w.watchAll(); err != nil {
		w.poll(err, now)
	}
}

// poll goes over to looking at everything.
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
