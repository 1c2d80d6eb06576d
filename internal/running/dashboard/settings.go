package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	makeview "github.com/kiln-pipeline/kiln/internal/make/view"
)

// Setting is one setting of an asset, on all platforms on which it is the same.
type Setting struct {
	Processor   string // its processor; empty if the asset has only one
	Name, Value string
	Platforms   []string // none: on all
	File        string   // relative to the project; empty: the default value
	Line        int64
}

// settingsPart is the table of an asset's settings with their origins. A page shows the plain ones first, because
// finding the origins reads the project's files.
func (d *Dashboard) settingsPart(w http.ResponseWriter, r *http.Request) {
	if d.cfg.Project == nil {
		http.NotFound(w, r)
		return
	}
	all, err := d.settings(r.Context(), r.PathValue("id"))
	if err != nil {
		plainError(w, err)
		return
	}
	var set, defaults []Setting
	for _, s := range all {
		if s.File != "" {
			set = append(set, s)
		} else {
			defaults = append(defaults, s)
		}
	}
	var b bytes.Buffer
	if err := d.pages["asset"].ExecuteTemplate(&b, "origins", map[string][]Setting{"Set": set, "Defaults": defaults}); err != nil {
		plainError(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(b.Bytes())
}

// settings returns the settings of an asset with their origins, in the order of its processor.
func (d *Dashboard) settings(ctx context.Context, id string) ([]Setting, error) {
	p, err := d.cfg.Project()
	if err != nil {
		return nil, err
	}
	v, err := p.Look(ctx, []string{id}, nil)
	if err != nil {
		return nil, err
	}
	if len(v.Assets) != 1 {
		return nil, notFound{fmt.Sprintf("There is no asset %s.", id)}
	}
	return settingsOf(&v.Assets[0]), nil
}

// settingsOf merges settings that are the same on several platforms.
func settingsOf(v *makeview.AssetView) []Setting {
	var all []Setting
	var platforms []string
	for i := range v.Jobs {
		name := v.Jobs[i].Platform
		if slices.Contains(platforms, name) {
			continue
		}
		platforms = append(platforms, name)
		resolved := v.On(name)
		for k := range resolved {
			for _, o := range resolved[k].Origins() {
				s := Setting{"", o.Name, o.Value, []string{name}, o.Span.File, int64(o.Span.Line)}
				if len(resolved) > 1 {
					s.Processor = resolved[k].Processor
				}
				all = merge(all, s)
			}
		}
	}
	for i := range all {
		if len(all[i].Platforms) == len(platforms) {
			all[i].Platforms = nil
		}
	}
	return all
}

// merge adds a setting on one platform: to an equal one of another platform, or after the last one of this name, or at
// the end.
func merge(all []Setting, s Setting) []Setting {
	at := len(all)
	for i, x := range all {
		switch {
		case x.Processor != s.Processor || x.Name != s.Name:
		case x.Value == s.Value && x.File == s.File && x.Line == s.Line:
			all[i].Platforms = append(all[i].Platforms, s.Platforms...)
			return all
		default:
			at = i + 1
		}
	}
	return slices.Insert(all, at, s)
}

// budgets returns the size limits of parcels, by name; none without a project.
func (d *Dashboard) budgets() map[string]int64 {
	all := map[string]int64{}
	if d.cfg.Project == nil {
		return all
	}
	if p, err := d.cfg.Project(); err == nil {
		for i := range p.Parcels {
			all[p.Parcels[i].Name] = p.Parcels[i].Budget
		}
	}
	return all
}
