// Package ids assigns a number to each resource of a project: small, dense from 0, the same on every machine and
// platform, and stored in the committed text file kiln.ids. docs/formats/ids.md specifies the file.
//
// The rules:
//   - A resource is a product name of an asset, on all platforms: code and saved games refer to it
//     without knowing their platform, and one set of generated constants serves all platforms.
//   - A resource keeps its number as long as it exists. It is identified by the asset's UUID, so also after a rename
//     with a pinned id.
//   - New resources, in the order of their names, get the lowest free numbers.
//   - So the new file is a function of the old file and of the set of resources, and of nothing else.
//   - A file with contradictions, for example after a merge, is an error; Repair resolves them.
package ids

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
)

// FileName is the file's name in the project folder, ReleasedName that of the copy made for a release.
const (
	FileName     = "kiln.ids"
	ReleasedName = "kiln.ids.released"
)

// Limit is one more than the highest number: readers have a table of all numbers, and 2^24 entries of 4 bytes are 64
// MiB.
const Limit = 1 << 24

// Name identifies a resource.
type Name struct {
	Asset   string // id of the asset
	UUID    string // of the asset, in lower case; "" is the UUID derived from the id
	Product string // name of the product; "" is the main one
}

// Identity is the asset's UUID, pinned or derived from the id.
func (n Name) Identity() string {
	if n.UUID != "" {
		return n.UUID
	}
	return asset.UUID(n.Asset)
}

// key is equal for names of the same resource.
type key struct{ uuid, product string }

func (n Name) key() key { return key{n.Identity(), n.Product} }

// String is the name for display: the asset, and the product if it is not the main one.
func (n Name) String() string {
	if n.Product == "" {
		return n.Asset
	}
	return n.Asset + " " + strconv.Quote(n.Product)
}

func compareNames(a, b Name) int {
	c := cmp.Or(strings.Compare(a.Asset, b.Asset), strings.Compare(a.Product, b.Product))
	if c == 0 {
		c = strings.Compare(a.Identity(), b.Identity()) // two hashes, which cmp.Or would compute in every comparison
	}
	return c
}

// Entry is a line of the file.
type Entry struct {
	Name
	ID   uint32
	Line int // in the parsed file, from 1; 0: the entry is new

	identity string // result of Identity; "": not computed yet
}

// Identity is the asset's UUID, like that of Name.
func (e *Entry) Identity() string {
	if e.identity == "" {
		e.identity = e.Name.Identity()
	}
	return e.identity
}

func (e *Entry) key() key { return key{e.Identity(), e.Product} }

// File is the content of a kiln.ids.
type File struct {
	Entries []Entry // sorted by name after Assign or Repair; in the order of the file after Parse
}

// What is how an entry differs from the earlier file.
type What string

const (
	Added   What = "added"   // a new resource
	Removed What = "removed" // it was removed, and its number is free
	Renamed What = "renamed" // the asset has another id and the same UUID
	Moved   What = "moved"   // it has another number: only Repair does that
)

// Change is one difference that Assign or Repair made.
type Change struct {
	What What
	Name Name
	ID   uint32
	Old  string // Renamed: the former name
	From uint32 // Moved: the former number
}

// Assign gives each of the products its number in the file, or the lowest free one. keep reports of an asset, by UUID,
// that its products are not known because it failed: its entries are kept; nil: there is none. Products may occur
// several times, for several platforms. The file is not changed; it must have no Conflicts. The error means too many
// resources.
func Assign(f *File, products []Name, keep func(uuid string) bool) (*File, []Change, error) {
	want := make(map[key]Name, len(products))
	for _, n := range products {
		want[n.key()] = n
	}
	used := make([]bool, len(f.Entries)+len(want))
	out := &File{Entries: make([]Entry, 0, len(want))}
	var changes []Change
	for _, e := range f.Entries {
		now, ok := want[e.key()]
		switch {
		case !ok && (keep == nil || !keep(e.Identity())):
			changes = append(changes, Change{What: Removed, Name: e.Name, ID: e.ID})
			continue
		case ok && now.Asset != e.Asset:
			changes = append(changes, Change{What: Renamed, Name: now, ID: e.ID, Old: e.Asset})
		}
		if ok {
			e.Name = now
			delete(want, e.key())
		}
		if int(e.ID) < len(used) {
			used[e.ID] = true
		}
		out.Entries = append(out.Entries, e)
	}
	fresh := make([]Name, 0, len(want))
	for _, n := range want {
		fresh = append(fresh, n)
	}
	slices.SortFunc(fresh, compareNames)
	next := 0 // never beyond used: of its numbers at least len(fresh) are free
	for _, n := range fresh {
		for used[next] {
			next++
		}
		if next >= Limit {
			return nil, nil, errFull
		}
		out.Entries = append(out.Entries, Entry{Name: n, ID: uint32(next)})
		changes = append(changes, Change{What: Added, Name: n, ID: uint32(next)})
		next++
	}
	out.sort()
	sortChanges(changes)
	return out, changes, nil
}

