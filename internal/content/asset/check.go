package asset

import (
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
)

// processorNames lists all processors, the project's own first.
func (b *builder) processorNames() []string {
	var names []string
	for _, info := range slices.Concat(b.in.ranks()...) {
		if !slices.Contains(names, info.Name) {
			names = append(names, info.Name)
		}
	}
	return names
}

// checkStages reports stages for which there is no rule.
func (b *builder) checkStages() {
	names := b.in.AllStages()
	for _, s := range b.in.Stages {
		if slices.Contains(names, s) {
			continue
		}
		m := diag.Errorf(diag.BadValue, diag.Pos{}, "no rule is for a stage %q", s)
		if m.Hint = diag.DidYouMean(s, names); m.Hint == "" {
			m.Hint = `write stage = "` + s + `" in a rule, or leave --stage out`
		}
		b.add(m)
	}
}

// AllStages are the stages for which there are rules, in the order of these.
func (in *Input) AllStages() (names []string) {
	for _, r := range slices.Concat(in.Project.Rules, in.Rules) {
		if r.Stage != "" && !slices.Contains(names, r.Stage) {
			names = append(names, r.Stage)
		}
	}
	return names
}

// inStages reports whether a rule applies in these stages.
func (in *Input) inStages(r *project.Rule) bool {
	return r.Stage == "" || slices.Contains(in.Stages, r.Stage)
}

// checkProject checks settings of processors and platforms, whether an asset uses them or not.
func (b *builder) checkProject() {
	for i := range b.in.Project.Processors {
		p := &b.in.Project.Processors[i]
		for _, info := range slices.Concat(b.in.Team, b.in.Processors) {
			if info.Name == p.Name {
				b.add(p.NameSpan.Errorf(diag.DuplicateName, "%q is the name of a built-in processor", p.Name).WithHint("take another name"))
			}
		}
	}
	for i := range b.in.Project.Platforms {
		b.checkTextures(&b.in.Project.Platforms[i])
		for _, x := range b.in.Project.Platforms[i].Processors {
			if b.processorExists(x.Name, x.Span, false) {
				b.check(x.Name, x.Settings)
			}
		}
	}
	for i := range b.rules {
		r := &b.rules[i]
		for _, n := range r.Processors {
			b.processorExists(n.Name, n.Span, true)
		}
		for _, in := range r.Imports {
			if !b.processorExists(in.Name, in.Span, false) {
				continue
			}
			if b.infos[in.Name].Folder {
				b.add(in.Span.Errorf(diag.ProcessorMismatch, "processor %q takes folders, and an import is made of a file", in.Name).
					WithHint("name one that takes files"))
			}
			if in.Settings != nil {
				b.check(in.Name, in.Settings)
			}
		}
		for _, p := range r.Platforms {
			for _, n := range p.Processors {
				b.processorExists(n.Name, n.Span, true)
			}
			b.platformExists(p)
		}
		tablesOf(r, func(t *settings.Table, named []string, _ string) {
			switch len(named) {
			case 0:
			case 1:
				b.check(named[0], t)
			default:
				b.checkSeveral(named, t)
			}
		})
	}
}

// checkTextures checks the values of a platform's policy for textures. Each error is one message, although several processors use it.
func (b *builder) checkTextures(p *project.Platform) {
	if p.Textures == nil {
		return
	}
	wrong := map[diag.Pos]bool{}
	for _, infos := range b.in.ranks() {
		for _, info := range infos {
			if !makesTextures(info) {
				continue
			}
			_, diags := settings.Resolve(info, []settings.Layer{{Table: p.Textures, Lenient: true}})
			for _, m := range diags {
				if !wrong[m.Pos] {
					wrong[m.Pos] = true
					b.add(m)
				}
			}
		}
	}
}

// check resolves a table by itself, so that its errors are reported even if another rule overrides it.
func (b *builder) check(processor string, t *settings.Table) {
	if processor == None {
		for _, e := range t.Entries {
			b.add(e.Span.Errorf(diag.UnknownKey, "a rule with processor %q has no settings", None).WithHint("remove %q", e.Key))
		}
	}
	if info, ok := b.infos[processor]; ok {
		_, diags := settings.Resolve(info, []settings.Layer{{Table: t}})
		for _, m := range diags {
			b.add(m)
		}
		b.checkInner(info, t)
	}
}

// checkInner checks the settings that a table of one processor has for another one.
func (b *builder) checkInner(info processor.Info, t *settings.Table) {
	for _, s := range settings.Describe(info) {
		if e := t.Get(s.Name); s.Of != "" && e != nil && e.Kind == settings.Inner {
			b.check(s.Of, e.Table)
		}
	}
}

