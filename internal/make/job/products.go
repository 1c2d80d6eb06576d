package job

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/processor"
)

// Questions of a job about other assets, and about its own parts: which there are, what they made, and its content.

// assetName is the recorded form of an asset's name. A UUID that can be written in several ways is recorded in one;
// otherwise a search for all tasks that asked for the asset would have to try them all. Ids and paths have one form:
// written differently, they mean no asset.
func assetName(name string) string {
	if uuid, ok := processor.UUIDOf(name); ok {
		return processor.ByUUID(uuid)
	}
	return name
}

func (j *Job) Find(name string) (processor.Asset, error) {
	if err := j.may(name); err != nil {
		return processor.Asset{}, err
	}
	name = assetName(name)
	j.sawAsset(name)
	a := j.w.Find(name)
	if a == nil || task.IsRequest(name) {
		return processor.Asset{}, j.missing(name)
	}
	return a.ForJob(), nil
}

func (j *Job) Products(names ...string) ([][]processor.Product, error) {
	if err := j.may(names...); err != nil {
		return nil, err
	}
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = assetName(name)
		if task.IsRequest(name) {
			return nil, j.missing(name)
		}
		j.sawAsset(ids[i]) // the job sees the asset's UUID and its processors, which the engine's observations do not contain
	}
	all, err := j.need(ids)
	if err != nil {
		return nil, j.needError(err, ids)
	}
	for i := range all {
		all[i] = slices.DeleteFunc(all[i], func(m madeProduct) bool { return m.File == "" })
		slices.SortStableFunc(all[i], func(a, b madeProduct) int { return strings.Compare(a.Name, b.Name) })
		if err := j.distinct(ids[i], all[i]); err != nil {
			return nil, err
		}
	}
	answer := make([][]processor.Product, len(ids))
	for i := range all {
		a := j.w.Find(ids[i])
		for _, m := range all[i] {
			answer[i] = append(answer[i], j.product(a, m))
		}
	}
	return answer, nil
}

// madeProduct is a product with the job or part that made it.
type madeProduct struct {
	engine.Product
	by task.Subject
}

// extension is what a product's file name has, or would have, after the asset's and the product's name.
func (p *madeProduct) extension(a *asset.Asset) string {
	if p.File == "" {
		return withoutFile(p.Extension)
	}
	name := p.File[strings.Index(p.File, "/")+1:]
	name = strings.TrimPrefix(name, strings.TrimSuffix(a.ID, "/"))
	if p.Name != "" {
		name = strings.TrimPrefix(name, "."+p.Name)
	}
	return name
}

// need brings assets up to date, in parallel, and returns the products of each one's jobs; for the job's own asset those of its other jobs.
func (j *Job) need(ids []string) ([][]madeProduct, error) {
	var jobs []task.Subject
	var of []int // for each job, the index in ids
	for i, id := range ids {
		for _, s := range j.jobsOf(id) {
			jobs, of = append(jobs, s), append(of, i)
		}
	}
	needed, err := j.needJobs(jobs)
	if err != nil {
		return nil, err
	}
	all := make([][]madeProduct, len(ids))
	for k, ps := range needed {
		all[of[k]] = append(all[of[k]], ps...)
	}
	return all, nil
}

func (j *Job) needJobs(jobs []task.Subject) ([][]madeProduct, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	subjects := make([]string, len(jobs))
	for i, s := range jobs {
		subjects[i] = s.String()
	}
	needed, err := j.run.Need(subjects...)
	if err != nil {
		return nil, err
	}
	all := make([][]madeProduct, len(jobs))
	for i, ps := range needed {
		for _, p := range ps {
			all[i] = append(all[i], madeProduct{p, jobs[i]})
		}
	}
	return all, nil
}

// jobsOf are the jobs of an asset on this platform; for the job's own asset those of its other processors.
func (j *Job) jobsOf(id string) []task.Subject { return j.jobsOn(id, j.t.Platform) }

func (j *Job) jobsOn(id, platform string) []task.Subject {
	first := task.Subject{Platform: platform, Asset: id}
	a := j.w.Find(id)
	if a == nil || len(a.On(platform)) < 2 {
		return []task.Subject{first}
	}
	var jobs []task.Subject
	for k, on := range a.On(platform) {
		s := first
		if k > 0 {
			s.Processor = on.Processor
		}
		if a != j.t.Asset || platform != j.t.Platform || on.Processor != j.t.On.Processor {
			jobs = append(jobs, s)
		}
	}
	return jobs
}

// distinct returns an error if two products of an asset's processors have the same sub id. The build reports that at the asset itself.
func (j *Job) distinct(id string, ps []madeProduct) error {
	seen := make(map[uint32]bool, len(ps))
	for _, p := range ps {
		if seen[p.SubID] {
			return diag.Errorf(diag.NeedsFailed, diag.Pos{File: j.display(j.t.Asset.Path)}, "needs %s, of which two processors make %s", id, ProductText(p.Name))
		}
		seen[p.SubID] = true
	}
	return nil
}

