package ids

import (
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
)

// Sorted is a kiln.ids that is as Format writes it. Names are found in its text by their order, and the lines of a few assets
// are changed in it; all others are copied as bytes.
type Sorted struct {
	data  []byte // the file; it is not changed
	text  string // the same memory
	lines []line
	used  idSet

	assets  func() map[string]string // AssetOf
	numbers func() map[key]uint32    // of all resources, for those that are called otherwise
}

type line struct {
	start, id uint32
	asset     uint16 // bytes of the asset's id
	pinned    bool   // it has a UUID
	folds     bool   // the asset's id is not its folded id
}

// idSet is a set of numbers: a bit each.
type idSet []uint64

func (n idSet) has(id uint32) bool { return int(id/64) < len(n) && n[id/64]>>(id%64)&1 != 0 }

func (n idSet) remove(id uint32) { n[id/64] &^= 1 << (id % 64) }

func (n *idSet) add(id uint32) {
	if word := int(id / 64); word >= len(*n) {
		*n = append(*n, make([]uint64, word+1-len(*n))...)
	}
	(*n)[id/64] |= 1 << (id % 64)
}

// ReadSorted reads a kiln.ids. It keeps the text, which must not be changed. It is false if the text is not as Format writes it, or
// contradicts itself in what can be seen without the identity of each asset: Parse knows why.
func ReadSorted(text []byte) (*Sorted, bool) {
	s := newSorted(text)
	if len(s.text) > maxFile || !strings.HasPrefix(s.text, header+"\n") || !strings.HasSuffix(s.text, "\n") || !utf8.ValidString(s.text) {
		return nil, false
	}
	pos := len(header) + 1
	s.lines = make([]line, 0, strings.Count(s.text, "\n")-1)
	s.used = make(idSet, cap(s.lines)/64+1)
	var before Entry
	for pos < len(s.text) {
		end := pos + strings.IndexByte(s.text[pos:], '\n')
		e, ok := readWritten(s.text[pos:end])
		if !ok || len(s.lines) > 0 && compareProducts(before.Name, e.Name) >= 0 || s.used.has(e.ID) {
			return nil, false
		}
		s.used.add(e.ID)
		s.lines = append(s.lines, lineAt(pos, &e))
		before, pos = e, end+1
	}
	return s, true
}

func lineAt(start int, e *Entry) line {
	return line{uint32(start), e.ID, uint16(len(e.Asset)), e.UUID != "", classOf(e.Asset)&folds != 0}
}

func newSorted(data []byte) *Sorted {
	s := &Sorted{data: data, text: unsafe.String(unsafe.SliceData(data), len(data))}
	s.assets, s.numbers = sync.OnceValue(s.findAssets), sync.OnceValue(s.findNumbers)
	return s
}

// compareProducts is the order of lines, of which no two have the same asset and product.
func compareProducts(a, b Name) int {
	if c := strings.Compare(a.Asset, b.Asset); c != 0 {
		return c
	}
	return strings.Compare(a.Product, b.Product)
}

// readWritten reads a line of UTF-8. It is false for one that Format would write otherwise, or that has a quoted name.
func readWritten(text string) (e Entry, ok bool) {
	tab := strings.IndexByte(text, '\t')
	if tab <= 0 {
		return e, false
	}
	e.Asset, text = text[:tab], text[tab+1:]
	digits, id := 0, uint64(0)
	for ; digits < len(text) && digits < 10 && '0' <= text[digits] && text[digits] <= '9'; digits++ {
		id = 10*id + uint64(text[digits]-'0')
	}
	if digits == 0 || id >= Limit || digits > 1 && text[0] == '0' || len(e.Asset) > maxField || !plainText(e.Asset) {
		return e, false
	}
	e.ID = uint32(id)
	if text = text[digits:]; text == "" {
		return e, true
	}
	if text[0] != '\t' || text[len(text)-1] == '\t' {
		return e, false
	}
	e.Product, e.UUID, _ = strings.Cut(text[1:], "\t")
	if e.UUID != "" {
		if u, err := uuid.Parse(e.UUID); err != nil || u.String() != e.UUID || asset.UUID(e.Asset) == e.UUID {
			return e, false
		}
	}
	return e, len(e.Product) <= maxField && plainText(e.Product)
}

// entry splits a line that was read.
func (s *Sorted) entry(i int) (e Entry) {
	l := &s.lines[i]
	text := s.text[l.start : s.end(i)-1]
	e.Asset, e.ID = text[:l.asset], l.id
	_, rest, _ := strings.Cut(text[l.asset+1:], "\t")
	e.Product, e.UUID, _ = strings.Cut(rest, "\t")
	return e
}

func (s *Sorted) end(i int) int {
	if i+1 < len(s.lines) {
		return int(s.lines[i+1].start)
	}
	return len(s.text)
}

