package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

func newLsCommand(a *app) *cobra.Command {
	var exclude, where []string
	var passedOver bool
	cmd := &cobra.Command{
		Use:   "ls [PATTERN...]",
		Short: "List assets with processor, state, products and size",
		Long: `List the project's assets, or those that the patterns mean.
` + patternHelp + `

The state says what a build would do now:
  up to date      nothing: the products are good
  held by ignore  nothing: what changed is harmless, as rules say under ignore
  failed          nothing: it failed, and nothing that it read changed since
  stale           build it again
  maybe           build it again, if something stale that it needs comes out differently
  not built       build it for the first time

--where compares id, path, processor, platform, state, or meta.KEY (what rules say under meta) with = and !=, joined by
and, or.

--ignored lists what is not an asset instead: the files and folders in the source roots that Kiln ignores, and why.

Where an asset failed and its last good products stay, as with kiln watch, these are counted, and it says so.`,
		GroupID:           groupLook,
		Example:           "  kiln ls\n  kiln ls 'sprites/**'\n  kiln ls --where 'meta.status != \"final\" and state = failed'\n  kiln ls --ignored\n  kiln ls --json | jq 'select(.state != \"up to date\")'",
		ValidArgsFunction: a.assetIDs(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			if passedOver {
				return a.listIgnored(p, args)
			}
			v, err := a.look(cmd.Context(), p, a.named(p, excluding(args, exclude)), a.platforms)
			if err != nil {
				return err
			}
			if err := only(v, where); err != nil {
				return err
			}
			if a.json {
				return a.emitAssets(v)
			}
			return a.listAssets(p, v)
		},
	}
	addExclude(cmd, &exclude)
	cmd.Flags().BoolVar(&passedOver, "ignored", false, "list the files and folders that Kiln ignores, and why")
	cmd.Flags().StringArrayVar(&where, "where", nil, "list only assets for which `CONDITION` holds, such as 'meta.status != \"final\"'; of several, all")
	return cmd
}

// only keeps the assets that meet the conditions.
func only(v *view.View, conditions []string) error {
	for _, text := range conditions {
		holds, err := view.Where(text)
		if err != nil {
			return wrongUsage(err.Error(), "--where cannot be %q", text)
		}
		v.Assets = slices.DeleteFunc(v.Assets, func(a view.AssetView) bool { return !holds(&a) })
	}
	return nil
}

// patternHelp is what patterns of the command line are.
const patternHelp = `A pattern is an asset's id, a path, a folder (all below it), a glob of ids, @GROUP of kiln.toml or parcel:NAME (the
assets that it names). A ! before it takes out what it means. In a folder of the project, what is in that folder comes
first.`

// addExclude adds a flag for patterns to exclude.
func addExclude(cmd *cobra.Command, exclude *[]string) {
	cmd.Flags().StringArrayVar(exclude, "exclude", nil, "leave out what `PATTERN` means; may be given several times")
}

// excluding adds the excluded patterns to a list.
func excluding(patterns, exclude []string) []string {
	for _, x := range exclude {
		patterns = append(patterns, "!"+x)
	}
	return patterns
}

