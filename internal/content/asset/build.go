package asset

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
)

// Input is the input of Build.
type Input struct {
	// Files are paths relative to the source roots, after overlay, sorted bytewise, each once.
	Files []string

	// Project has kiln.toml's rules, platforms and the places of its own processors' names.
	Project *project.Project

	// Rules are those of all rules.toml, the rules of each file together and in its order.
	Rules []project.Rule

	// Stages are those of the build: rules of other stages are ignored.
	Stages []string

	Processors []processor.Info // built-in
	Team       []processor.Info // of a team's own kiln
	Custom     []processor.Info // the project's own
}

// ranks returns the processors by precedence for extensions.
func (in *Input) ranks() [][]processor.Info {
	return [][]processor.Info{in.Custom, in.Team, in.Processors}
}

// Clash is an extension that two processors of the same rank claim. The first one gets the files.
type Clash struct{ Extension, First, Second string }

// Clashes finds such extensions in the first rank that claims them.
func Clashes(ranks ...[]processor.Info) []Clash {
	var list []Clash
	claimed := map[string]string{}
	for _, infos := range ranks {
		here := map[string]bool{}
		for _, info := range infos {
			for _, e := range info.Extensions {
				switch first, taken := claimed[e]; {
				case info.Folder:
				case !taken:
					claimed[e], here[e] = info.Name, true
				case here[e] && first != info.Name:
					list = append(list, Clash{e, first, info.Name})
				}
			}
		}
	}
	return list
}

// folders returns the folders of all files, sorted.
func (in *Input) folders() []string { return foldersOf(in.Files) }

// Build makes the assets. Messages are in the order of the rules, then of the ids, those about lines of one
// file in the order of these lines, errors first. The table has everything that is valid.
func Build(in Input) (*Table, diag.List) {
	b := newBuilder(in, func(path string) bool { _, found := slices.BinarySearch(in.Files, path); return found })
	b.checkStages()
	b.checkProject()
	b.folderAssets()
	b.fileAssets()
	b.declaredAssets()
	b.unknownSettings()
	b.unmatched()
	b.extensionClashes()
	return b.table()
}

type builder struct {
	in         Input
	rules      []project.Rule // all, in order
	files      *set
	folders    *set
	named      *Named
	infos      map[string]processor.Info
	extensions map[string]string // extension to default processor
	longest    int               // number of dots in the extension with the most
	clashes    []Clash
	clashing   map[string]bool // extension of a clash to whether it decided about a file
	platforms  []string

	assets  []Asset
	members map[string]string // file to the path of the folder asset that it belongs to
	claims  map[string]*claim // folder assets by path
	groups  map[string]*group // by chain of rules and default processor
	groupID []byte            // buffer for the key of groups
	matched []bool            // by rule
	states  []ruleState       // by rule
	pins    map[string]int32  // result of pinned to the rule that sets its id or UUID
	said    map[said]bool
	diags   diag.List
}

// claim is a folder asset and which files below it belong to it.
type claim struct {
	extensions map[string]bool
	rule       int32 // the last rule that names its processor
}

// said makes sure that a message is reported once, not for every asset.
type said struct {
	pos  diag.Pos
	text string
}

func (b *builder) add(m *diag.Message) {
	key := said{m.Pos, m.Text}
	if !b.said[key] {
		b.said[key] = true
		b.diags = append(b.diags, m)
	}
}

// sortMessages sorts messages, which were found in several rounds, into the order in which users fix them.
func (b *builder) sortMessages() {
	files := map[string]int{}
	for _, m := range b.diags {
		if _, seen := files[m.File]; !seen {
			files[m.File] = len(files)
		}
	}
	slices.SortStableFunc(b.diags, func(x, y *diag.Message) int {
		return cmp.Or(cmp.Compare(x.Severity, y.Severity), cmp.Compare(files[x.File], files[y.File]),
			cmp.Compare(x.Pos.Line, y.Pos.Line), cmp.Compare(x.Column, y.Column))
	})
}

