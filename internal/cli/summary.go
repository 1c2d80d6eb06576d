package cli

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/report"
)

// The last line of a build, in text and in JSON.

type summaryLine struct {
	Type string `json:"type"`
	report.Summary
	Maybe int `json:"maybe,omitempty"` // dry run: jobs that depend on the results of others
}

func newSummaryLine(s report.Summary, maybe int) summaryLine {
	s.Wrote = append([]string{}, s.Wrote...) // [] and not null
	return summaryLine{"summary", s, maybe}
}

// summaryText is the last line of a build: the numbers of assets by result, and the written files besides products.
//
//	2 assets built, 121 up to date, 1 failed, 3 warnings in 0.42 s; wrote parcel level1, kiln.ids (commit it)
func (a *app) summaryText(s *report.Summary) string {
	parts := []string{
		a.counted(green, s.AssetsBuilt, count(s.AssetsBuilt, "asset", "assets")+" built"),
		fmt.Sprintf("%d up to date", max(0, s.Assets-s.AssetsBuilt-s.AssetsFailed-s.HeldByIgnore-s.Unbuilt)),
	}
	parts = append(parts, heldPart(a, s)...)
	if s.Unbuilt > 0 {
		parts = append(parts, a.counted(yellow, s.Unbuilt, fmt.Sprintf("%d not built", s.Unbuilt)))
	}
	if s.AssetsFailed > 0 {
		parts = append(parts, a.counted(red, s.AssetsFailed, fmt.Sprintf("%d failed", s.AssetsFailed)))
	}
	if s.Warnings > 0 {
		parts = append(parts, a.counted(yellow, s.Warnings, count(s.Warnings, "warning", "warnings")))
	}
	if s.Remote > 0 {
		parts = append(parts, fmt.Sprintf("%d run remotely", s.Remote))
	}
	parts = append(parts, cacheParts(s)...)
	text := fmt.Sprintf("%s in %.2f s", strings.Join(parts, ", "), s.Seconds)
	if wrote := wroteText(s.Wrote, s.Commit); wrote != "" {
		text += "; wrote " + wrote
	}
	return text
}

// heldPart is how many assets are held by ignore; nothing if none is.
func heldPart(a *app, s *report.Summary) []string {
	if s.HeldByIgnore == 0 {
		return nil
	}
	return []string{a.paint(a.errs, yellow, fmt.Sprintf("%d held by ignore", s.HeldByIgnore))}
}

// planText is the last line of a dry run.
func (a *app) planText(s *report.Summary, would []report.JobReport) string {
	state := map[string]bool{} // assets with jobs to run, and whether that is certain
	for i := range would {
		if j := &would[i]; !j.Request {
			state[j.Asset] = state[j.Asset] || j.State == engine.WouldRun
		}
	}
	sure := 0
	for _, certain := range state {
		if certain {
			sure++
		}
	}
	parts := []string{a.counted(green, sure, count(sure, "asset", "assets")+" would be built")}
	if maybe := len(state) - sure; maybe > 0 {
		parts = append(parts, a.counted(yellow, maybe, fmt.Sprintf("%d perhaps", maybe)))
	}
	parts = append(parts, fmt.Sprintf("%d up to date", max(0, s.Assets-s.HeldByIgnore-len(state))))
	parts = append(parts, heldPart(a, s)...)
	return fmt.Sprintf("%s in %.2f s", strings.Join(parts, ", "), s.Seconds)
}

// counted colours a number for standard error, unless it is 0.
func (a *app) counted(st style, n int, text string) string {
	if n == 0 {
		return text
	}
	return a.paint(a.errs, st, text)
}

// mostParcels is how many parcels the summary names.
const mostParcels = 3

// wroteText lists files that a build wrote: parcels, by their names; other files in the output folder; and last those
// to commit.
func wroteText(files, commit []string) string {
	var parcels, others []string
	for _, f := range files {
		switch {
		case slices.Contains(commit, f):
		case path.Base(f) == ship.ListName: // it changes with the parcels
		case path.Base(path.Dir(path.Dir(f))) == path.Dir(ship.Folder("p")):
			if name := strings.TrimSuffix(path.Base(f), path.Ext(f)); !slices.Contains(parcels, name) {
				parcels = append(parcels, name)
			}
		default:
			others = append(others, f)
		}
	}
	var parts []string
	switch n := len(parcels); {
	case n == 1:
		parts = append(parts, "parcel "+parcels[0])
	case n > mostParcels:
		parts = append(parts, fmt.Sprintf("%d parcels", n))
	case n > 1:
		parts = append(parts, "parcels "+strings.Join(parcels, ", "))
	}
	parts = append(parts, others...)
	switch n := len(commit); {
	case n == 1:
		parts = append(parts, commit[0]+" (commit it)")
	case n > 1:
		parts = append(parts, strings.Join(commit, ", ")+" (commit them)")
	}
	return strings.Join(parts, ", ")
}

// cacheParts are the parts of the summary about caches.
func cacheParts(s *report.Summary) (parts []string) {
	if s.FromCache > 0 {
		text := diag.Size(s.Downloaded)
		if s.Saved >= 1 {
			text += fmt.Sprintf(", about %s saved", leftText(time.Duration(s.Saved*float64(time.Second))))
		}
		parts = append(parts, fmt.Sprintf("%d from the cache (%s)", s.FromCache, text))
	}
	if s.Uploaded > 0 {
		parts = append(parts, diag.Size(s.Uploaded)+" stored in the cache")
	}
	return parts
}
