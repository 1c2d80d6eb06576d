// Package asset finds the assets of a table of source files, and their settings.
//
// It is a pure function of names: it opens no file. The rules, in full in docs/project-file.md:
//
//   - A file has the processor that claims its extension, the project's own before the built-in ones, the
//     longest extension first; or copy.
//   - Rules apply in order: those of kiln.toml, then those of each rules.toml, shallow folders before deep
//     ones. The last rule that names a processor decides it. Settings are merged field by field:
//     defaults, then the platform's for that processor, then each rule's, each followed by its own for the platform.
//   - The settings of a rule with a processor are for that processor: they are ignored for assets with another one,
//     and a setting that the processor does not have is an error. The settings of a rule without a processor are for all
//     processors that have them, and an error only if no matching asset's processor does.
//   - A rule may name several processors: each makes products of the same assets. A setting applies to those that have
//     it; a table with the name of one of them applies to that one alone.
//   - A rule for folders makes one asset of a folder. Files in it whose extension its processor names belong
//     to it and are not assets, unless a later rule, or one with their exact path, names a processor for them.
package asset

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
)

// None is the processor of files that are not assets.
const None = "none"

// Default is the processor of files that no other processor claims.
const Default = "copy"

// Namespace of asset UUIDs: the UUID version 5 of "kiln-pipeline" in the DNS namespace. It never changes.
var Namespace = uuid.MustParse("a99d7655-8b76-518b-ae61-e3847daad192")

// Asset is a named unit of source content.
type Asset struct {
	ID        string // the path (a folder's with a slash at the end), unless a rule sets another id
	UUID      string // lower case
	Path      string // path of the source file, or of the folder without a slash at the end; "" if it has none
	Folder    bool
	Declared  bool   // by an entry of [[assets]]: it is found by its id only, and its source may be missing or shared
	Processor string // for all platforms, names separated by ", "; a platform may have another, see Resolved

	Follows bool // is added to every parcel in which something refers to it, required or not

	Meta []project.Metadata // by key, the last value of the rules. Assets with the same rules share it: do not change it

	allow *[]project.Named // accepted codes of warnings; nil: none

	// Collides is the path of another asset whose id differs only in case or in the composition of accents; ""
	// if there is none. If a rule sets one of the ids, that is an error of the rules instead.
	Collides string

	// Resolved has an entry for each processor on each platform on which the asset is built: platforms in the project's order, on
	// each the processors in the order of their rule. Assets with the same rules share it: do not change it.
	Resolved []Resolved
}

// Resolved is the settings of an asset on one platform for one processor.
type Resolved struct {
	Platform  string
	Processor string
	Named     settings.Span // where a rule names the processor; zero: it claims the extension
	Settings  any           // pointer to a struct of the type of the processor's Info.Settings, or nil; do not change it
	Canonical []byte        // settings.Canonical of Settings
	Key       digest.Hash   // hash of Canonical
	// Processors that run on the source file first, one after the other; the asset's processor gets the result of
	// the last one.
	Import []Import
	ByHand

	layers  []settings.Layer
	unasked bool // no rule names the processor, and none claims the extension: files are copied
}

// Import is a step before an asset's processor.
type Import struct {
	Processor string
	Settings  string // from the rule, a JSON object
	ByHand    string // from the rule, in the form of ByHand.Text
}

// ByHand is what is said by hand of what a job depends on, besides what it looks at by itself. Patterns of what a rule gives to an import
// have no place.
type ByHand struct {
	Inputs []project.Pattern // globs of source files
	Needs  []project.Pattern // patterns of assets
	Ignore []project.Pattern // patterns of what it finds by itself and may change without making it run, as project.CutFound has them
}

// Text encodes the dependencies without the places of the patterns; "" if there are none.
func (h ByHand) Text() string {
	var b strings.Builder
	for _, p := range h.Inputs {
		fmt.Fprintf(&b, "input %q\n", p.Text)
	}
	for _, p := range h.Needs {
		fmt.Fprintf(&b, "need %q\n", p.Text)
	}
	for _, p := range h.Ignore {
		fmt.Fprintf(&b, "ignore %q\n", p.Text)
	}
	return b.String()
}

