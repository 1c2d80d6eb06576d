package parcels

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/notices"
	"github.com/kiln-pipeline/kiln/internal/make/outputs"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/references"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Shipment is the state of the project's parcels, ids and constants after a build.
type Shipment struct {
	Files   []state.Shipped
	Parcels []ship.Parcel
	Looked  bool // checked by this build
	Again   bool // the next build must check it again
	Stopped bool
	Notes   diag.List

	Renumbered bool // kiln.ids has other numbers than jobs saw: they run in the build that follows
	Reheld     bool // parcels hold other assets than jobs saw
}

// Shipping brings resource ids, parcels and constants up to date.
type Shipping struct {
	*results.Set
	Tree      *outputs.Tree
	Few       *plan.Few       // nil: the build checks everything
	Prev      *state.Snapshot // nil: there was no build before
	Notices   *notices.Notices
	Platforms []string // requested ones; none: all
	Workers   int
	Locked    bool              // fail if kiln.ids would change
	Compact   bool              // leave no waste in parcels
	Only      []*project.Parcel // requested ones; nil: all
	Wrote     func(file string) // see ship.Options

	Shipment Shipment
}

// Bring updates what a build decides on: with whole, it was one of all assets; without pack, it packs nothing. With again, and if parcels
// hold other assets than jobs saw, it updates nothing, because what these jobs make when they run once more decides on numbers. It is false
// if a build of few tasks has to go by all.
func (s *Shipping) Bring(ctx context.Context, whole, pack, again bool) (to Shipment, ok bool) {
	held := s.hold(whole)
	to, ok = s.Shipment, true
	switch {
	case held && again:
		to.Reheld, to.Again = true, true
		return to, true
	case s.Few != nil && ship.Wanted(s.P.Project):
		if to, ok = s.changed(ctx); !ok {
			return to, false
		}
	case s.Few == nil && pack:
		to = s.all(ctx)
	}
	s.renumber(&to)
	to.Again = to.Again || held
	return to, ok
}

// all updates them from all products.
func (s *Shipping) all(ctx context.Context) Shipment {
	before := Before(s.Prev)
	if len(before) == 0 && !ship.Wanted(s.P.Project) {
		return s.Shipment
	}
	if ship.Wanted(s.P.Project) && s.Notices.Unread() { // what there is to be packed is not known
		s.Shipment.Again = true
		return s.Shipment
	}
	platforms := s.platforms()
	o := s.shipping(ctx)
	o.Before = before
	read, made := map[string]state.Shipped{}, map[string]state.Shipped{}
	for _, f := range s.Shipment.Files {
		if f.Made {
			made[f.File] = f // files that this build does not check keep their record
		}
	}
	o.Reading = func(file string) { read[file] = s.shipped(file, false) }
	o.Settled = func(file string) { made[file] = s.shipped(file, true) }
	res := ship.Update(s.P.Project, platforms, o)
	s.Notices.SetShipped(res)
	s.Shipment = Shipment{Parcels: res.Parcels, Looked: true, Again: res.Again, Stopped: res.Stopped, Notes: res.Notes}
	for _, f := range res.Made {
		s.Shipment.Files = append(s.Shipment.Files, cmp.Or(made[f], state.Shipped{File: f, Made: true}))
	}
	s.Shipment.Files = slices.AppendSeq(s.Shipment.Files, maps.Values(read))
	slices.SortFunc(s.Shipment.Files, func(a, b state.Shipped) int { return strings.Compare(a.File, b.File) })
	return s.Shipment
}

// platforms are all assets, on all platforms.
func (s *Shipping) platforms() (list []ship.Platform) {
	elsewhere := s.Elsewhere()
	for _, name := range s.P.PlatformNames() {
		pl := ship.Platform{Name: name, Decided: len(s.Platforms) == 0 || slices.Contains(s.Platforms, name)}
		pl.Assets, pl.Others = s.assetsOn(name, elsewhere)
		list = append(list, pl)
	}
	return list
}

// Wrong returns the files that are not what an update makes of the products that there are. It writes nothing.
func (s *Shipping) Wrong(ctx context.Context) []ship.Wrong {
	if !ship.Wanted(s.P.Project) {
		return nil
	}
	return ship.Check(s.P.Project, s.platforms(), s.shipping(ctx))
}

