package ship

import (
	"fmt"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/delivery/manifest"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
)

// Wrong is a file that is not what Update makes of the same products.
type Wrong struct {
	File string // relative to the project folder
	Why  string
}

// Check compares kiln.ids, parcels and constants with what Update makes of the same products. It writes nothing. Files that are missing or
// cannot be read are for the next build, and so are parcels that cannot be packed.
func Check(p *project.Project, platforms []Platform, o Options) (list []Wrong) {
	s := &shipment{p: p, o: o, orders: map[string]*order{}, saidOf: map[string]*left{}, read: map[string]bool{}}
	s.o.Reading, s.o.Settled, s.o.Wrote, s.o.Locked = nil, nil, nil, true
	before, err := ReadNumbers(p.Dir, ids.FileName, false)
	if err != nil || len(before.Contradictions()) > 0 {
		return nil
	}
	names, keep := s.wantedNames(platforms)
	file, changes, err := ids.Assign(before.File, names, keep)
	if err != nil {
		return nil
	}
	if !before.Same(file.Format()) {
		why := "its lines are not in order"
		if len(changes) > 0 {
			why = fmt.Sprintf("%d of its lines would change: %s %s", len(changes), changes[0].What, changes[0].Name)
		}
		list = append(list, Wrong{ids.FileName, why})
	}
	s.numbers = newTable(file)
	s.findKept(file, platforms)
	contents := make([][]manifest.Contents, len(platforms))
	for i := range platforms {
		contents[i] = s.fill(&platforms[i])
		list = append(list, s.checkParcels(&platforms[i], contents[i])...)
	}
	s.eachConstants(platforms, contents, func(_ *project.Constants, file string, text []byte) {
		if old, err := disk.ReadText(s.abs(file), 0); err == nil && string(old) != string(text) {
			list = append(list, Wrong{file, "it does not have the constants of the last build"})
		}
	})
	return list
}

// checkParcels compares what the parcels of a platform hold.
func (s *shipment) checkParcels(pl *Platform, contents []manifest.Contents) (list []Wrong) {
	declared := s.parcelsOn(pl.Name)
	for i := range contents {
		c := &contents[i]
		if len(c.Lacks) > 0 || c.Held != "" {
			continue
		}
		file := s.file(Folder(pl.Name) + "/" + c.Name + ".parcel")
		p, err := openParcel(s.abs(file))
		if err != nil {
			continue
		}
		if stored, err := p.stored(); err == nil {
			has, _ := stored.Resources()
			if why := differs(has, s.resources(pl, c, declared[c.Of[0]])); why != "" {
				list = append(list, Wrong{file, why})
			}
		}
		p.Close()
	}
	return list
}

// differs returns the first difference between the resources that a parcel has and those that it is to have; "" if there is none.
func differs(has, want []parcel.Resource) string {
	byID := map[uint32]*parcel.Resource{}
	for i := range has {
		byID[has[i].ID] = &has[i]
	}
	for i := range want {
		w := &want[i]
		h := byID[w.ID]
		if h == nil {
			return fmt.Sprintf("it does not have %s, which is resource %d", w.Name, w.ID)
		}
		delete(byID, w.ID)
		switch {
		case h.Name != w.Name:
			return fmt.Sprintf("resource %d is called %s, not %s", w.ID, h.Name, w.Name)
		case h.UUID != w.UUID || h.SubID != w.SubID || h.Type != w.Type || !sameNeeds(h.Required, w.Required) || !sameNeeds(h.Optional, w.Optional):
			return fmt.Sprintf("what it says of %s, which is resource %d, is out of date", w.Name, w.ID)
		case h.Size != w.Size || h.Hash != w.Hash:
			return fmt.Sprintf("it has another content of %s, which is resource %d", w.Name, w.ID)
		}
	}
	for i := range has {
		if byID[has[i].ID] != nil {
			return fmt.Sprintf("it still has %s, which is resource %d", has[i].Name, has[i].ID)
		}
	}
	return ""
}

// sameNeeds compares references, whose order in a parcel is that of loading.
func sameNeeds(a, b []uint32) bool {
	set := func(list []uint32) []uint32 { return slices.Compact(slices.Sorted(slices.Values(list))) }
	return slices.Equal(set(a), set(b))
}