// find returns the first line that does not come before a name, and whether it is of that asset and product.
func (s *Sorted) find(n Name) (int, bool) {
	return sort.Find(len(s.lines), func(i int) int { return compareProducts(n, s.entry(i).Name) })
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
		if e := s.entry(i); e.Identity() == n.Identity() {
			return e.ID, true
		}
	}
	id, ok := s.numbers()[n.key()]
	return id, ok
}

func (s *Sorted) findNumbers() map[key]uint32 {
	all := make(map[key]uint32, len(s.lines))
	for i := range s.lines {
		e := s.entry(i)
		all[e.key()] = e.ID
	}
	return all
}

// AssetOf is the id of the asset with a UUID, or "".
func (s *Sorted) AssetOf(uuid string) string { return s.assets()[uuid] }

func (s *Sorted) findAssets() map[string]string {
	all := make(map[string]string, len(s.lines))
	for i := range s.lines {
		e := s.entry(i)
		all[e.Identity()] = e.Asset
	}
	return all
}

// Text is the file. It must not be changed.
func (s *Sorted) Text() []byte { return s.data }

// Owner is an asset, with what its lines are to be.
type Owner struct {
	Asset, UUID string
	Products    []string // names; one may be there several times
	Keep        bool     // it is not known whether it has more: lines of others of its products stay
}

// Assign is what the function Assign makes of the file if nothing but these assets differs, and how many lines differ. It is false if that
// needs more than the order of the lines, or is an error.
func (s *Sorted) Assign(of []Owner) (*Sorted, int, bool) {
	own, used := newOwners(of), slices.Clone(s.used)
	var removed []int
	var added []Entry
	changes := 0
	for _, i := range own.lines(s) {
		o := own.find(s, i)
		if o == nil {
			continue
		}
		e := s.entry(i)
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
			used.remove(e.ID)
			changes++
			continue
		}
		o.products[e.Product] = true
	}
	fresh := own.fresh()
	next := uint32(0) // as in the function
	for _, n := range fresh {
		for used.has(next) {
			next++
		}
		if next >= Limit {
			return nil, 0, false
		}
		added = append(added, Entry{Name: n, ID: next})
		used.add(next)
	}
	if changes += len(fresh); changes == 0 {
		return s, 0, true
	}
	to, ok := s.edit(removed, added)
	if ok {
		to.used = used
	}
	return to, changes, ok
}

// edit is the file without some lines, and with others at their places. It is false if one of these has a quoted name, or the name of
// another line.
func (s *Sorted) edit(removed []int, added []Entry) (*Sorted, bool) {
	slices.SortFunc(added, func(a, b Entry) int { return compareProducts(a.Name, b.Name) })
	b := make([]byte, 0, len(s.text)+128*len(added))
	lines := make([]line, 0, len(s.lines)+len(added))
	copied := 0            // lines
	until := func(i int) { // copies the lines before a line
		from, to := len(s.text), len(s.text)
		if copied < len(s.lines) {
			from = int(s.lines[copied].start)
		}
		if i < len(s.lines) {
			to = int(s.lines[i].start)
		}
		for _, l := range s.lines[copied:i] {
			l.start += uint32(len(b) - from)
			lines = append(lines, l)
		}
		b = append(b, s.text[from:to]...)
		copied = i
	}
	stay := func(i int) { // the same, without those that are removed
		for len(removed) > 0 && removed[0] < i {
			until(removed[0])
			copied, removed = removed[0]+1, removed[1:]
		}
		until(i)
	}
	b = append(b, header+"\n"...)
	for i := range added {
		at, has := s.find(added[i].Name)
		stay(at)
		if has && (len(removed) == 0 || removed[0] != at) || i > 0 && compareProducts(added[i-1].Name, added[i].Name) == 0 {
			return nil, false
		}
		start := len(b)
		b = appendLine(b, &added[i])
		e, ok := readWritten(string(b[start : len(b)-1]))
		if !ok || !utf8.Valid(b[start:]) {
			return nil, false
		}
		lines = append(lines, lineAt(start, &e))
	}
	stay(len(s.lines))
	if len(b) > maxFile {
		return nil, false
	}
	to := newSorted(b)
	to.lines = lines
	return to, true
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

// lines are the numbers of lines, ascending, that may be theirs: those with their folded ids, which are found by the order of lines, and
// those of which the ids do not tell.
func (all *owners) lines(s *Sorted) (list []int) {
	for i := range s.lines {
		if l := &s.lines[i]; l.pinned || l.folds || all.pinned {
			list = append(list, i)
		}
	}
	for id := range all.byName {
		first, _ := s.find(Name{Asset: id})
		for i := first; i < len(s.lines) && s.entry(i).Asset == id; i++ {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (all *owners) find(s *Sorted, i int) *owner {
	l := &s.lines[i]
	if l.pinned || all.pinned {
		e := s.entry(i)
		return all.byUUID[e.Identity()]
	}
	return all.byName[asset.Fold(s.text[l.start:l.start+uint32(l.asset)])]
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