// ProductText is a product's name for display.
func ProductText(name string) string {
	if name == "" {
		return "the main product"
	}
	return fmt.Sprintf("product %q", name)
}

// sawAsset records whether an asset exists, and its UUID.
func (j *Job) sawAsset(id string) {
	j.run.See(SawAsset, id, j.w.assetHash(id))
}

// AssetSettings returns the settings of another asset's processor on this platform, as a pointer to its struct, and as a map those that
// differ from a request's defaults. Both are nil if there is no such asset, if it has another processor, or if an import comes first. The
// answer is recorded. It is not part of processor.Job; package gltf uses it through an interface.
func (j *Job) AssetSettings(name, by string) (all any, given map[string]any, err error) {
	if err := j.may(name, by); err != nil {
		return nil, nil, err
	}
	s := task.Subject{Platform: j.t.Platform, Asset: assetName(name), Processor: by}
	all, given, h := j.w.assetSettings(s)
	j.run.See(SawSettings, s.String(), h)
	return all, given, nil
}

// assetSettings is AssetSettings with the hash of the answer, which is zero if there is none.
func (w *World) assetSettings(s task.Subject) (all any, given map[string]any, h digest.Hash) {
	a, pr := w.Find(s.Asset), w.procs[s.Processor]
	if a == nil || pr == nil || task.IsRequest(s.Asset) {
		return nil, nil, h
	}
	on := a.On(s.Platform)
	i := slices.IndexFunc(on, func(r asset.Resolved) bool { return r.Processor == s.Processor })
	if i < 0 || len(on[i].Import) > 0 || on[i].Settings == nil {
		return nil, nil, h
	}
	base, err := w.settings(pr.Info, s.Platform, "{}", "")
	if err != nil {
		return nil, nil, h // an error in the project, which is reported elsewhere
	}
	given = settings.Difference(on[i].Settings, base.Settings)
	text, _ := json.Marshal(given) // values of Difference
	return on[i].Settings, given, digest.Build("settings").Str("all", string(on[i].Canonical)).Str("given", string(text)).Sum()
}

// needError replaces the engine's error by a message for users.
func (j *Job) needError(err error, ids []string) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, id := range ids {
		if j.w.Find(id) == nil {
			return j.missing(id)
		}
	}
	return err
}

// missing returns the error for an asset that does not exist. It is an fs.ErrNotExist.
func (j *Job) missing(name string) error {
	m := diag.Errorf(diag.AssetMissing, diag.Pos{File: j.display(j.t.Asset.Path)}, "%s%q", noAsset, name)
	return fmt.Errorf("%w: %w", m, fs.ErrNotExist)
}

func (j *Job) Parts(names ...string) ([][]processor.Product, error) {
	if _, ok := j.t.Proc.Processor.(processor.Parter); !ok {
		return nil, fmt.Errorf("processor %q makes no parts: it has no method Part", j.t.Proc.Info.Name)
	}
	if err := j.may(names...); err != nil {
		return nil, err
	}
	parts := make([]task.Subject, len(names))
	for i, name := range names {
		if name == "" {
			return nil, fmt.Errorf("%q is not a name of a part", name)
		}
		parts[i] = task.Subject{Platform: j.t.Platform, Asset: j.t.Asset.ID, Part: name, Processor: j.t.On.Processor}
	}
	needed, err := j.needJobs(parts)
	if err != nil {
		return nil, err
	}
	all := make([][]processor.Product, len(names))
	for i, ps := range needed {
		for _, p := range ps {
			all[i] = append(all[i], j.product(j.t.Asset, p))
		}
	}
	return all, nil
}

func (j *Job) ToPack() ([]processor.Product, error) {
	if err := j.over(); err != nil {
		return nil, err
	}
	packers, h := j.w.packers(j.t.Platform)
	j.run.See(SawPackers, j.t.Platform, h)
	if len(packers) == 0 {
		return nil, nil
	}
	needed, err := j.needJobs(packers)
	if err != nil {
		return nil, err
	}
	var all []processor.Product
	for _, ps := range needed {
		for _, p := range ps {
			if strings.HasPrefix(p.Name, j.t.Asset.ID+":") {
				all = append(all, j.product(j.w.Find(p.by.Asset), p))
			}
		}
	}
	return all, nil
}

// product converts an engine's product to a processor's.
func (j *Job) product(a *asset.Asset, p madeProduct) processor.Product {
	by := p.by.Processor
	if by == "" {
		by = a.On(p.by.Platform)[0].Processor
	}
	return processor.Product{
		AssetID: a.ID, UUID: a.UUID, Name: p.Name, SubID: p.SubID, Type: p.Type,
		File: strings.TrimPrefix(p.File, p.by.Platform+"/"), Extension: p.extension(a), Processor: by, Part: p.by.Part,
	}
}

func (j *Job) OpenProduct(p processor.Product) (processor.File, error) {
	made, err := j.productOf(p)
	if err != nil {
		return nil, err
	}
	return j.openContent(made, p.AssetID)
}

