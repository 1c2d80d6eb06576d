package workspace

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Detect is how a build finds changed source files.
type Detect uint8

const (
	ByStat  Detect = iota // by size, times and inode
	ByHash                // by reading all files
	ByList                // the caller lists files that may have changed; all others count as unchanged
	ByWatch               // the caller has watched files and outputs since the build before, and lists those that changed
)

// Changes says which source files a build checks, and what the caller knows about them.
type Changes struct {
	Detect  Detect
	Changed []string // with ByList: files and folders, from source.ParseList; with ByWatch all that may have changed, absolute
	From    string   // with ByList: a folder to which paths may be relative, besides the project's folder and its parents; absolute or ""
	Trusted bool     // with ByWatch: the watch covers all the time since the build before
	Workers int
}

// Scanned is the result of a scan.
type Scanned struct {
	Table           *source.Table
	Contents, Stats bool      // whether contents, or only stats, differ from the table before
	Notes           diag.List // why a list of changes was not enough
}

// Scan checks the source files. prev is nil if there is no state of a build before.
func Scan(p *Workspace, prev *state.Snapshot, c Changes) (found Scanned, err error) {
	o, err := p.ScanOptions()
	if err != nil {
		return found, err
	}
	o.Workers, o.Hash = p.Workers(c.Workers), c.Detect == ByHash
	var before *source.Table
	if prev != nil && slices.Equal(prev.Sources.Roots, o.Roots) {
		before = prev.Sources
		o.Relist = prev.Project != p.Text
	}
	switch {
	case c.Detect == ByList:
		if o.List = list(p, c); prev == nil || o.Relist || before == nil || p.Booted() || p.UnderWay() {
			o.List = nil
			m := &diag.Message{Severity: diag.Note, Code: diag.ListNotEnough, Text: "all source files were checked, not only those in the list: " + whyNoList(p, prev, before, o.Relist)}
			found.Notes = append(found.Notes, m.WithHint("the next build can go by a list again"))
		}
	case c.Detect == ByWatch && c.Trusted:
		o.List = &source.List{Paths: c.Changed, Roots: p.RootNames()}
	}
	if p.Resident != nil {
		o.Spare, p.Resident.Spare = p.Resident.Spare, nil
	}
	found.Table, found.Contents, found.Stats, err = source.Scan(before, o)
	var gone *source.RootError
	if errors.As(err, &gone) { // removed since it was found
		return found, diag.List{p.NoRoot(gone.Root)}
	}
	return found, err
}

// whyNoList returns why a list of changes is not enough, or "".
func whyNoList(p *Workspace, prev *state.Snapshot, before *source.Table, relist bool) string {
	switch {
	case prev == nil:
		return "no build before this one left a record of them"
	case relist:
		return "kiln.toml is not what it was"
	case before == nil:
		return "the source roots are not where they were"
	case p.Booted():
		return "the system was started since the build before this one"
	}
	return "the build before this one did not come to its end"
}

// list is the caller's list of changed files.
func list(p *Workspace, c Changes) *source.List {
	l := &source.List{Paths: c.Changed, Roots: p.RootNames()}
	if c.From != "" {
		l.Bases = append(l.Bases, c.From)
	}
	for dir := p.Dir; ; dir = filepath.Dir(dir) {
		l.Bases = append(l.Bases, dir)
		if dir == filepath.Dir(dir) {
			return l
		}
	}
}

// unsynced is how long before the last build files may have been written that a power failure did not leave on disk:
// systems write after at most half a minute, disks when they like. Such a file may have its size and times, but contain
// zeros.
const unsynced = 5 * time.Minute

// Suspect returns the time from which on blobs and outputs are not trusted by their stat, in nanoseconds since 1970; 0:
// all are trusted. None are if the request does not trust size and times. After a start of the system, those written
// shortly before the last build are not.
func Suspect(p *Workspace, detect Detect) (since int64, err error) {
	if p.Booted() {
		since = math.MinInt64
		if info, err := os.Stat(p.SnapshotPath()); err == nil {
			since = info.ModTime().Add(-unsynced).UnixNano()
		}
	}
	if detect == ByHash {
		since = math.MinInt64
	}
	if since == 0 {
		return 0, nil
	}
	blobs, err := cas.Open(p.CasDir())
	if err != nil {
		return since, err
	}
	return since, blobs.Distrust(since)
}