// Input returns the glob that matches a source file, or that equals the name; nil if there is none.
func (h ByHand) Input(name string) *project.Pattern {
	for i, p := range h.Inputs {
		if p.Text == name || MatchesFile(p.Text, name) {
			return &h.Inputs[i]
		}
	}
	return nil
}

// Need returns the pattern that means an asset with this id, or that equals the name; nil if there
// is none.
func (h ByHand) Need(name string) *project.Pattern {
	for i, p := range h.Needs {
		if p.Text == name || Matches(p.Text, name) {
			return &h.Needs[i]
		}
	}
	return nil
}

// Ignored is the pattern under ignore that names what a job found: a source file by its path, or with a mark before its name something
// else; nil if there is none.
func (h ByHand) Ignored(mark, name string) *project.Pattern {
	match := func(pattern string) bool {
		m, glob := project.CutFound(pattern)
		return m == mark && doublestar.MatchUnvalidated(glob, name)
	}
	for i, p := range h.Ignore {
		if glob, without := project.SplitPattern(p.Text); match(glob) && !slices.ContainsFunc(without, match) {
			return &h.Ignore[i]
		}
	}
	return nil
}

// byHandOf reads what Text wrote; what it did not write is left out.
func byHandOf(text string) (h ByHand) {
	for line := range strings.Lines(text) {
		kind, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		pattern, err := strconv.Unquote(quoted)
		switch {
		case err != nil:
		case kind == "input":
			h.Inputs = append(h.Inputs, project.Pattern{Text: pattern})
		case kind == "need":
			h.Needs = append(h.Needs, project.Pattern{Text: pattern})
		case kind == "ignore":
			h.Ignore = append(h.Ignore, project.Pattern{Text: pattern})
		}
	}
	return h
}

// and returns the union.
func (h ByHand) and(more ByHand) ByHand {
	return ByHand{slices.Concat(h.Inputs, more.Inputs), slices.Concat(h.Needs, more.Needs), slices.Concat(h.Ignore, more.Ignore)}
}

// Origins returns where each setting comes from.
func (r *Resolved) Origins() []settings.Origin { return settings.Origins(r.Settings, r.layers) }

// Allowed returns the accepted codes of warnings, and where rules set them.
func (a *Asset) Allowed() []project.Named {
	if a.allow == nil {
		return nil
	}
	return *a.allow
}

// Allows reports whether a message is an accepted warning.
func (a *Asset) Allows(m *diag.Message) bool {
	return m.Severity != diag.Error && slices.ContainsFunc(a.Allowed(), func(n project.Named) bool { return n.Name == string(m.Code) })
}

// On returns the asset's settings on a platform, one for each processor; nothing if it is not built
// there.
func (a *Asset) On(platform string) []Resolved {
	from := 0
	for from < len(a.Resolved) && a.Resolved[from].Platform != platform {
		from++
	}
	to := from
	for to < len(a.Resolved) && a.Resolved[to].Platform == platform {
		to++
	}
	return a.Resolved[from:to]
}

// ForJob returns the asset for processors.
func (a *Asset) ForJob() processor.Asset {
	return processor.Asset{ID: a.ID, UUID: a.UUID, Path: a.Path, Folder: a.Folder}
}

// Metadata is what rules say of the asset under meta, by key; nil if that is nothing.
func (a *Asset) Metadata() map[string]any {
	if len(a.Meta) == 0 {
		return nil
	}
	all := make(map[string]any, len(a.Meta))
	for _, m := range a.Meta {
		all[m.Key] = m.Value
	}
	return all
}