// checkSeveral is check for the settings of a rule that names several processors: each is one that some of them have, or a
// table for one of them.
func (b *builder) checkSeveral(processors []string, t *settings.Table) {
	known := map[string]bool{}
	for _, name := range processors {
		info, ok := b.infos[name]
		if !ok {
			return // which was reported
		}
		_, diags := settings.Resolve(info, []settings.Layer{{Table: t, Lenient: true, Except: processors}})
		for _, m := range diags {
			b.add(m)
		}
		for _, name := range settings.Names(info) {
			known[name] = true
		}
	}
	for _, e := range t.Entries {
		switch {
		case slices.Contains(processors, e.Key):
			if b.isTable(e) {
				b.check(e.Key, e.Table)
			}
		case !known[e.Key]:
			m := e.Span.Errorf(diag.UnknownKey, "none of %s has a setting %q", list(processors), e.Key)
			m.Hint = diag.DidYouMean(e.Key, slices.Concat(processors, slices.Sorted(maps.Keys(known))))
			b.add(m)
		}
	}
}

// isTable reports anything but a table under the name of a processor.
func (b *builder) isTable(e settings.Entry) bool {
	if e.Kind != settings.Inner {
		b.add(e.Value.Span.Errorf(diag.WrongType, "%q must be a table, not %s", e.Key, e.Kind).
			WithHint("it is a processor of these assets: write %s = { setting = value }", e.Key))
	}
	return e.Kind == settings.Inner
}

func (b *builder) processorExists(name string, span settings.Span, orNone bool) bool {
	if _, ok := b.infos[name]; ok || orNone && name == None {
		return true
	}
	names := b.processorNames()
	if orNone {
		names = append(names, None)
	}
	// A wrong declaration of a processor was reported already.
	if slices.ContainsFunc(b.in.Project.Processors, func(p project.CustomProcessor) bool { return p.Name == name }) {
		return false
	}
	m := span.Errorf(diag.UnknownProcessor, "there is no processor %q", name)
	if m.Hint = diag.DidYouMean(name, names); m.Hint == "" {
		m.Hint = "kiln processors lists them"
	}
	b.add(m)
	return false
}

func (b *builder) platformExists(p project.RulePlatform) {
	if slices.Contains(b.platforms, p.Name) {
		return
	}
	m := p.Span.Errorf(diag.UnknownPlatform, "there is no platform %q", p.Name)
	if m.Hint = diag.DidYouMean(p.Name, b.platforms); m.Hint == "" {
		m.Hint = "the project has " + list(b.platforms)
	}
	b.add(m)
}

