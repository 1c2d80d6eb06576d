package upkeep

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/mention"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/notices"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Check finds errors in names and references without running anything.
type Check struct {
	P         *workspace.Workspace
	Table     *source.Table // of source files, as they are now
	Set       *asset.Table
	Messages  diag.List       // about rules, settings and files
	Prev      *state.Snapshot // of the last build; nil: there is none, or its source roots differ
	SameRules bool            // rules and processors are unchanged since the last build

	other map[string]bool // displayed paths of files that changed since the last build
}

// Run returns Messages and what it finds: first names, then what jobs reported about unchanged files, then references.
func (c *Check) Run() diag.List {
	c.other = map[string]bool{}
	c.Messages = append(c.Messages, IdleRules(c.P, c.Table, c.Set, c.Messages)...)
	c.names()
	c.Messages = append(c.Messages, ship.CheckNumbers(c.P.Project)...)
	if c.Prev != nil {
		c.remembered()
		c.references()
	}
	return c.Messages
}

func (c *Check) display(p string) string {
	_, root, _ := c.Table.Find(p)
	return c.P.Prefixes()[root] + p
}

// pathOf is the path of a changed entry.
func pathOf(e source.Difference) string { return path.Join(e.Folder, cmp.Or(e.Now, e.Was).Name) }

// names finds assets whose ids collide, and files whose content does not match their names.
func (c *Check) names() {
	for i := range c.Set.Assets {
		a := &c.Set.Assets[i]
		if other := a.Collides; other != "" {
			if path.Dir(other) == path.Dir(a.Path) {
				other = path.Base(other)
			}
			c.Messages = append(c.Messages, source.CaseCollision(c.display(a.Path), other))
		}
		if i, _, ok := c.Table.Find(a.Path); ok && c.Table.At(i).Trouble == source.LFSPointer {
			c.Messages = append(c.Messages, source.LFS(c.display(a.Path)))
		}
	}
}

// remembered returns the messages of jobs of the last build about files that have not changed since.
func (c *Check) remembered() {
	known := map[string]bool{}
	for _, m := range c.Messages {
		known[m.ID()] = true
	}
	old, _ := notices.Decode(c.Prev.Notices)
	missing := map[string]string{} // paths of the assets that should make something, by message
	for _, x := range old.Missing {
		if a := c.Set.Find(x.To); a != nil {
			missing[x.Message.ID()] = c.display(a.Path)
		}
	}
	for _, m := range old.Messages() {
		known[m.ID()] = missing[m.ID()] == "" // of rules and names as they were
	}
	entries, folders := c.Table.Differences(c.Prev.Sources)
	for _, p := range folders {
		c.other[c.display(p)] = true
	}
	for _, e := range entries {
		for _, prefix := range c.P.Prefixes() {
			c.other[prefix+pathOf(e)] = true
		}
	}
	if !c.SameRules {
		return // settings may have changed
	}
	for _, m := range diag.Decode[*diag.Message](c.Prev.Messages) {
		job := m.File != "" && m.Code != diag.NeedsFailed && m.Code != diag.StateDamaged && m.Code != diag.OutputUnwritable
		if job && !known[m.ID()] && !c.other[m.File] && !c.differs(missing[m.ID()]) {
			c.Messages = append(c.Messages, m)
		}
	}
}

// differs reports whether a file, or a file in a folder, changed since the last build; of "", nothing did.
func (c *Check) differs(file string) bool {
	for p := range c.other {
		if file != "" && (p == file || strings.HasPrefix(p, file+"/")) {
			return true
		}
	}
	return false
}

// mostRemoved is how many removed files are looked for in others.
const mostRemoved = 10_000

// references finds, for each file removed since the last build, the assets whose jobs read it or asked
// for it, and whose files still name it.
func (c *Check) references() {
	tasks, err := c.Prev.Tasks()
	entries, _ := c.Table.Differences(c.Prev.Sources)
	if err != nil || len(entries) > mostRemoved {
		return
	}
	var before *asset.Table
	var added []string
	for _, e := range entries {
		if p := pathOf(e); e.Was == nil {
			added = append(added, p)
		}
	}
	said := map[string]bool{}
	for _, e := range entries {
		gone := pathOf(e)
		if _, _, there := c.Table.Find(gone); there || e.Was == nil {
			continue
		}
		if before == nil {
			before, _, _ = c.P.Evaluate(c.Prev.Sources)
		}
		names := []string{gone}
		asked := tasks.Looked(state.Subject(state.PathSubject, gone))
		if a := before.ByPath(gone); a != nil && c.Set.Find(a.ID) == nil {
			names = append(names, plan.NamesOf(a)...)
			for _, name := range plan.NamesOf(a) {
				asked = slices.Concat(asked, tasks.Looked(state.Subject(state.AssetSubject, name)))
				for _, platform := range c.P.PlatformNames() {
					asked = append(asked, tasks.Looked(state.Subject(state.TaskSubject, task.Subject{Platform: platform, Asset: name}.String()))...)
				}
			}
		}
		for _, n := range asked {
			at := tasks.At(n)
			a := c.Set.Find(task.ParseSubject(at.Subject).Asset)
			if a == nil || at.Gone || a.Folder || a.Path == gone || c.other[c.display(a.Path)] || said[a.Path+"\x00"+gone] {
				continue
			}
			if m := c.reference(a, gone, names, added); m != nil {
				said[a.Path+"\x00"+gone] = true
				c.Messages = append(c.Messages, m)
			}
		}
	}
}

// maxReferrer is the size of the largest file that is searched, in bytes.
const maxReferrer = 16 << 20

// reference is the message that an asset's file names something that was removed, or nil.
func (c *Check) reference(a *asset.Asset, gone string, names, added []string) *diag.Message {
	_, root, ok := c.Table.Find(a.Path)
	if !ok {
		return nil
	}
	text, err := disk.ReadText(c.Table.Abs(root, a.Path), maxReferrer)
	if err != nil {
		return nil
	}
	found := mention.Find(text, a.Path, names...)
	if len(found) == 0 {
		return nil
	}
	at := found[0]
	pos := diag.Pos{File: c.display(a.Path), Line: at.Line, Column: at.Column}
	m := diag.Errorf(diag.SourceMissing, pos, "%s is named here, and was removed since the last build", gone).
		WithSource(text, utf8.RuneCountInString(at.Written))
	same := slices.IndexFunc(added, func(p string) bool { return path.Base(p) == path.Base(gone) })
	switch near := diag.Nearest(gone, added); {
	case same >= 0:
		m.WithHint("did you mean %q?", added[same])
	case near != "":
		m.WithHint("did you mean %q?", near)
	default:
		m.WithHint("correct the name, or put the file back")
	}
	return m
}