// emitAssets writes the lines of many assets at once: a system call for each would be half of the time of the listing.
func (a *app) emitAssets(v *view.View) error {
	w := bufio.NewWriterSize(a.out, 64<<10)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range v.Assets {
		if err := enc.Encode(newAssetLine(&v.Assets[i])); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (a *app) listAssets(p *build.Project, v *view.View) error {
	all := a.platforms
	if len(all) == 0 {
		all = p.PlatformNames()
	}
	t := a.table()
	t.header("asset", "processor", "platforms", "state", ">products", ">size")
	var bytes int64
	states := map[view.JobState]int{}
	for i := range v.Assets {
		l := newAssetLine(&v.Assets[i])
		bytes += l.Bytes
		states[l.State]++
		t.row(left(l.ID), left(l.processors()), left(l.platformNames(len(all))), styled(stateStyle(l.State), l.stateText()),
			cell{text: fmt.Sprint(l.Products), right: true}, right(diag.Size(l.Bytes)))
	}
	if len(v.Assets) > 0 {
		if err := t.write(); err != nil {
			return err
		}
	}
	if a.quiet {
		return nil
	}
	foot := []string{count(len(v.Assets), "asset", "assets"), diag.Size(bytes)}
	for _, s := range view.States {
		if states[s] > 0 && s != view.UpToDate {
			foot = append(foot, fmt.Sprintf("%d %s", states[s], s))
		}
	}
	_, err := fmt.Fprintln(a.errs, a.paint(a.errs, dim, strings.Join(foot, ", ")))
	return err
}

func stateStyle(s view.JobState) style {
	switch s {
	case view.Failed:
		return red
	case view.UpToDate:
		return green
	}
	return yellow
}

type assetLine struct {
	Type      string              `json:"type"`
	ID        string              `json:"id"`
	UUID      string              `json:"uuid"`
	Path      string              `json:"path"`
	Folder    bool                `json:"folder"`
	Processor string              `json:"processor"`
	State     view.JobState       `json:"state"` // the worst of all platforms
	Products  int                 `json:"products"`
	Bytes     int64               `json:"bytes"`
	Meta      map[string]any      `json:"meta,omitempty"`
	Platforms []assetPlatformLine `json:"platforms"` // a line for each of its processors
}

type assetPlatformLine struct {
	Platform  string        `json:"platform"`
	Processor string        `json:"processor"`
	State     view.JobState `json:"state"`
	Products  int           `json:"products"`
	Bytes     int64         `json:"bytes"`
	LastGood  bool          `json:"last_good,omitempty"` // the products are those of its last good build
	Cached    bool          `json:"cached,omitempty"`    // its result came from the cache
	Cache     string        `json:"cache,omitempty"`     // cached: which cache had it, folder or server

	place string // for display
}

func newAssetLine(v *view.AssetView) assetLine {
	l := assetLine{
		Type: "asset", ID: v.ID, UUID: v.UUID, Path: v.Path, Folder: v.Folder, Processor: v.Processor, State: view.UpToDate,
		Platforms: make([]assetPlatformLine, 0, len(v.Jobs)), Meta: v.Metadata(),
	}
	for i := range v.Jobs {
		j := &v.Jobs[i]
		pl := assetPlatformLine{Platform: j.Platform, Processor: j.Processor, State: j.State, LastGood: len(j.LastGood) > 0, place: placeOf(j)}
		if j.Last != nil {
			pl.Cached, pl.Cache = j.Last.Adopted, j.Last.Origin
			for _, p := range j.Products() {
				pl.Products++
				pl.Bytes += p.Size
			}
		}
		l.Products, l.Bytes = l.Products+pl.Products, l.Bytes+pl.Bytes
		if slices.Index(view.States, pl.State) < slices.Index(view.States, l.State) {
			l.State = pl.State
		}
		l.Platforms = append(l.Platforms, pl)
	}
	return l
}

// processors returns the names of the asset's processors.
func (l *assetLine) processors() string {
	var names []string
	for _, p := range l.Platforms {
		if !slices.Contains(names, p.Processor) {
			names = append(names, p.Processor)
		}
	}
	return strings.Join(names, ", ")
}

// platformNames returns the platforms of the asset; "all" if it has all of them.
func (l *assetLine) platformNames(of int) string {
	var names []string
	for _, p := range l.Platforms {
		if !slices.Contains(names, p.Platform) {
			names = append(names, p.Platform)
		}
	}
	if len(names) == of && of > 1 {
		return "all"
	}
	return strings.Join(names, ", ")
}

// stateText is the text about its states in a table.
func (l *assetLine) stateText() string {
	text := l.statesText()
	if slices.ContainsFunc(l.Platforms, func(p assetPlatformLine) bool { return p.LastGood }) {
		text += ", last good stay"
	}
	return text
}

// statesText is the state, or each state with its platforms if they differ, the worst first.
func (l *assetLine) statesText() string {
	on := map[view.JobState][]string{}
	for _, p := range l.Platforms {
		on[p.State] = append(on[p.State], p.place)
	}
	if len(on) < 2 {
		return string(l.State)
	}
	var parts []string
	for _, s := range view.States {
		if len(on[s]) > 0 {
			parts = append(parts, fmt.Sprintf("%s on %s", s, strings.Join(on[s], " and ")))
		}
	}
	return strings.Join(parts, ", ")
}

type ignoredLine struct {
	Type    string `json:"type"`
	Path    string `json:"path"`
	Folder  bool   `json:"folder"` // with all that is in it
	Because string `json:"because"`
	Pattern string `json:"pattern,omitempty"`
	File    string `json:"file,omitempty"` // where the pattern is written
}

// listIgnored lists what a scan of the source roots passes over.
func (a *app) listIgnored(p *build.Project, patterns []string) error {
	if len(patterns) > 0 {
		return wrongUsage("leave the patterns out", "--ignored lists everything; it takes no patterns")
	}
	o, err := p.ScanOptions()
	if err != nil {
		return err
	}
	all, err := source.PassedOver(o)
	if err != nil {
		return err
	}
	t := a.table()
	t.header("ignored", "because")
	for _, e := range all {
		l := newIgnoredLine(p, e)
		if a.json {
			if err := a.emit(l); err != nil {
				return err
			}
			continue
		}
		t.row(left(l.Path), left(l.Because))
	}
	if a.json {
		return nil
	}
	if len(all) > 0 {
		if err := t.write(); err != nil {
			return err
		}
	}
	if a.quiet {
		return nil
	}
	_, err = fmt.Fprintln(a.errs, a.paint(a.errs, dim, count(len(all), "file or folder is ignored", "files and folders are ignored")))
	return err
}

func newIgnoredLine(p *build.Project, e source.Passed) ignoredLine {
	prefix := p.Prefixes()[e.Root]
	l := ignoredLine{Type: "ignored", Path: prefix + e.Path, Folder: e.Folder, Because: e.Because, Pattern: e.Pattern}
	if e.Folder {
		l.Path += "/"
	}
	switch {
	case e.Pattern == "":
	case e.Project:
		l.File = project.File
		l.Because = fmt.Sprintf("%s in %s", e.Pattern, l.File)
	case e.File != "":
		l.File = prefix + e.File
		l.Because = fmt.Sprintf("%s in %s", e.Pattern, l.File)
	default:
		l.Because = e.Pattern + " is never content"
	}
	return l
}
