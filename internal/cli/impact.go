package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/ask/impact"
	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

func newImpactCommand(a *app) *cobra.Command {
	var removed bool
	cmd := &cobra.Command{
		Use:   "impact PATH...",
		Short: "Show what would be built again if files changed",
		Long: `Show which jobs would run again if these files changed, how long that took last time, and which products and
parcels it may change. A path that is not there is a file that would be added, a folder is all that is in it, a glob all that match.

It is the most that can happen: where a job's products come out the same, what needs them is not built again.`,
		GroupID: groupLook,
		Example: "  kiln impact assets/textures/shared.png\n  kiln impact 'textures/**/*.png'\n  git diff --name-only main | xargs -r kiln impact",
		Args:    atLeastOne("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.impact(cmd.Context(), args, removed)
		},
	}
	cmd.Flags().BoolVar(&removed, "removed", false, "as if the files were removed")
	return cmd
}

type impactJobLine struct {
	Type     string  `json:"type"`
	Asset    string  `json:"asset"`
	Platform string  `json:"platform"`
	Among    string  `json:"processor,omitempty"` // if the asset has several
	Steps    int     `json:"steps"`               // 0: it read a changed file itself
	Because  string  `json:"because"`
	Kind     string  `json:"kind"`
	ByHand   string  `json:"by_hand,omitempty"` // key and place of the dependency
	Seconds  float64 `json:"seconds"`           // duration of its last run
}

type impactLine struct {
	Type     string   `json:"type"`
	Files    []string `json:"files"`
	Rules    []string `json:"rules,omitempty"` // files of rules: their effect is not known
	Assets   int      `json:"assets"`
	Jobs     int      `json:"jobs"`
	Seconds  float64  `json:"seconds"`
	Products []string `json:"products"`
	Parcels  []string `json:"parcels"`
}

func (a *app) impact(ctx context.Context, names []string, removed bool) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	v, err := a.look(ctx, p, nil, a.platforms)
	if err != nil {
		return err
	}
	if !everBuilt(v) {
		return diag.Errorf(diag.NothingKnown, diag.Pos{}, "nothing was built yet, so nobody knows what reads which file").WithHint("run `kiln build` first")
	}
	sum := impactLine{Type: "impact", Files: []string{}, Products: []string{}, Parcels: []string{}}
	var files []impact.File
	var added []string
	for _, name := range a.named(p, names) {
		found, rules, err := impact.Files(p, v, name, removed)
		if err != nil {
			return err
		}
		if rules {
			sum.Rules = append(sum.Rules, name)
		}
		for _, f := range found {
			files = append(files, f)
			sum.Files = append(sum.Files, f.Path)
			if f.Change == impact.Added {
				added = append(added, f.Path)
			}
		}
	}
	r := impact.Of(v, files, a.platforms, p.Parcels)
	sum.Jobs, sum.Seconds = len(r.Jobs), r.Seconds
	sum.Parcels = append(sum.Parcels, r.Parcels...)
	for _, f := range r.Products {
		sum.Products = append(sum.Products, p.Output+"/"+f)
	}
	assets := map[string]bool{}
	for _, j := range r.Jobs {
		assets[j.Asset] = true
	}
	sum.Assets = len(assets)
	if a.json {
		for _, j := range r.Jobs {
			if err := a.emit(impactJobLine{"job", j.Asset, j.Platform, j.Among, j.Steps, j.Because, j.Kind, byHandOf(v, j), j.Seconds}); err != nil {
				return err
			}
		}
		return a.emit(sum)
	}
	return a.tellImpact(p, v, r, &sum, added)
}

