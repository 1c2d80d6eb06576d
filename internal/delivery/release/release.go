// Package release has the contents of a release: a text file, small compared to the parcels, that a team commits with
// each release, and the changes since. docs/formats/release.md specifies the file.
//
// The rules:
//   - A manifest depends only on the parcels, and is the same for parcels with the same contents in another order.
//   - A resource is identified by its asset's UUID and its sub id; so a rename is not a removal.
//   - It gives the maximum size of a patch, not its size, which is known when the patch is made from both parcels.
package release

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Manifest is a release.
type Manifest struct {
	Name    string   // "1.2"; may be empty
	Parcels []Parcel // by platform and name
}

// Parcel is a parcel of a release.
type Parcel struct {
	Platform, Name string
	Size           int64    // of the file, bytes
	Digest         [32]byte // of its contents
	Resources      []Resource
}

// Resource is a resource in a parcel.
type Resource struct {
	Name   string
	UUID   [16]byte
	SubID  uint32
	Size   int64 // of the content, bytes
	Stored int64 // size in the file
	Hash   Hash
}

// Hash is the first half of a content's BLAKE3: the probability that two of 2^24 contents have the same is
// 2^-81.
type Hash [16]byte

// ReadParcel returns the contents of a parcel's file.
func ReadParcel(platform, name, file string) (Parcel, error) {
	p, err := kilnrt.Open(file)
	if err != nil {
		return Parcel{}, err
	}
	defer p.Close()
	x := Parcel{Platform: platform, Name: name, Size: p.Header().End - p.Header().Waste, Digest: p.Digest(), Resources: make([]Resource, p.Len())}
	for i := range x.Resources {
		r, err := p.At(i)
		if err != nil {
			return Parcel{}, err
		}
		x.Resources[i] = Resource{Name: r.Name(), UUID: r.UUID, SubID: r.SubID, Size: r.Size, Stored: r.Stored, Hash: Hash(r.Hash[:])}
	}
	x.sort()
	return x, nil
}

// sort sorts resources by name.
func (x *Parcel) sort() {
	slices.SortFunc(x.Resources, func(a, b Resource) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), slices.Compare(a.UUID[:], b.UUID[:]), cmp.Compare(a.SubID, b.SubID))
	})
}

// Sort sorts the parcels.
func (m *Manifest) Sort() { slices.SortFunc(m.Parcels, compareParcels) }

func compareParcels(a, b Parcel) int {
	return cmp.Or(strings.Compare(a.Platform, b.Platform), strings.Compare(a.Name, b.Name))
}

// Only removes the parcels of other platforms than these; if there are none, all stay.
func (m *Manifest) Only(platforms []string) {
	if len(platforms) > 0 {
		m.Parcels = slices.DeleteFunc(m.Parcels, func(x Parcel) bool { return !slices.Contains(platforms, x.Platform) })
	}
}

// usualUUID reports whether a UUID is the one derived from the asset's id, the beginning of a resource's name.
func usualUUID(name string, id [16]byte) bool { return identity(name) == id }

func identity(name string) [16]byte {
	if at := strings.LastIndexByte(name, '#'); at > 0 {
		name = name[:at]
	}
	u, _ := uuid.Parse(asset.UUID(name)) // made by Kiln, so it is valid
	return u
}

// The change of a resource or a parcel.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed" // its content; the name may have changed too
	Renamed = "renamed" // only its name
)

// Change is a resource that has changed since an older release.
type Change struct {
	Change           string
	Platform, Parcel string
	Name, OldName    string // OldName: "" if it is unchanged, or there was none
	OldSize, NewSize int64  // of the content, bytes
	Patch            int64  // its maximum size in a patch, bytes
}

// Difference is the changes of a parcel.
type Difference struct {
	Platform, Parcel string
	Change           string // Added, Removed or Changed; "": none
	OldSize, NewSize int64  // bytes of the file, without unused ones
	// Patch is the maximum size of a patch, in bytes: contents that the older parcel does not have, and the index. For
	// a new parcel it is its size.
	Patch   int64
	Changes []Change // by name
}

