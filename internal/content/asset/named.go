package asset

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
)

// Named has the settings that rules give to requests: match = "models/*.glb#*_normal" gives settings to requests of
// these assets' jobs with such a name. If a file has the whole name, the rule is for that file.
type Named struct {
	rules  []namedRule
	exists func(path string) bool
}

type namedRule struct {
	number int32 // number of the rule
	rule   *project.Rule
	asset  matcher
	name   string // a glob
}

// NameMark separates an asset from the name of a request.
const NameMark = "#"

// splitNamed splits the match of a rule at its last mark.
func splitNamed(match string) (asset, name string, ok bool) {
	i := strings.LastIndex(match, NameMark)
	if i <= 0 || i+1 == len(match) || strings.HasSuffix(match, "/") {
		return "", "", false
	}
	asset, name = match[:i], match[i+1:]
	return asset, name, doublestar.ValidatePattern(asset) && doublestar.ValidatePattern(name)
}

func newNamed(rules []project.Rule, exists func(path string) bool) *Named {
	n := &Named{exists: exists}
	for i := range rules {
		r := &rules[i]
		if left, name, ok := splitNamed(r.Match); ok && !r.Declares && r.List == nil {
			n.rules = append(n.rules, namedRule{int32(i), r, newMatcher(left, r.Base), name})
		}
	}
	return n
}

// is returns the part of a rule that is for requests; nil if it is only for files.
func (n *Named) is(rule int32) *namedRule {
	i := slices.IndexFunc(n.rules, func(r namedRule) bool { return r.number == rule })
	if i < 0 {
		return nil
	}
	return &n.rules[i]
}

// of reports whether a rule is for requests of an asset.
func (r *namedRule) of(a *Asset) bool {
	return r.asset.match(a.Path, path.Base(a.Path)) || r.asset.exact && r.asset.glob == strings.TrimSuffix(a.ID, "/")
}

// Any reports whether a rule is for requests.
func (n *Named) Any() bool { return len(n.rules) > 0 }

// Settings returns the settings that rules give to a request of an asset's job by its name, to be merged over the
// job's. It returns nil if there are none. The list says what is wrong with them.
func (n *Named) Settings(a *Asset, platform string, info processor.Info, name string) (*settings.Table, diag.List) {
	if len(n.rules) == 0 || n.exists(a.Path+NameMark+name) {
		return nil, nil
	}
	var all *settings.Table
	var layers []settings.Layer
	add := func(t *settings.Table) {
		if t != nil {
			all, layers = settings.Merge(all, t), append(layers, settings.Layer{Table: t})
		}
	}
	for i := range n.rules {
		r := &n.rules[i]
		named := namesOf(r.rule.Processors)
		if !r.of(a) || !doublestar.MatchUnvalidated(r.name, name) || len(named) > 0 && !slices.Contains(named, info.Name) {
			continue
		}
		add(r.rule.Settings)
		if p := onPlatform(r.rule, platform); p != nil {
			add(p.Settings)
		}
	}
	_, l := settings.Resolve(info, layers)
	return all, l
}

// namedRule checks a rule that matches no file, and reports whether it is for requests of existing assets. The names of
// requests are known only to jobs.
func (b *builder) namedRule(rule int32) bool {
	n := b.named.is(rule)
	if n == nil || !slices.ContainsFunc(b.assets, func(a Asset) bool { return n.of(&a) }) {
		return false
	}
	wrong := func(span settings.Span, key string) {
		b.add(span.Errorf(diag.BadValue, "%q is for assets, and %q matches requests of assets", key, n.rule.Match).
			WithHint("a rule for requests has settings, and may have the processor that they are for"))
	}
	r := n.rule
	if len(r.Processors) > 1 || len(r.Processors) == 1 && r.Processors[0].Name == None {
		wrong(r.Processors[0].Span, "processor")
	}
	for _, p := range r.Platforms {
		if len(p.Processors) > 0 {
			wrong(p.Processors[0].Span, "processor")
		}
	}
	switch {
	case r.HasImport:
		wrong(r.MatchSpan, "import")
	case len(r.Meta) > 0:
		wrong(r.Meta[0].Span, "meta")
	case r.Follow != nil:
		wrong(r.MatchSpan, "follow")
	case r.ID != "" || r.UUID != "":
		wrong(cmp.Or(r.IDSpan, r.UUIDSpan), "id")
	}
	return true
}

// nameOfFile warns about a file whose name could be that of a request.
func (b *builder) nameOfFile(file string, chain []int32) {
	left, _, ok := splitNamed(file)
	if !ok || !b.named.exists(left) {
		return
	}
	for _, i := range chain {
		if b.named.is(i) != nil {
			const text = "the rule is for the file %s, and not for what %s requests under that name"
			b.add(b.rules[i].MatchSpan.Warningf(diag.NameOfRequest, text, file, left).WithHint("rename the file if the request is meant"))
		}
	}
}
