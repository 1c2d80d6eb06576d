// Package previous reads what the last build left, and checks whether it is still true.
package previous

import (
	"errors"
	"os"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/make/outputs"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Build is what the last build left, as far as it can be read.
type Build struct {
	workspace *workspace.Workspace
	changes   workspace.Changes // how source files are checked
	named     []string          // with ByWatch: files and folders of the output folder that may have changed, absolute
	onError   results.OnError
	locked    bool // kiln.ids must not change

	Prev    *state.Snapshot            // nil: there is none
	Before  *plan.Before               // what was read from it
	Hashes  []digest.Hash              // of its source files: if no file changed, the build continues with that table
	Scanned *source.Table              // a new table
	Pres    map[string]source.Presence // changed outputs; nil: not compared yet
	// Files written after this time are not trusted by their stat, in nanoseconds since 1970; 0: all are trusted.
	since     int64
	Killed    bool // the last build did not finish, or left temporary files
	BlobsGone bool // a user deleted all blobs: products without files must be made again
	Upgrade   bool // the snapshot is of another version of Kiln
	Leftovers bool // a temporary file could not be deleted
}

func New(w *workspace.Workspace, changes workspace.Changes, named []string, onError results.OnError, locked bool) *Build {
	return &Build{workspace: w, changes: changes, named: named, onError: onError, locked: locked, Before: &plan.Before{}}
}

// Prepare deletes temporary files of a killed build, and finds out what can be trusted.
func (s *Build) Prepare() (err error) {
	s.Tidy()
	_, gone := os.Lstat(s.workspace.CasDir())
	s.BlobsGone = gone != nil
	s.since, err = workspace.Suspect(s.workspace, s.changes.Detect)
	return err
}

// Trusting reports whether the stats of files may be trusted without what Prepare does: the last build came to its end, on a machine that
// has not been started since.
func (s *Build) Trusting() bool {
	w := s.workspace
	_, gone := os.Lstat(w.CasDir())
	return gone == nil && !w.UnderWay() && !w.Booted() && s.changes.Detect != workspace.ByHash
}

// Tidy deletes what a killed build left (scratch folders and temporary files of outputs), and ends programs that it
// left running.
func (s *Build) Tidy() {
	if !s.workspace.UnderWay() {
		return
	}
	s.Killed = true
	command.EndOrphans(s.workspace.ScratchDir())
	s.Leftovers = errors.Join(os.RemoveAll(s.workspace.ScratchDir()), s.workspace.RemoveTemps()) != nil
}

// Read reads the snapshot. why is not empty if it is damaged or of another version.
func (s *Build) Read() (why string, err error) {
	if s.Prev = s.workspace.Take(); s.Prev != nil {
		return "", nil
	}
	s.Prev, why, err = state.ReadSnapshot(s.workspace.SnapshotPath())
	s.Upgrade = strings.Contains(why, "version")
	return why, err
}

// trusting reports whether the build relies on a watcher. It does not if the watch began after another build than the
// last one: then, and if there was no build, everything is checked.
func (s *Build) trusting() bool {
	return s.changes.Detect == workspace.ByWatch && s.Prev != nil && !s.Killed && s.Prev.Project == s.workspace.Text
}

// Scan checks the source files.
func (s *Build) Scan(notes *diag.List) (t *source.Table, contents, stats bool, err error) {
	changes := s.changes
	changes.Trusted = s.trusting()
	found, err := workspace.Scan(s.workspace, s.Prev, changes)
	*notes = append(*notes, found.Notes...)
	if s.Prev == nil || found.Table != s.Prev.Sources {
		s.Scanned = found.Table
	}
	return found.Table, found.Contents, found.Stats, err
}

// SameRules reports whether everything that decides what is built, except files, is unchanged. The setting for failed
// assets counts only if some failed.
func (s *Build) SameRules() bool {
	if s.Prev.Signature == s.Signature(s.onError) {
		return true
	}
	for o := results.OnError(0); o < results.OnErrors && s.Prev.Totals.Failed == 0; o++ {
		if s.Prev.Signature == s.Signature(o) {
			return true
		}
	}
	return false
}

// SameProject reports whether rules and processors are unchanged, whatever the settings for failed assets and for
// kiln.ids.
func (s *Build) SameProject() bool {
	for o := results.OnError(0); o < results.OnErrors; o++ {
		for _, locked := range []bool{false, true} {
			if s.Prev.Signature == s.workspace.Signature(onErrorText(o), locked) {
				return true
			}
		}
	}
	return false
}

// Signature is a hash of everything that decides what is built, except files.
func (s *Build) Signature(o results.OnError) digest.Hash {
	return s.workspace.Signature(onErrorText(o), s.locked)
}

func onErrorText(o results.OnError) string {
	if o == results.Fail {
		return ""
	}
	return o.String()
}

// OutputsSame reports whether all outputs are unchanged since the build before.
func (s *Build) OutputsSame() bool {
	if s.Pres == nil {
		if s.trusting() && len(s.workspace.CompareNamed(s.Prev, s.named, s.changes.Workers)) == 0 {
			return true
		} // an edited file may have other names, about which the system reports nothing, because equal products are one file
		s.Pres = outputs.Compare(s.workspace, s.Prev, s.since, s.changes.Workers)
	}
	return len(s.Pres) == 0
}

// ReadAll reads the whole snapshot. If it is damaged, only the names of the outputs are used.
func (s *Build) ReadAll() (why string) {
	if s.Prev == nil {
		return ""
	}
	outputs, err := s.Prev.Outputs.All()
	var tasks *state.Tasks
	if err == nil {
		tasks, err = s.Prev.Tasks()
	}
	if err != nil {
		outputs = outputs[:0] // the list of Kiln's own files is still known
		s.Prev.Outputs.Paths(func(folder, name string) { outputs = append(outputs, state.Output{File: path.Join(folder, name)}) })
		s.Prev, s.Before.Outputs = nil, outputs
		return err.Error()
	}
	s.Before = &plan.Before{Outputs: outputs}
	for _, t := range tasks.All() {
		if !t.Gone {
			s.Before.Tasks = append(s.Before.Tasks, t)
		}
	}
	s.Hashes = make([]digest.Hash, 0, len(s.Prev.Sources.Files))
	for i := range s.Prev.Sources.Files {
		s.Hashes = append(s.Hashes, s.Prev.Sources.Files[i].Hash)
	}
	return ""
}

// Settled is the number of the build up to which the snapshot knows all outputs; outputs of newer traces may exist too.
func (s *Build) Settled() uint64 {
	if s.Prev == nil || s.Killed || s.Prev.Project != s.workspace.Text {
		return 0
	}
	return s.Prev.Build
}
