// Package previous is what the last build left, as far as it can be read, and whether that is still so.
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

// Build is what the last build left, as far as it can be read, and whether that is still so.
type Build struct {
	workspace *workspace.Workspace
	changes   workspace.Changes // how source files are looked at
	named     []string          // with ByWatch: files and folders of the output folder that may differ, absolute
	onError   results.OnError
	locked    bool // kiln.ids may not change

	Prev      *state.Snapshot            // nil: there is none
	Before    *plan.Before               // what is taken out of it
	Hashes    []digest.Hash              // of its source files as they were: a build goes on with that table if no file changed
	Scanned   *source.Table              // a new one
	Pres      map[string]source.Presence // its outputs that differ; nil: not compared yet
	since     int64                      // files written since then are not trusted for what they look like, in nanoseconds since 1970; 0: all are
	Killed    bool                       // the last build did not come to its end, or left something lying about
	BlobsGone bool                       // somebody deleted all of them: those of products that are in no file have to be made again
	Upgrade   bool                       // the snapshot is of another version of Kiln
	Leftovers bool                       // something lies about that could not be deleted
}

func New(w *workspace.Workspace, changes workspace.Changes, named []string, onError results.OnError, locked bool) *Build {
	return &Build{workspace: w, changes: changes, named: named, onError: onError, locked: locked, Before: &plan.Before{}}
}

// Prepare deletes what a build that was killed left, and finds out what can be trusted.
func (s *Build) Prepare() (err error) {
	s.Tidy()
	_, gone := os.Lstat(s.workspace.CasDir())
	s.BlobsGone = gone != nil
	s.since, err = workspace.Suspect(s.workspace, s.changes.Detect)
	return err
}

// Tidy deletes what a build that was killed left lying about, scratch folders and outputs that had no name yet, and ends what it left
// running.
func (s *Build) Tidy() {
	if !s.workspace.UnderWay() {
		return
	}
	s.Killed = true
	command.EndOrphans(s.workspace.ScratchDir())
	s.Leftovers = errors.Join(os.RemoveAll(s.workspace.ScratchDir()), s.workspace.RemoveTemps()) != nil
}

// Read reads the snapshot. It returns why that is not as it should be, or "".
func (s *Build) Read() (why string, err error) {
	if s.Prev = s.workspace.Take(); s.Prev != nil {
		return "", nil
	}
	s.Prev, why, err = state.ReadSnapshot(s.workspace.SnapshotPath())
	s.Upgrade = strings.Contains(why, "version")
	return why, err
}

// trusting tells whether the build goes by what was watched. It does not if the build before is not the one since which was watched:
// then, and if there is none, everything is looked at.
func (s *Build) trusting() bool {
	return s.changes.Detect == workspace.ByWatch && s.Prev != nil && !s.Killed && s.Prev.Project == s.workspace.Text
}

// Scan looks at the source files.
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

// SameRules reports whether all that decides what is built besides files is as it was. What becomes of assets that fail matters only if
// there are some.
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

// SameProject reports whether rules and processors are as they were, whatever the build did about assets that fail and about kiln.ids.
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

// Signature is of all that decides what is built besides files.
func (s *Build) Signature(o results.OnError) digest.Hash {
	return s.workspace.Signature(onErrorText(o), s.locked)
}

func onErrorText(o results.OnError) string {
	if o == results.Fail {
		return ""
	}
	return o.String()
}

// OutputsSame reports whether all outputs are as the build before left them.
func (s *Build) OutputsSame() bool {
	if s.Pres == nil {
		if s.trusting() && len(s.workspace.CompareNamed(s.Prev, s.named, s.changes.Workers)) == 0 {
			return true
		} // one that was edited may have other names, about which the system reports nothing: products of the same content are one file
		s.Pres = outputs.Compare(s.workspace, s.Prev, s.since, s.changes.Workers)
	}
	return len(s.Pres) == 0
}

// ReadAll takes everything out of the snapshot. If it turns out to be damaged, there was none, but for the names of the outputs.
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
		outputs = outputs[:0] // which files are Kiln's own is still known
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

// Settled is the number of the build up to which the snapshot knows all outputs; what newer traces made may be in place too.
func (s *Build) Settled() uint64 {
	if s.Prev == nil || s.Killed || s.Prev.Project != s.workspace.Text {
		return 0
	}
	return s.Prev.Build
}