// newBuilder makes a builder; exists reports whether a path is a file.
func newBuilder(in Input, exists func(path string) bool) *builder {
	b := &builder{
		in: in, infos: map[string]processor.Info{}, extensions: map[string]string{},
		members: map[string]string{}, claims: map[string]*claim{}, groups: map[string]*group{},
		pins: map[string]int32{}, said: map[said]bool{}, clashes: Clashes(in.ranks()...), clashing: map[string]bool{},
	}
	// The rules of one file stay together and in order, so comparing folders is enough.
	own := slices.Clone(in.Rules)
	slices.SortStableFunc(own, func(x, y project.Rule) int {
		return cmp.Or(cmp.Compare(depth(x.Base), depth(y.Base)), cmp.Compare(x.Base, y.Base))
	})
	b.rules = slices.DeleteFunc(slices.Concat(in.Project.Rules, own), func(r project.Rule) bool { return !in.inStages(&r) })
	slices.SortStableFunc(b.rules, func(x, y project.Rule) int { return cmp.Compare(last(x.Declares), last(y.Declares)) })
	b.files, b.folders = newSet(b.rules, false), newSet(b.rules, true)
	b.named = newNamed(b.rules, exists)
	b.matched = make([]bool, len(b.rules))
	b.states = make([]ruleState, len(b.rules))
	for _, infos := range in.ranks() {
		for _, info := range infos {
			if _, taken := b.infos[info.Name]; taken {
				continue
			}
			b.infos[info.Name] = info
			if info.Folder {
				continue
			}
			for _, e := range info.Extensions {
				if _, taken := b.extensions[e]; !taken {
					b.extensions[e] = info.Name
					b.longest = max(b.longest, strings.Count(e, "."))
				}
			}
		}
	}
	for _, p := range in.Project.Platforms {
		b.platforms = append(b.platforms, p.Name)
	}
	return b
}

// last sorts entries of [[assets]] after rules, so that they have precedence.
func last(is bool) int {
	if is {
		return 1
	}
	return 0
}

func depth(folder string) int {
	if folder == "" {
		return 0
	}
	return 1 + strings.Count(folder, "/")
}

// byExtension returns the processor that claims a file's name, the longest extension first, and that
// extension.
func (b *builder) byExtension(name string) (found, extension string) {
	lower := strings.ToLower(name)
	at := len(lower)
	for range b.longest {
		if at = strings.LastIndexByte(lower[:at], '.'); at <= 0 {
			break
		}
		if p, ok := b.extensions[lower[at:]]; ok {
			found, extension = p, lower[at:]
		}
	}
	if found == "" {
		return Default, ""
	}
	return found, extension
}

// folderAssets finds the folders that rules turn into assets.
func (b *builder) folderAssets() {
	if len(b.folders.exact) == 0 && len(b.folders.matchers) == 0 {
		return
	}
	var chain []int32
	for _, folder := range b.in.folders() {
		chain = b.folders.match(chain[:0], folder, parent(folder))
		if len(chain) == 0 {
			continue
		}
		for _, i := range chain {
			b.matched[i] = true
		}
		g := b.group(chain, "", true)
		if len(g.resolved) == 0 {
			if g.last < 0 {
				r := &b.rules[chain[0]]
				if r.UUID != "" { // as `kiln mv` wrote it: the folder was renamed since, and the rule with its processor names the old one
					const text = "the folder %q has a UUID, and no rule names a processor for it: each file in it is an asset"
					b.add(r.MatchSpan.Warningf(diag.RuleMatchesNothing, text, folder).
						WithHint("if it was renamed, give the rule that made it one asset the new name; else delete this rule"))
					continue
				}
				b.add(r.MatchSpan.Errorf(diag.MissingKey, "no rule names a processor for the folder %q", folder).
					WithHint("write processor = %q, or another that takes folders", cmp.Or(b.aFolderProcessor(), "atlas")))
			}
			continue
		}
		c := &claim{extensions: map[string]bool{}, rule: g.last}
		for _, r := range g.resolved {
			for _, e := range b.infos[r.Processor].Extensions {
				c.extensions[e] = true
			}
		}
		b.claims[folder] = c
		b.asset(chain, g, Asset{ID: folder + "/", Path: folder, Folder: true})
	}
}

func (b *builder) aFolderProcessor() string {
	for _, name := range b.processorNames() {
		if b.infos[name].Folder {
			return name
		}
	}
	return ""
}

