package ship

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/delivery/manifest"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt"
	"github.com/kiln-pipeline/kiln/processor"
)

// Change is an asset on a platform as it is now, without products if it is gone, and what it had before.
type Change struct {
	Asset
	WasID   string // its id, which may differ although its UUID does not; "" if it had no products
	Was     []Product
	WasLost bool // kiln.ids may have lines of products that it did not have
}

// differs tells whether anything changed. Of what is lost nothing is made, so that it changes nothing.
func (c *Change) differs() bool {
	return c.Lost == "" && (!c.contentsOnly() || !slices.EqualFunc(c.Was, c.Products, func(a, b Product) bool { return a.Hash == b.Hash }))
}

// contentsOnly tells whether nothing but the contents of products changed. An asset that was lost may have fewer products than lines.
func (c *Change) contentsOnly() bool {
	return !c.WasLost && (c.WasID == "" || c.WasID == c.ID) && slices.EqualFunc(c.Was, c.Products, func(a, b Product) bool {
		return a.SubID == b.SubID && a.Name == b.Name && a.Type == b.Type && slices.Equal(a.References, b.References)
	})
}

// Changes are assets of a platform, with their products in the order of sub ids. One of which something changed on any platform is among
// those of all platforms.
type Changes struct {
	Platform string
	Assets   []Change
}

// Others is what Touch wants to know of a project besides what changed.
type Others struct {
	Left    func(file string) bool                  // whether a parcel, by its path below the output folder, is to stay as it is
	Find    func(platform, id string) (Asset, bool) // an asset as it is now; it is false for one that has no products there
	Follows func(id string) bool                    // Asset.Follows
	Staged  func() bool                             // whether the project has stages, of which lines in kiln.ids may be

	// Referring are the ids of assets with products that referred to those of an asset, before what changed; one of them is "" if that is
	// not known.
	Referring func(uuid string) []string
}

// Touch brings parcels and numbers up to date with what changed, and looks at nothing else. It gives the parcels that it changed. If it
// cannot it is false, and Update has to.
func Touch(p *project.Project, platforms []Changes, others Others, o Options) ([]Parcel, bool) {
	s := &touch{
		shipment: shipment{p: p, o: o, orders: map[string]*order{}, read: map[string]bool{}}, others: others, ahead: map[string]*opened{},
	}
	defer s.closeAll()
	other := slices.ContainsFunc(platforms, func(pl Changes) bool {
		return slices.ContainsFunc(pl.Assets, func(c Change) bool { return c.differs() && !c.contentsOnly() })
	})
	if other {
		if !s.simple() {
			return nil, false
		}
		s.readAhead(platforms)
		if !s.renumber(platforms) {
			return nil, false
		}
	}
	var done []Parcel
	for i := range platforms {
		if !slices.ContainsFunc(platforms[i].Assets, func(c Change) bool { return c.differs() }) || len(s.parcelsOn(platforms[i].Platform)) == 0 {
			continue
		}
		changed, ok := s.platform(&platforms[i], other)
		if !ok {
			return nil, false
		}
		done = append(done, changed...)
	}
	return done, true
}

// touch is one run of Touch.
type touch struct {
	shipment
	others  Others
	changed map[string]*ids.Owner // the assets, by UUID, if more than contents changed
	ahead   map[string]*opened    // parcels that are being read, by their paths
}

// opened is an open parcel.
type opened struct {
	*kilnrt.Parcel
	stored func() (*parcel.Stored, error)
}

// readAhead begins to read parcels that name what changed, while kiln.ids is read.
func (s *touch) readAhead(platforms []Changes) {
	for i := range platforms {
		pl := &platforms[i]
		list, err := ReadList(s.abs(s.listFile(pl.Platform)))
		if err != nil {
			continue
		}
		for k := range list.Parcels {
			e := &list.Parcels[k]
			of := Declared(s.p, e.Name)
			if of == nil || len(s.ahead) >= s.o.Workers {
				continue
			}
			names, file := s.any(of.Assets), s.abs(s.file(Folder(pl.Platform)+"/"+e.File))
			if !slices.ContainsFunc(pl.Assets, func(c Change) bool { return c.differs() && names(c.ID) }) {
				continue
			}
			if p, err := openParcel(file); err == nil {
				s.ahead[file] = p
				go p.stored()
			}
		}
	}
}

