package build

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/processor"
)

// evaluate makes assets of the files and all rules. It also gives the paths of all source files, Kiln's own left out.
func (p *Project) evaluate(t *source.Table) (*asset.Table, []string, diag.List) {
	paths, folders := sourcePaths(t)
	var rules []project.Rule
	var l diag.List
	for _, dir := range folders {
		r, errs := p.folderRules(t, dir)
		rules, l = append(rules, r...), append(l, errs...)
	}
	set, more := asset.Build(asset.Input{Files: paths, Project: p.Project, Rules: rules, Processors: p.builtin, Team: p.team, Custom: p.own})
	return set, paths, append(l, more...)
}

// sourcePaths are the paths of all source files, Kiln's own left out, and the folders that have rules.
func sourcePaths(t *source.Table) (paths, withRules []string) {
	all := t.Paths()
	paths = make([]string, 0, len(all))
	for _, f := range all {
		switch path.Base(f) {
		case project.RulesFile:
			withRules = append(withRules, path.Dir(f))
		case project.File:
		default:
			paths = append(paths, f)
		}
	}
	return paths, withRules
}

// folderRules reads the rules.toml of a folder in each root that has one: a later root adds to the rules of an earlier one.
func (p *Project) folderRules(t *source.Table, dir string) ([]project.Rule, diag.List) {
	var rules []project.Rule
	var l diag.List
	file, base := path.Join(dir, project.RulesFile), dir
	if dir == "." {
		base = ""
	}
	for root := range t.Roots {
		i, ok := t.FindIn(root, file)
		if !ok {
			continue
		}
		name := p.prefixes()[root] + file
		h, err := t.Hash(i) // so that a change of it is noticed
		var data []byte
		if err == nil {
			data, err = disk.ReadFile(t.Abs(root, file))
		}
		if err == nil && digest.Of(data) != h {
			err = source.ErrChanged // what was read is not what the next build would compare with
		}
		if err != nil {
			hint := "check its permissions, or close the program that holds it"
			if errors.Is(err, source.ErrChanged) {
				hint = "build again"
			}
			l = append(l, diag.Errorf(diag.SourceUnreadable, diag.Pos{File: name}, "the rules cannot be read: %v", disk.Reason(err)).WithHint("%s", hint))
			continue
		}
		r, errs := project.ParseRules(name, base, data)
		rules, l = append(rules, r...), append(l, errs...)
	}
	return rules, l
}

// checkPlatforms refuses platforms that the project does not have.
func (p *Project) checkPlatforms(names []string) error {
	for _, n := range names {
		if !slices.Contains(p.PlatformNames(), n) {
			m := diag.Errorf(diag.UnknownPlatform, diag.Pos{}, "there is no platform %q", n)
			if hint := diag.DidYouMean(n, p.PlatformNames()); hint != "" {
				return diag.List{m.WithHint("%s", hint)}
			}
			return diag.List{m.WithHint("the project has: %s", strings.Join(p.PlatformNames(), ", "))}
		}
	}
	return nil
}

// matcher tells which assets patterns mean: ids, paths, folders (all below them), or globs over ids. A pattern that means
// none is an error.
func (p *Project) matcher(set *asset.Table, patterns []string) (func(*asset.Asset) bool, error) {
	if len(patterns) == 0 {
		return func(*asset.Asset) bool { return true }, nil
	}
	chosen := map[*asset.Asset]bool{}
	var l diag.List
	for _, pat := range patterns {
		found, err := p.match(set, pat)
		if err != nil {
			l = append(l, diag.Errorf(diag.BadGlob, diag.Pos{}, "pattern %q is not well formed", pat).WithHint("quote it, so that the shell leaves it alone; see docs/project-file.md for what a glob may hold"))
		} else if len(found) == 0 {
			m := diag.Errorf(diag.PatternNoMatch, diag.Pos{}, "no asset matches %q", pat)
			l = append(l, m.WithHint("%s", meant(set, p.prefixes(), p.InProject(pat))))
		}
		for _, a := range found {
			chosen[a] = true
		}
	}
	if len(l) > 0 {
		return nil, l
	}
	return func(a *asset.Asset) bool { return chosen[a] }, nil
}

// match finds the assets that a pattern means. A source root, and the project folder, mean all.
func (p *Project) match(set *asset.Table, pattern string) ([]*asset.Asset, error) {
	pattern = p.InProject(pattern)
	found, err := match(set, p.prefixes(), pattern)
	if folder := strings.TrimSuffix(pattern, "/"); err == nil && len(found) == 0 && (folder == "." || slices.Contains(p.prefixes(), folder+"/")) {
		for i := range set.Assets {
			found = append(found, &set.Assets[i])
		}
	}
	return found, err
}

// InProject is the name of an asset or a file, or a pattern, as it is in the project folder, with forward slashes, if it was given absolute or with
// what shells put before it. Whatever a command line names goes through here first.
func (p *Project) InProject(name string) string {
	if name == "" { // of a variable that was not set: not all there is
		return ""
	}
	if filepath.IsAbs(name) {
		if rel, err := filepath.Rel(p.Dir, name); err == nil {
			name = rel
		}
	}
	name = filepath.ToSlash(name)
	if rest := strings.TrimLeft(strings.TrimPrefix(name, "./"), "/"); rest != "" {
		return rest
	}
	return "."
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

// meant is a hint for a pattern that matches no asset: the folder asset that the file belongs to, or the asset id most like it.
func meant(set *asset.Table, prefixes []string, pattern string) string {
	file := filepath.ToSlash(pattern)
	for _, pre := range append([]string{""}, prefixes...) {
		if rest, ok := strings.CutPrefix(file, pre); ok {
			if owner := set.Owner(rest); owner != nil {
				return fmt.Sprintf("that file belongs to the asset %q", owner.ID)
			}
		}
	}
	for _, pre := range append(slices.Clone(prefixes), "") {
		if rest, ok := strings.CutPrefix(file, pre); ok {
			if n := set.Nearest(rest); n != "" {
				return fmt.Sprintf("did you mean %q?", n)
			}
		}
	}
	return "`kiln ls` lists the assets"
}

// world makes a world without tasks.
func (p *Project) world(t *source.Table, blobs *cas.Store) *job.World {
	return job.NewWorld(job.Setting{
		Sources: t, Prefixes: p.prefixes(), Processors: p.procs, Blobs: blobs, Dir: p.Dir, Output: p.OutputDir(),
		Hidden: append(p.builtFolders(), p.stateFolders()...), Scratch: p.scratchDir(), Packed: packed(p.Project, p.PlatformNames()),
		Platforms: p.PlatformNames(),
		Settings: func(info processor.Info, platform, given string) (asset.Resolved, error) {
			return asset.Requested(p.Project, info, platform, given)
		},
	})
}

// packed are the platforms on which products go into parcels.
func packed(p *project.Project, platforms []string) map[string]bool {
	all := map[string]bool{}
	for _, name := range platforms {
		all[name] = slices.ContainsFunc(p.Parcels, func(x project.Parcel) bool { return x.On(name) })
	}
	return all
}
