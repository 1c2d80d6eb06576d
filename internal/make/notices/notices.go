package notices

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/references"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Notices are messages that do not come from jobs: about rules, source files, and what is made from products. They are
// kept from build to build until something that they are about changes.
type Notices struct {
	Rules   diag.List            `json:"rules,omitempty"`
	Folders []source.Remark      `json:"folders,omitempty"` // in the order of the table
	Empty   []emptyFile          `json:"empty,omitempty"`   // sorted by asset
	Shipped diag.List            `json:"shipped,omitempty"`
	Lacks   []lack               `json:"lacks,omitempty"`   // why, of those in Shipped that say that a parcel lacks something
	Left    []string             `json:"left,omitempty"`    // parcels that stay as they are, below the output folder
	Missing []references.Missing `json:"missing,omitempty"` // products that others refer to
	Failed  int                  `json:"failed,omitempty"`  // how many assets failed

	Failures []references.Failure `json:"failures,omitempty"` // jobs that failed although their runs succeeded
	Held     int                  `json:"held,omitempty"`     // how many assets are held by ignore
}

// emptyFile is the message about an asset without content.
type emptyFile struct {
	Asset string `json:"asset"`
	Path  string `json:"path"`
	*diag.Message
}

// lack is ship.Lack with the number of its message.
type lack struct {
	ship.Lack
	Number int `json:"number"`
}

// Messages returns all of them in the order of display.
func (n *Notices) Messages() diag.List {
	l := slices.Concat(n.Rules, source.Messages(n.Folders))
	for _, e := range n.Empty {
		l = append(l, e.Message)
	}
	for i := range n.Missing {
		l = append(l, n.Missing[i].Message)
	}
	for i := range n.Failures {
		if f := &n.Failures[i]; f.Kept {
			l = append(l, f.Messages...)
		}
	}
	return append(l, n.Shipped...)
}

// Unread reports whether a file or folder could not be read, so that it is not known what there is. Of what else is wrong with files, it is
// known: one whose name cannot be counts as absent.
func (n *Notices) Unread() bool {
	return slices.ContainsFunc(n.Folders, func(r source.Remark) bool { return r.Code == diag.SourceUnreadable })
}

// Encode is what a snapshot has of them.
func (n *Notices) Encode() []byte {
	if len(n.Rules)+len(n.Folders)+len(n.Empty)+len(n.Shipped)+len(n.Left)+len(n.Missing)+len(n.Failures)+n.Failed+n.Held == 0 {
		return nil
	}
	b, _ := json.Marshal(n) // it has only strings and numbers
	return b
}

// Failing are the messages of the jobs that failed although their runs succeeded, by subject.
func (n *Notices) Failing() map[string]diag.List { return references.Messages(n.Failures) }

// Failures are the jobs that failed in the build before although their runs succeeded.
func Failures(prev *state.Snapshot) []references.Failure {
	if prev == nil {
		return nil
	}
	n, _ := Decode(prev.Notices)
	return n.Failures
}

// Decode reads the text of Encode. ok is false if it is damaged.
func Decode(b []byte) (n Notices, ok bool) {
	if len(b) == 0 {
		return n, true
	}
	err := json.Unmarshal(b, &n)
	for i := range n.Lacks {
		l := &n.Lacks[i]
		if err != nil || l.Number < 0 || l.Number >= len(n.Shipped) {
			return n, false
		}
		l.Message = n.Shipped[l.Number]
	}
	return n, err == nil
}

// SetShipped stores the messages about parcels and constants.
func (n *Notices) SetShipped(res *ship.Result) {
	n.Shipped, n.Lacks, n.Left = res.Messages, nil, res.Left
	for _, l := range res.Lacks {
		n.Lacks = append(n.Lacks, lack{l, slices.Index(res.Messages, l.Message)})
	}
}