func (f *File) sort() {
	slices.SortFunc(f.Entries, func(a, b Entry) int { return cmp.Or(compareNames(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
}

func sortChanges(c []Change) {
	slices.SortFunc(c, func(a, b Change) int {
		return cmp.Or(compareNames(a.Name, b.Name), cmp.Compare(a.ID, b.ID), strings.Compare(string(a.What), string(b.What)))
	})
}

// Conflict is two contradicting entries of a file.
type Conflict struct {
	First, Second Entry // in the order of the file
	SameID        bool  // two resources have one number; otherwise one resource has two lines
}

// Conflicts finds contradictions, for example after a merge: numbers and resources that occur twice, in the order of
// the file.
func (f *File) Conflicts() []Conflict {
	if f.clear() {
		return nil
	}
	return f.conflicts()
}

func (f *File) conflicts() []Conflict {
	numbers := make(map[uint32]Entry, len(f.Entries))
	names := make(map[key]Entry, len(f.Entries))
	var found []Conflict
	for _, e := range f.Entries {
		if first, ok := names[e.key()]; ok {
			found = append(found, Conflict{first, e, false})
		} else if first, ok := numbers[e.ID]; ok {
			found = append(found, Conflict{first, e, true})
		}
		if _, ok := numbers[e.ID]; !ok {
			numbers[e.ID] = e
		}
		if _, ok := names[e.key()]; !ok {
			names[e.key()] = e
		}
	}
	return found
}

// clear reports that all resources and numbers are different, if that can be seen without a table of all names: lines
// are in the order of names, and no asset has a pinned UUID, so different names are different resources.
func (f *File) clear() bool {
	var numbers []uint64 // one bit each
	for i := range f.Entries {
		e := &f.Entries[i]
		if e.UUID != "" {
			return false
		}
		if i > 0 {
			was := &f.Entries[i-1]
			if c := strings.Compare(was.Asset, e.Asset); c > 0 || c == 0 && was.Product >= e.Product {
				return false
			}
		}
		if e.ID >= Limit {
			return false
		}
		word, bit := int(e.ID/64), uint64(1)<<(e.ID%64)
		if word >= len(numbers) {
			numbers = append(numbers, make([]uint64, word+1+len(f.Entries)/64-len(numbers))...)
		}
		if numbers[word]&bit != 0 {
			return false
		}
		numbers[word] |= bit
	}
	return true
}

// Repair makes numbers and resources unique. Entries of released have precedence, because games already use them. Then
// the order of names decides, and of two numbers of one resource the lower one wins. A resource that loses its only
// number gets the lowest free one, in the order of names. The file is not changed; released may be nil.
func Repair(f, released *File) (*File, []Change, error) {
	known := map[Entry]bool{}
	if released != nil {
		for _, e := range released.Entries {
			known[bare(e)] = true
		}
	}
	entries := slices.Clone(f.Entries)
	slices.SortStableFunc(entries, func(a, b Entry) int {
		if x, y := known[bare(a)], known[bare(b)]; x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Or(compareNames(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	out, lost := &File{}, []Entry{}
	numbers, names := map[uint32]bool{}, map[key]bool{}
	for _, e := range entries {
		if numbers[e.ID] || names[e.key()] {
			lost = append(lost, e)
			continue
		}
		numbers[e.ID], names[e.key()] = true, true
		out.Entries = append(out.Entries, e)
	}
	all := make([]Name, len(f.Entries))
	for i, e := range f.Entries {
		all[i] = e.Name
	}
	for _, e := range out.Entries {
		all = append(all, e.Name) // of two names of one resource, that of the remaining line
	}
	out, _, err := Assign(out, all, nil)
	if err != nil {
		return nil, nil, err
	}
	return out, moves(out, lost), nil
}

// bare is the entry without its line and the name of its asset.
func bare(e Entry) Entry { return Entry{Name: Name{UUID: e.Identity(), Product: e.Product}, ID: e.ID} }

// moves returns the new numbers of resources whose lines were removed.
func moves(f *File, lost []Entry) []Change {
	now := make(map[key]Entry, len(f.Entries))
	for _, e := range f.Entries {
		now[e.key()] = e
	}
	var changes []Change
	for _, e := range lost {
		if n := now[e.key()]; n.ID != e.ID {
			changes = append(changes, Change{What: Moved, Name: n.Name, ID: n.ID, From: e.ID})
		}
	}
	sortChanges(changes)
	return slices.Compact(changes)
}
