package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/processor"
)

func newWhyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why ASSET",
		Short: "Show why an asset was built, and whether and why it would be now",
		Long: `Show, for each platform, why the asset was built last time and in which build, and whether it would be
built now: the first thing it read that has changed and, if that is another asset, why that one
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
			changed, err := a.changedSettings(cmd.Context(), av)
			if err != nil {
				return err
			}
			if a.json {
				for i := range av.Jobs {
					l := newWhyLine(av.ID, &av.Jobs[i], jobs)
					l.Settings = changed[i]
					if err := a.emit(l); err != nil {
						return err
					}
				}
				return nil
			}
			return a.tellWhy(av, jobs, changed)
		},
	}
}

// lookAt inspects the whole project and finds one asset in it.
func (a *app) lookAt(ctx context.Context, name string) (*view.View, *view.AssetView, error) {
	p, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	v, err := a.look(ctx, p, nil, a.platforms)
	if err != nil {
		return nil, nil, err
	}
	av, err := findAsset(ctx, p, v, a.named(p, []string{name})[0])
	return v, av, err
}

// findAsset returns the asset that a name means; if there is none, the error has a suggestion.
func findAsset(ctx context.Context, p *build.Project, v *view.View, name string) (*view.AssetView, error) {
	found := v.Asset(name)
	if found == nil {
		some, err := p.Look(ctx, []string{name}, nil)
		if err != nil {
			return nil, err
		}
		if len(some.Assets) == 1 { // the file belongs to it
			found = v.Asset(some.Assets[0].ID)
		}
		if found == nil {
			return nil, manyAssets(name, len(some.Assets))
		}
	}
	for i := range v.Assets {
		if v.Assets[i].Asset == found {
			return &v.Assets[i], nil
		}
	}
	return nil, diag.Errorf(diag.NothingKnown, diag.Pos{}, "%q is not built for these platforms", found.ID).WithHint("leave out -p")
}

func manyAssets(name string, n int) error {
	return wrongUsage("`kiln ls "+name+"` lists them", "%q means %d assets; name one", name, n)
}

// jobAt identifies a job.
type jobAt struct{ asset, platform string }

// jobTable finds jobs by the name of an asset in observations, which is its id or its path.
type jobTable map[jobAt]*view.JobView

func jobsByAsset(v *view.View) jobTable {
	jobs := jobTable{}
	add := func(name func(av *view.AssetView) string) {
		for i := range v.Assets {
			av := &v.Assets[i]
			for k := range av.Jobs {
				j := &av.Jobs[k]
				if k == 0 || av.Jobs[k-1].Platform != j.Platform { // the name alone means an asset's first job
					jobs[jobAt{name(av), j.Platform}] = j
				} else {
					jobs[jobAt{j.Name(name(av)), j.Platform}] = j
				}
			}
		}
	}
	add(func(av *view.AssetView) string { return processor.ByUUID(av.UUID) })
	add(func(av *view.AssetView) string { return av.Path })
	add(func(av *view.AssetView) string { return av.ID })
	return jobs
}

// link is one step from a job down to what made it stale.
type link struct {
	asset string
	job   *view.JobView
}

// chain follows what a job needs as long as that would be built too. The job itself is not in it.
func (jobs jobTable) chain(j *view.JobView) []link {
	var links []link
	for seen := map[*view.JobView]bool{j: true}; ; seen[j] = true {
		if j.State.Holds() || j.State == view.Failed || j.Why == nil {
			return links
		}
		o := j.Why.Observation
		if j.Why.Cause != engine.NeedsUndecided && j.Why.Cause != engine.InputDiffers || o.Kind >= engine.FirstLeaf {
			return links
		}
		name := explain.Subject(o)
		next := jobs[jobAt{name, j.Platform}]
		if next == nil || seen[next] || next.State.Holds() || next.Failure != nil {
			return links
		}
		links = append(links, link{name, next})
		j = next
	}
}

// whyText is the text for all jobs with the same reasons.
type whyText struct {
	state     view.JobState
	word      string
	platforms []string
	took      []string
	lines     []string
}

func (a *app) tellWhy(av *view.AssetView, jobs jobTable, changed [][]changedSetting) error {
	fmt.Fprintf(a.out, "%s  %s\n", a.paint(a.out, bold, oneLine(av.ID)), processorsOf(av))
	var texts []whyText
	for i := range av.Jobs {
		j := &av.Jobs[i]
		now, took := settingLines(changed[i]), ""
		if now == nil {
			now = nowLines(j, jobs)
		}
		lines := append(now, lastLines(j)...)
		if j.LastRun != nil {
			if took = secondsText(j.LastRun.Seconds); explain.RunOn(j.LastRun.Why) != "" {
				took = "by the run on " + explain.RunOn(j.LastRun.Why)
			}
		}
		word := stateWords[j.State]
		if len(changed[i]) > 0 && j.State == view.NotBuilt {
			word += " with these settings"
		}
		k := slices.IndexFunc(texts, func(t whyText) bool { return t.word == word && t.state == j.State && slices.Equal(t.lines, lines) })
		if k < 0 {
			texts = append(texts, whyText{j.State, word, []string{placeOf(j)}, []string{took}, lines})
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
		fmt.Fprintf(a.out, "  %s%s  %s\n", on, pad, a.paint(a.out, stateStyle(t.state), t.word))
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

// placeOf identifies a job of an asset: its platform, and its processor if there are several.
func placeOf(j *view.JobView) string {
	if j.Among != "" {
		return j.Platform + " " + j.Among
	}
	return j.Platform
}

func processorsOf(av *view.AssetView) string {
	var names []string
	for i := range av.Jobs {
		if !slices.Contains(names, av.Jobs[i].Processor) {
			names = append(names, av.Jobs[i].Processor)
		}
	}
	return strings.Join(names, ", ")
}

var stateWords = map[view.JobState]string{
	view.UpToDate: "up to date: it would not be built",
	view.Held:     "held by ignore: only `kiln build --strict` would build it",
	view.Failed:   "failed: it would not be tried again before something changes",
	view.Stale:    "stale: it would be built",
	view.Maybe:    "maybe: it would be built if what it needs comes out differently",
	view.NotBuilt: "not built: it would be built for the first time",
}

// changedSetting is a setting whose value differs from that in the content database: as JSON, "" if there is no value.
type changedSetting struct {
	Name string          `json:"name"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