// findEmpty returns the message about an asset without content: most often an interrupted export or copy. Names that
// begin with a dot are meant to be empty (.gitkeep).
func findEmpty(p *workspace.Workspace, t *source.Table, a *asset.Asset) (e emptyFile, ok bool) {
	if a.Folder || strings.HasPrefix(path.Base(a.Path), ".") || a.Allows(&diag.Message{Severity: diag.Warning, Code: diag.EmptyFile}) {
		return e, false
	}
	at, root, ok := t.Find(a.Path)
	if !ok || t.At(at).Stat.Size > 0 {
		return e, false
	}
	m := diag.Warningf(diag.EmptyFile, diag.Pos{File: p.Prefixes()[root] + a.Path}, "the file is empty").
		WithHint("write it again, or name it in %s", source.IgnoreFile)
	return emptyFile{a.ID, a.Path, m}, true
}

// Of returns the notices about the rules and all source files. Those about parcels and constants are kept.
func Of(p *workspace.Workspace, t *source.Table, set *asset.Table, rules diag.List, before Notices) Notices {
	n := before
	n.Rules, n.Folders, n.Empty = append(rules, foreign(p, t, set)...), t.Report(p.Prefixes(), nil, nil), nil
	var paths []string
	for i := range set.Assets {
		paths = append(paths, set.Assets[i].Path)
	}
	n.Look(p, t, paths, set.ByPath)
	return n
}

// foreign warns about files of source formats in folders of atlases, which do not read them.
func foreign(p *workspace.Workspace, t *source.Table, set *asset.Table) (l diag.List) {
	var atlases []*asset.Asset
	for i := range set.Assets {
		if a := &set.Assets[i]; a.Folder && a.Processor == "atlas" {
			atlases = append(atlases, a)
		}
	}
	if len(atlases) == 0 {
		return nil
	}
	claimed := asset.Claimed(p.Processors())
	t.Each(func(root int, file string, _ *source.File) {
		e := processors.SourceFormat(file)
		if e == "" || claimed[e] {
			return
		}
		if i := slices.IndexFunc(atlases, func(a *asset.Asset) bool { return strings.HasPrefix(file, a.Path+"/") }); i >= 0 {
			pos := diag.Pos{File: p.Prefixes()[root] + file}
			l = append(l, diag.Warningf(diag.AtlasForeign, pos, "the atlas %s does not read this file", atlases[i].ID).
				WithHint("export it as an image, or move it elsewhere"))
		}
	})
	return l
}

// Look updates which of some files, given by path, are empty.
func (n *Notices) Look(p *workspace.Workspace, t *source.Table, paths []string, find func(path string) *asset.Asset) {
	empty := map[string]emptyFile{}
	for _, e := range n.Empty {
		empty[e.Path] = e
	}
	for _, path := range paths {
		a := find(path)
		if a == nil || a.Path != path {
			delete(empty, path)
		} else if e, is := findEmpty(p, t, a); !is {
			delete(empty, path)
		} else if was, ok := empty[path]; !ok || was.Message.ID() != e.Message.ID() {
			empty[path] = e
		}
	}
	n.Empty = nil
	for _, path := range slices.Sorted(maps.Keys(empty)) {
		n.Empty = append(n.Empty, empty[path])
	}
	slices.SortStableFunc(n.Empty, func(a, b emptyFile) int { return strings.Compare(a.Asset, b.Asset) })
}

// Keep returns the notices of the build before, without those about changed files. ok is false if those about rules may
// differ too.
func Keep(p *workspace.Workspace, prev *state.Snapshot, t *source.Table, changed []string, find func(path string) *asset.Asset) (n Notices, ok bool) {
	if n, ok = Decode(prev.Notices); !ok {
		return n, false
	}
	folders, ok := t.Since(prev.Sources)
	n.Folders = t.Report(p.Prefixes(), n.Folders, append([]int{}, folders...))
	if !ok || n.Unread() && ship.Wanted(p.Project) {
		return n, false // what there is to be packed is not known
	}
	n.Look(p, t, changed, find)
	return n, true
}
