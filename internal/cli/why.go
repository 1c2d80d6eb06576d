package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/make/explain"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/processor"
)

func newWhyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why ASSET",
		Short: "Tell why an asset was built, and whether and why it would be now",
		Long: `Tell, for each platform, why the asset was built last time and in which build, and whether it would be
built now: the first thing it saw that is not as it was, and where that is another asset, why that one
would be built, down to the file. Nothing is built.`,
		GroupID:           groupLook,
		Example:           "  kiln why sprites/tank.png\n  kiln why models/knight.gltf -p mobile",
		Args:              exactly("ASSET"),
		ValidArgsFunction: a.assetIDs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, av, err := a.lookAt(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			jobs := jobsByAsset(v)
			if a.json {
				for i := range av.Jobs {
					if err := a.emit(newWhyLine(av.ID, &av.Jobs[i], jobs)); err != nil {
						return err
					}
				}
				return nil
			}
			return a.tellWhy(av, jobs)
		},
	}
}

// lookAt looks at the whole project and finds one asset in it.
func (a *app) lookAt(ctx context.Context, name string) (*build.View, *build.AssetView, error) {
	p, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	v, err := a.look(ctx, p, nil, a.platforms)
	if err != nil {
		return nil, nil, err
	}
	av, err := findAsset(ctx, p, v, name)
	return v, av, err
}

// findAsset finds the asset that a name means; if there is none, the error says which was probably meant.
func findAsset(ctx context.Context, p *build.Project, v *build.View, name string) (*build.AssetView, error) {
	if found := v.Asset(name); found != nil {
		for i := range v.Assets {
			if v.Assets[i].Asset == found {
				return &v.Assets[i], nil
			}
		}
		return nil, diag.Errorf(diag.NothingKnown, diag.Pos{}, "%q is not built for these platforms", found.ID).WithHint("leave out -p")
	}
	some, err := p.Look(ctx, []string{name}, nil)
	if err != nil {
		return nil, err
	}
	return nil, wrongUsage("`kiln ls "+name+"` lists them", "%q means %d assets; name one", name, len(some.Assets))
}

// jobAt names a job.
type jobAt struct{ asset, platform string }

// jobTable finds jobs by what observations call an asset, which is its id or its path.
type jobTable map[jobAt]*build.JobView

func jobsByAsset(v *build.View) jobTable {
	jobs := jobTable{}
	add := func(name func(av *build.AssetView) string) {
		for i := range v.Assets {
			av := &v.Assets[i]
			for k := range av.Jobs {
				j := &av.Jobs[k]
				if k == 0 || av.Jobs[k-1].Platform != j.Platform { // an asset's first job is called by its name alone
					jobs[jobAt{name(av), j.Platform}] = j
				} else {
					jobs[jobAt{j.Name(name(av)), j.Platform}] = j
				}
			}
		}
	}
	add(func(av *build.AssetView) string { return processor.ByUUID(av.UUID) })
	add(func(av *build.AssetView) string { return av.Path })
	add(func(av *build.AssetView) string { return av.ID })
	return jobs
}

// link is one step from a job down to what made it stale.
type link struct {
	asset string
	job   *build.JobView
}

// chain follows what a job needs as long as that would be built, too. The job itself is not in it.
func (jobs jobTable) chain(j *build.JobView) []link {
	var links []link
	for seen := map[*build.JobView]bool{j: true}; ; seen[j] = true {
		if j.State == build.Fresh || j.State == build.Failed || j.Why == nil {
			return links
		}
		o := j.Why.Observation
		if j.Why.Cause != engine.NeedsUndecided && j.Why.Cause != engine.InputDiffers || o.Kind >= engine.FirstLeaf {
			return links
		}
		name := explain.Subject(o)
		next := jobs[jobAt{name, j.Platform}]
		if next == nil || seen[next] || next.State == build.Fresh {
			return links
		}
		links = append(links, link{name, next})
		j = next
	}
}

// whyText is what is told of the jobs of which the same is to be told.
type whyText struct {
	state     build.JobState
	platforms []string
	took      []string
	lines     []string
}

func (a *app) tellWhy(av *build.AssetView, jobs jobTable) error {
	fmt.Fprintf(a.out, "%s  %s\n", a.paint(a.out, bold, oneLine(av.ID)), processorsOf(av))
	var texts []whyText
	for i := range av.Jobs {
		j := &av.Jobs[i]
		lines, took := append(nowLines(j, jobs), lastLines(j)...), ""
		if j.LastRun != nil {
			took = secondsText(j.LastRun.Seconds)
		}
		k := slices.IndexFunc(texts, func(t whyText) bool { return t.state == j.State && slices.Equal(t.lines, lines) })
		if k < 0 {
			texts = append(texts, whyText{j.State, []string{placeOf(j)}, []string{took}, lines})
		} else {
			texts[k].platforms, texts[k].took = append(texts[k].platforms, placeOf(j)), append(texts[k].took, took)
		}
	}
	width := 0
	for _, t := range texts {
		width = max(width, textWidth(strings.Join(t.platforms, ", ")))
	}
	for _, t := range texts {
		on := strings.Join(t.platforms, ", ")
		pad := strings.Repeat(" ", width-textWidth(on))
		fmt.Fprintf(a.out, "  %s%s  %s\n", on, pad, a.paint(a.out, stateStyle(t.state), stateWords[t.state]))
		for _, l := range t.lines {
			head, tail, _ := strings.Cut(l, tookMark)
			if tail != "" {
				tail = strings.Join(t.took, ", ") + tail
			}
			fmt.Fprintf(a.out, "  %*s  %s\n", width, "", oneLine(head)+tail)
		}
	}
	return nil
}

