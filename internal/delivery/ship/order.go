package ship

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/loadorder"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
)

// ReadOrder reads a load order, a file relative to the project folder. The messages are about its
// lines.
func ReadOrder(p *project.Project, output, file string) (*loadorder.List, diag.List, error) {
	abs := Path(p, output, file)
	info, err := os.Stat(abs)
	if err == nil && info.Size() > loadorder.MaxSize {
		err = fmt.Errorf("it has %d bytes, more than %d", info.Size(), loadorder.MaxSize)
	}
	if err != nil {
		return nil, nil, err
	}
	text, err := disk.ReadText(abs, 0)
	if err != nil {
		return nil, nil, err
	}
	l, bad := loadorder.Parse(file, text)
	return l, bad, nil
}

// order is a load order that was read.
type order struct {
	list *loadorder.List // nil: there is none
	err  error           // why it cannot be read
}

// orderOf reads the order of a parcel, once.
func (s *shipment) orderOf(of *project.Parcel) *order {
	o := s.orders[of.Order]
	if o != nil {
		return o
	}
	o = &order{}
	s.orders[of.Order] = o
	s.reading(of.Order)
	var bad diag.List
	o.list, bad, o.err = ReadOrder(s.p, s.o.Below.Root(), of.Order)
	s.res.Messages = append(s.res.Messages, bad...)
	if errors.Is(o.err, fs.ErrNotExist) { // it is made after the first build, from which resources get their names
		o.err = nil
		s.fail(of.OrderSpan.Warningf(diag.OrderWrong, "there is no file %q", of.Order).WithHint("kiln parcel order --write makes it of what games loaded"))
	}
	if o.err != nil {
		s.failNow(of.OrderSpan.Errorf(diag.OrderWrong, "%q cannot be read: %v", of.Order, cause(o.err)).WithHint("the parcel stays as it is; fix that, and build again"))
	}
	return o
}

// sort sets which contents come first in a parcel. It returns false if the order cannot be read.
func (s *shipment) sort(of *project.Parcel, rs []parcel.Resource, o *parcel.Options) bool {
	o.First, o.Order = nil, digest.Hash{}
	if of.Order == "" {
		return true
	}
	by := s.orderOf(of)
	if by.list == nil {
		return by.err == nil
	}
	names := make([]string, len(rs))
	for i := range rs {
		names[i] = rs[i].Name
	}
	for _, i := range by.list.Sort(names) {
		o.First = append(o.First, rs[i].ID)
	}
	o.Order = by.list.Hash()
	return true
}

// mostGone is how many lines of one order are reported; one run of `kiln parcel order --write` removes
// all of them.
const mostGone = 10

// ordersGone warns about lines of orders that mean nothing.
func (s *shipment) ordersGone(platforms []Platform) {
	for _, file := range slices.Sorted(maps.Keys(s.orders)) {
		l := s.orders[file].list
		if l == nil {
			continue
		}
		lines := gone(l, platforms)
		for i, line := range lines[:min(len(lines), mostGone)] {
			m := diag.Warningf(diag.OrderGone, diag.Pos{File: file, Line: line.Number, Column: 1}, "no resource is called %q", line.Text)
			if more := len(lines) - mostGone; i == mostGone-1 && more > 0 {
				m = m.WithNote("the same is true of %d more of its lines", more)
			}
			s.res.Notes = append(s.res.Notes, m.WithHint("kiln parcel order --write takes such lines out"))
		}
	}
}

// gone returns the lines of an order that mean nothing on any platform.
func gone(l *loadorder.List, platforms []Platform) []loadorder.Line {
	lost := map[string]bool{}
	for i := range platforms {
		for k := range platforms[i].Assets {
			if a := &platforms[i].Assets[k]; a.Lost != "" || a.Fails || a.More {
				lost[a.ID] = true
			}
		}
		for k := range platforms[i].Others {
			lost[platforms[i].Others[k].ID] = true
		}
	}
	return l.Gone(func(tell func(string)) {
		for i := range platforms {
			for k := range platforms[i].Assets {
				a := &platforms[i].Assets[k]
				for n := range a.Products {
					tell(ResourceName(a.ID, a.Products[n].Name))
				}
			}
		}
	}, lost)
}