func openParcel(file string) (*opened, error) {
	p, err := kilnrt.Open(file)
	if err != nil {
		return nil, err
	}
	return &opened{p, sync.OnceValues(func() (*parcel.Stored, error) { return parcel.Read(p) })}, nil
}

// parcelAt opens a parcel, or gives the one that is being read.
func (s *touch) parcelAt(file string) (*opened, error) {
	if p := s.ahead[file]; p != nil {
		return p, nil
	}
	return openParcel(file)
}

// closeParcel closes a parcel, when it is no longer being read.
func (s *touch) closeParcel(file string, p *opened) {
	if s.ahead[file] == p {
		p.stored()
		delete(s.ahead, file)
	}
	p.Close()
}

func (s *touch) closeAll() {
	for file, p := range s.ahead {
		s.closeParcel(file, p)
	}
}

// simple tells whether what a parcel holds follows from what it names, and nothing but parcels is made of the products.
func (s *touch) simple() bool {
	return len(s.p.Constants) == 0 && !s.others.Staged() &&
		!slices.ContainsFunc(s.p.Parcels, func(p project.Parcel) bool { return p.SharedWith != "" || p.Split || p.Order != "" })
}

// renumber brings kiln.ids up to date.
func (s *touch) renumber(platforms []Changes) bool {
	changed := map[string]*ids.Owner{}
	for i := range platforms {
		for k := range platforms[i].Assets {
			a := &platforms[i].Assets[k]
			o := changed[a.UUID]
			if o == nil {
				o = &ids.Owner{Asset: a.ID, UUID: a.UUID}
				changed[a.UUID] = o
			}
			o.Keep = o.Keep || a.Lost != ""
			for n := range a.Products {
				o.Products = append(o.Products, a.Products[n].Name)
			}
		}
	}
	s.changed = changed
	s.reading(ids.FileName)
	text, err := disk.ReadText(filepath.Join(s.p.Dir, ids.FileName), 0)
	if before, ok := ids.ReadSorted(text); err == nil && ok {
		owners := make([]ids.Owner, 0, len(changed))
		for _, uuid := range slices.Sorted(maps.Keys(changed)) {
			owners = append(owners, *changed[uuid])
		}
		if after, n, ok := before.Assign(owners); ok {
			s.numbers = after
			return n == 0 || !s.o.Locked && s.saveNumbers(after.Text()) == nil
		}
	}
	return s.renumberAll(changed)
}

// renumberAll does it by reading each line: what a line is for may not follow from its name.
func (s *touch) renumberAll(changed map[string]*ids.Owner) bool {
	var names []ids.Name
	for _, o := range changed {
		for _, product := range o.Products {
			names = append(names, ids.Name{Asset: o.Asset, UUID: o.UUID, Product: product})
		}
	}
	file, err := s.assignNames(names, func(uuid string) bool { o := changed[uuid]; return o == nil || o.Keep })
	if err != nil {
		return false
	}
	s.numbers = newTable(file)
	return true
}

// assetOf is the id of an asset, or "". One that is gone has no number any more.
func (s *touch) assetOf(u manifest.UUID) string {
	text := uuid.UUID(u).String()
	if o := s.changed[text]; o != nil {
		return o.Asset
	}
	return s.numbers.AssetOf(text)
}

