package workspace

import (
	"cmp"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/processor"
)

// Evaluate makes assets of the files and all rules. It also returns the paths of all source files, without Kiln's
// own.
func (p *Workspace) Evaluate(t *source.Table) (*asset.Table, []string, diag.List) {
	in, l := p.input(t)
	set, more := asset.Build(in)
	return set, in.Files, slices.Concat(l, more, p.unknownParcels(set))
}

// input is the files and all rules.
func (p *Workspace) input(t *source.Table) (asset.Input, diag.List) {
	paths, folders := SourcePaths(t)
	var rules []project.Rule
	var l diag.List
	for _, dir := range folders {
		r, errs := p.FolderRules(t, dir)
		rules, l = append(rules, r...), append(l, errs...)
	}
	return asset.Input{
		Files: paths, Project: p.Project, Rules: rules, Stages: p.Config.Stages,
		Processors: p.Builtin, Team: p.TeamInfos, Custom: p.CustomInfos,
	}, l
}

// Staged reports whether there are rules for stages.
func (p *Workspace) Staged(t *source.Table) bool {
	in, _ := p.input(t)
	return len(in.AllStages()) > 0
}

// OtherStages are the assets in builds with other stages: with none, with each, and with all.
func (p *Workspace) OtherStages(t *source.Table) (tables []*asset.Table) {
	in, _ := p.input(t) // what is wrong with the rules was reported
	all := in.AllStages()
	if len(all) == 0 {
		return nil
	}
	builds := [][]string{nil, all}
	if len(all) > 1 {
		for _, stage := range all {
			builds = append(builds, []string{stage})
		}
	}
	now := slices.Sorted(slices.Values(p.Config.Stages))
	for _, stages := range builds {
		if slices.Equal(slices.Sorted(slices.Values(stages)), now) {
			continue
		}
		in.Stages = stages
		table, _ := asset.Build(in)
		tables = append(tables, table)
	}
	return tables
}

// unknownParcels are the settings of atlases that name a parcel which the project does not have.
func (p *Workspace) unknownParcels(set *asset.Table) (l diag.List) {
	said := map[diag.Pos]bool{} // a rule may be of many assets and platforms
	for i := range set.Assets {
		all := set.Assets[i].Resolved
		for k := range all {
			name := processors.ParcelOf(all[k].Settings)
			if name == "" || p.Parcel(name) != nil {
				continue
			}
			for _, o := range all[k].Origins() {
				if o.Name == "parcel" && !said[o.Span.Pos] {
					said[o.Span.Pos] = true
					l = append(l, o.Span.Errorf(diag.BadValue, "there is no parcel %q in kiln.toml", name).WithHint("%s", p.nearParcel(name)))
				}
			}
		}
	}
	return l
}

// SourcePaths returns the paths of all source files, without Kiln's own, and the folders that have
// rules.
func SourcePaths(t *source.Table) (paths, withRules []string) {
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

// FolderRules reads the rules.toml of a folder in each root that has one. Rules of a later root come after those of an
// earlier one.
func (p *Workspace) FolderRules(t *source.Table, dir string) ([]project.Rule, diag.List) {
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
		name := p.Prefixes()[root] + file
		h, err := t.Hash(i) // so that a change of the file is noticed
		var data []byte
		if err == nil {
			data, err = disk.ReadFile(t.Abs(root, file))
		}
		if err == nil && digest.Of(data) != h {
			err = source.ErrChanged // the next build would not compare with what was read
		}
		if err != nil {
			hint := "check its permissions, or close the program that holds it"
			if errors.Is(err, source.ErrChanged) {
				hint = "build again"
			}
			l = append(l, diag.Errorf(diag.SourceUnreadable, diag.Pos{File: name}, "the rules cannot be read: %v", disk.Reason(err)).WithHint("%s", hint))
			continue
		}
		r, errs := project.ParseRules(name, base, data, p.Names)
		rules, l = append(rules, r...), append(l, errs...)
	}
	return rules, l
}