// MetaJSON is Metadata as a JSON object.
func (a *Asset) MetaJSON() string {
	if len(a.Meta) == 0 {
		return "{}"
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a.Metadata()); err != nil {
		return "{}" // no value is of another kind: see project.Metadata
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// UUID of an asset id, the same on every machine: version 5 (RFC 9562, 5.5) of Fold(id) in Namespace.
func UUID(id string) string {
	// uuid.NewSHA1 returns the same, with five allocations instead of one.
	text := make([]byte, 0, 128)
	sum := sha1.Sum(append(append(text, Namespace[:]...), Fold(id)...))
	u := uuid.UUID(sum[:16])
	u[6] = u[6]&0x0f | 5<<4
	u[8] = u[8]&0x3f | 0x80
	return u.String()
}

// Fold makes ids comparable: NFC, in lower case. It normalises because macOS may return the decomposed form of a
// name that git or another system writes composed, and again after lowering, which can decompose.
func Fold(id string) string {
	lower := true
	for i := range len(id) {
		c := id[i]
		if c >= 0x80 {
			return norm.NFC.String(strings.ToLower(norm.NFC.String(id)))
		}
		lower = lower && (c < 'A' || 'Z' < c)
	}
	if lower {
		return id
	}
	return strings.ToLower(id)
}

// Table has all assets of a project.
type Table struct {
	Assets []Asset // sorted by id, bytewise
	Named  *Named

	byPath  []int32          // indices of Assets that are not declared, sorted by Path
	members map[string]int32 // source file in a folder asset to the index of the folder asset
	byUUID  func() map[string]int32
}

// ByID returns an asset, or nil.
func (t *Table) ByID(id string) *Asset {
	i, ok := slices.BinarySearchFunc(t.Assets, id, func(a Asset, id string) int { return strings.Compare(a.ID, id) })
	if !ok {
		return nil
	}
	return &t.Assets[i]
}

// ByPath returns the asset whose primary source is this file or folder, or nil.
func (t *Table) ByPath(path string) *Asset {
	i, ok := slices.BinarySearchFunc(t.byPath, path, func(i int32, path string) int { return strings.Compare(t.Assets[i].Path, path) })
	if !ok {
		return nil
	}
	return &t.Assets[t.byPath[i]]
}

// ByUUID returns an asset, or nil. The first call makes an index of all.
func (t *Table) ByUUID(uuid string) *Asset {
	if i, ok := t.byUUID()[uuid]; ok {
		return &t.Assets[i]
	}
	return nil
}

func (t *Table) indexUUIDs() map[string]int32 {
	all := make(map[string]int32, len(t.Assets))
	for i := range t.Assets {
		if _, taken := all[t.Assets[i].UUID]; !taken {
			all[t.Assets[i].UUID] = int32(i)
		}
	}
	return all
}

// Find returns the asset that a name means: its id, its path, a folder's path without the slash, or the result of
// processor.ByUUID; nil if there is none.
func (t *Table) Find(name string) *Asset {
	if a := t.ByID(name); a != nil {
		return a
	}
	if a := t.ByPath(strings.TrimSuffix(name, "/")); a != nil {
		return a
	}
	if uuid, ok := processor.UUIDOf(name); ok {
		return t.ByUUID(uuid)
	}
	return nil
}

// Meant returns the assets that a pattern means, as in parcels, by id.
func (t *Table) Meant(pattern string) (list []*Asset) {
	glob, without := project.SplitPattern(pattern)
	byName := t.Find(glob)
	for i := range t.Assets {
		if a := &t.Assets[i]; (a == byName || a.MeantBy(glob)) && !a.takenOut(without) {
			list = append(list, a)
		}
	}
	return list
}

// Owner returns the asset that a source file is or belongs to, or nil.
func (t *Table) Owner(path string) *Asset {
	if i, ok := t.members[path]; ok {
		return &t.Assets[i]
	}
	return t.ByPath(path)
}

// Members lists the source files that belong to a folder asset, sorted.
func (t *Table) Members(a *Asset) []string {
	var list []string
	for path, i := range t.members {
		if &t.Assets[i] == a {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// Nearest is the most similar asset id, or "".
func (t *Table) Nearest(name string) string {
	ids := make([]string, len(t.Assets))
	for i := range t.Assets {
		ids[i] = t.Assets[i].ID
	}
	return diag.Nearest(name, ids)
}
