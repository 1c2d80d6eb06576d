package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

func newInspectCommand(a *app) *cobra.Command {
	var drawing string
	cmd := &cobra.Command{
		Use:   "inspect ASSET|KEY|FILE|HASH",
		Short: "Show all that is known of an asset, a job's key, a file or a blob",
		Long: `Show all that is known of:
  an asset       each job's key and what it is made of, what the job saw, its products, and whether the files are
                 as they should be
  a key          the same for one job; the first digits are enough
  an output      which job made it, what it holds, what needs it
  a source file  which jobs look at it
  a blob         of which products it is or was the content: by its hash, of which the first digits are enough, or
                 its file in .kiln/cas`,
		GroupID:           groupLook,
		Example:           "  kiln inspect sprites/tank.png -p pc\n  kiln inspect 64ea4628\n  kiln inspect build/pc/sprites/tank.png.ktx2\n  kiln inspect sprites/ui/ --png ui.png",
		Args:              exactly("ASSET, KEY, FILE or HASH"),
		ValidArgsFunction: a.assetIDs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			v, err := p.Look(cmd.Context(), nil, a.platforms)
			if err != nil {
				return err
			}
			args[0] = a.namedFile(p, args[0])
			x := &inspector{a: a, p: p, v: v, jobs: jobsByAsset(v)}
			if drawing != "" {
				return x.draw(args[0], drawing)
			}
			return x.inspect(cmd.Context(), args[0])
		},
	}
	cmd.Flags().StringVar(&drawing, "png", "", "draw the pages of an atlas to this file, further ones to FILE-1.png, FILE-2.png")
	return cmd
}

type inspector struct {
	a *app
	p *build.Project
	v *view.View

	jobs jobTable
}

