package workspace

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// What patterns on the command line mean. In this order: the name of an asset; "@name", a group of kiln.toml;
// "parcel:name", the assets that a parcel names; a folder, or a glob; a file that belongs to an asset, such as a picture
// in the folder of an atlas. "!" before any of these but the last takes out what it means.

// Matcher returns a function that reports whether patterns match an asset. A pattern that matches no asset is an error.
// If all patterns exclude, they exclude from all assets.
func (p *Workspace) Matcher(set *asset.Table, patterns []string) (func(*asset.Asset) bool, error) {
	in, out := map[*asset.Asset]bool{}, map[*asset.Asset]bool{}
	all := true
	var l diag.List
	for _, pat := range patterns {
		rest, minus := p.cutOut(set, pat)
		found, m := p.meaning(set, rest)
		if owner := owner(set, p.Prefixes(), p.InProject(rest)); m != nil && !minus && owner != nil {
			found = []*asset.Asset{owner}
		} else if m != nil {
			l = append(l, m)
		}
		for _, a := range found {
			if minus {
				out[a] = true
			} else {
				in[a] = true
			}
		}
		all = all && minus
	}
	if len(l) > 0 {
		return nil, l
	}
	return func(a *asset.Asset) bool { return (all || in[a]) && !out[a] }, nil
}

// cutOut removes the mark of a pattern that excludes, unless it is the beginning of an asset's name.
func (p *Workspace) cutOut(set *asset.Table, pattern string) (rest string, minus bool) {
	if rest, minus = project.CutOut(pattern); minus && set.Find(p.InProject(pattern)) == nil {
		return rest, true
	}
	return pattern, false
}

// Selected returns the parcels that patterns name, and those that share content with them, because these have to be
// packed together.
func (p *Workspace) Selected(patterns []string) []*project.Parcel {
	var list []*project.Parcel
	for i := range p.Parcels {
		x := &p.Parcels[i]
		if slices.ContainsFunc(patterns, func(pat string) bool {
			name, is := strings.CutPrefix(pat, job.ParcelMark)
			of := p.Parcel(name)
			return is && of != nil && (of == x || together(of, x))
		}) {
			list = append(list, x)
		}
	}
	return list
}

// together reports whether two parcels share content.
func together(x, y *project.Parcel) bool {
	return x.Split && y.Split || x.SharedWith != "" && x.SharedWith == y.SharedWith || x.SharedWith == y.Name || y.SharedWith == x.Name
}

// meaning finds the assets that a pattern of the command line means. The message says why there are none.
func (p *Workspace) meaning(set *asset.Table, pattern string) ([]*asset.Asset, *diag.Message) {
	found, err := p.Match(set, pattern)
	if len(found) > 0 {
		return found, nil
	}
	m := diag.Errorf(diag.PatternNoMatch, diag.Pos{}, "no asset matches %q", pattern)
	group, isGroup := project.CutGroup(pattern)
	parcel, isParcel := strings.CutPrefix(pattern, job.ParcelMark)
	switch {
	case isGroup:
		if _, ok := p.Names.Group(group); !ok {
			m.Text = fmt.Sprintf("there is no group %q", group)
			return nil, m.WithHint("%s", near(group, p.Names.GroupNames(), "[groups] in kiln.toml declares groups"))
		}
		return nil, m.WithHint("the patterns of the group match nothing; `kiln ls` lists the assets")
	case isParcel:
		if p.Parcel(parcel) == nil {
			m.Text = fmt.Sprintf("there is no parcel %q", parcel)
			return nil, m.WithHint("%s", p.nearParcel(parcel))
		}
		return nil, m.WithHint("the patterns of the parcel match nothing; `kiln ls` lists the assets")
	case p.Parcel(pattern) != nil:
		return nil, m.WithHint("there is a parcel of that name: %s%s", job.ParcelMark, pattern)
	case slices.Contains(p.Names.GroupNames(), pattern):
		return nil, m.WithHint("there is a group of that name: @%s", pattern)
	case err != nil:
		return nil, diag.Errorf(diag.BadGlob, diag.Pos{}, "pattern %q is not well formed", pattern).
			WithHint("quote it, so that the shell leaves it alone; `kiln explain K0007` says more")
	}
	return nil, m.WithHint("%s", meant(set, p.Prefixes(), p.InProject(pattern)))
}

