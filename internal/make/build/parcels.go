package build

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/make/task"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// shipment is the project's parcels, ids and constants as a build left them.
type shipment struct {
	files   []state.Shipped
	parcels []ship.Parcel
	looked  bool // by this build
	again   bool // the next build is to look again
}

// ship brings resource ids, parcels and constants up to date. It is false if a build of few tasks finds that more is to be looked at.
func (s *session) ship(ctx context.Context) bool {
	if s.prev != nil {
		s.shipment.files = s.prev.Shipped
	}
	if s.few != nil {
		return !ship.Wanted(s.p.Project) || s.shipFew(ctx) || s.no("what changed concerns parcels, numbers or constants as a whole")
	}
	s.shipAll(ctx)
	return true
}

// shipAll goes by all products. A build of single assets leaves what is made of them: what else a parcel holds may be out of date. So does an
// audit, which makes products elsewhere.
func (s *session) shipAll(ctx context.Context) {
	before := s.shippedBefore()
	if len(s.req.Patterns) > 0 || s.stopped || s.p.cfg.Output != "" || len(before) == 0 && !ship.Wanted(s.p.Project) {
		return
	}
	if ship.Wanted(s.p.Project) && source.Messages(s.notices.Folders).Err() != nil { // what there is to be packed is not known
		s.shipment.again = true
		return
	}
	var platforms []ship.Platform
	for _, name := range s.p.PlatformNames() {
		platforms = append(platforms, ship.Platform{Name: name, Decided: len(s.req.Platforms) == 0 || slices.Contains(s.req.Platforms, name), Assets: s.assetsOn(name)})
	}
	o := s.shipping(ctx)
	o.Before = before
	read, made := map[string]state.Shipped{}, map[string]state.Shipped{}
	for _, f := range s.shipment.files {
		if f.Made {
			made[f.File] = f // what nobody looks at now stays known as it was left
		}
	}
	o.Reading = func(file string) { read[file] = s.shipped(file, false) }
	o.Settled = func(file string) { made[file] = s.shipped(file, true) }
	res := ship.Update(s.p.Project, platforms, o)
	s.stopped = res.Stopped
	s.notices.shipped(res)
	s.notes = append(s.notes, res.Notes...)
	s.shipment = shipment{parcels: res.Parcels, looked: true, again: res.Again}
	for _, f := range res.Made {
		s.shipment.files = append(s.shipment.files, cmp.Or(made[f], state.Shipped{File: f, Made: true}))
	}
	s.shipment.files = slices.AppendSeq(s.shipment.files, maps.Values(read))
	slices.SortFunc(s.shipment.files, func(a, b state.Shipped) int { return strings.Compare(a.File, b.File) })
}

// shipping is how it is done.
func (s *session) shipping(ctx context.Context) ship.Options {
	known := map[string]state.Shipped{}
	for _, f := range s.shipment.files {
		known[f.File] = f
	}
	return ship.Options{
		Output: s.p.OutputDir(), Workers: s.p.workers(s.req.Workers), Locked: s.req.Locked, Compact: s.req.Compact,
		Match: s.named,
		Open: func(h digest.Hash) (io.ReadCloser, error) {
			f, err := s.w.Open(h)
			if err != nil {
				return nil, err
			}
			return untilDone{f, ctx}, nil
		},
		Stopped: func() bool { return ctx.Err() != nil },
		Trusted: func(file string) bool {
			f, ok := known[file]
			return ok && f.Stat != source.Stat{} && s.shipped(file, true) == f
		},
	}
}

// untilDone is content that ends with a context: to pack a gigabyte takes half a minute.
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

// named tells what patterns of parcels mean, as match does.
func (s *session) named(pattern string) func(id string) bool {
	if a := s.w.Find(pattern); a != nil {
		return func(id string) bool { return id == a.ID }
	}
	byPath := map[string]bool{} // ids that do not tell
	for _, a := range s.w.Renamed() {
		if a.MeantBy(pattern) {
			byPath[a.ID] = true
		}
	}
	return func(id string) bool { return asset.Matches(pattern, id) || byPath[id] }
}

// Named tells which ids a pattern of a parcel means.
func (v *View) Named(pattern string) func(id string) bool { return v.s.named(pattern) }

// shipped is a file as it is now. No change of it from now on goes unseen, though the clock of its file system has not ticked since it was
// written: the time of Kiln's own files is set back, and another one is waited for, or noted as it will never be.
func (s *session) shipped(file string, made bool) state.Shipped {
	st := s.p.shippedStat(file)
	for range 3 {
		wait := st.Settles(time.Now())
		switch {
		case st == (source.Stat{}) || wait == 0:
			return state.Shipped{File: file, Made: made, Stat: st}
		case made:
			if aged, err := source.Aged(s.p.shippedPath(file)); err == nil {
				st = aged
			}
			return state.Shipped{File: file, Made: made, Stat: st}
		case wait > 100*time.Millisecond:
			st.MTime--
			return state.Shipped{File: file, Stat: st}
		}
		time.Sleep(wait)
		st = s.p.shippedStat(file)
	}
	st.MTime--
	return state.Shipped{File: file, Stat: st}
}