// shipping returns the options for package ship.
func (s *Shipping) shipping(ctx context.Context) ship.Options {
	known := map[string]state.Shipped{}
	for _, f := range s.Shipment.Files {
		known[f.File] = f
	}
	return ship.Options{
		Project: s.P.BelowProject(), Below: s.P.BelowOutput(), State: s.P.StatePlace(), Workers: s.Workers, Locked: s.Locked, Compact: s.Compact,
		Match: s.Named, Only: s.Only,
		Open: func(h digest.Hash) (io.ReadCloser, error) {
			f, err := s.W.Open(h)
			if err != nil {
				return nil, err
			}
			return untilDone{f, ctx}, nil
		},
		Wrote:   s.Wrote,
		Stopped: func() bool { return ctx.Err() != nil },
		Trusted: func(file string) bool {
			f, ok := known[file]
			return ok && f.Stat != source.Stat{} && s.shipped(file, true) == f
		},
	}
}

// untilDone is content whose reads fail when a context ends: packing a gigabyte takes half a
// minute.
type untilDone struct {
	io.ReadCloser
	ctx context.Context
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.ReadCloser.Read(p)
}

// shipped returns the record of a file. Any later change must show in its stat, even within the same clock tick of the
// file system. So the time of Kiln's own files is set back; for another file it waits, or records a stat that never
// matches.
func (s *Shipping) shipped(file string, made bool) state.Shipped {
	st := s.P.ShippedStat(file)
	for range 3 {
		wait := st.Settles(time.Now())
		switch {
		case st == (source.Stat{}) || wait == 0:
			return state.Shipped{File: file, Made: made, Stat: st}
		case made:
			if aged, err := source.Aged(s.P.ShippedPath(file)); err == nil {
				st = aged
			}
			return state.Shipped{File: file, Made: made, Stat: st}
		case wait > 100*time.Millisecond:
			st.MTime--
			return state.Shipped{File: file, Stat: st}
		}
		time.Sleep(wait)
		st = s.P.ShippedStat(file)
	}
	st.MTime--
	return state.Shipped{File: file, Stat: st}
}

// Before returns the files made by earlier builds.
func Before(prev *state.Snapshot) []string {
	var files []string
	if prev != nil {
		for _, f := range prev.Shipped {
			if f.Made {
				files = append(files, f.File)
			}
		}
	}
	return files
}

// Remove removes everything made from products, and returns the number of files. In a dry run it only counts them.
func Remove(p *workspace.Workspace, prev *state.Snapshot, dryRun bool) (int, error) {
	n := 0
	var errs error
	for _, f := range Before(prev) {
		if dryRun {
			if _, err := os.Lstat(p.ShippedPath(f)); err == nil {
				n++
			}
			continue
		}
		in := p.Bounds(f)
		err := ship.Remove(p.ShippedPath(f), in, in.Root() == p.OutputDir())
		switch {
		case err == nil:
			n++
		case !errors.Is(err, fs.ErrNotExist):
			errs = errors.Join(errs, err)
		}
	}
	return n, errs
}

// assetsOn returns the assets of a platform that this build checks, with their current products, and those that other stages have.
func (s *Shipping) assetsOn(platform string, elsewhere *results.Elsewhere) (list, others []ship.Asset) {
	found, listed := map[string]*ship.Asset{}, s.listed()
	for _, t := range s.Live {
		if t.Platform != platform || t.Request() {
			continue
		}
		a := found[t.Asset.ID]
		if a == nil {
			a = &ship.Asset{ID: t.Asset.ID, UUID: t.Asset.UUID, Follows: t.Asset.Follows}
			if listed {
				a.Meta = metaOf(t.Asset)
			}
			found[t.Asset.ID] = a
		}
		s.shipTask(a, t)
		a.More = a.More || elsewhere.MayMake(s.Set, t)
	}
	list = make([]ship.Asset, 0, len(found))
	has := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		sortProducts(found[id].Products)
		list = append(list, *found[id])
		has[found[id].UUID] = true
	}
	for _, a := range elsewhere.On(platform) {
		if !has[a.UUID] {
			others = append(others, ship.Asset{ID: a.ID, UUID: a.UUID, More: true})
		}
	}
	return list, others
}

