package asset

import (
	"maps"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
)

// group is what all assets share to which the same rules apply.
type group struct {
	processor string // as Asset.Processor
	last      int32  // the last rule that names a processor, or -1
	resolved  []Resolved
}

// ruleState gathers what became of the tables of a rule that does not name their processor.
type ruleState struct {
	knows map[*settings.Table]*knowledge
}

// knowledge of one such table.
type knowledge struct {
	known      map[string]bool // settings that some asset's processor has
	processors map[string]bool // of all assets that the rule matches
}

// resolve applies a chain of rules for every platform.
func (b *builder) resolve(chain []int32, byExtension string, folder bool) *group {
	g := &group{processor: byExtension, last: -1}
	for _, i := range chain {
		if b.names(i) {
			g.last = i
		}
		if named := b.rules[i].Processors; len(named) > 0 {
			g.processor = strings.Join(namesOf(named), ", ")
		}
	}
	imports := b.imports(chain)
	if n := len(imports); n > 0 && g.last < 0 { // the processor that claims what comes of it
		if made := b.infos[imports[n-1].Processor].Products; len(made) > 0 && made[0].Extension != "" {
			byExtension, _ = b.byExtension("x" + made[0].Extension)
			g.processor = byExtension
		}
	}
	for i := range b.in.Project.Platforms {
		p := &b.in.Project.Platforms[i]
		named := []project.Named{{Name: byExtension}}
		for _, i := range chain {
			r := &b.rules[i]
			if len(r.Processors) > 0 {
				named = r.Processors
			}
			if rp := onPlatform(r, p.Name); rp != nil && len(rp.Processors) > 0 {
				named = rp.Processors
			}
		}
		for _, n := range named {
			info, ok := b.infos[n.Name]
			if n.Name == None || !ok || !b.fits(info, folder, n.Span) {
				continue
			}
			r := Resolved{Platform: p.Name, Processor: n.Name, layers: b.layers(chain, p, n.Name, namesOf(named)), Import: imports}
			var diags diag.List
			r.Settings, diags = settings.Resolve(info, r.layers)
			for _, m := range diags {
				b.add(m)
			}
			r.Canonical = settings.Canonical(r.Settings)
			r.Key = digest.Of(r.Canonical)
			g.resolved = append(g.resolved, r)
		}
	}
	return g
}

// imports are those of the last rule of a chain that has some.
func (b *builder) imports(chain []int32) (list []Import) {
	for _, i := range chain {
		if r := &b.rules[i]; r.HasImport {
			list = nil
			for _, in := range r.Imports {
				if _, ok := b.infos[in.Name]; ok {
					list = append(list, Import{in.Name, in.Settings.JSON()})
				}
			}
		}
	}
	return list
}

// Requested is what a request gets from a processor on a platform: what the asker gives, as a JSON object, over what the platform says of it.
// The error is a diag.List where a setting is wrong.
func Requested(p *project.Project, info processor.Info, platform, given string) (Resolved, error) {
	r := Resolved{Platform: platform, Processor: info.Name}
	for i := range p.Platforms {
		if t := p.Platforms[i].Processor(info.Name); t != nil && p.Platforms[i].Name == platform {
			r.layers = append(r.layers, settings.Layer{Table: t})
		}
	}
	t, err := settings.FromJSON([]byte(given))
	if err != nil {
		return r, err
	}
	r.layers = append(r.layers, settings.Layer{Table: t})
	value, l := settings.Resolve(info, r.layers)
	if len(l) > 0 {
		return r, l
	}
	r.Settings, r.Canonical = value, settings.Canonical(value)
	r.Key = digest.Of(r.Canonical)
	return r, nil
}

func namesOf(named []project.Named) []string {
	names := make([]string, len(named))
	for i := range named {
		names[i] = named[i].Name
	}
	return names
}

// fits refuses a processor of folders for a file, and the other way round.
func (b *builder) fits(info processor.Info, folder bool, span settings.Span) bool {
	if info.Folder == folder {
		return true
	}
	if !span.IsZero() {
		if info.Folder {
			b.add(span.Errorf(diag.ProcessorMismatch, "processor %q takes folders, and the rule matches files", info.Name).
				WithHint("end match with a slash"))
		} else {
			b.add(span.Errorf(diag.ProcessorMismatch, "processor %q takes files, and the rule matches folders", info.Name).
				WithHint("name one that takes folders, or end match with /* for the files in them"))
		}
	}
	return false
}