const settingsBefore = `SELECT t.text FROM job j JOIN asset a ON a.no = j.asset JOIN platform p ON p.no = j.platform
  JOIN shared_text s ON s.no = j.processor JOIN shared_text t ON t.no = j.settings
WHERE a.uuid = :asset AND p.name = :platform AND s.text = :processor`

// hasOtherKey reports whether a job was not built with the key that it has now.
func hasOtherKey(j view.JobView) bool {
	return j.State == view.NotBuilt || j.Why != nil && j.Why.Cause == engine.SettingsChanged
}

// changedSettings returns, for each job of an asset that was built with other settings, the settings that differ.
func (a *app) changedSettings(ctx context.Context, av *view.AssetView) ([][]changedSetting, error) {
	changed := make([][]changedSetting, len(av.Jobs))
	if !slices.ContainsFunc(av.Jobs, hasOtherKey) {
		return changed, nil
	}
	p, err := a.open()
	if err != nil {
		return nil, err
	}
	db, err := openDatabase(p)
	if err != nil {
		return changed, nil // there is none yet, or it is damaged, which the next build reports
	}
	defer db.Close()
	for i := range av.Jobs {
		j := &av.Jobs[i]
		if !hasOtherKey(*j) || j.On == nil {
			continue
		}
		res, err := db.Ask(ctx, settingsBefore, map[string]any{":asset": av.UUID, ":platform": j.Platform, ":processor": j.Processor}, 1)
		if err != nil {
			continue
		}
		if len(res.Rows) == 0 {
			changed[i] = otherProcessor(ctx, db, av, j)
			continue
		}
		var before, now map[string]json.RawMessage
		text, _ := res.Rows[0][0].(string)
		if json.Unmarshal([]byte(text), &before) != nil || json.Unmarshal([]byte(settings.JSON(j.On.Settings)), &now) != nil {
			continue
		}
		for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(now))))) {
			if was, is := before[name], now[name]; !bytes.Equal(was, is) {
				changed[i] = append(changed[i], changedSetting{name, was, is})
			}
		}
	}
	return changed, nil
}