// placeOf is a job among those of its asset: its platform, and its processor where there are several.
func placeOf(j *build.JobView) string {
	if j.Among != "" {
		return j.Platform + " " + j.Among
	}
	return j.Platform
}

func processorsOf(av *build.AssetView) string {
	var names []string
	for i := range av.Jobs {
		if !slices.Contains(names, av.Jobs[i].Processor) {
			names = append(names, av.Jobs[i].Processor)
		}
	}
	return strings.Join(names, ", ")
}

var stateWords = map[build.JobState]string{
	build.Fresh:  "fresh: it would not be built",
	build.Failed: "failed: it would not be tried again before something changes",
	build.Stale:  "stale: it would be built",
	build.Maybe:  "maybe: it would be built if what it needs comes out differently",
	build.New:    "new: it would be built for the first time",
}

// nowLines say why a job would run.
func nowLines(j *build.JobView, jobs jobTable) []string {
	if j.State != build.Stale && j.State != build.Maybe {
		return nil
	}
	lines := []string{"because " + explain.Reason(j.Why)}
	for _, l := range jobs.chain(j) {
		lines = append(lines, fmt.Sprintf("  %s: %s", l.asset, explain.Reason(l.job.Why)))
	}
	return lines
}

// tookMark stands for how long the jobs took, which is the only thing that always differs between platforms.
const tookMark = "\x00"

// lastLines say why a job ran last time, and what came of it.
func lastLines(j *build.JobView) []string {
	t := j.LastRun
	if t == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("last built in build %d, because %s (%s)", t.Build, explain.Reason(t.Why), tookMark)}
	if t = j.Last; t != nil && t.Outcome != engine.Succeeded {
		for _, m := range j.Messages() {
			if m.Severity == diag.Error {
				lines = append(lines, "  "+m.Error())
			}
		}
	}
	return lines
}

// causes are the names of engine.Cause in JSON.
var causes = map[engine.Cause]string{
	engine.NeverBuilt: "never-built", engine.CodeChanged: "processor-changed", engine.InputDiffers: "input-differs", engine.ProductLost: "product-lost",
	engine.Forced: "forced", engine.NeedsUndecided: "needs-undecided", engine.InputUnreadable: "input-unreadable",
}

type whyLine struct {
	Type       string         `json:"type"`
	Asset      string         `json:"asset"`
	Platform   string         `json:"platform"`
	Processor  string         `json:"processor"`
	State      build.JobState `json:"state"`
	WouldBuild string         `json:"would_build"` // "yes", "no" or "maybe"
	Now        *reasonLine    `json:"now,omitempty"`
	Chain      []chainLine    `json:"chain,omitempty"` // from what it needs down to what changed
	Last       *lastLine      `json:"last,omitempty"`
}

type reasonLine struct {
	Cause       string           `json:"cause"`
	Text        string           `json:"text"`
	Observation *observationLine `json:"observation,omitempty"`
}

type observationLine struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Old     string `json:"old,omitempty"` // hash of what it saw; none: it was not there
	New     string `json:"new,omitempty"`
}

type chainLine struct {
	Asset string         `json:"asset"`
	State build.JobState `json:"state"`
	reasonLine
}

type lastLine struct {
	Build    uint64          `json:"build"`
	Seconds  float64         `json:"seconds"`
	Failed   bool            `json:"failed"`
	Reason   reasonLine      `json:"reason"`
	Messages []*diag.Message `json:"messages,omitempty"`
}

func newWhyLine(asset string, j *build.JobView, jobs jobTable) whyLine {
	l := whyLine{Type: "why", Asset: asset, Platform: j.Platform, Processor: j.Processor, State: j.State, WouldBuild: "no"}
	switch j.State {
	case build.Stale, build.New:
		l.WouldBuild = "yes"
	case build.Maybe:
		l.WouldBuild = "maybe"
	}
	if l.WouldBuild != "no" {
		r := newReasonLine(j.Why)
		l.Now = &r
		for _, k := range jobs.chain(j) {
			l.Chain = append(l.Chain, chainLine{k.asset, k.job.State, newReasonLine(k.job.Why)})
		}
	}
	if t := j.LastRun; t != nil {
		l.Last = &lastLine{t.Build, t.Seconds, j.Last != nil && j.Last.Outcome != engine.Succeeded, newReasonLine(t.Why), j.Messages()}
	}
	return l
}

func newReasonLine(r *engine.Reason) reasonLine {
	if r == nil {
		return reasonLine{Cause: causes[0]}
	}
	l := reasonLine{Cause: causes[r.Cause], Text: explain.Reason(r)}
	switch r.Cause {
	case engine.InputDiffers, engine.NeedsUndecided, engine.InputUnreadable:
		l.Observation = newObservationLine(r.Observation)
		if r.Cause == engine.InputDiffers {
			l.Observation.New = hashText(r.New)
		}
	}
	return l
}

func newObservationLine(o engine.Observation) *observationLine {
	return &observationLine{Kind: explain.Kind(o), Subject: explain.Subject(o), Old: hashText(o.Value)}
}

// hashText is a hash, or nothing for no hash.
func hashText(h digest.Hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}
