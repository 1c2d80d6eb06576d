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

// group is what all assets with the same rules share.
type group struct {
	processor string // for Asset.Processor
	last      int32  // the last rule that names a processor, or -1
	resolved  []Resolved
	meta      []project.Metadata
}

// ruleState records what the tables of a rule without a processor are used for.
type ruleState struct {
	knows map[*settings.Table]*knowledge
}

// knowledge is about one such table.
type knowledge struct {
	known      map[string]bool // settings that the processor of a matching asset has
	processors map[string]bool // of all matching assets
}

// resolve applies a chain of rules for every platform.
func (b *builder) resolve(chain []int32, byExtension string, folder bool) *group {
	g := &group{processor: byExtension, last: -1, meta: b.meta(chain)}
	for _, i := range chain {
		if b.names(i) {
			g.last = i
		}
		if named := b.rules[i].Processors; len(named) > 0 {
			g.processor = strings.Join(namesOf(named), ", ")
		}
	}
	imports := b.imports(chain)
	if n := len(imports); n > 0 && g.last < 0 { // the processor that claims the result of the import
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
			if n.Name == None || !ok || !b.fits(chain, info, folder, n.Span) {
				continue
			}
			r := Resolved{Platform: p.Name, Processor: n.Name, Named: n.Span, layers: b.layers(chain, p, n.Name, namesOf(named)), Import: imports}
			r.ByHand = declared(b.in.Project, n.Name).and(b.byHand(chain, p.Name, n.Name))
			r.unasked = g.last < 0 && len(imports) == 0 && n.Name == Default
			var diags diag.List
			r.Settings, diags = settings.Resolve(info, r.layers)
			for _, m := range diags {
				b.add(m)
			}
			for _, l := range r.layers {
				b.checkInner(info, l.Table)
			}
			r.Canonical = settings.Canonical(r.Settings)
			r.Key = digest.Of(r.Canonical)
			g.resolved = append(g.resolved, r)
		}
	}
	b.overridden(chain, g)
	return g
}

// meta returns the last value under each key of a chain.
func (b *builder) meta(chain []int32) (list []project.Metadata) {
	for _, i := range chain {
		for _, m := range b.rules[i].Meta {
			at, found := slices.BinarySearchFunc(list, m.Key, func(x project.Metadata, key string) int { return strings.Compare(x.Key, key) })
			if found {
				list[at] = m
			} else {
				list = slices.Insert(list, at, m)
			}
		}
	}
	return list
}

// imports returns the imports of the last rule of a chain that has some.
func (b *builder) imports(chain []int32) (list []Import) {
	for _, i := range chain {
		if r := &b.rules[i]; r.HasImport {
			list = nil
			for _, in := range r.Imports {
				if _, ok := b.infos[in.Name]; ok {
					list = append(list, Import{Processor: in.Name, Settings: in.Settings.JSON()})
				}
			}
		}
	}
	for i := range list {
		list[i].ByHand = b.byHand(chain, "", "").Text()
	}
	return list
}

// declared returns the dependencies by hand in the declaration of a project's processor.
func declared(p *project.Project, processor string) (h ByHand) {
	if c := p.Custom(processor); c != nil {
		h = ByHand{Inputs: c.Inputs, Needs: c.Needs}
	}
	return h
}

// byHand returns the dependencies of the last rule of a chain that sets some. If processor is set, rules that name
// other processors are ignored.
func (b *builder) byHand(chain []int32, platform, processor string) (h ByHand) {
	for _, i := range chain {
		r := &b.rules[i]
		named := namesOf(r.Processors)
		if on := onPlatform(r, platform); on != nil {
			named = namedFor(r, on)
		}
		if processor != "" && len(named) > 0 && !slices.Contains(named, processor) {
			continue
		}
		if r.Inputs.Given {
			h.Inputs = r.Inputs.Patterns
		}
		if r.Needs.Given {
			h.Needs = r.Needs.Patterns
		}
		if r.Ignore.Given {
			h.Ignore = r.Ignore.Patterns
		}
	}
	return h
}

// platformLayers returns the settings of a platform for a processor: its policy for textures if the processor makes
// textures, then those for the processor.
func platformLayers(p *project.Platform, info processor.Info) (layers []settings.Layer) {
	if p.Textures != nil && makesTextures(info) {
		layers = append(layers, settings.Layer{Table: p.Textures, Lenient: true})
	}
	if t := p.Processor(info.Name); t != nil {
		layers = append(layers, settings.Layer{Table: t})
	}
	return layers
}

func makesTextures(info processor.Info) bool {
	return slices.ContainsFunc(info.Products, func(t processor.ProductType) bool { return t.Type == "texture" })
}

// Requested returns the settings of a request to a processor on a platform: those of the requester, a JSON object, over
// those of the platform, and its dependencies by hand, in the form of Import.ByHand. The error is a diag.List if a
// setting is wrong.
func Requested(p *project.Project, info processor.Info, platform, given, byHand string) (Resolved, error) {
	r := Resolved{Platform: platform, Processor: info.Name, ByHand: declared(p, info.Name).and(byHandOf(byHand))}
	for i := range p.Platforms {
		if p.Platforms[i].Name == platform {
			r.layers = platformLayers(&p.Platforms[i], info)
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

// fits reports a processor of folders for a file, and the reverse.
func (b *builder) fits(chain []int32, info processor.Info, folder bool, span settings.Span) bool {
	if info.Folder == folder {
		return true
	}
	if !span.IsZero() {
		r := &b.rules[chain[len(chain)-1]]
		if r.Declares && r.Source() == "" && info.NoFile {
			return true
		}
		if r.Declares {
			b.add(span.Errorf(diag.ProcessorMismatch, "processor %q takes folders, and the asset %q has a file, or none", info.Name, r.ID).
				WithHint("name one that takes files; for a folder write a rule whose match ends in a slash"))
		} else if info.Folder {
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

// layers returns the tables to merge over the defaults of one of an asset's processors, lowest
// first.
func (b *builder) layers(chain []int32, p *project.Platform, final string, all []string) []settings.Layer {
	layers := platformLayers(p, b.infos[final])
	add := func(rule int32, t *settings.Table, named []string) {
		switch {
		case t == nil || len(named) > 0 && !slices.Contains(named, final):
			return
		case len(named) == 1:
			layers = append(layers, settings.Layer{Table: t})
			return
		}
		// If a rule names processors, it alone decides which keys are names of processors.
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

// namedFor returns the processors that a rule names for a platform.
func namedFor(r *project.Rule, rp *project.RulePlatform) []string {
	if len(rp.Processors) > 0 {
		return namesOf(rp.Processors)
	}
	return namesOf(r.Processors)
}

// learn records which settings of a table the processor of a matching asset has; own are the keys of its
// own tables.
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

// tablesOf iterates over a rule's tables of settings, with the processors that the rule names for
// each.
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

// unknownSettings reports settings of rules without a processor that no matching asset's processor
// has.
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
				return // there is no processor, which was reported
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
					m.Hint = "the files it matches are not assets of their own"
				case m.Hint == "":
					m.WithNote("their processors are %s", list(processors))
				}
				b.add(m)
			}
		})
	}
}