// platform changes the parcels of a platform. other tells whether more than contents changed.
func (s *touch) platform(pl *Changes, other bool) ([]Parcel, bool) {
	list, err := ReadList(s.abs(s.listFile(pl.Platform)))
	if err != nil || other && len(list.Parcels) < len(s.parcelsOn(pl.Platform)) {
		return nil, false
	}
	referring, known := s.referring(pl)
	if !known {
		return nil, false
	}
	var done []Parcel
	for i := range list.Parcels {
		e := &list.Parcels[i]
		of := Declared(s.p, e.Name)
		file := Folder(pl.Platform) + "/" + e.File
		x := Parcel{Name: e.Name, Platform: pl.Platform, File: file, Needs: e.Needs, Resources: e.Resources, Size: e.Bytes}
		if of == nil {
			return nil, false
		}
		if s.others.Left(x.File) {
			if other && s.concerns(pl, of) { // what it lacks may be there now, or more may be lacking
				return nil, false
			}
			continue
		}
		changed, ok := s.parcel(pl, of, &x, referring)
		if !ok || changed && (len(e.Placeholders) > 0 || of.Name == e.Name && of.Budget > 0 && max(e.Bytes, x.Size) > of.Budget) {
			return nil, false
		}
		if changed {
			e.Resources, e.Bytes, e.Digest = x.Resources, x.Size, x.Digest.String()
			done = append(done, x)
			s.settled(s.file(x.File))
		}
	}
	if len(done) == 0 {
		return nil, true
	}
	if !s.writeList(list) {
		return nil, false
	}
	s.settled(s.listFile(pl.Platform))
	return done, true
}

// concerns tells whether more than contents changed of what a parcel names, or of what anything refers to.
func (s *touch) concerns(pl *Changes, of *project.Parcel) bool {
	names := s.any(of.Assets)
	return slices.ContainsFunc(pl.Assets, func(c Change) bool {
		return c.differs() && !c.contentsOnly() && (names(c.ID) || len(s.others.Referring(c.UUID)) > 0)
	})
}

// referring are the products that are as they were, and refer to products that came or went: in a parcel, that is the number of a resource
// or nothing. known is false if it is not known which these are.
func (s *touch) referring(pl *Changes) (keys []productKey, known bool) {
	has := func(list []Product, sub uint32) bool {
		return slices.ContainsFunc(list, func(p Product) bool { return p.SubID == sub })
	}
	for i := range pl.Assets {
		c := &pl.Assets[i]
		came := slices.ContainsFunc(c.Products, func(p Product) bool { return !has(c.Was, p.SubID) })
		went := slices.ContainsFunc(c.Was, func(p Product) bool { return !has(c.Products, p.SubID) })
		if !came && !went || c.Lost != "" {
			continue
		}
		for _, id := range s.others.Referring(c.UUID) {
			if id == "" {
				return nil, false
			}
			if a, ok := s.others.Find(pl.Platform, id); ok {
				for k := range a.Products {
					keys = append(keys, productKey{parseUUID(a.UUID), a.Products[k].SubID})
				}
			}
		}
	}
	return keys, true
}

// parcel changes one parcel, if it has any of the products, or is to have. It cannot if it has one of those that refer to what came or went.
func (s *touch) parcel(pl *Changes, of *project.Parcel, x *Parcel, referring []productKey) (changed, ok bool) {
	abs := s.abs(s.file(x.File))
	p, err := s.parcelAt(abs)
	if err != nil {
		return false, false
	}
	defer s.closeParcel(abs, p)
	for _, key := range referring {
		if _, err := p.ByUUID(key.uuid, key.sub); err == nil {
			return false, false
		}
	}
	var here []*Change
	names := s.any(of.Assets)
	for i := range pl.Assets {
		c := &pl.Assets[i]
		if !c.differs() {
			continue
		}
		in := func(x Product) bool { _, err := p.ByUUID(parseUUID(c.UUID), x.SubID); return err == nil }
		if slices.ContainsFunc(c.Was, in) || !c.contentsOnly() && names(c.ID) {
			here = append(here, c)
		}
	}
	if len(here) == 0 {
		return false, true
	}
	if len(p.Signature()) > 0 || !s.trusted(x.File) { // that is changed by its index alone
		return false, false
	}
	stored, err := p.stored()
	if err != nil {
		return false, false
	}
	rs, o := stored.Resources()
	o.Workers = s.o.Workers
	if slices.ContainsFunc(here, func(c *Change) bool { return !c.contentsOnly() }) {
		was := rs
		if s.alone(pl, names) {
			rs = s.exchange(of, rs, here, names)
		} else if rs, ok = s.refill(pl, of, rs, names); !ok {
			return false, false
		}
		x.Removed, x.Added = s.differences(was, rs)
	} else {
		s.replace(of, rs, here)
	}
	if !s.sort(of, rs, &o) {
		return false, false
	}
	rep, err := stored.Update(abs, rs, o)
	if err != nil {
		return false, false
	}
	now, err := kilnrt.Open(abs)
	if err != nil {
		return false, false
	}
	defer now.Close()
	x.Resources, x.Size, x.Digest = now.Len(), now.Header().End, digest.Hash(now.Digest())
	if rep.How == parcel.Nothing {
		return false, true
	}
	s.wrote(s.file(x.File))
	return true, true
}