func (p *Project) shippedPath(file string) string { return ship.Path(p.Project, p.OutputDir(), file) }

// shippedOutside are the files outside the output folder that builds write.
func (p *Project) shippedOutside() []string {
	files := []string{ids.FileName}
	for i := range p.Constants {
		if f := p.Constants[i].File; f != "" {
			files = append(files, f)
		}
	}
	return files
}

func (p *Project) shippedStat(file string) source.Stat {
	st, mode, err := source.StatPath(p.shippedPath(file))
	if err != nil || mode.IsDir() {
		return source.Stat{}
	}
	return st
}

// shippedSame tells whether what was shipped, and what decided it, is as it was: all of it, or the files that are asked about.
func (s *session) shippedSame(about func(file string) bool) bool {
	for _, f := range s.prev.Shipped {
		if about != nil && !about(f.File) {
			continue
		}
		if s.p.shippedStat(f.File) != f.Stat || f.Made && f.Stat == (source.Stat{}) {
			return false
		}
	}
	return true
}

// shippedBefore are the files that builds before made.
func (s *session) shippedBefore() []string {
	var files []string
	if s.prev != nil {
		for _, f := range s.prev.Shipped {
			if f.Made {
				files = append(files, f.File)
			}
		}
	}
	return files
}

// removeShipped removes all that was made of products, and tells how many files there were.
func (s *session) removeShipped() (int, error) {
	n := 0
	var errs error
	for _, f := range s.shippedBefore() {
		err := ship.Remove(s.p.shippedPath(f), s.p.OutputDir())
		switch {
		case err == nil:
			n++
		case !errors.Is(err, fs.ErrNotExist):
			errs = errors.Join(errs, err)
		}
	}
	return n, errs
}

// assetsOn are the assets of a platform with their products as this build left them, those that it looks at.
func (s *session) assetsOn(platform string) []ship.Asset {
	found := map[string]*ship.Asset{}
	for _, t := range s.live {
		if t.Platform != platform || t.Request() {
			continue
		}
		a := found[t.Asset.ID]
		if a == nil {
			a = &ship.Asset{ID: t.Asset.ID, UUID: t.Asset.UUID, Follows: t.Asset.Follows}
			found[t.Asset.ID] = a
		}
		s.shipTask(a, t)
	}
	list := make([]ship.Asset, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		sortProducts(found[id].Products)
		list = append(list, *found[id])
	}
	return list
}

// assetOn is one asset on a platform. It need not be one that this build looks at.
func (s *session) assetOn(a *asset.Asset, platform string) ship.Asset {
	now := ship.Asset{ID: a.ID, UUID: a.UUID, Follows: a.Follows}
	for _, t := range s.tasksOf(a, platform) {
		s.shipTask(&now, t)
	}
	sortProducts(now.Products)
	return now
}

// shipTask adds the products of one of an asset's tasks.
func (s *session) shipTask(a *ship.Asset, t *job.Task) {
	products, _ := s.productsOf(t)
	a.Lost = cmp.Or(a.Lost, s.lost(t, products))
	a.Placeholder = a.Placeholder || s.placeholders[t] != nil
	a.Fails = a.Fails || failed(t.Result)
	if !s.clashed[t] {
		a.Products = append(a.Products, shipProducts(products)...)
	}
}

// lost says why a task's products cannot be had; "" if they can.
func (s *session) lost(t *job.Task, products []engine.Product) string {
	_, stands := s.good[t]
	switch {
	case s.clashed[t] || s.unplaced[t] || s.placeholders[t] != nil && s.req.OnError != PackedPlaceholders:
		return "failed"
	case stands:
	case !t.Decided():
		if tr := s.traceOf(t); tr == nil {
			return "was not built"
		} else if tr.Outcome != engine.Succeeded {
			return "failed"
		}
	case failed(t.Result) && products == nil:
		return "failed"
	}
	return ""
}

// shipProducts are products that are in files.
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
	for _, r := range p.References {
		out.References = append(out.References, referenceRecord(r))
	}
	return out
}

// parcelRecords are the parcels for the database.
func parcelRecords(parcels []ship.Parcel) []contentdb.Parcel {
	var list []contentdb.Parcel
	for i := range parcels {
		p := &parcels[i]
		rec := contentdb.Parcel{Name: p.Name, Platform: p.Platform, File: p.File, Size: p.Size, Hash: p.Digest}
		rec.Products, rec.Added, rec.Removed = placeRecords(p.Products), placeRecords(p.Added), placeRecords(p.Removed)
		list = append(list, rec)
	}
	return list
}

func placeRecords(places []ship.Place) (list []contentdb.ParcelProduct) {
	for _, x := range places {
		list = append(list, contentdb.ParcelProduct{AssetID: x.Asset, SubID: x.SubID})
	}
	return list
}

// lackRecords are what a message says, for the database, if it is of parcels that lack something: a record for each platform.
func (s *session) lackRecords(m *diag.Message) []contentdb.Diagnostic {
	var list []contentdb.Diagnostic
	for i := range s.notices.Lacks {
		if l := &s.notices.Lacks[i]; l.Message == m {
			d := contentdb.Diagnostic{Message: *l.Alone, Asset: l.Assets[0], Platform: l.Platform}
			if last := l.Assets[len(l.Assets)-1]; s.w.Find(last) != nil {
				d.Cause = last
			}
			list = append(list, d)
		}
	}
	return list
}

