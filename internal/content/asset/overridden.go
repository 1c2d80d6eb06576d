package asset

import (
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// exact reports whether a rule names paths, and no pattern of files.
func (b *builder) exact(rule int32) bool {
	r := &b.rules[rule]
	if r.List == nil {
		return !project.IsGlob(r.Match)
	}
	return !slices.ContainsFunc(r.List, func(p project.Pattern) bool { return project.IsGlob(p.Text) || strings.HasPrefix(p.Text, "@") })
}

// given is what a rule sets of something that a later rule replaces as a whole; "" if it sets none.
type given struct{ key, value string }

// replaceable returns what a rule sets so. g has the processors that an asset gets: what a rule says for others does not count.
func (b *builder) replaceable(rule int32, g *group, platform string) []given {
	r := &b.rules[rule]
	named := r.Processors
	if on := onPlatform(r, platform); on != nil && len(on.Processors) > 0 {
		named = on.Processors
	}
	list := []given{{"processor", strings.Join(namesOf(named), ", ")}, {"id", r.ID}}
	if len(named) > 0 && !slices.ContainsFunc(g.resolved, func(x Resolved) bool {
		return x.Platform == platform && slices.Contains(namesOf(named), x.Processor)
	}) {
		return list
	}
	hand := func(key string, h project.ByHand) {
		if h.Given {
			text := key
			for _, p := range h.Patterns {
				text += "\n" + p.Text
			}
			list = append(list, given{key, text})
		}
	}
	hand("inputs", r.Inputs)
	hand("needs", r.Needs)
	hand("ignore", r.Ignore)
	return list
}

// overridden warns about a rule for an exact path of which a later pattern replaces the processor, the id, or dependencies by hand. It is
// the same for all assets with the chain. Settings merge, and those that never count are found by kiln doctor.
func (b *builder) overridden(chain []int32, g *group) {
	if !slices.ContainsFunc(chain, b.exact) || len(chain) == 1 {
		return
	}
	for _, platform := range b.platforms {
		last, exact := map[string]int32{}, map[string]int32{} // by key, the rule that counts, and the exact one before it
		values := map[int32]map[string]string{}
		for _, i := range chain {
			values[i] = map[string]string{}
			for _, x := range b.replaceable(i, g, platform) {
				if x.value == "" {
					continue
				}
				values[i][x.key] = x.value
				if b.exact(i) {
					exact[x.key] = i
				}
				last[x.key] = i
			}
		}
		for _, key := range []string{"processor", "id", "inputs", "needs", "ignore"} {
			rule, ok := exact[key]
			by := last[key]
			if !ok || by == rule || values[rule][key] == values[by][key] {
				continue
			}
			b.warnOverridden(&b.rules[rule], &b.rules[by], key)
		}
	}
}

func (b *builder) warnOverridden(rule, by *project.Rule, key string) {
	at := rule.MatchSpan
	if key == "id" {
		at = rule.IDSpan
	} else if key == "processor" && len(rule.Processors) > 0 {
		at = rule.Processors[0].Span
	}
	b.add(at.Warningf(diag.RuleOverridden, "%q of the rule for %s does not count: the rule at %s comes later, matches it too, and has another",
		key, strings.TrimSuffix(rule.Match, "/"), by.MatchSpan.Pos).
		WithHint(`move this rule behind that one, or take the path out of its match with "!"`))
}