// replace gives resources their new contents.
func (s *touch) replace(of *project.Parcel, rs []parcel.Resource, changes []*Change) {
	compress := s.compress(of)
	has := map[productKey]*Product{}
	assets := map[manifest.UUID]string{}
	for _, c := range changes {
		u := parseUUID(c.UUID)
		assets[u] = c.ID
		for k := range c.Products {
			has[productKey{u, c.Products[k].SubID}] = &c.Products[k]
		}
	}
	for i := range rs {
		r := &rs[i]
		if p := has[productKey{r.UUID, r.SubID}]; p != nil && r.Hash != p.Hash {
			r.Size, r.Hash, r.Align, r.Compress, r.Open = p.Size, p.Hash, of.Align, compress(assets[r.UUID], p.Size), s.open(p.Hash)
		}
	}
}

// alone reports whether no other product is in a parcel, or missing there, because of what changed: neither refers to the other.
func (s *touch) alone(pl *Changes, names func(id string) bool) bool {
	refers := func(p Product) bool { return len(p.References) > 0 }
	for i := range pl.Assets {
		c := &pl.Assets[i]
		switch {
		case c.Lost != "" && names(c.ID):
			return false
		case !c.differs():
		case slices.ContainsFunc(c.Was, refers) || slices.ContainsFunc(c.Products, refers) || len(s.others.Referring(c.UUID)) > 0:
			return false
		}
	}
	return true
}

// exchange takes out what was of changed assets, and puts in what there is of those that the parcel names.
func (s *touch) exchange(of *project.Parcel, rs []parcel.Resource, here []*Change, names func(id string) bool) []parcel.Resource {
	one := s.resource(of, nil)
	changed := make(map[manifest.UUID]bool, len(here))
	for _, c := range here {
		changed[parseUUID(c.UUID)] = true
	}
	now := make([]parcel.Resource, 0, len(rs)+len(here))
	for i := range rs {
		if !changed[rs[i].UUID] {
			now = append(now, rs[i])
		}
	}
	for _, c := range here {
		for k := range c.Products {
			if names(c.ID) {
				now = append(now, one(&c.Asset, &c.Products[k]))
			}
		}
	}
	slices.SortFunc(now, byNumber)
	return now
}

func byNumber(a, b parcel.Resource) int { return cmp.Compare(a.ID, b.ID) }

// refill says what a parcel is to hold, of what it holds and what changed. It is false if something cannot be had.
func (s *touch) refill(pl *Changes, of *project.Parcel, rs []parcel.Resource, names func(id string) bool) ([]parcel.Resource, bool) {
	f := &filling{
		touch: s, platform: pl.Platform, at: map[manifest.UUID]int{}, has: map[productKey]bool{}, stored: map[productKey]*parcel.Resource{},
	}
	changed := map[manifest.UUID]bool{}
	for i := range pl.Assets {
		changed[parseUUID(pl.Assets[i].UUID)] = true
	}
	if !f.take(rs, changed) {
		return nil, false
	}
	for i := range pl.Assets {
		f.add(pl.Assets[i].Asset)
	}
	for i := range pl.Assets {
		f.reach(&pl.Assets[i].Asset)
	}
	c := &manifest.Make([]manifest.Parcel{{Name: of.Name, Has: names}}, manifestAssets(f.assets))[0]
	if len(c.Lacks) > 0 {
		return nil, false
	}
	one := s.resource(of, s.numbersOf(f.assets))
	now := make([]parcel.Resource, len(c.Products))
	for i, at := range c.Products {
		a := &f.assets[at.Asset]
		p := &a.Products[at.Product]
		if r := f.stored[productKey{parseUUID(a.UUID), p.SubID}]; r != nil {
			now[i] = *r
		} else {
			now[i] = one(a, p)
		}
	}
	slices.SortFunc(now, byNumber)
	return now, true
}