// nearParcel is a hint for the name of a parcel that there is not.
func (p *Workspace) nearParcel(name string) string {
	var names []string
	for i := range p.Parcels {
		names = append(names, p.Parcels[i].Name)
	}
	return near(name, names, "[[parcels]] in kiln.toml declares parcels")
}

// near is a hint for an unknown name.
func near(name string, names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	if hint := diag.DidYouMean(name, names); hint != "" {
		return hint
	}
	return "there are: " + strings.Join(names, ", ")
}

// Match returns the assets that a pattern means. A source root, or the project folder, means all.
func (p *Workspace) Match(set *asset.Table, pattern string) ([]*asset.Asset, error) {
	name := p.InProject(pattern)
	if a := set.Find(name); a != nil {
		return []*asset.Asset{a}, nil
	}
	if group, ok := project.CutGroup(pattern); ok {
		list, _ := p.Names.Group(group)
		return named(set, list), nil
	}
	if parcel, ok := strings.CutPrefix(pattern, job.ParcelMark); ok {
		if x := p.Parcel(parcel); x != nil {
			return named(set, x.Assets), nil
		}
		return nil, nil
	}
	found, err := match(set, p.Prefixes(), name)
	if folder := strings.TrimSuffix(name, "/"); err == nil && len(found) == 0 && (folder == "." || slices.Contains(p.Prefixes(), folder+"/")) {
		for i := range set.Assets {
			found = append(found, &set.Assets[i])
		}
	}
	return found, err
}

// named returns the assets that patterns of kiln.toml mean.
func named(set *asset.Table, list []project.Pattern) (found []*asset.Asset) {
	for _, pat := range list {
		found = append(found, set.Meant(pat.Text)...)
	}
	return found
}

func match(set *asset.Table, prefixes []string, pattern string) ([]*asset.Asset, error) {
	if a := set.Find(pattern); a != nil {
		return []*asset.Asset{a}, nil
	}
	for _, pre := range prefixes {
		if rest, ok := strings.CutPrefix(pattern, pre); ok && pre != "" {
			if found, err := match(set, nil, rest); err != nil || len(found) > 0 {
				return found, err
			}
		}
	}
	if !doublestar.ValidatePattern(pattern) {
		return nil, fmt.Errorf("bad pattern %q", pattern)
	}
	var found []*asset.Asset
	for i := range set.Assets {
		if a := &set.Assets[i]; a.MeantBy(pattern) {
			found = append(found, a)
		}
	}
	return found, nil
}

// owner is the asset that a file belongs to, or nil.
func owner(set *asset.Table, prefixes []string, file string) *asset.Asset {
	file = filepath.ToSlash(file)
	for _, pre := range append([]string{""}, prefixes...) {
		if rest, ok := strings.CutPrefix(file, pre); ok {
			if a := set.Owner(rest); a != nil {
				return a
			}
		}
	}
	return nil
}

// meant is a hint for a pattern that matches no asset: the folder asset that the file belongs to, or the asset id most like it.
func meant(set *asset.Table, prefixes []string, pattern string) string {
	if owner := owner(set, prefixes, pattern); owner != nil {
		return fmt.Sprintf("that file belongs to the asset %q", owner.ID)
	}
	file := filepath.ToSlash(pattern)
	for _, pre := range append(slices.Clone(prefixes), "") {
		if rest, ok := strings.CutPrefix(file, pre); ok {
			if n := set.Suggest(rest); n != "" {
				return fmt.Sprintf("did you mean %q?", n)
			}
		}
	}
	return "`kiln ls` lists the assets"
}