const processorsBefore = `SELECT s.text FROM job j JOIN asset a ON a.no = j.asset JOIN platform p ON p.no = j.platform
  JOIN shared_text s ON s.no = j.processor WHERE a.uuid = :asset AND p.name = :platform`

// otherProcessor returns that another processor built an asset, if there was only that one, as a changed setting.
func otherProcessor(ctx context.Context, db *contentdb.Reader, av *view.AssetView, j *view.JobView) []changedSetting {
	if j.Among != "" {
		return nil // it has several now
	}
	res, err := db.Ask(ctx, processorsBefore, map[string]any{":asset": av.UUID, ":platform": j.Platform}, 2)
	if err != nil || len(res.Rows) != 1 {
		return nil
	}
	was, _ := res.Rows[0][0].(string)
	return []changedSetting{{"processor", json.RawMessage(strconv.Quote(was)), json.RawMessage(strconv.Quote(j.Processor))}}
}

// settingLines lists changed settings.
func settingLines(changed []changedSetting) []string {
	var parts []string
	for _, c := range changed {
		parts = append(parts, fmt.Sprintf("%s was %s and is %s", c.Name, settingText(c.Old), settingText(c.New)))
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{"because its settings changed: " + strings.Join(parts, "; ")}
}

func settingText(v json.RawMessage) string {
	if len(v) == 0 {
		return "not there"
	}
	return cut(oneLine(string(v)), 60)
}

// nowLines say why a job would run, or what changed and is ignored.
func nowLines(j *view.JobView, jobs jobTable) []string {
	if j.State == view.Held || j.State == view.Failed {
		return ignoredLines(j)
	}
	if j.State != view.Stale && j.State != view.Maybe {
		return nil
	}
	lines := []string{"because " + reasonText(j, j.Why)}
	for _, l := range jobs.chain(j) {
		lines = append(lines, fmt.Sprintf("  %s: %s", l.asset, reasonText(l.job, l.job.Why)))
	}
	return lines
}

// ignoredLines say what changed, of the job or, if it failed, of a part of it, and where it is written that this is harmless.
func ignoredLines(j *view.JobView) (lines []string) {
	for i := range j.Ignored {
		r := &j.Ignored[i]
		text := "although " + explain.Reason(r)
		if by := explain.Ignored(j.On, &r.Observation); by != "" {
			text += " (" + by + ")"
		}
		lines = append(lines, text)
	}
	return lines
}

// reasonText is a reason for which a job ran, or would, with the place in a project file that names it.
func reasonText(j *view.JobView, r *engine.Reason) string {
	text := explain.Reason(r)
	if by := explain.ByHand(r, j.On); by != "" {
		text += " (" + by + ")"
	}
	return text
}

// tookMark stands for the duration of the jobs, which always differs between platforms.
const tookMark = "\x00"

// lastLines explain why a job ran last time, and with what result.
func lastLines(j *view.JobView) []string {
	t := j.LastRun
	if t == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("last built in build %d, because %s (%s)", t.Build, reasonText(j, t.Why), tookMark)}
	if t.Worker != "" {
		lines[0] = fmt.Sprintf("last built in build %d, on %s, because %s (%s)", t.Build, t.Worker, reasonText(j, t.Why), tookMark)
	}
	if t.Adopted {
		lines[0] = fmt.Sprintf("taken from %s in build %d, because %s (%s where it was built)",
			explain.Cache(t), t.Build, reasonText(j, t.Why), tookMark)
	}
	if j.Fails() {
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
	engine.SettingsChanged: "settings-changed", engine.Forced: "forced",
	engine.NeedsUndecided: "needs-undecided", engine.InputUnreadable: "input-unreadable",
}

type whyLine struct {
	Type       string        `json:"type"`
	Asset      string        `json:"asset"`
	Platform   string        `json:"platform"`
	Processor  string        `json:"processor"`
	State      view.JobState `json:"state"`
	WouldBuild string        `json:"would_build"` // "yes", "no" or "maybe"
	Now        *reasonLine   `json:"now,omitempty"`
	Ignored    []reasonLine  `json:"ignored,omitempty"` // held by ignore: what changed
	Chain      []chainLine   `json:"chain,omitempty"`   // from what it needs down to what changed
	Last       *lastLine     `json:"last,omitempty"`

	Settings []changedSetting `json:"changed_settings,omitempty"` // settings that differ from those of its last build
}

type reasonLine struct {
	Cause       string           `json:"cause"`
	Text        string           `json:"text"`
	ByHand      string           `json:"by_hand,omitempty"` // key and place of the dependency by hand
	Observation *observationLine `json:"observation,omitempty"`
}

type observationLine struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Old     string `json:"old,omitempty"` // hash of the observed value; none: it did not exist
	New     string `json:"new,omitempty"`
}

