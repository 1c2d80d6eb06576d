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

// Detect is how a build sees that source files changed.
type Detect uint8

const (
	ByStat  Detect = iota // size, times and inode say which files to read
	ByHash                // all of them are
	ByList                // the caller lists the files that may have changed; all others are taken as unchanged
	ByWatch               // the caller has watched them since the build before, and lists those that changed; so with outputs
)

// Changes says which source files a build checks, and what the caller knows of them.
type Changes struct {
	Detect  Detect
	Changed []string // with ByList: files and folders, as source.ParseList gives them; with ByWatch all that may have changed, absolute
	From    string   // with ByList: what paths may be relative to besides the project's folder and those that hold it; absolute or ""
	Trusted bool     // with ByWatch: what was watched was watched since the build before
	Workers int
}

// Scanned is what a scan found.
type Scanned struct {
	Table           *source.Table
	Contents, Stats bool      // whether contents, or only what files look like, differ from the table before
	Notes           diag.List // about a list that was not enough to go by
}

// Scan checks the source files. Prev is nil if nothing is known of a build before.
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
	if errors.As(err, &gone) { // since it was looked for
		return found, diag.List{p.NoRoot(gone.Root)}
	}
	return found, err
}

// whyNoList says why a list of changes is not enough to go by.
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

// unsynced is how long before the last build files may have been written that a computer which lost power did not put on its disk: systems
// do so after half a minute at most, disks when they like. Such a file may have its size and times, and zeros in it.
const unsynced = 5 * time.Minute

// Suspect returns since when blobs and outputs are not trusted for what they look like, in nanoseconds since 1970; 0: all are. None are
// if the request does not trust size and times; if the computer was started since the last build, those written shortly before that are
// not.
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