// inspect finds out what a name means; the order is asset, key, output, source file.
func (x *inspector) inspect(ctx context.Context, name string) error {
	if found := x.v.Asset(name); found != nil {
		av, err := findAsset(ctx, x.p, x.v, name)
		if err != nil {
			return err
		}
		for i := range av.Jobs {
			if i > 0 && !x.a.json {
				fmt.Fprintln(x.a.out)
			}
			if err := x.whole(av, &av.Jobs[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if done, err := x.part(name); done || err != nil {
		return err
	}
	if done, err := x.key(name); done || err != nil {
		return err
	}
	rel := x.p.InProject(name)
	if done, err := x.blob(rel); done || err != nil {
		return err
	}
	if out, ok := strings.CutPrefix(rel, x.p.Output+"/"); ok || !ok && x.isOutput(rel) {
		if !ok {
			out = rel
		}
		return x.output(out)
	}
	if path, ok := x.v.SourcePath(rel); ok {
		return x.source(path)
	}
	m := diag.Errorf(diag.NothingKnown, diag.Pos{}, "%q is not an asset, a key, an output, a source file or a blob", name)
	names := x.names()
	for _, pre := range append([]string{""}, x.p.Prefixes()...) {
		if below, ok := strings.CutPrefix(rel, pre); ok {
			if near := diag.DidYouMean(below, names); near != "" {
				return m.WithHint("%s", near)
			}
		}
	}
	return m.WithHint("`kiln ls` lists the assets")
}

func (x *inspector) names() []string {
	var names []string
	for i := range x.v.Assets {
		names = append(names, x.v.Assets[i].ID)
	}
	names = append(names, x.v.Sources().Paths()...)
	x.each(func(_ *view.AssetView, j *view.JobView) {
		for _, p := range productsOf(j) {
			if p.File != "" {
				names = append(names, x.p.Output+"/"+p.File)
			}
		}
	})
	return names
}

// part inspects a part of jobs, by its displayed name.
func (x *inspector) part(name string) (found bool, err error) {
	x.each(func(av *view.AssetView, j *view.JobView) {
		if (j.Part != "" || j.Request != "") && j.Name(av.ID) == name {
			found, err = true, errors.Join(err, x.job(av, j))
		}
	})
	return found, err
}

// whole shows a job, and lists its parts.
func (x *inspector) whole(av *view.AssetView, j *view.JobView) error {
	if err := x.job(av, j); err != nil || len(j.Parts) == 0 {
		return err
	}
	if x.a.json {
		for i := range j.Parts {
			if err := x.job(av, &j.Parts[i]); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Fprintln(x.a.out, "\n  parts and requests, each of which `kiln inspect` shows by its name or key")
	t := x.a.tableOn(x.a.out)
	for i := range j.Parts {
		p := &j.Parts[i]
		t.row(left("    "+p.Name(av.ID)), styled(dim, p.Key.Short()), styled(stateStyle(p.State), string(p.State)))
	}
	t.write()
	return nil
}

func (x *inspector) each(f func(*view.AssetView, *view.JobView)) {
	for i := range x.v.Assets {
		for k := range x.v.Assets[i].Jobs {
			j := &x.v.Assets[i].Jobs[k]
			f(&x.v.Assets[i], j)
			for p := range j.Parts {
				f(&x.v.Assets[i], &j.Parts[p])
			}
		}
	}
}

func productsOf(j *view.JobView) []engine.Product {
	if j.Last == nil {
		return nil
	}
	return j.Last.Products
}

// minKey is the minimum number of digits of a key.
const minKey = 4

// key inspects the job whose key begins with these digits.
func (x *inspector) key(digits string) (bool, error) {
	digits = strings.ToLower(digits)
	if len(digits) < minKey || strings.Trim(digits, "0123456789abcdef") != "" {
		return false, nil
	}
	type hit struct {
		av *view.AssetView
		j  *view.JobView
	}
	var hits []hit
	x.each(func(av *view.AssetView, j *view.JobView) {
		if strings.HasPrefix(j.Key.String(), digits) {
			hits = append(hits, hit{av, j})
		}
	})
	switch len(hits) {
	case 0:
		return false, nil
	case 1:
		return true, x.job(hits[0].av, hits[0].j)
	}
	m := diag.Errorf(diag.NothingKnown, diag.Pos{}, "%d keys begin with %q", len(hits), digits).WithHint("give more digits")
	for _, h := range hits[:min(len(hits), 10)] {
		m.WithNote("%s  %s [%s]", h.j.Key.Short(), h.j.Name(h.av.ID), h.j.Platform)
	}
	return true, m
}

type inspectJobLine struct {
	Type        string         `json:"type"`
	Asset       string         `json:"asset"`
	UUID        string         `json:"uuid"`
	Path        string         `json:"path"`
	Meta        map[string]any `json:"meta,omitempty"`
	Platform    string         `json:"platform"`
	Part        string         `json:"part,omitempty"`
	Processor   string         `json:"processor"`
	State       view.JobState  `json:"state"`
	Key         string         `json:"key"`
	Preimage    []partLine     `json:"preimage"`
	Fingerprint string         `json:"fingerprint"` // of the current code
	Traces      []traceLine    `json:"traces"`      // the last used first
	Sound       *soundLine     `json:"sound,omitempty"`
}

type partLine struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

type traceLine struct {
	Build        uint64          `json:"build"`
	Outcome      string          `json:"outcome"`
	Reason       string          `json:"reason"`
	RunOn        string          `json:"run_on,omitempty"` // platform whose run gave the result
	Seconds      float64         `json:"seconds"`
	Cached       bool            `json:"cached,omitempty"` // the result came from the cache
	Cache        string          `json:"cache,omitempty"`  // cached: which cache had it, folder or server
	Memory       int64           `json:"memory,omitempty"` // peak, bytes
	Fingerprint  string          `json:"fingerprint"`
	Observations []sawLine       `json:"observations"`
	Products     []productLine   `json:"products"`
	Messages     []*diag.Message `json:"messages,omitempty"` // of the last run only
}

type sawLine struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	SubID   uint32 `json:"sub_id,omitempty"`
	Hash    string `json:"hash,omitempty"` // none: it did not exist
}

type productLine struct {
	File  string `json:"file"`
	Name  string `json:"name,omitempty"`
	SubID uint32 `json:"sub_id"`
	Type  string `json:"product_type"`
	Size  int64  `json:"size"`
	Hash  string `json:"hash"`
	Blob  string `json:"blob"` // the file in the store with its bytes, relative to the project folder
	// Of the file: "good", "missing", "changed"; "old": the file was made by another trace; "hidden": there is no
	// file.
	State      string          `json:"state"`
	Holds      string          `json:"holds,omitempty"`
	References []referenceLine `json:"references,omitempty"`

	Facts map[string]string `json:"facts,omitempty"` // facts from its processor
}

type referenceLine struct {
	Asset    string `json:"asset,omitempty"` // none: the asset does not exist now
	UUID     string `json:"uuid"`
	SubID    uint32 `json:"sub_id"`
	File     string `json:"file,omitempty"` // none: it was not built
	Required bool   `json:"required"`
}

var outcomes = map[engine.Outcome]string{
	engine.Succeeded: "succeeded", engine.Failed: "failed", engine.NeedsFailed: "needs-failed", engine.Cyclic: "cyclic",
}

func (x *inspector) newJobLine(av *view.AssetView, j *view.JobView) inspectJobLine {
	l := inspectJobLine{
		Type: "job", Meta: av.Metadata(), Asset: av.ID, UUID: av.UUID, Path: av.Path, Platform: j.Platform, Part: j.Part, Processor: j.Processor, State: j.State,
		Key: j.Key.String(), Preimage: []partLine{}, Fingerprint: j.Fingerprint.String(), Traces: []traceLine{},
	}
	l.Sound = soundOf(j)
	for _, p := range j.Preimage {
		l.Preimage = append(l.Preimage, partLine{p.Label, p.Value})
	}
	for _, t := range j.Traces {
		tl := traceLine{
			Build: t.Build, Outcome: outcomes[t.Outcome], Reason: explain.Reason(t.Why), RunOn: explain.RunOn(t.Why), Seconds: t.Seconds,
			Cached: t.Adopted, Cache: t.Origin, Memory: t.Memory,
			Fingerprint: t.Fingerprint.String(), Observations: []sawLine{}, Products: []productLine{},
		}
		for _, o := range t.Observations {
			tl.Observations = append(tl.Observations, sawLine{explain.Kind(o), explain.Subject(o), o.SubID, explain.Value(o, o.Value)})
		}
		for i := range t.Products {
			tl.Products = append(tl.Products, x.newProductLine(&t.Products[i], j.Platform, t == j.Last))
		}
		if t == j.Last {
			tl.Messages = j.Messages()
		}
		l.Traces = append(l.Traces, tl)
	}
	return l
}

func (x *inspector) newProductLine(p *engine.Product, platform string, current bool) productLine {
	l := productLine{File: x.p.Output + "/" + p.File, Name: p.Name, SubID: p.SubID, Type: p.Type, Size: p.Size, Hash: p.Hash.String(),
		Blob: x.p.BlobFile(p.Hash), State: "old", Facts: factsOf(p)}
	for _, r := range p.References {
		rl := referenceLine{UUID: uuid.UUID(r.UUID).String(), SubID: r.SubID, Required: r.Required}
		assets := x.v.Table().Assets
		if i := slices.IndexFunc(assets, func(a asset.Asset) bool { return a.UUID == rl.UUID }); i >= 0 {
			rl.Asset, rl.File = assets[i].ID, x.fileOf(assets[i].ID, platform, r.SubID)
		}
		l.References = append(l.References, rl)
	}
	switch {
	case p.File == "":
		l.File, l.State = "", "hidden"
	case current:
		l.State, l.Holds = x.look(p)
	}
	return l
}

// fileOf is the output of an asset's product; "" if it was not built.
func (x *inspector) fileOf(asset, platform string, subID uint32) string {
	j := x.jobs[jobAt{asset, platform}]
	if j == nil {
		return ""
	}
	for _, p := range j.Products() {
		if p.SubID == subID {
			return x.p.Output + "/" + p.File
		}
	}
	return ""
}

// look compares an output with its expected content, and describes what it contains.
func (x *inspector) look(p *engine.Product) (state, holds string) {
	file := filepath.Join(x.p.OutputDir(), filepath.FromSlash(p.File))
	h, err := source.HashFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "missing", ""
	case err != nil || h != p.Hash:
		return "changed", ""
	}
	return "good", holdsOf(file, p.Size)
}

// holdsOf describes the content of a file, if Kiln can read its format.
func holdsOf(file string, size int64) string {
	if !processors.CanDescribe(file) || size > processors.MaxDescribed {
		return ""
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "not readable: " + err.Error()
	}
	holds, err := processors.Describe(file, data)
	if err != nil {
		return "not what its name says: " + err.Error()
	}
	return holds
}

// job shows one job: first what it made and what is wrong, last what its key is made of.
func (x *inspector) job(av *view.AssetView, j *view.JobView) error {
	l := x.newJobLine(av, j)
	a := x.a
	if a.json {
		return a.emit(l)
	}
	out := func(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }
	faint := func(s string) string { return a.paint(a.out, dim, s) }
	out("%s  on %s, %s", a.paint(a.out, bold, oneLine(j.Name(l.Asset))), l.Platform, a.paint(a.out, stateStyle(l.State), string(l.State)))
	if j.State == view.Stale || j.State == view.Maybe {
		out("  because %s", oneLine(reasonText(j, j.Why)))
	}
	if len(l.Traces) == 0 && j.LastRun != nil {
		out("  last built in build %d, with other settings", j.LastRun.Build)
	}
	for i, t := range l.Traces {
		if i == 1 && !a.verbose {
			out("  %s", faint(count(len(l.Traces)-1, "older trace", "older traces")+"; -v shows them"))
			break
		}
		if i > 0 {
			out("")
		}
		x.trace(&t, l.Fingerprint)
	}
	out("")
	out("  %s  %s", faint("key        "), l.Key)
	for _, p := range l.Preimage {
		lines := strings.Split(strings.TrimSpace(p.Value), "\n") // settings have a line each
		for i := range lines {
			lines[i] = oneLine(lines[i])
		}
		value := strings.Join(lines, "\n"+strings.Repeat(" ", 15))
		out("    %s  %s", faint(fmt.Sprintf("%-9s", p.Label)), cmp.Or(value, faint("none")))
	}
	out("  %s  %s", faint("fingerprint"), l.Fingerprint)
	return nil
}

// trace shows one run of a job. fingerprint is that of the code now.
func (x *inspector) trace(t *traceLine, fingerprint string) {
	a := x.a
	out := func(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }
	by := ""
	if t.RunOn != "" {
		by = ", by the run on " + t.RunOn
	}
	out("  %s in build %d, because %s%s", t.Outcome, t.Build, oneLine(t.Reason), by)
	took := secondsText(t.Seconds)
	if t.Memory > 0 {
		took += ", at most " + diag.Size(t.Memory) + " of memory"
	}
	if t.Cached {
		took += strings.TrimRight(" where it was built; its result came from the cache "+t.Cache, " ")
	}
	if t.Fingerprint != fingerprint {
		took += ", with other code than now"
	}
	out("    took %s", took)
	for _, m := range t.Messages {
		out("    %s", a.paint(a.out, yellow, m.Error()))
	}
	x.products(t.Products)
	x.observations(t.Observations)
}

func (x *inspector) observations(saw []sawLine) {
	if len(saw) == 0 {
		return
	}
	fmt.Fprintln(x.a.out, "    saw")
	t := x.a.tableOn(x.a.out)
	for _, o := range saw {
		subject := o.Subject
		if o.Kind == "glob" {
			subject = explain.Glob(subject)
		}
		if o.SubID != 0 {
			subject = fmt.Sprintf("%s:%d", subject, o.SubID)
		}
		t.row(styled(dim, "      "+o.Kind), styled(dim, o.Hash[:min(12, len(o.Hash))]), left(subject))
	}
	t.write()
}

var fileStates = map[string]style{"good": green, "missing": red, "changed": red, "old": dim}

func (x *inspector) products(products []productLine) {
	if len(products) == 0 {
		return
	}
	a := x.a
	fmt.Fprintln(a.out, "    products")
	for _, p := range products {
		fmt.Fprintf(a.out, "      %s  %s, %s, %s\n", oneLine(cmp.Or(p.File, p.Name)), p.Type, diag.Size(p.Size),
			a.paint(a.out, fileStates[p.State], p.State))
		if p.Holds != "" {
			fmt.Fprintf(a.out, "        %s\n", p.Holds)
		}
		fmt.Fprintf(a.out, "        %s\n", a.paint(a.out, dim, "blob "+p.Blob))
		for _, name := range slices.Sorted(maps.Keys(p.Facts)) {
			fmt.Fprintf(a.out, "        %s\n", a.paint(a.out, dim, name+" "+oneLine(p.Facts[name])))
		}
		for _, r := range p.References {
			to, how := cmp.Or(r.File, r.Asset), "needs"
			if to == "" {
				to = r.UUID + ", which is not an asset now"
			}
			if !r.Required {
				how = "can use"
			}
			fmt.Fprintf(a.out, "        %s\n", a.paint(a.out, dim, how+" "+oneLine(to)))
		}
	}
}

// isOutput reports whether a job makes this file, which is below the output folder.
func (x *inspector) isOutput(file string) bool {
	found := false
	x.each(func(_ *view.AssetView, j *view.JobView) {
		found = found || slices.ContainsFunc(productsOf(j), func(p engine.Product) bool { return p.File == file })
	})
	return found
}

type inspectOutputLine struct {
	Type     string      `json:"type"`
	Asset    string      `json:"asset"`
	Platform string      `json:"platform"`
	Key      string      `json:"key"`
	Build    uint64      `json:"build"` // number of the build that made it
	Product  productLine `json:"product"`
	NeededBy []string    `json:"needed_by"` // outputs
}

// output shows a file of the output tree. file is below the output folder.
func (x *inspector) output(file string) error {
	line := inspectOutputLine{Type: "output", NeededBy: []string{}}
	var made *engine.Product
	x.each(func(av *view.AssetView, j *view.JobView) {
		for i := range productsOf(j) {
			if p := &j.Last.Products[i]; p.File == file {
				made = p
				line.Asset, line.Platform, line.Key, line.Build = av.ID, j.Platform, j.Key.String(), j.Last.Build
				line.Product = x.newProductLine(p, j.Platform, true)
			}
		}
	})
	if made == nil {
		m := diag.Errorf(diag.NothingKnown, diag.Pos{}, "no job makes the output %q", file)
		if near := diag.DidYouMean(x.p.Output+"/"+file, x.names()); near != "" {
			return m.WithHint("%s", near)
		}
		return m.WithHint("`kiln query asset-products ASSET` shows files")
	}
	id := x.v.Table().ByID(line.Asset).UUID
	x.each(func(_ *view.AssetView, j *view.JobView) {
		for _, p := range productsOf(j) {
			needs := func(r engine.Reference) bool { return r.SubID == made.SubID && uuid.UUID(r.UUID).String() == id }
			if j.Platform == line.Platform && slices.ContainsFunc(p.References, needs) {
				line.NeededBy = append(line.NeededBy, x.p.Output+"/"+p.File)
			}
		}
	})
	if x.a.json {
		return x.a.emit(line)
	}
	fmt.Fprintf(x.a.out, "%s  made of %s on %s in build %d\n", x.a.paint(x.a.out, bold, oneLine(line.Product.File)), oneLine(line.Asset), line.Platform, line.Build)
	x.products([]productLine{line.Product})
	if len(line.NeededBy) > 0 {
		fmt.Fprintln(x.a.out, "    needed by")
		for _, f := range line.NeededBy {
			fmt.Fprintln(x.a.out, "      "+oneLine(f))
		}
	}
	fmt.Fprintf(x.a.out, "    %s\n", x.a.paint(x.a.out, dim, "key "+line.Key))
	return nil
}

type inspectSourceLine struct {
	Type    string       `json:"type"`
	Path    string       `json:"path"`
	File    string       `json:"file"`
	Size    int64        `json:"size"`
	Hash    string       `json:"hash,omitempty"`  // none: no job read its content
	Asset   string       `json:"asset,omitempty"` // the asset that it belongs to
	Readers []readerLine `json:"readers"`
	Holds   string       `json:"holds,omitempty"`
}

type readerLine struct {
	Asset    string `json:"asset"`
	Platform string `json:"platform"`
	Kind     string `json:"kind"`
}

// source shows a source file that is not an asset itself.
func (x *inspector) source(path string) error {
	i, _, _ := x.v.Sources().Find(path)
	f := x.v.Sources().At(i)
	line := inspectSourceLine{Type: "source", Path: path, File: x.v.Display(path), Size: f.Stat.Size, Hash: hashText(f.Hash), Readers: []readerLine{}}
	root, rel := x.v.Sources().PathOf(i)
	line.Holds = holdsOf(x.v.Sources().Abs(root, rel), f.Stat.Size)
	if owner := x.v.Table().Owner(path); owner != nil {
		line.Asset = owner.ID
	}
	x.each(func(av *view.AssetView, j *view.JobView) {
		if j.Last == nil {
			return
		}
		for _, o := range j.Last.Observations {
			if o.Kind >= engine.FirstLeaf && explain.Subject(o) == path {
				line.Readers = append(line.Readers, readerLine{av.ID, j.Platform, explain.Kind(o)})
			}
		}
	})
	a := x.a
	if a.json {
		return a.emit(line)
	}
	fmt.Fprintf(a.out, "%s  source file, %s\n", a.paint(a.out, bold, oneLine(line.File)), diag.Size(line.Size))
	if line.Holds != "" {
		fmt.Fprintf(a.out, "  %s\n", oneLine(line.Holds))
	}
	if line.Asset != "" {
		fmt.Fprintf(a.out, "  belongs to %s\n", oneLine(line.Asset))
	}
	if len(line.Readers) == 0 {
		fmt.Fprintln(a.out, "  no job looked at it")
	}
	t := a.tableOn(a.out)
	for _, r := range line.Readers {
		t.row(left("  "+r.Asset), left(r.Platform), styled(dim, r.Kind))
	}
	return t.write()
}