// foldersOf returns the folders of files, sorted.
func foldersOf(files []string) []string {
	seen := map[string]bool{}
	last := ""
	for _, f := range files {
		p := parent(f)
		if p == last {
			continue
		}
		last = p
		for ; p != "" && !seen[p]; p = parent(p) {
			seen[p] = true
		}
	}
	list := make([]string, 0, len(seen))
	for p := range seen {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

// notAssets are files that Kiln itself reads.
var notAssets = []string{project.File, project.RulesFile, ".kilnignore", "kiln.ids"}

func (b *builder) fileAssets() {
	b.assets = slices.Grow(b.assets, len(b.in.Files))
	var chain []int32
	for _, file := range b.in.Files {
		chain = b.fileAsset(chain[:0], file)
	}
}

// fileAsset adds a file's asset, if it is one. It returns the matching rules, and reuses chain for
// them.
func (b *builder) fileAsset(chain []int32, file string) []int32 {
	folder := parent(file)
	name := strings.TrimPrefix(file[len(folder):], "/")
	if slices.Contains(notAssets, name) {
		return chain
	}
	chain = b.files.match(chain, file, folder)
	for _, i := range chain {
		b.matched[i] = true
	}
	if b.named.Any() {
		b.nameOfFile(file, chain)
	}
	if len(b.claims) > 0 && b.belongs(file, folder, chain) {
		return chain
	}
	byExtension, extension := b.byExtension(name)
	g := b.group(chain, byExtension, false)
	if len(b.clashes) > 0 && g.last < 0 {
		b.clashing[extension] = true
	}
	if len(g.resolved) > 0 {
		b.asset(chain, g, Asset{ID: file, Path: file})
	}
	return chain
}

// belongs assigns a file to the nearest folder asset above it that takes the file, unless a later
// rule or one with its exact path names a processor for it.
func (b *builder) belongs(file, folder string, chain []int32) bool {
	last := int32(-1)
	for _, i := range chain {
		if b.names(i) {
			last = i
			if b.isExact(i) {
				return false
			}
		}
	}
	lower := strings.ToLower(file[len(folder):])
	for ; folder != ""; folder = parent(folder) {
		c := b.claims[folder]
		if c == nil {
			continue
		}
		for i := range len(lower) {
			if lower[i] == '.' && c.extensions[lower[i:]] {
				if last > c.rule {
					return false
				}
				b.members[file] = folder
				return true
			}
		}
	}
	return false
}

// names reports whether a rule names a processor, for all platforms or one.
func (b *builder) names(rule int32) bool {
	r := &b.rules[rule]
	return len(r.Processors) > 0 || slices.ContainsFunc(r.Platforms, func(p project.RulePlatform) bool { return len(p.Processors) > 0 })
}

func (b *builder) isExact(rule int32) bool {
	return !project.IsGlob(b.rules[rule].Match) && b.rules[rule].List == nil
}

// asset adds an asset with the id and UUID that its rules set.
func (b *builder) asset(chain []int32, g *group, a Asset) {
	for _, i := range chain {
		r := &b.rules[i]
		if r.ID != "" {
			a.ID = b.idBy(r, a.Path)
		}
		if r.UUID != "" {
			a.UUID = r.UUID
		}
		if r.Follow != nil {
			a.Follows = *r.Follow
		}
		if r.Allow != nil {
			a.allow = r.Allow
		}
		if r.ID != "" || r.UUID != "" {
			b.pins[a.pinned()] = i
		}
	}
	if a.UUID == "" {
		a.UUID = UUID(a.ID)
	}
	a.Processor, a.Resolved, a.Meta = g.processor, g.resolved, g.meta
	b.assets = append(b.assets, a)
}

// idBy returns the id that a rule sets for the asset of a path.
func (b *builder) idBy(r *project.Rule, path string) string {
	id, ok := r.IDOf(path)
	if !ok {
		b.add(r.IDSpan.Errorf(diag.BadValue, "%q makes no id of %s", r.ID, path).WithHint("rename it, or leave it out of the rule"))
		return path
	}
	return id
}

// group returns what all assets with the same rules share.
func (b *builder) group(chain []int32, byExtension string, folder bool) *group {
	b.groupID = append(b.groupID[:0], byExtension...)
	b.groupID = append(b.groupID, 0)
	for _, i := range chain {
		b.groupID = binary.AppendUvarint(b.groupID, uint64(i))
	}
	if g, ok := b.groups[string(b.groupID)]; ok {
		return g
	}
	g := b.resolve(chain, byExtension, folder)
	b.groups[string(b.groupID)] = g
	return g
}

// table sorts the assets and reports duplicate ids and UUIDs.
func (b *builder) table() (*Table, diag.List) {
	slices.SortFunc(b.assets, func(x, y Asset) int {
		return cmp.Or(strings.Compare(x.ID, y.ID), strings.Compare(x.Path, y.Path))
	})
	t := &Table{Assets: b.assets, Named: b.named, byPath: make([]int32, 0, len(b.assets)), members: make(map[string]int32, len(b.members))}
	for i := range t.Assets {
		if !t.Assets[i].Declared {
			t.byPath = append(t.byPath, int32(i))
		}
	}
	slices.SortFunc(t.byPath, func(i, j int32) int { return strings.Compare(t.Assets[i].Path, t.Assets[j].Path) })
	owners := map[string]int32{}
	for i := range t.Assets {
		if t.Assets[i].Folder {
			owners[t.Assets[i].Path] = int32(i)
		}
	}
	for file, folder := range b.members {
		t.members[file] = owners[folder]
	}
	t.byUUID = sync.OnceValue(t.indexUUIDs)
	b.collisions(t.Assets)
	b.emptyParcels(t)
	b.emptyByHand(t)
	b.sortMessages()
	return t, b.diags
}

// What must be unique among assets.
const (
	sameUUID  = "have the same UUID"
	sameID    = "both want the id"
	similarID = "want ids that differ only in case or in how accents are composed"
)

func (b *builder) collisions(assets []Asset) {
	seen := make(map[string]int32, len(assets))
	uuids := map[string]int32{}
	for i := range assets {
		a := &assets[i]
		key := Fold(a.ID)
		if first, ok := seen[key]; ok {
			other := &assets[first]
			what := sameID
			if other.ID != a.ID {
				what = similarID
			}
			b.collide(a, other, what)
			continue
		}
		seen[key] = int32(i)
		if len(b.pins) == 0 {
			continue // UUIDs made of different ids are different
		}
		if first, ok := uuids[a.UUID]; ok {
			b.add(b.collision(a, &assets[first], sameUUID))
			continue
		}
		uuids[a.UUID] = int32(i)
	}
}

// collide reports an error of the rules if a rule sets the id, else one of these two assets.
func (b *builder) collide(a, other *Asset, what string) {
	_, pinned := b.pins[a.pinned()]
	if _, too := b.pins[other.pinned()]; pinned || too {
		b.add(b.collision(a, other, what))
		return
	}
	a.Collides, other.Collides = other.Path, a.Path
}

// collision has the place of the rule that sets the id or UUID of one of two assets, or else names a file.
func (b *builder) collision(a, other *Asset, what string) *diag.Message {
	text := fmt.Sprintf("%s and %s %s", a.called(), other.called(), what)
	switch {
	case what == sameUUID:
	case a.ID == other.ID:
		text += fmt.Sprintf(" %q", a.ID)
	default:
		text += fmt.Sprintf(": %q and %q", a.ID, other.ID)
	}
	for _, x := range []*Asset{a, other} {
		i, ok := b.pins[x.pinned()]
		if !ok {
			continue
		}
		span := b.rules[i].IDSpan
		if span.IsZero() || what == sameUUID {
			span = b.rules[i].UUIDSpan
		}
		if span.IsZero() {
			continue
		}
		m := span.Errorf(diag.DuplicateAssetID, "%s", text)
		if what == sameUUID {
			return m.WithHint("pin another UUID")
		}
		for _, y := range []*Asset{a, other} {
			if _, pinned := b.pins[y.pinned()]; !pinned || y.ID == y.Path {
				m.WithNote("%s has its id by its path, and %s by this rule", y.called(), x.called())
				return m.WithHint("pin another id, or rename %s", y.Path)
			}
		}
		return m.WithHint("pin another id")
	}
	return diag.Errorf(diag.DuplicateAssetID, diag.Pos{File: a.Path}, "%s", text).WithHint("rename one")
}
