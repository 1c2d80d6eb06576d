package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/processor"
)

func newSettingsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "settings ASSET",
		Short:             "Tell an asset's settings, and where each comes from",
		GroupID:           groupLook,
		Example:           "  kiln settings sprites/tank.png",
		Args:              exactly("ASSET"),
		ValidArgsFunction: a.assetIDs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			v, err := a.look(cmd.Context(), p, args, a.platforms)
			if err != nil {
				return err
			}
			if len(v.Assets) != 1 {
				return wrongUsage("`kiln ls "+args[0]+"` lists them", "%q means %d assets; settings are told of one", args[0], len(v.Assets))
			}
			if a.json {
				return a.emitSettings(&v.Assets[0])
			}
			return a.listSettings(&v.Assets[0])
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
	return r.Span.String()
}

// listSettings shows a table for each processor that the asset has on some platform.
func (a *app) listSettings(v *build.AssetView) error {
	for i, group := range byProcessor(v) {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		platforms := make([]string, len(group))
		for k, r := range group {
			platforms[k] = r.Platform
		}
		fmt.Fprintf(a.out, "%s  %s on %s\n", a.paint(a.out, bold, oneLine(v.ID)), group[0].Processor, strings.Join(platforms, ", "))
		rows := a.settingRows(v, group)
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
	return nil
}

// byProcessor groups what the asset gets on the platforms that were looked at.
func byProcessor(v *build.AssetView) [][]*asset.Resolved {
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

// guesser is a processor that settles a setting by the name of the asset's file.
type guesser interface {
	Guess(file string, settings any) (setting, value, because string)
}

// guess adds to a setting that is left open what the processor makes of it.
func (a *app) guess(v *build.AssetView, r *asset.Resolved, origins []settings.Origin) {
	all := slices.Concat(a.cfg.Team, a.cfg.Processors)
	i := slices.IndexFunc(all, func(p processor.Processor) bool { return p.Info().Name == r.Processor })
	if i < 0 {
		return
	}
	g, ok := all[i].(guesser)
	if !ok {
		return
	}
	setting, value, because := g.Guess(v.Path, r.Settings)
	for k := range origins {
		if origins[k].Name == setting {
			origins[k].Value += ": " + value
			if because != "" {
				origins[k].Value += fmt.Sprintf(", by %q", because)
			}
		}
	}
}

// settingRows merges platforms on which a setting has the same value from the same place.
func (a *app) settingRows(v *build.AssetView, group []*asset.Resolved) []settingRow {
	var rows []settingRow
	for _, r := range group {
		at := 0 // where the rows of the next new setting go
		origins := r.Origins()
		a.guess(v, r, origins)
		for _, o := range origins {
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

type settingsLine struct {
	Type      string          `json:"type"`
	Asset     string          `json:"asset"`
	Platform  string          `json:"platform"`
	Processor string          `json:"processor"`
	Settings  json.RawMessage `json:"settings"`
	Origins   []originLine    `json:"origins"`
}

type originLine struct {
	Name   string `json:"name"`
	Value  string `json:"value"` // as in a project file
	From   string `json:"from"`  // "file" or "default"
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// emitSettings writes a line for each platform.
func (a *app) emitSettings(v *build.AssetView) error {
	for i := range v.Jobs {
		r := v.Jobs[i].On
		l := settingsLine{"settings", v.ID, r.Platform, r.Processor, json.RawMessage(settings.JSON(r.Settings)), []originLine{}}
		for _, o := range r.Origins() {
			ol := originLine{o.Name, o.Value, "default", o.Span.File, o.Span.Line, o.Span.Column}
			if !o.Span.IsZero() {
				ol.From = "file"
			}
			l.Origins = append(l.Origins, ol)
		}
		if err := a.emit(l); err != nil {
			return err
		}
	}
	return nil
}