type chainLine struct {
	Asset string        `json:"asset"`
	State view.JobState `json:"state"`
	reasonLine
}

type lastLine struct {
	Build    uint64          `json:"build"`
	Seconds  float64         `json:"seconds"`
	Cached   bool            `json:"cached,omitempty"` // its result came from the cache; seconds are of where it was built
	Cache    string          `json:"cache,omitempty"`  // cached: which cache had it, folder or server
	Worker   string          `json:"worker,omitempty"` // the other machine that built it
	Failed   bool            `json:"failed"`
	Reason   reasonLine      `json:"reason"`
	Messages []*diag.Message `json:"messages,omitempty"`
}

func newWhyLine(asset string, j *view.JobView, jobs jobTable) whyLine {
	l := whyLine{Type: "why", Asset: asset, Platform: j.Platform, Processor: j.Processor, State: j.State, WouldBuild: "no"}
	switch j.State {
	case view.Stale, view.NotBuilt:
		l.WouldBuild = "yes"
	case view.Maybe:
		l.WouldBuild = "maybe"
	}
	for i := 0; l.WouldBuild == "no" && i < len(j.Ignored); i++ {
		r := newReasonLine(j, &j.Ignored[i])
		r.ByHand = explain.Ignored(j.On, &j.Ignored[i].Observation)
		l.Ignored = append(l.Ignored, r)
	}
	if l.WouldBuild != "no" {
		r := newReasonLine(j, j.Why)
		l.Now = &r
		for _, k := range jobs.chain(j) {
			l.Chain = append(l.Chain, chainLine{k.asset, k.job.State, newReasonLine(k.job, k.job.Why)})
		}
	}
	if t := j.LastRun; t != nil {
		l.Last = &lastLine{t.Build, t.Seconds, t.Adopted, t.Origin, t.Worker, j.Fails(), newReasonLine(j, t.Why), j.Messages()}
	}
	return l
}

func newReasonLine(j *view.JobView, r *engine.Reason) reasonLine {
	if r == nil {
		return reasonLine{Cause: causes[0]}
	}
	l := reasonLine{Cause: causes[r.Cause], Text: explain.Reason(r), ByHand: explain.ByHand(r, j.On)}
	switch r.Cause {
	case engine.InputDiffers, engine.NeedsUndecided, engine.InputUnreadable:
		l.Observation = newObservationLine(r.Observation)
		if r.Cause == engine.InputDiffers {
			l.Observation.New = explain.Value(r.Observation, r.New)
		}
	}
	return l
}

func newObservationLine(o engine.Observation) *observationLine {
	return &observationLine{Kind: explain.Kind(o), Subject: explain.Subject(o), Old: explain.Value(o, o.Value)}
}

// hashText is a hash, or nothing for no hash.
func hashText(h digest.Hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}