// CheckPlatforms returns an error for platforms that the project does not have.
func (p *Workspace) CheckPlatforms(names []string) error {
	for _, n := range names {
		if !slices.Contains(p.PlatformNames(), n) {
			m := diag.Errorf(diag.UnknownPlatform, diag.Pos{}, "there is no platform %q", n)
			if list := strings.Split(n, ","); len(list) > 1 {
				return diag.List{m.WithHint("give the flag once for each platform: -p %s", strings.Join(list, " -p "))}
			}
			if hint := diag.DidYouMean(n, p.PlatformNames()); hint != "" {
				return diag.List{m.WithHint("%s", hint)}
			}
			return diag.List{m.WithHint("the project has: %s", strings.Join(p.PlatformNames(), ", "))}
		}
	}
	return nil
}

// InProject converts an argument (a name of an asset or file, or a pattern) to its form in the project folder, with
// forward slashes, if it is absolute or has a prefix from the shell. All names of a command line are converted by this
// function.
func (p *Workspace) InProject(name string) string {
	if name == "" { // an unset variable; it must not mean everything
		return ""
	}
	given := filepath.ToSlash(name)
	for _, r := range p.Roots {
		if r.Name == "" {
			continue
		}
		for _, dir := range []string{filepath.ToSlash(r.Dir(p.Dir)), r.Path} {
			if rest, ok := strings.CutPrefix(given, dir+"/"); ok {
				return r.Prefix() + rest
			}
		}
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

// InDatabase is InProject for names to look up in the content database, which stores paths below a named source root.
func (p *Workspace) InDatabase(name string) string {
	name = p.InProject(name)
	for prefix := range p.namedRoots() {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest
		}
	}
	return name
}

// World returns a world without tasks.
func (p *Workspace) World(t *source.Table, blobs *cas.Store) *job.World {
	return job.NewWorld(job.Setting{
		Sources: t, Prefixes: p.Prefixes(), Processors: p.Procs, Blobs: blobs, Dir: p.Dir, Output: p.BelowOutput(),
		Hidden: append(p.builtFolders(), p.stateFolders()...), Scratch: p.ScratchDir(), Packed: packed(p.Project, p.PlatformNames()),
		Platforms: p.PlatformNames(), Programs: p.programs, NamedRoots: p.namedRoots(),
		Settings: func(info processor.Info, platform, given, byHand string) (asset.Resolved, error) {
			return asset.Requested(p.Project, info, platform, given, byHand)
		},
		IDs:  func() job.IDs { return ship.IDsIn(p.Project, p.StatePlace()) },
		Held: func() job.Held { return job.ReadHeld(p.HeldPath()) }, Parcel: p.Project.Parcel,
	})
}

// packed returns the platforms whose products go into parcels.
func packed(p *project.Project, platforms []string) map[string]bool {
	all := map[string]bool{}
	for _, name := range platforms {
		all[name] = slices.ContainsFunc(p.Parcels, func(x project.Parcel) bool { return x.On(name) })
	}
	return all
}

// Finder reads the rules, and returns a finder of assets.
func (p *Workspace) Finder(t *source.Table) (*asset.Finder, bool) {
	in := asset.Input{Project: p.Project, Stages: p.Config.Stages, Processors: p.Builtin, Team: p.TeamInfos, Custom: p.CustomInfos}
	withRules := map[string]bool{}
	for i := range t.Folders {
		f := &t.Folders[i]
		for _, e := range t.Entries(i) {
			if e.Visible() && e.Name != project.File && e.Name != project.RulesFile {
				in.Files = append(in.Files, path.Join(f.Path, e.Name))
				break
			}
		}
		if _, ok := t.FindIn(f.Root, path.Join(f.Path, project.RulesFile)); !ok || withRules[f.Path] {
			continue
		}
		withRules[f.Path] = true
		rules, l := p.FolderRules(t, cmp.Or(f.Path, "."))
		if len(l) > 0 {
			return nil, false
		}
		in.Rules = append(in.Rules, rules...)
	}
	finder := asset.NewFinder(in, func(p string) bool {
		_, _, ok := t.Find(p)
		return ok && !slices.Contains(KeptNames, path.Base(p))
	})
	return finder, finder != nil
}

// KeptNames are files that influence other files.
var KeptNames = []string{project.File, project.RulesFile, source.IgnoreFile}
