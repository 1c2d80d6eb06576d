package cli

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/processor"
)

func newSettingsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "settings ASSET",
		Short:             "Show an asset's settings, and where each comes from",
		GroupID:           groupLook,
		Example:           "  kiln settings sprites/tank.png",
		Args:              exactly("ASSET"),
		ValidArgsFunction: a.assetIDs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			v, err := a.look(cmd.Context(), p, a.named(p, args), a.platforms)
			if err != nil {
				return err
			}
			if len(v.Assets) != 1 {
				return wrongUsage("`kiln ls "+args[0]+"` lists them", "%q means %d assets; settings are shown for one", args[0], len(v.Assets))
			}
			if a.json {
				return a.emitSettings(&v.Assets[0])
			}
			return a.listSettings(v, &v.Assets[0])
		},
	}
}

// settingRow is a setting that is the same on some platforms.
type settingRow struct {
	settings.Origin
	platforms []string
}

func (r *settingRow) from() string {
	if r.Span.IsZero() {
		return "default"
	}
	return r.Span.String() + usesText(r.Uses)
}

// usesText lists the variables in a value, and where their values come from.
func usesText(uses []settings.Use) string {
	if len(uses) == 0 {
		return ""
	}
	parts := make([]string, len(uses))
	for i, u := range uses {
		parts[i] = fmt.Sprintf("${%s} from %s", u.Name, u.From)
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// listSettings shows a table for each of the asset's processors.
func (a *app) listSettings(all *view.View, v *view.AssetView) error {
	for i, group := range byProcessor(v) {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		platforms := make([]string, len(group))
		for k, r := range group {
			platforms[k] = r.Platform
		}
		fmt.Fprintf(a.out, "%s  %s on %s%s\n", a.paint(a.out, bold, oneLine(v.ID)), group[0].Processor, strings.Join(platforms, ", "), a.namedText(group))
		rows := a.settingRows(all.Sources(), v, group)
		if len(rows) == 0 {
			fmt.Fprintln(a.out, "  no settings")
		}
		t := a.table()
		differ := slices.ContainsFunc(rows, func(r settingRow) bool { return len(r.platforms) < len(group) })
		for _, r := range rows {
			on := ""
			if len(r.platforms) < len(group) {
				on = strings.Join(r.platforms, ", ")
			}
			cells := []cell{left("  " + r.Name), left(r.Value), left(on), styled(cyan, r.from())}
			if r.Span.IsZero() {
				cells[3].style = dim
			}
			if !differ {
				cells = slices.Delete(cells, 2, 3)
			}
			t.row(cells...)
		}
		if err := t.write(); err != nil {
			return err
		}
	}
	if err := a.listMeta(v); err != nil {
		return err
	}
	if allowed := v.Allowed(); len(allowed) > 0 {
		fmt.Fprintf(a.out, "\n%s\n", a.paint(a.out, bold, "Warnings that are not shown"))
		t := a.table()
		for _, n := range allowed {
			t.row(left("  "+n.Name), styled(cyan, n.Span.String()))
		}
		return t.write()
	}
	return nil
}

// namedText is the places of the rules that name the processor of a group; "" if it claims the extension.
func (a *app) namedText(group []*asset.Resolved) string {
	var places []string
	for _, r := range group {
		if place := r.Named.String(); !r.Named.IsZero() && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	if len(places) == 0 {
		return ""
	}
	return ", by the rule at " + a.paint(a.out, cyan, strings.Join(places, " and "))
}

// listMeta shows the metadata of the asset.
func (a *app) listMeta(v *view.AssetView) error {
	if len(v.Meta) == 0 {
		return nil
	}
	fmt.Fprintf(a.out, "\n%s\n", a.paint(a.out, bold, "Metadata"))
	t := a.table()
	for _, m := range v.Meta {
		t.row(left("  "+m.Key), left(m.Written()), styled(cyan, m.Span.String()+usesText(m.Uses)))
	}
	return t.write()
}

// byProcessor groups the asset's settings on the selected platforms.
func byProcessor(v *view.AssetView) [][]*asset.Resolved {
	var groups [][]*asset.Resolved
	for i := range v.Jobs {
		r := v.Jobs[i].On
		k := slices.IndexFunc(groups, func(g []*asset.Resolved) bool { return g[0].Processor == r.Processor })
		if k < 0 {
			groups = append(groups, []*asset.Resolved{r})
		} else {
			groups[k] = append(groups[k], r)
		}
	}
	return groups
}

// guess adds to a setting without a value what the processor chooses.
func (a *app) guess(files *source.Table, v *view.AssetView, r *asset.Resolved, origins []settings.Origin) {
	all := slices.Concat(a.cfg.Team, a.cfg.Processors)
	i := slices.IndexFunc(all, func(p processor.Processor) bool { return p.Info().Name == r.Processor })
	if i < 0 {
		return
	}
	g, ok := all[i].(processor.Guesser)
	if !ok {
		return
	}
	folder, _ := path.Split(v.Path)
	var beside []string
	for _, name := range files.Names(strings.TrimSuffix(folder, "/")) {
		beside = append(beside, folder+name)
	}
	guess := g.Guess(v.Path, beside, r.Settings)
	for k := range origins {
		if origins[k].Name == guess.Setting {
			origins[k].Value += ": " + guess.Value
			if guess.Because != "" {
				origins[k].Value += fmt.Sprintf(", by %q", guess.Because)
			}
		}
	}
}

// settingRows merges platforms on which a setting has the same value from the same place.
func (a *app) settingRows(files *source.Table, v *view.AssetView, group []*asset.Resolved) []settingRow {
	var rows []settingRow
	for _, r := range group {
		at := 0 // index of the rows of the next new setting
		origins := r.Origins()
		a.guess(files, v, r, origins)
		for _, o := range append(origins, byHand(r)...) {
			same := slices.IndexFunc(rows, func(x settingRow) bool {
				return x.Name == o.Name && x.Value == o.Value && x.Span.Pos == o.Span.Pos
			})
			if same >= 0 {
				rows[same].platforms = append(rows[same].platforms, r.Platform)
			} else {
				for i, x := range rows {
					if x.Name == o.Name {
						at = i + 1
					}
				}
				rows = slices.Insert(rows, at, settingRow{o, []string{r.Platform}})
			}
			for i, x := range rows {
				if x.Name == o.Name {
					at = i + 1
				}
			}
		}
	}
	return rows
}

// byHand returns an asset's dependencies by hand as rows like those of settings.
func byHand(r *asset.Resolved) (rows []settings.Origin) {
	for _, p := range r.Inputs {
		rows = append(rows, settings.Origin{Name: "inputs", Value: patternText(p), Span: p.Span})
	}
	for _, p := range r.Needs {
		rows = append(rows, settings.Origin{Name: "needs", Value: patternText(p), Span: p.Span})
	}
	for _, p := range r.Ignore {
		rows = append(rows, settings.Origin{Name: "ignore", Value: patternText(p), Span: p.Span})
	}
	return rows
}

// patternText is a pattern as it is written in a project file.
func patternText(p project.Pattern) string {
	glob, without := project.SplitPattern(p.Text)
	text := strconv.Quote(glob)
	for _, x := range without {
		text += ", " + strconv.Quote("!"+x)
	}
	return text
}

type settingsLine struct {
	Type      string          `json:"type"`
	Asset     string          `json:"asset"`
	Platform  string          `json:"platform"`
	Processor string          `json:"processor"`
	Settings  json.RawMessage `json:"settings"`
	Origins   []originLine    `json:"origins"`
	Named     *originLine     `json:"processor_origin,omitempty"` // the rule that names the processor; none: it claims the extension
	ByHand    []originLine    `json:"by_hand,omitempty"`          // inputs, needs and ignore
	Meta      []originLine    `json:"meta,omitempty"`
	Allow     []allowLine     `json:"allow,omitempty"`
}

// allowLine is an accepted warning.
type allowLine struct {
	Code   string `json:"code"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

type originLine struct {
	Name   string `json:"name"`
	Value  string `json:"value"` // as written in a project file
	From   string `json:"from"`  // "file" or "default"
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`

	Variables []useLine `json:"variables,omitempty"` // used in the value
}

// useLine is a variable in a value.
type useLine struct {
	Name string `json:"name"`
	From string `json:"from"`
}

func newOriginLine(o settings.Origin) originLine {
	l := originLine{Name: o.Name, Value: o.Value, From: "default", File: o.Span.File, Line: o.Span.Line, Column: o.Span.Column}
	for _, u := range o.Uses {
		l.Variables = append(l.Variables, useLine{u.Name, u.From})
	}
	if !o.Span.IsZero() {
		l.From = "file"
	}
	return l
}

// emitSettings writes a line for each platform.
func (a *app) emitSettings(v *view.AssetView) error {
	for i := range v.Jobs {
		r := v.Jobs[i].On
		l := settingsLine{
			Type: "settings", Asset: v.ID, Platform: r.Platform, Processor: r.Processor,
			Settings: json.RawMessage(settings.JSON(r.Settings)), Origins: []originLine{},
		}
		if !r.Named.IsZero() {
			named := newOriginLine(settings.Origin{Name: "processor", Value: strconv.Quote(r.Processor), Span: r.Named})
			l.Named = &named
		}
		for _, n := range v.Allowed() {
			l.Allow = append(l.Allow, allowLine{n.Name, n.Span.File, n.Span.Line, n.Span.Column})
		}
		for _, m := range v.Meta {
			l.Meta = append(l.Meta, newOriginLine(settings.Origin{Name: m.Key, Value: m.Written(), Span: m.Span, Uses: m.Uses}))
		}
		for _, o := range r.Origins() {
			l.Origins = append(l.Origins, newOriginLine(o))
		}
		for _, o := range byHand(r) {
			l.ByHand = append(l.ByHand, newOriginLine(o))
		}
		if err := a.emit(l); err != nil {
			return err
		}
	}
	return nil
}
