package ids

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
)

// Sorted is a kiln.ids that is as Format writes it. Names are found in its text by their order, and the lines of a few assets
// are changed in it; all others are copied as bytes.
type Sorted struct {
	text  string
	lines []line

	assets  func() map[string]string // AssetOf
	numbers func() map[key]uint32    // of all resources, for those that are called otherwise
}

type line struct{ start, id uint32 }

// ReadSorted reads a kiln.ids. It is false if the text is not as Format writes it, or contradicts itself in what can be seen without the
// identity of each asset: Parse knows why.
func ReadSorted(text []byte) (*Sorted, bool) {
	s := &Sorted{text: string(text)}
	if len(s.text) > maxFile || !strings.HasPrefix(s.text, header+"\n") || !strings.HasSuffix(s.text, "\n") {
		return nil, false
	}
	pos := len(header) + 1
	s.lines = make([]line, 0, strings.Count(s.text, "\n")-1)
	used := make([]uint64, cap(s.lines)/64+1) // a bit each
	var before Entry
	for pos < len(s.text) {
		end := pos + strings.IndexByte(s.text[pos:], '\n')
		e, ok := readWritten(s.text[pos:end])
		if !ok || len(s.lines) > 0 && compareProducts(before.Name, e.Name) >= 0 {
			return nil, false
		}
		word, bit := int(e.ID/64), uint64(1)<<(e.ID%64)
		if word >= len(used) {
			used = append(used, make([]uint64, word+1-len(used))...)
		}
		if used[word]&bit != 0 {
			return nil, false
		}
		used[word] |= bit
		s.lines = append(s.lines, line{uint32(pos), e.ID})
		before, pos = e, end+1
	}
	s.assets, s.numbers = sync.OnceValue(s.findAssets), sync.OnceValue(s.findNumbers)
	return s, true
}

// compareProducts is the order of lines, of which no two have the same asset and product.
func compareProducts(a, b Name) int {
	if c := strings.Compare(a.Asset, b.Asset); c != 0 {
		return c
	}
	return strings.Compare(a.Product, b.Product)
}

// readWritten reads a line. It is false for one that Format would write otherwise, or that has a quoted name.
func readWritten(text string) (Entry, bool) {
	e := fieldsOf(text)
	number := text[min(len(text), len(e.Asset)+1):]
	number, more, has := strings.Cut(number, "\t")
	id, err := strconv.ParseUint(number, 10, 32)
	switch {
	case e.Asset == "" || len(e.Asset) > maxField || len(e.Product) > maxField || !plain(e.Asset) || !plain(e.Product):
		return e, false
	case err != nil || id >= Limit || len(number) > 1 && number[0] == '0':
		return e, false
	case has && more == "" || strings.HasSuffix(more, "\t"):
		return e, false
	case e.UUID != "":
		if u, err := uuid.Parse(e.UUID); err != nil || u.String() != e.UUID || asset.UUID(e.Asset) == e.UUID {
			return e, false
		}
	}
	e.ID = uint32(id)
	return e, true
}

// fieldsOf splits a line at its tabs. The number is left out.
func fieldsOf(text string) (e Entry) {
	var rest string
	e.Asset, rest, _ = strings.Cut(text, "\t")
	_, rest, _ = strings.Cut(rest, "\t")
	e.Product, e.UUID, _ = strings.Cut(rest, "\t")
	return e
}

func (s *Sorted) end(i int) int {
	if i+1 < len(s.lines) {
		return int(s.lines[i+1].start)
	}
	return len(s.text)
}

// at is the entry of a line.
func (s *Sorted) at(i int) Entry {
	e := fieldsOf(s.text[s.lines[i].start : s.end(i)-1])
	e.ID = s.lines[i].id
	return e
}

// find returns the first line that does not come before a name, and whether it is of that asset and product.
func (s *Sorted) find(n Name) (int, bool) {
	return sort.Find(len(s.lines), func(i int) int { return compareProducts(n, s.at(i).Name) })
}

// ID is the number of a resource whose asset is called in the file as it is called now.
func (s *Sorted) ID(n Name) (uint32, bool) {
	i, ok := s.find(n)
	if !ok {
		return 0, false
	}
	return s.lines[i].id, true
}

// Of is the number of a resource whose asset may be called otherwise in the file: its UUID counts, as for the function Assign.
func (s *Sorted) Of(n Name) (uint32, bool) {
	if i, ok := s.find(n); ok {
		if e := s.at(i); e.Identity() == n.Identity() {
			return e.ID, true
		}
	}
	id, ok := s.numbers()[n.key()]
	return id, ok
}