func list(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

// extensionClashes warns about extensions that two processors of the same rank claim, if that decided about a
// file.
func (b *builder) extensionClashes() {
	for _, c := range b.clashes {
		if !b.clashing[c.Extension] {
			continue
		}
		m := diag.Warningf(diag.ExtensionClash, diag.Pos{File: project.File}, "")
		for i := range b.in.Project.Processors {
			if p := &b.in.Project.Processors[i]; p.Name == c.Second {
				m = p.Place("extensions", slices.Index(p.Extensions, c.Extension)).Warningf(diag.ExtensionClash, "")
			}
		}
		m.Text = fmt.Sprintf("processors %q and %q both claim %q; %[1]q gets these files because it stands first", c.First, c.Second, c.Extension)
		b.add(m.WithHint("say in a rule which it is: match = %q, processor = %q", "**/*"+c.Extension, c.First))
	}
}

// unmatched warns about rules that match nothing, with suggestions.
func (b *builder) unmatched() {
	const most = 20 // rules with a suggestion; each search reads every file name
	searched := 0
	for i := range b.rules {
		if b.matched[i] || b.namedRule(int32(i)) {
			continue
		}
		r := &b.rules[i]
		what := "file"
		if r.ForFolders() {
			what = "folder"
		}
		of := *r
		left, name, requests := splitNamed(r.Match)
		if requests = requests && r.List == nil && !anyMatch(b.in.Files, r.Match); requests {
			of.Match = left
		}
		m := r.MatchSpan.Warningf(diag.RuleMatchesNothing, "the rule matches no %s", what)
		if r.Declares {
			m.Text = fmt.Sprintf("there is no source file %q", r.Source())
		}
		if searched++; searched <= most && r.List == nil {
			if m.Hint = b.meant(&of); requests {
				m.Hint = strings.Replace(m.Hint, `"?`, NameMark+name+`"?`, 1)
			}
		}
		if m.Hint == "" {
			m.Hint = "correct it, or let it stand if the " + what + "s are still to come"
		}
		b.add(m)
	}
}

// byHandPatterns iterates over all patterns of dependencies by hand, and whether they mean assets, not files.
func (b *builder) byHandPatterns() iter.Seq2[project.Pattern, bool] {
	return func(yield func(project.Pattern, bool) bool) {
		visit := func(list []project.Pattern, ofAssets bool) bool {
			return !slices.ContainsFunc(list, func(p project.Pattern) bool { return !yield(p, ofAssets) })
		}
		for i := range b.in.Project.Processors {
			if c := &b.in.Project.Processors[i]; !visit(c.Inputs, false) || !visit(c.Needs, true) {
				return
			}
		}
		for i := range b.rules {
			if r := &b.rules[i]; !visit(r.Inputs.Patterns, false) || !visit(r.Needs.Patterns, true) {
				return
			}
		}
	}
}

// emptyByHand warns of patterns of what jobs depend on by hand that mean nothing. One of a group stands for a file, and for all in a
// folder.
func (b *builder) emptyByHand(t *Table) {
	type place struct {
		at       settings.Span
		ofAssets bool
	}
	found, warned := map[place]bool{}, map[place]bool{}
	for p, ofAssets := range b.byHandPatterns() {
		if at := (place{p.Span, ofAssets}); !found[at] {
			found[at] = ofAssets && len(t.Meant(p.Text)) > 0 || !ofAssets && anyMatch(below(b.in.Files, p.Text), p.Text)
		}
	}
	for p, ofAssets := range b.byHandPatterns() {
		if at := (place{p.Span, ofAssets}); found[at] || warned[at] {
			continue
		} else if warned[at] = true; ofAssets {
			b.matchesNothing(p, t)
		} else {
			b.matchesNothing(p, nil)
		}
	}
}

// matchesNothing warns about a pattern that means no asset of a table, or no file if t is nil.
func (b *builder) matchesNothing(p project.Pattern, t *Table) {
	what, hint := "asset", ""
	glob, _ := project.SplitPattern(p.Text)
	if t != nil {
		hint = b.likeAsset(t, glob)
	} else {
		what = "source file"
		folder := strings.TrimSuffix(glob, "/")
		if _, is := slices.BinarySearch(b.in.folders(), folder); is {
			hint = fmt.Sprintf("it is a folder: write %q for the files in it", folder+"/**")
		} else {
			hint = b.meant(&project.Rule{Match: glob})
		}
	}
	m := p.Span.Warningf(diag.RuleMatchesNothing, "this matches no %s", what)
	if m.Hint = hint; hint == "" {
		m.Hint = "correct it, or let it stand if the " + what + "s are still to come"
	}
	b.add(m)
}

// below returns those files of a sorted list that are in the literal folder of a glob.
func below(files []string, pattern string) []string {
	glob, _ := project.SplitPattern(pattern)
	base, _ := doublestar.SplitPattern(glob)
	if base == "." {
		return files
	}
	from := sort.SearchStrings(files, base+"/")
	to := from + sort.Search(len(files)-from, func(i int) bool { return !strings.HasPrefix(files[from+i], base+"/") })
	return files[from:to]
}

// likeAsset is a hint for a pattern that means no asset, or "".
func (b *builder) likeAsset(t *Table, pattern string) string {
	if project.IsGlob(pattern) {
		ids := make([]string, len(t.Assets))
		for i := range t.Assets {
			ids[i] = t.Assets[i].ID
		}
		if like := b.likeGlob(ids, "", pattern); like != "" {
			return `did you mean "` + like + `"?`
		}
	}
	return diag.DidYouMean(pattern, t.someIDs())
}

// likeGlob is a glob below a folder that matches some of the paths, for one that matches none: without the path of a source root at its
// beginning, or with the extension in other letter case. It returns "" if there is none.
func (b *builder) likeGlob(paths []string, folder, glob string) string {
	in := newMatcher("*", folder).glob
	in = in[:len(in)-1]
	tries := []string{glob}
	for i := range b.in.Project.Roots {
		if pre := b.in.Project.Roots[i].Prefix(); pre != "" && strings.HasPrefix(glob, pre) {
			tries = append(tries, strings.TrimPrefix(glob[len(pre):], strings.TrimPrefix(folder+"/", "/")))
		}
	}
	for _, try := range tries {
		stem, ext := strings.TrimSuffix(try, path.Ext(try)), path.Ext(try)
		for _, p := range paths {
			if MatchesFile(in+try, p) {
				return try
			}
			if e := path.Ext(p); strings.EqualFold(e, ext) && MatchesFile(in+stem+e, p) {
				return stem + e
			}
		}
	}
	return ""
}

// someIDs returns as many ids as can be searched quickly for a suggestion.
func (t *Table) someIDs() (ids []string) {
	const most = 2000
	for i := range t.Assets[:min(len(t.Assets), most)] {
		ids = append(ids, t.Assets[i].ID)
	}
	return ids
}

// emptyParcels warns about patterns of parcels that mean no asset.
func (b *builder) emptyParcels(t *Table) {
	if len(b.in.Project.Parcels) == 0 {
		return
	}
	for _, p := range b.in.Project.Parcels {
		for _, pat := range p.Assets {
			if len(t.Meant(pat.Text)) > 0 {
				continue
			}
			m := pat.Span.Warningf(diag.RuleMatchesNothing, "parcel %q: this matches no asset", p.Name)
			glob, _ := project.SplitPattern(pat.Text)
			if m.Hint = b.likeAsset(t, glob); m.Hint == "" {
				m.Hint = "correct it, or let it stand if the assets are still to come; `kiln ls` lists them"
			}
			b.add(m)
		}
	}
}

// meant suggests a fix for a rule that matches nothing.
func (b *builder) meant(r *project.Rule) string {
	m := newMatcher(r.Match, r.Base)
	folders := foldersOf(b.in.Files)
	if !m.exact {
		if deeper := "**/" + r.Match; !r.ForFolders() && anyMatch(b.in.Files, path.Join(processor.QuoteGlob(r.Base), deeper)) {
			return `did you mean "` + deeper + `"?`
		}
		if r.ForFolders() && anyMatch(b.in.Files, m.glob) {
			return "it matches files; remove the slash at the end"
		}
		if !r.ForFolders() && anyMatch(folders, m.glob) {
			return "it matches folders; end it with a slash for folders as assets, or with /** for the files in them"
		}
		paths, slash := b.in.Files, ""
		if r.ForFolders() {
			paths, slash = folders, "/"
		}
		if like := b.likeGlob(paths, r.Base, strings.TrimSuffix(r.Match, "/")); like != "" {
			return `did you mean "` + like + slash + `"?`
		}
		return b.meantFolder(r, folders)
	}
	files, other := b.in.Files, folders
	if r.ForFolders() {
		files, other = folders, b.in.Files
	}
	if _, found := slices.BinarySearch(other, m.glob); found {
		if r.ForFolders() {
			return "it is a file; remove the slash at the end"
		}
		return "it is a folder; end it with a slash for one asset, or with /** for the files in it"
	}
	near := siblings(files, parent(m.glob))
	hit := diag.Nearest(m.glob, near)
	if hit == "" {
		hit = sameName(files, path.Base(m.glob))
	}
	hit, below := strings.CutPrefix(hit, strings.TrimPrefix(r.Base+"/", "/"))
	switch {
	case hit == "":
		return ""
	case !below:
		return "there is " + hit + ", which is not below this folder"
	case r.ForFolders():
		hit += "/"
	}
	return `did you mean "` + hit + `"?`
}

// meantFolder looks for a typing error in the literal names of a glob: spirtes/**/*.png.
func (b *builder) meantFolder(r *project.Rule, folders []string) string {
	names := strings.Split(r.Match, "/")
	at := r.Base
	for i, name := range names[:len(names)-1] {
		full := path.Join(at, name)
		if project.IsGlob(name) {
			return ""
		}
		if _, found := slices.BinarySearch(folders, full); found {
			at = full
			continue
		}
		var there []string
		for _, f := range siblings(folders, at) {
			there = append(there, path.Base(f))
		}
		if names[i] = diag.Nearest(name, there); names[i] == "" {
			return ""
		}
		return `did you mean "` + strings.Join(names, "/") + `"?`
	}
	return ""
}

func anyMatch(paths []string, glob string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return MatchesFile(glob, p) })
}

// siblings returns the paths directly in a folder, at most as many as can be compared quickly.
func siblings(paths []string, folder string) []string {
	const most = 2000
	var near []string
	for _, p := range paths {
		if parent(p) == folder && len(near) < most {
			near = append(near, p)
		}
	}
	return near
}

// sameName returns the first path with this last element, ignoring case.
func sameName(paths []string, name string) string {
	for _, p := range paths {
		if strings.EqualFold(path.Base(p), name) {
			return p
		}
	}
	return ""
}