// listed reports whether the list of parcels has what is in some of them.
func (s *Shipping) listed() bool {
	return slices.ContainsFunc(s.P.Parcels, func(p project.Parcel) bool { return p.Listed })
}

// metaOf is what rules say of an asset, for lists.
func metaOf(a *asset.Asset) map[string][]string {
	all := map[string][]string{}
	for i := range a.Meta {
		all[a.Meta[i].Key] = a.Meta[i].Texts()
	}
	return all
}

// assetOn returns one asset on a platform. It need not be one that this build checks.
func (s *Shipping) assetOn(a *asset.Asset, platform string) ship.Asset {
	now := ship.Asset{ID: a.ID, UUID: a.UUID, Follows: a.Follows}
	for _, t := range s.TasksOf(a, platform) {
		s.shipTask(&now, t)
	}
	sortProducts(now.Products)
	return now
}

// shipTask adds the products of one of an asset's tasks.
func (s *Shipping) shipTask(a *ship.Asset, t *job.Task) {
	products, _ := s.ProductsOf(t)
	a.Lost = cmp.Or(a.Lost, s.lost(t, products))
	a.Placeholder = a.Placeholder || s.Placeholders[t] != nil
	a.Fails = a.Fails || results.Failed(t.Result)
	if a.Lost != "" && len(products) == 0 && len(s.P.Constants) > 0 {
		a.Last = append(a.Last, s.last(t)...)
	}
	if !s.Tree.Clashes(t) {
		n := len(a.Products)
		a.Products = append(a.Products, shipProducts(products)...)
		for i := range a.Products[n:] {
			a.Products[n+i].Processor = t.Proc.Info.Name
		}
	}
}

// last returns what a task had when it succeeded last.
func (s *Shipping) last(t *job.Task) []ship.Product {
	for _, tr := range s.Traces.Traces(t.Key) {
		if tr.Outcome == engine.Succeeded {
			return shipProducts(tr.Products)
		}
	}
	return nil
}

// lost returns why a task's products cannot be read, or "".
func (s *Shipping) lost(t *job.Task, products []engine.Product) string {
	_, stands := s.Good[t]
	switch {
	case s.Tree.Fails(t) || s.Placeholders[t] != nil && s.OnError != results.PackedPlaceholders:
		return "failed"
	case stands:
	case !t.Decided():
		if tr := s.TraceOf(t); tr == nil {
			return "was not built"
		} else if tr.Outcome != engine.Succeeded {
			return "failed"
		}
	case results.Failed(t.Result) && products == nil:
		return "failed"
	}
	return ""
}

// shipProducts returns the products that have files.
func shipProducts(products []engine.Product) (list []ship.Product) {
	for i := range products {
		if products[i].File != "" {
			list = append(list, shipProduct(&products[i]))
		}
	}
	return list
}

func sortProducts(list []ship.Product) {
	slices.SortFunc(list, func(x, y ship.Product) int { return cmp.Compare(x.SubID, y.SubID) })
}

func shipProduct(p *engine.Product) ship.Product {
	out := ship.Product{SubID: p.SubID, Name: p.Name, Type: p.Type, Size: p.Size, Hash: p.Hash}
	if p.Facts != "" {
		out.Facts = maps.Collect(job.Facts(p.Facts))
	}
	for _, r := range p.References {
		out.References = append(out.References, results.ReferenceTo(r))
	}
	return out
}