// changes is what a build of few tasks changed of products, by platform, and of each asset, by UUID, which others referred to it before. It is
// false if an asset in a parcel began or ceased to fail, or if assets that this build did not look at refer to a product that came or went.
func (s *session) changes() (all []ship.Changes, referring func() map[string][]string, ok bool) {
	touched := s.touched()
	looked := map[string]bool{}
	for _, a := range touched {
		looked[a.ID] = true
	}
	past := map[assetOn][]*past{}
	for i := range s.few.past {
		x := &s.few.past[i]
		on := assetOn{x.of.UUID, x.platform}
		past[on] = append(past[on], x)
	}
	referring = sync.OnceValue(func() map[string][]string { return s.findReferring(sortedKeys(touched)) })
	for _, platform := range s.p.PlatformNames() {
		pl := ship.Changes{Platform: platform}
		named := s.packed(platform)
		for _, uuid := range sortedKeys(touched) {
			a := touched[uuid]
			c := ship.Change{Asset: ship.Asset{ID: a.ID, UUID: a.UUID, Follows: a.Follows}}
			if s.few.concerned[a] {
				c.Asset = s.assetOn(a, platform)
			}
			wasLost := false
			for _, x := range past[assetOn{uuid, platform}] {
				wasLost = wasLost || x.lost
				c.Was = append(c.Was, shipProducts(x.products)...)
			}
			sortProducts(c.Was)
			equal := slices.EqualFunc(c.Was, c.Products, func(x, y ship.Product) bool {
				return x.Hash == y.Hash && x.SubID == y.SubID && x.Name == y.Name && x.Type == y.Type && slices.Equal(x.References, y.References)
			})
			if lost := c.Lost != ""; lost != wasLost || lost && !equal {
				if named(a.ID) || len(referring()[uuid]) > 0 || lost && len(c.Products) > len(c.Was) {
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

type assetOn struct{ uuid, platform string }

// touched are the assets of which a task is another one than before, or has another trace, by UUID.
func (s *session) touched() map[string]*asset.Asset {
	all := map[string]*asset.Asset{}
	for _, x := range s.leaving() {
		if !task.IsRequest(x.of.ID) {
			all[x.of.UUID] = x.of
		}
	}
	for _, t := range s.live {
		if t.Request() {
			continue
		}
		was, known := s.few.tasks.Held(t.Key)
		if tr := s.traceOf(t); tr != nil && (!known || was != tr.ID) {
			all[t.Asset.UUID] = t.Asset
		}
	}
	return all
}

// packed tells whether parcels of a platform name an asset.
func (s *session) packed(platform string) func(id string) bool {
	var names []func(id string) bool
	for i := range s.p.Parcels {
		if p := &s.p.Parcels[i]; p.On(platform) {
			for _, pat := range p.Assets {
				names = append(names, s.named(pat.Text))
			}
		}
	}
	return func(id string) bool {
		return slices.ContainsFunc(names, func(has func(string) bool) bool { return has(id) })
	}
}

// findReferring finds the assets with products that referred, before this build, to those of assets: ids by UUID. If nobody can tell, each has
// one without a name.
func (s *session) findReferring(uuids []string) map[string][]string {
	db, opened, err := contentdb.Open(s.p.DatabasePath())
	if err == nil {
		defer db.Close()
		if ids, err := db.Referring(uuids); err == nil && opened.Reason == "" {
			return ids
		}
	}
	unknown := map[string][]string{}
	for _, uuid := range uuids {
		unknown[uuid] = []string{""}
	}
	return unknown
}

// shipFew goes by the products that changed. It is false if it has to go by all.
func (s *session) shipFew(ctx context.Context) bool {
	s.shipment.files = slices.Clone(s.prev.Shipped)
	changes, referring, ok := s.changes()
	if !ok {
		return false
	}
	others := ship.Others{
		Left: func(file string) bool { return slices.Contains(s.notices.Left, file) },
		Find: func(platform, id string) (ship.Asset, bool) {
			a := s.asset(id)
			if a == nil {
				return ship.Asset{}, false
			}
			now := s.assetOn(a, platform)
			return now, len(now.Products) > 0 && now.Lost == ""
		},
		Follows:  func(id string) bool { a := s.w.Find(id); return a != nil && a.Follows },
		Referred: func(uuid string) bool { return len(referring()[uuid]) > 0 },
	}
	o := s.shipping(ctx)
	note := func(file string, made bool) {
		if i := slices.IndexFunc(s.shipment.files, func(f state.Shipped) bool { return f.File == file && f.Made == made }); i >= 0 {
			s.shipment.files[i] = s.shipped(file, made)
		}
	}
	o.Settled = func(file string) { note(file, true) }
	o.Reading = func(file string) { note(file, false) }
	s.shipment.parcels, ok = ship.Touch(s.p.Project, changes, others, o)
	return ok
}
