package asset

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// Entries of [[assets]] make assets themselves: another asset of a source file, or one without a file. An entry is the
// last rule of its asset; before it apply the rules that match its source, and those with its id as an exact path.

// declaredAssets makes the assets of the entries.
func (b *builder) declaredAssets() {
	seen := map[string]int32{}
	for i := range b.rules {
		r := &b.rules[i]
		if !r.Declares {
			continue
		}
		if first, twice := seen[r.ID]; twice {
			b.matched[i] = true
			b.add(r.IDSpan.Errorf(diag.DuplicateName, "there are two assets %q", r.ID).
				WithNote("the first is at %s", b.rules[first].IDSpan.Pos).WithHint("give one of them another id, or remove it"))
			continue
		}
		seen[r.ID] = int32(i)
		b.declaredAsset(int32(i))
	}
}

func (b *builder) declaredAsset(entry int32) {
	r := &b.rules[entry]
	a := Asset{ID: r.ID, Path: r.Source(), Declared: true}
	b.matched[entry] = a.Path == "" || b.named.exists(a.Path)
	var chain []int32
	byExtension, extension := "", ""
	if a.Path != "" {
		chain = b.files.match(chain, a.Path, parent(a.Path))
		byExtension, extension = b.byExtension(path.Base(a.Path))
	}
	for _, i := range b.files.exact[a.ID] {
		if b.matched[i] = true; !slices.Contains(chain, i) {
			chain = append(chain, i)
		}
	}
	slices.Sort(chain)
	chain = append(chain, entry)
	g := b.group(chain, byExtension, false)
	if len(b.clashes) > 0 && g.last < 0 {
		b.clashing[extension] = true
	}
	if len(g.resolved) == 0 {
		b.withoutProcessor(entry, g)
		return
	}
	for _, i := range chain {
		if follow := b.rules[i].Follow; follow != nil {
			a.Follows = *follow
		}
		if allow := b.rules[i].Allow; allow != nil {
			a.allow = allow
		}
	}
	a.UUID = cmp.Or(r.UUID, UUID(a.ID))
	a.Processor, a.Resolved, a.Meta = g.processor, g.resolved, g.meta
	b.pins[a.pinned()] = entry
	b.assets = append(b.assets, a)
}

// withoutProcessor reports why an entry has no processor, unless that was reported.
func (b *builder) withoutProcessor(entry int32, g *group) {
	r := &b.rules[entry]
	switch {
	case g.last == entry:
	case r.Match == "" && g.last < 0:
		b.add(r.IDSpan.Errorf(diag.MissingKey, "the asset %q has neither a source nor a processor", r.ID).WithHint(`write processor = "name"`))
	case g.processor == None:
		at := b.rules[g.last].MatchSpan.Pos
		b.add(r.IDSpan.Errorf(diag.MissingKey, "the rules say that %s is not an asset, and %q has no processor", r.Source(), r.ID).
			WithNote("the rule is at %s", at).WithHint(`write processor = "name"`))
	}
}

// pinned is the key of an asset in b.pins.
func (a *Asset) pinned() string {
	if a.Declared {
		return "\x00" + a.ID
	}
	return a.Path
}

// called is the name of an asset for display: its path, or its id if it is declared.
func (a *Asset) called() string {
	if a.Declared {
		return fmt.Sprintf("the asset %q", a.ID)
	}
	return a.Path
}