func onPlatform(r *project.Rule, platform string) *project.RulePlatform {
	for i := range r.Platforms {
		if r.Platforms[i].Name == platform {
			return &r.Platforms[i]
		}
	}
	return nil
}

// layers are the tables to lay over the defaults of one of an asset's processors, lowest first.
func (b *builder) layers(chain []int32, p *project.Platform, final string, all []string) []settings.Layer {
	var layers []settings.Layer
	if t := p.Processor(final); t != nil {
		layers = append(layers, settings.Layer{Table: t})
	}
	add := func(rule int32, t *settings.Table, named []string) {
		switch {
		case t == nil || len(named) > 0 && !slices.Contains(named, final):
			return
		case len(named) == 1:
			layers = append(layers, settings.Layer{Table: t})
			return
		}
		// Whatever else the asset has, the rule decides by itself what is the name of a processor if it names them.
		own := named
		if len(named) == 0 && len(all) > 1 {
			own = all
		}
		layers = append(layers, settings.Layer{Table: t, Lenient: true, Except: own})
		b.learn(rule, t, final, own)
		if e := t.Get(final); e != nil && slices.Contains(own, final) && b.isTable(*e) {
			layers = append(layers, settings.Layer{Table: e.Table})
		}
	}
	for _, i := range chain {
		r := &b.rules[i]
		add(i, r.Settings, namesOf(r.Processors))
		if rp := onPlatform(r, p.Name); rp != nil {
			add(i, rp.Settings, namedFor(r, rp))
		}
	}
	return layers
}

// namedFor are the processors that a rule names for a platform.
func namedFor(r *project.Rule, rp *project.RulePlatform) []string {
	if len(rp.Processors) > 0 {
		return namesOf(rp.Processors)
	}
	return namesOf(r.Processors)
}

// learn notes which settings of a table the processor of a matching asset has; own are keys for its tables.
func (b *builder) learn(rule int32, t *settings.Table, final string, own []string) {
	s := &b.states[rule]
	if s.knows == nil {
		s.knows = map[*settings.Table]*knowledge{}
	}
	k := s.knows[t]
	if k == nil {
		k = &knowledge{map[string]bool{}, map[string]bool{}}
		s.knows[t] = k
	}
	if !k.processors[final] {
		k.processors[final] = true
		for _, name := range settings.Names(b.infos[final]) {
			k.known[name] = true
		}
	}
	for _, name := range own {
		k.known[name] = true
	}
}

// tablesOf visits a rule's tables of settings, with the processors that the rule names for each.
func tablesOf(r *project.Rule, visit func(t *settings.Table, named []string, platform string)) {
	if r.Settings != nil {
		visit(r.Settings, namesOf(r.Processors), "")
	}
	for i := range r.Platforms {
		if p := &r.Platforms[i]; p.Settings != nil {
			visit(p.Settings, namedFor(r, p), p.Name)
		}
	}
}

// unknownSettings refuses what is in a rule that names no processor and no matching asset knows.
func (b *builder) unknownSettings() {
	for i := range b.rules {
		if !b.matched[i] {
			continue
		}
		tablesOf(&b.rules[i], func(t *settings.Table, named []string, platform string) {
			if len(named) > 0 || platform != "" && !slices.Contains(b.platforms, platform) {
				return
			}
			k := b.states[i].knows[t]
			if k == nil && b.rules[i].ForFolders() {
				return // no processor, which has been said
			}
			if k == nil {
				k = &knowledge{}
			}
			processors := slices.Sorted(maps.Keys(k.processors))
			names := slices.Sorted(maps.Keys(k.known))
			for _, e := range t.Entries {
				if k.known[e.Key] {
					continue
				}
				if len(processors) == 1 {
					b.add(settings.Unknown(e, processors[0], "", names))
					continue
				}
				m := e.Span.Errorf(diag.UnknownKey, "no asset that the rule matches has a setting %q", e.Key)
				switch m.Hint = diag.DidYouMean(e.Key, names); {
				case len(processors) == 0:
					m.Hint = "the files it matches are no assets of their own"
				case m.Hint == "":
					m.WithNote("their processors are %s", list(processors))
				}
				b.add(m)
			}
		})
	}
}
