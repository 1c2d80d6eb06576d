package live

import (
	"cmp"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/processor"
)

// numbers assigns numbers to resources: those in kiln.ids, and for others those that Kiln would assign. A number is
// never used for two resources, so a game that reconnects cannot mistake one for another.
type numbers struct {
	of   map[Key]uint32
	used map[uint32]bool
	next uint32 // all lower numbers are used
}

// newNumbers numbers resources by a kiln.ids. With whole, these are all resources: the numbers of others in the file
// are free.
func newNumbers(f *ids.File, names []ids.Name, whole bool) (*numbers, error) {
	f, _, err := ids.Assign(f, names, func(string) bool { return !whole })
	if err != nil {
		return nil, err
	}
	n := &numbers{of: make(map[Key]uint32, len(f.Entries)), used: make(map[uint32]bool, len(f.Entries))}
	for _, e := range f.Entries {
		n.of[keyOf(e.Name)] = e.ID
		n.used[e.ID] = true
	}
	return n, nil
}

// add numbers new resources, in the order of their names.
func (n *numbers) add(names []ids.Name) {
	slices.SortFunc(names, func(a, b ids.Name) int {
		return cmp.Or(cmp.Compare(a.Asset, b.Asset), cmp.Compare(a.Product, b.Product))
	})
	for _, name := range names {
		k := keyOf(name)
		if _, ok := n.of[k]; ok {
			continue
		}
		for n.used[n.next] {
			n.next++
		}
		n.of[k], n.used[n.next] = n.next, true
	}
}

// agrees reports whether a kiln.ids has the same numbers for the numbered resources, and does not use them for others.
func (n *numbers) agrees(f *ids.File) bool {
	for _, e := range f.Entries {
		id, known := n.of[keyOf(e.Name)]
		if known && id != e.ID || !known && n.used[e.ID] {
			return false
		}
	}
	return true
}

func keyOf(n ids.Name) Key {
	return Key{UUID: n.Identity(), Sub: processor.SubID(n.Product)}
}

func (n *numbers) has(k Key) bool {
	_, ok := n.of[k]
	return ok
}
