package ship

import (
	"path/filepath"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Change is a product that has another content than before, and is the same in all else.
type Change struct {
	Asset string // id
	UUID  string
	SubID uint32
	Size  int64
	Hash  digest.Hash
}

// Touch brings the parcels of a platform up to date after a change of nothing but contents. It gives the parcels that it changed, and is
// false if it cannot: Update has to.
func Touch(p *project.Project, platform string, changes []Change, o Options) ([]Parcel, bool) {
	s := &shipment{p: p, o: o, orders: map[string]*order{}}
	list, err := ReadList(s.abs(s.listFile(platform)))
	if err != nil {
		return nil, false
	}
	folder := s.abs(s.file(Folder(platform)))
	var done []Parcel
	for i := range list.Parcels {
		e := &list.Parcels[i]
		of := Declared(p, e.Name)
		if of == nil {
			return nil, false
		}
		x := Parcel{Name: e.Name, Platform: platform, File: Folder(platform) + "/" + e.File, Needs: e.Needs, Resources: e.Resources, Size: e.Bytes}
		changed, ok := s.touch(filepath.Join(folder, e.File), of, changes, &x)
		if !ok || of.Name == e.Name && of.Budget > 0 && x.Size > of.Budget {
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
	s.settled(s.listFile(platform))
	return done, true
}

// touch changes one parcel, if it has any of the products.
func (s *shipment) touch(abs string, of *project.Parcel, changes []Change, x *Parcel) (changed, ok bool) {
	p, err := kilnrt.Open(abs)
	if err != nil {
		return false, false
	}
	defer p.Close()
	has := map[productKey]*Change{}
	for i := range changes {
		key := productKey{parseUUID(changes[i].UUID), changes[i].SubID}
		if _, err := p.ByUUID(key.uuid, key.sub); err == nil {
			has[key] = &changes[i]
		}
	}
	if len(has) == 0 {
		return false, true
	}
	if len(p.Signature()) > 0 || !s.trusted(x.File) { // that is changed by its index alone
		return false, false
	}
	rs, o, err := parcel.Resources(p)
	if err != nil {
		return false, false
	}
	o.Workers = s.o.Workers
	if !s.sort(of, rs, &o) {
		return false, false
	}
	compress := s.compress(of)
	for i := range rs {
		if c := has[productKey{rs[i].UUID, rs[i].SubID}]; c != nil {
			rs[i].Size, rs[i].Hash, rs[i].Align, rs[i].Compress, rs[i].Open = c.Size, c.Hash, of.Align, compress(c.Asset, c.Size), s.open(c.Hash)
		}
	}
	rep, err := parcel.Update(abs, rs, o)
	if err != nil {
		return false, false
	}
	now, err := kilnrt.Open(abs)
	if err != nil {
		return false, false
	}
	defer now.Close()
	x.Resources, x.Size, x.Digest = now.Len(), now.Header().End, digest.Hash(now.Digest())
	return rep.How != parcel.Nothing, true
}