// changes returns the products that a build of few tasks changed, by platform. referring returns, for each
// asset by UUID, which assets referred to it before. ok is false if an asset in a parcel began or ceased to
// fail, or if assets that this build did not check refer to a product that was added or removed.
func (s *Shipping) changes() (all []ship.Changes, referring func() map[string][]string, ok bool) {
	touched := references.Touched(s.Set, s.Few)
	looked := map[string]bool{}
	for _, a := range touched {
		looked[a.ID] = true
	}
	past := map[assetOn][]*plan.Past{}
	for i := range s.Few.Past {
		x := &s.Few.Past[i]
		on := assetOn{x.Of.UUID, x.Platform}
		past[on] = append(past[on], x)
	}
	referring = sync.OnceValue(func() map[string][]string { return references.Referring(s.Set, slices.Sorted(maps.Keys(touched))) })
	for _, platform := range s.P.PlatformNames() {
		pl := ship.Changes{Platform: platform}
		named := s.packed(platform)
		for _, uuid := range slices.Sorted(maps.Keys(touched)) {
			a := touched[uuid]
			c := ship.Change{Asset: ship.Asset{ID: a.ID, UUID: a.UUID, Follows: a.Follows}}
			if s.Scope.Concerned[a] {
				c.Asset = s.assetOn(a, platform)
			}
			for _, x := range past[assetOn{uuid, platform}] {
				c.WasLost = c.WasLost || x.Lost
				if was := shipProducts(x.Products); len(was) > 0 {
					c.Was, c.WasID = append(c.Was, was...), x.Of.ID
				}
			}
			sortProducts(c.Was)
			equal := slices.EqualFunc(c.Was, c.Products, func(x, y ship.Product) bool {
				return x.Hash == y.Hash && x.SubID == y.SubID && x.Name == y.Name && x.Type == y.Type && slices.Equal(x.References, y.References)
			})
			if lost := c.Lost != ""; lost != c.WasLost || lost && !equal {
				if named(a.ID) || len(referring()[uuid]) > 0 || lost && hasOthers(c.Products, c.Was) {
					return nil, nil, false
				}
			}
			came := !slices.EqualFunc(c.Was, c.Products, func(x, y ship.Product) bool { return x.SubID == y.SubID })
			if c.Lost == "" && came && slices.ContainsFunc(referring()[uuid], func(id string) bool { return !looked[id] }) {
				return nil, nil, false
			}
			pl.Assets = append(pl.Assets, c)
		}
		all = append(all, pl)
	}
	return all, referring, true
}

// hasOthers reports whether one of the products has a name that none had before: it needs a number, also if its asset fails.
func hasOthers(now, was []ship.Product) bool {
	return slices.ContainsFunc(now, func(p ship.Product) bool {
		return !slices.ContainsFunc(was, func(q ship.Product) bool { return p.SubID == q.SubID && p.Name == q.Name })
	})
}

type assetOn struct{ uuid, platform string }

// packed reports whether parcels of a platform name an asset.
func (s *Shipping) packed(platform string) func(id string) bool {
	var names []func(id string) bool
	for i := range s.P.Parcels {
		if p := &s.P.Parcels[i]; p.On(platform) {
			for _, pat := range p.Assets {
				names = append(names, s.Named(pat.Text))
			}
		}
	}
	return func(id string) bool {
		return slices.ContainsFunc(names, func(has func(string) bool) bool { return has(id) })
	}
}

// changed goes by the products that changed. It is false if it has to go by all.
func (s *Shipping) changed(ctx context.Context) (Shipment, bool) {
	s.Shipment.Files = slices.Clone(s.Prev.Shipped)
	changes, referring, ok := s.changes()
	if !ok || s.listed() && (s.Few.ByKeys || len(references.Touched(s.Set, s.Few)) > 0) { // all that the list says may be other
		return s.Shipment, false
	}
	others := ship.Others{
		Left: func(file string) bool { return slices.Contains(s.Notices.Left, file) },
		Find: func(platform, id string) (ship.Asset, bool) {
			a := s.Asset(id)
			if a == nil {
				return ship.Asset{}, false
			}
			now := s.assetOn(a, platform)
			return now, len(now.Products) > 0 && now.Lost == ""
		},
		Staged:    func() bool { return s.P.Staged(s.W.Table) },
		Follows:   func(id string) bool { a := s.W.Find(id); return a != nil && a.Follows },
		Referring: func(uuid string) []string { return referring()[uuid] },
	}
	o := s.shipping(ctx)
	note := func(file string, made bool) {
		if i := slices.IndexFunc(s.Shipment.Files, func(f state.Shipped) bool { return f.File == file && f.Made == made }); i >= 0 {
			s.Shipment.Files[i] = s.shipped(file, made)
		}
	}
	o.Settled = func(file string) { note(file, true) }
	o.Reading = func(file string) { note(file, false) }
	s.Shipment.Parcels, ok = ship.Touch(s.P.Project, changes, others, o)
	return s.Shipment, ok
}

// Made returns the files that this build wrote.
func (g *Shipment) Made() []string {
	var files []string
	for _, f := range g.Files {
		if f.Made {
			files = append(files, f.File)
		}
	}
	return files
}