// filling is what may be in a parcel: what was, what changed, and what that refers to.
type filling struct {
	*touch
	platform string
	assets   []Asset
	at       map[manifest.UUID]int // places in assets
	has      map[productKey]bool
	stored   map[productKey]*parcel.Resource // what stays as it was
}

// add adds an asset with all its products, in place of what is there of it.
func (f *filling) add(a Asset) {
	u := parseUUID(a.UUID)
	k, ok := f.at[u]
	if !ok {
		k = len(f.assets)
		f.at[u] = k
		f.assets = append(f.assets, Asset{})
	}
	f.assets[k] = a
	for i := range a.Products {
		f.has[productKey{u, a.Products[i].SubID}] = true
	}
}

// take adds what a parcel holds, but for some assets. It is false if the parcel is not of this project's ids.
func (f *filling) take(rs []parcel.Resource, but map[manifest.UUID]bool) bool {
	byID := make(map[uint32]*parcel.Resource, len(rs))
	for i := range rs {
		byID[rs[i].ID] = &rs[i]
	}
	for i := range rs {
		r := &rs[i]
		if but[r.UUID] {
			continue
		}
		k, ok := f.at[r.UUID]
		if !ok {
			id := f.assetOf(r.UUID)
			if id == "" {
				return false
			}
			k = len(f.assets)
			f.at[r.UUID] = k
			f.assets = append(f.assets, Asset{ID: id, UUID: uuid.UUID(r.UUID).String(), Follows: f.others.Follows(id)})
		}
		a := &f.assets[k]
		p := Product{SubID: r.SubID, Name: strings.TrimPrefix(strings.TrimPrefix(r.Name, a.ID), "#"), Type: r.Type, Size: r.Size, Hash: r.Hash}
		for n, id := range slices.Concat(r.Required, r.Optional) {
			if to := byID[id]; to != nil {
				ref := processor.Reference{UUID: uuid.UUID(to.UUID).String(), SubID: to.SubID, Required: n < len(r.Required)}
				p.References = append(p.References, ref)
			} else if n < len(r.Required) {
				return false
			}
		}
		a.Products = append(a.Products, p)
		key := productKey{r.UUID, r.SubID}
		f.has[key], f.stored[key] = true, r
	}
	return true
}

// reach adds what an asset refers to, and what comes along with that.
func (f *filling) reach(a *Asset) {
	for i := range a.Products {
		for _, r := range a.Products[i].References {
			key := productKey{parseUUID(r.UUID), r.SubID}
			if f.has[key] {
				continue
			}
			to, ok := f.others.Find(f.platform, f.assetOf(key.uuid))
			if !ok {
				continue
			}
			f.add(to)
			if r.Required || to.Follows {
				f.reach(&to)
			}
		}
	}
}

// differences are the products of resources that only the first list has, or only the second, or that the second has under another
// name. Both are sorted by number.
func (s *touch) differences(was, now []parcel.Resource) (removed, added []Place) {
	in := map[productKey]int{} // 1: now, -1: before, 0: both
	for len(was) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(was) > 0 && was[0].ID < now[0].ID:
			in[keyOf(&was[0])]--
			was = was[1:]
		case len(was) == 0 || was[0].ID > now[0].ID:
			in[keyOf(&now[0])]++
			now = now[1:]
		default:
			a, b := keyOf(&was[0]), keyOf(&now[0])
			if a != b {
				in[a]--
			}
			if a != b || was[0].Name != now[0].Name {
				in[b]++
			}
			was, now = was[1:], now[1:]
		}
	}
	for key, n := range in {
		at := Place{s.assetOf(key.uuid), key.sub}
		switch {
		case n < 0 && at.Asset != "":
			removed = append(removed, at)
		case n > 0 && at.Asset != "":
			added = append(added, at)
		}
	}
	order := func(a, b Place) int { return cmp.Or(strings.Compare(a.Asset, b.Asset), cmp.Compare(a.SubID, b.SubID)) }
	slices.SortFunc(removed, order)
	slices.SortFunc(added, order)
	return removed, added
}

func keyOf(r *parcel.Resource) productKey { return productKey{r.UUID, r.SubID} }