// productOf finds a product that the job has listed, and records that its content is read.
func (j *Job) productOf(p processor.Product) (*engine.Product, error) {
	if err := j.may(p.AssetID, p.Part, p.Processor, p.Platform); err != nil {
		return nil, err
	}
	p.AssetID = assetName(p.AssetID)
	if p.Part != "" && p.Part != processor.PackPart && p.AssetID != j.t.Asset.ID {
		return nil, fmt.Errorf("product %q of a part of %q: parts are for their own asset: %w", p.Name, p.AssetID, fs.ErrNotExist)
	}
	needed, err := j.needJobs(j.makersOf(p))
	if err != nil {
		return nil, j.needError(err, []string{p.AssetID})
	}
	for _, n := range slices.Concat(needed...) {
		if n.SubID == p.SubID {
			j.run.Use(n.by.String(), n.Product)
			return &n.Product, nil
		}
	}
	return nil, fmt.Errorf("product %q of %q: %w", p.Name, p.AssetID, fs.ErrNotExist)
}

// openContent opens the content of a product of an asset.
func (j *Job) openContent(p *engine.Product, of string) (processor.File, error) {
	if p.Size <= WholeFile {
		var data []byte
		err := j.w.content(p, of, func() (err error) { data, err = j.w.Blobs.Read(p.Hash); return err })
		return memFile{bytes.NewReader(data)}, j.mayPass(err)
	}
	f := &productFile{j: j, hash: p.Hash, of: cmp.Or(p.File, j.w.Display(of))}
	err := j.w.content(p, of, func() (err error) {
		if f.File, err = j.w.Blobs.OpenFile(p.Hash); err == nil {
			f.stat, err = source.StatFile(f.File)
		}
		return err
	})
	if err != nil {
		return nil, j.mayPass(err)
	}
	j.closeAtEnd(f)
	return f, nil
}

// productFile is an open product that is too large for memory.
type productFile struct {
	*os.File
	j    *Job
	stat source.Stat
	hash digest.Hash
	of   string // its name for display

	once sync.Once
	err  error
}

func (f *productFile) Size() int64 { return f.stat.Size }

// Close fails if the blob was changed meanwhile.
func (f *productFile) Close() error {
	f.once.Do(func() {
		after, err := source.StatFile(f.File)
		f.File.Close()
		if after.CTime = f.stat.CTime; err != nil || after != f.stat { // links to it may be added and removed
			f.j.w.Lose(f.hash)
			f.err = f.j.mayPass(lostProduct(f.of))
		}
	})
	return f.err
}

// makersOf are the jobs or parts that may have made a product: one, or several if the product does not name its processor.
func (j *Job) makersOf(p processor.Product) []task.Subject {
	a := j.w.Find(p.AssetID)
	switch {
	case p.Part == processor.PackPart && a != nil:
		var parts []task.Subject
		for _, on := range a.On(j.t.Platform) {
			if j.w.procs[on.Processor].Info.Packs && (p.Processor == "" || p.Processor == on.Processor) {
				parts = append(parts, task.Subject{Platform: j.t.Platform, Asset: p.AssetID, Part: p.Part, Processor: on.Processor})
			}
		}
		return parts
	case p.Part != "":
		return []task.Subject{{Platform: j.t.Platform, Asset: p.AssetID, Part: p.Part, Processor: j.t.On.Processor}}
	}
	platform := j.platformOf(p.Platform)
	jobs := j.jobsOn(p.AssetID, platform)
	if len(jobs) > 1 {
		j.sawAsset(p.AssetID)
		jobs = slices.DeleteFunc(jobs, func(s task.Subject) bool {
			return p.Processor != "" && p.Processor != cmp.Or(s.Processor, a.On(platform)[0].Processor)
		})
	}
	return jobs
}

func (j *Job) Reference(assetID, name string, required bool) (processor.Reference, error) {
	if err := j.may(assetID, name); err != nil {
		return processor.Reference{}, err
	}
	assetID = assetName(assetID)
	j.sawAsset(assetID)
	a := j.w.Find(assetID)
	switch {
	case a != nil && !task.IsRequest(assetID):
		return processor.Reference{UUID: a.UUID, SubID: processor.SubID(name), Required: required}, nil
	case required || task.IsRequest(assetID):
		return processor.Reference{}, j.missing(assetID)
	}
	return processor.Reference{UUID: j.without(assetID), SubID: processor.SubID(name)}, nil
}

// without records that an asset which the game can do without is missing. It returns the UUID that the asset will have,
// unless a rule sets another one.
func (j *Job) without(name string) (uuid string) {
	m := diag.Errorf(diag.AssetMissing, diag.Pos{File: j.display(j.t.Asset.Path)}, "%s%q", noAsset, name)
	m.Severity = diag.Note
	m.WithNote("the reference to it is optional: the game does without it")
	j.mu.Lock()
	if !j.ended {
		j.warnings.Add(m)
	}
	j.mu.Unlock()
	if uuid, ok := processor.UUIDOf(name); ok {
		return uuid
	}
	return asset.UUID(name)
}