func (s *Sorted) findNumbers() map[key]uint32 {
	all := make(map[key]uint32, len(s.lines))
	for i := range s.lines {
		e := s.at(i)
		all[e.key()] = e.ID
	}
	return all
}

// AssetOf is the id of the asset with a UUID, or "".
func (s *Sorted) AssetOf(uuid string) string { return s.assets()[uuid] }

func (s *Sorted) findAssets() map[string]string {
	all := make(map[string]string, len(s.lines))
	for i := range s.lines {
		e := s.at(i)
		all[e.Identity()] = e.Asset
	}
	return all
}

// Text is the file.
func (s *Sorted) Text() []byte { return []byte(s.text) }

// Owner is an asset, with what its lines are to be.
type Owner struct {
	Asset, UUID string
	Products    []string // names; one may be there several times
	Keep        bool     // it is not known whether it has more: lines of others of its products stay
}

// Assign is what the function Assign makes of the file if nothing but these assets differs, and how many lines differ. It is false if that
// needs more than the order of the lines, or is an error.
func (s *Sorted) Assign(of []Owner) (*Sorted, int, bool) {
	own, most := newOwners(of), len(s.lines)
	for i := range of {
		most += len(of[i].Products)
	}
	used := make([]bool, most)
	var removed []int
	var added []Entry
	changes := 0
	for i := range s.lines {
		e := s.at(i)
		if o := own.find(e.Name); o != nil {
			had, wanted := o.products[e.Product]
			switch {
			case had:
				return nil, 0, false
			case wanted && e.Asset != o.Asset:
				removed = append(removed, i)
				added = append(added, Entry{Name: Name{o.Asset, o.UUID, e.Product}, ID: e.ID})
				changes++
			case !wanted && !o.Keep:
				removed = append(removed, i)
				changes++
				continue
			}
			o.products[e.Product] = true
		}
		if int(e.ID) < len(used) {
			used[e.ID] = true
		}
	}
	fresh := own.fresh()
	next := 0 // as in the function
	for _, n := range fresh {
		for used[next] {
			next++
		}
		if next >= Limit {
			return nil, 0, false
		}
		added = append(added, Entry{Name: n, ID: uint32(next)})
		next++
	}
	if changes += len(fresh); changes == 0 {
		return s, 0, true
	}
	to, ok := ReadSorted(s.edit(removed, added))
	return to, changes, ok
}

// edit is the text without some lines, and with others at their places.
func (s *Sorted) edit(removed []int, added []Entry) []byte {
	slices.SortFunc(added, func(a, b Entry) int { return compareProducts(a.Name, b.Name) })
	b := make([]byte, 0, len(s.text)+128*len(added))
	pos := 0
	until := func(i int) { // copies what comes before a line and is to stay
		for len(removed) > 0 && removed[0] < i {
			b = append(b, s.text[pos:s.lines[removed[0]].start]...)
			pos = s.end(removed[0])
			removed = removed[1:]
		}
		end := len(s.text)
		if i < len(s.lines) {
			end = int(s.lines[i].start)
		}
		b = append(b, s.text[pos:end]...)
		pos = end
	}
	for i := range added {
		at, _ := s.find(added[i].Name)
		until(at)
		b = appendLine(b, &added[i])
	}
	until(len(s.lines))
	return b
}

// owners finds whose a line is.
type owners struct {
	byUUID map[string]*owner
	byName map[string]*owner // by folded id, if the UUID follows from it
	pinned bool              // of some it does not, so that the UUIDs of all lines count
}

type owner struct {
	Owner
	products map[string]bool // those that it has; true: there is a line
}

func newOwners(of []Owner) *owners {
	all := &owners{byUUID: map[string]*owner{}, byName: map[string]*owner{}}
	for i := range of {
		o := &owner{of[i], map[string]bool{}}
		for _, p := range o.Products {
			o.products[p] = false
		}
		all.byUUID[o.UUID] = o
		if asset.UUID(o.Asset) == o.UUID {
			all.byName[asset.Fold(o.Asset)] = o
		} else {
			all.pinned = true
		}
	}
	return all
}

func (all *owners) find(n Name) *owner {
	if n.UUID != "" || all.pinned {
		return all.byUUID[n.Identity()]
	}
	return all.byName[asset.Fold(n.Asset)]
}

// fresh are the resources that have no line, in the order of their names.
func (all *owners) fresh() (list []Name) {
	for _, o := range all.byUUID {
		for p, has := range o.products {
			if !has {
				list = append(list, Name{o.Asset, o.UUID, p})
			}
		}
	}
	slices.SortFunc(list, compareNames)
	return list
}