// Since returns what has changed in a newer release: a difference for each parcel of either, by platform and
// name.
func Since(older, newer *Manifest) []Difference {
	var list []Difference
	was, now := slices.Clone(older.Parcels), slices.Clone(newer.Parcels)
	slices.SortFunc(was, compareParcels)
	slices.SortFunc(now, compareParcels)
	for len(was) > 0 || len(now) > 0 {
		switch c := order(was, now); {
		case c < 0:
			list = append(list, difference(was[0], Parcel{Platform: was[0].Platform, Name: was[0].Name}, Removed))
			was = was[1:]
		case c > 0:
			list = append(list, difference(Parcel{}, now[0], Added))
			now = now[1:]
		default:
			change := Changed
			if was[0].Digest == now[0].Digest {
				change = ""
			}
			list = append(list, difference(was[0], now[0], change))
			was, now = was[1:], now[1:]
		}
	}
	return list
}

// order reports which of two lists has the next parcel: negative for the first.
func order(a, b []Parcel) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return compareParcels(a[0], b[0])
}

// key identifies a resource.
type key struct {
	uuid [16]byte
	sub  uint32
}

// stored identifies bytes in a parcel: the same content with other compression has other bytes.
type stored struct {
	hash Hash
	size int64
}

func difference(was, now Parcel, change string) Difference {
	d := Difference{Platform: now.Platform, Parcel: now.Name, Change: change, OldSize: was.Size, NewSize: now.Size}
	if change == "" {
		return d
	}
	before, has := make(map[key]*Resource, len(was.Resources)), make(map[stored]bool, len(was.Resources))
	for i := range was.Resources {
		r := &was.Resources[i]
		before[key{r.UUID, r.SubID}] = r
		has[stored{r.Hash, r.Stored}] = true
	}
	payload := map[stored]bool{}
	d.Patch = now.Size
	for i := range now.Resources {
		r := &now.Resources[i]
		c := Change{Change: Added, Platform: now.Platform, Parcel: now.Name, Name: r.Name, NewSize: r.Size}
		bytes := stored{r.Hash, r.Stored}
		switch {
		case has[bytes] && !payload[bytes]: // a patch copies it
			d.Patch -= r.Stored
		case !payload[bytes]:
			c.Patch = r.Stored
		}
		payload[bytes] = true
		if old := before[key{r.UUID, r.SubID}]; old != nil {
			delete(before, key{r.UUID, r.SubID})
			c.OldSize = old.Size
			if old.Name != r.Name {
				c.Change, c.OldName = Renamed, old.Name
			} else {
				c.Change = ""
			}
			if old.Hash != r.Hash {
				c.Change = Changed
			}
		}
		if c.Change != "" {
			d.Changes = append(d.Changes, c)
		}
	}
	for _, r := range before {
		d.Changes = append(d.Changes, Change{Change: Removed, Platform: now.Platform, Parcel: now.Name, Name: r.Name, OldSize: r.Size})
	}
	if change == Removed {
		d.Patch = 0
	}
	d.Patch = max(d.Patch, 0)
	slices.SortFunc(d.Changes, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Change, b.Change))
	})
	return d
}

// Total is the sum of the changes of all parcels.
type Total struct {
	Parcels                          int // number of changed ones
	Added, Removed, Changed, Renamed int // resources, once for each parcel
	Patch                            int64
}

// Sum adds up.
func Sum(list []Difference) Total {
	var t Total
	for i := range list {
		if list[i].Change != "" {
			t.Parcels++
		}
		t.Patch += list[i].Patch
		for _, c := range list[i].Changes {
			switch c.Change {
			case Added:
				t.Added++
			case Removed:
				t.Removed++
			case Changed:
				t.Changed++
			case Renamed:
				t.Renamed++
			}
		}
	}
	return t
}