// tellImpact shows a row for each asset; platforms with the same result share it.
func (a *app) tellImpact(p *build.Project, v *view.View, r *impact.Report, sum *impactLine, added []string) error {
	type row struct {
		impact.Job
		platforms []string
	}
	var rows []row
	for _, j := range r.Jobs {
		if n := len(rows); n > 0 && rows[n-1].Asset == j.Asset && rows[n-1].Among == j.Among && rows[n-1].Steps == j.Steps {
			rows[n-1].platforms = append(rows[n-1].platforms, j.Platform)
			rows[n-1].Seconds += j.Seconds
		} else {
			rows = append(rows, row{j, []string{j.Platform}})
		}
	}
	t := a.tableOn(a.out)
	for _, x := range rows {
		on := strings.Join(x.platforms, ", ")
		if len(x.platforms) == len(p.PlatformNames()) && len(x.platforms) > 1 {
			on = "all"
		}
		t.row(left(task.Name(x.Asset, x.Among, "")), left(on), right(secondsText(x.Seconds)), styled(dim, becauseText(v, x.Job)))
	}
	if err := t.write(); err != nil {
		return err
	}
	if len(rows) > 0 {
		fmt.Fprintln(a.out)
		fmt.Fprintf(a.out, "at most %s of %s, which took %s last time\n", count(sum.Jobs, "job", "jobs"), count(sum.Assets, "asset", "assets"), secondsText(sum.Seconds))
		fmt.Fprintf(a.out, "may change %s%s\n", count(len(sum.Products), "product", "products"), parcelsText(sum.Parcels))
		if rows[len(rows)-1].Steps > 0 {
			fmt.Fprintln(a.out, a.paint(a.out, dim, "fewer, if a product in between comes out the same"))
		}
	} else {
		fmt.Fprintln(a.out, "no job looked at "+oneLine(some(append(append([]string{}, sum.Files...), sum.Rules...), 3))+"; nothing known would be built again")
	}
	for _, f := range added {
		if noSource(p, f) {
			fmt.Fprintf(a.out, "%s is not there, and can be no asset: it is in no source root\n", oneLine(f))
			continue
		}
		hint := ""
		if near := diag.DidYouMean(f, v.Sources().Paths()); near != "" {
			hint = "; " + near
		}
		fmt.Fprintf(a.out, "%s is not there: it may become an asset of its own, too%s\n", oneLine(f), hint)
	}
	if len(sum.Rules) > 0 {
		fmt.Fprintf(a.out, "what a change of %s brings depends on the change: edit it and look at `kiln build --dry-run`\n", some(sum.Rules, 3))
	}
	return nil
}

// noSource reports whether a path below no source root cannot be a source file: it is outside of the project folder, or
// Kiln writes it.
func noSource(p *build.Project, file string) bool {
	for _, folder := range []string{"..", p.Output, project.StateFolder} {
		if strings.HasPrefix(file, folder+"/") {
			return true
		}
	}
	return false
}

// everBuilt reports whether any job was built before.
func everBuilt(v *view.View) bool {
	for i := range v.Assets {
		for k := range v.Assets[i].Jobs {
			if v.Assets[i].Jobs[k].Last != nil {
				return true
			}
		}
	}
	return len(v.Assets) == 0
}

// byHandOf is the place of the dependency by hand through which a job is concerned; "" if it is not by hand.
func byHandOf(v *view.View, j impact.Job) string {
	a := v.Table().ByID(j.Asset)
	if a == nil {
		return ""
	}
	for on := range slices.Values(a.On(j.Platform)) {
		at := explain.Input(&on, j.Because)
		if j.Steps > 0 || j.Kind == "assets" {
			at = explain.Need(&on, j.Because)
		}
		if at != "" {
			return at
		}
	}
	return ""
}

// becauseText describes how a job depends on the files.
func becauseText(v *view.View, j impact.Job) string {
	text := becauseOf(j)
	if at := byHandOf(v, j); at != "" {
		text += " (" + at + ")"
	}
	return text
}

func becauseOf(j impact.Job) string {
	switch {
	case j.Steps > 0 && j.Kind == "assets":
		return "lists a parcel that holds " + j.Because
	case j.Steps > 0:
		return "needs " + j.Because
	case j.Kind == "glob", j.Kind == "assets":
		return "lists " + j.Because
	case j.Kind == "packers":
		return "has images of " + j.Because + " packed"
	case j.Kind == "missing", j.Kind == "asset", j.Kind == "products":
		return "looked for " + j.Because
	case j.Kind == "exists":
		return "looked whether " + j.Because + " is there"
	case j.Kind == "tool":
		return "runs " + j.Because
	case j.Kind == "processor":
		return "made by " + j.Because
	}
	return "reads " + j.Because
}

func parcelsText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " and " + count(len(names), "parcel", "parcels") + ": " + strings.Join(names, ", ")
}
