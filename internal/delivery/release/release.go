// Package release is what a release held: a text file, small beside the parcels, that a team commits with each release, and what is other
// since. docs/formats/release.md specifies the file.
//
// The rules:
//   - A manifest is a function of the parcels alone, and the same for parcels that hold the same in another order.
//   - A resource is the same one as long as its asset's UUID and its sub id are; so a rename is no removal.
//   - It tells how large a patch is at most, never how large it is: that is known when the patch is made, of both parcels.
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

// Parcel is one of its parcels.
type Parcel struct {
	Platform, Name string
	Size           int64    // of the file, bytes
	Digest         [32]byte // of what it holds
	Resources      []Resource
}

// Resource is one in a parcel.
type Resource struct {
	Name   string
	UUID   [16]byte
	SubID  uint32
	Size   int64 // of the content, bytes
	Stored int64 // in the file
	Hash   Hash
}

// Hash is the first half of a content's BLAKE3: of 2^24 contents two have the same with a probability of 2^-81.
type Hash [16]byte

// ReadParcel takes down what a parcel's file holds.
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

// sort puts resources in the order of their names.
func (x *Parcel) sort() {
	slices.SortFunc(x.Resources, func(a, b Resource) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), slices.Compare(a.UUID[:], b.UUID[:]), cmp.Compare(a.SubID, b.SubID))
	})
}

// Sort puts parcels in their order.
func (m *Manifest) Sort() { slices.SortFunc(m.Parcels, compareParcels) }

func compareParcels(a, b Parcel) int {
	return cmp.Or(strings.Compare(a.Platform, b.Platform), strings.Compare(a.Name, b.Name))
}

// Only leaves out the parcels of other platforms than these; all stay if there are none.
func (m *Manifest) Only(platforms []string) {
	if len(platforms) > 0 {
		m.Parcels = slices.DeleteFunc(m.Parcels, func(x Parcel) bool { return !slices.Contains(platforms, x.Platform) })
	}
}

// usualUUID tells whether a UUID is the one that follows from the asset's id, which a resource's name begins with.
func usualUUID(name string, id [16]byte) bool { return identity(name) == id }

func identity(name string) [16]byte {
	if at := strings.LastIndexByte(name, '#'); at > 0 {
		name = name[:at]
	}
	u, _ := uuid.Parse(asset.UUID(name)) // of our own making
	return u
}

// What became of a resource or a parcel.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed" // in content; the name may be another as well
	Renamed = "renamed" // in name alone
)

// Change is a resource that is other than in an older release.
type Change struct {
	Change           string
	Platform, Parcel string
	Name, OldName    string // OldName: "" if it is the same, or there was none
	OldSize, NewSize int64  // of the content, bytes
	Patch            int64  // what a patch has of it at most, bytes
}

// Difference is what is other about a parcel.
type Difference struct {
	Platform, Parcel string
	Change           string // Added, Removed or Changed; "": nothing
	OldSize, NewSize int64  // bytes of the file, without what is not used any more
	// Patch is how many bytes a patch has at most: contents that the older parcel has not, and the index. Of a new parcel it is the whole of
	// it.
	Patch   int64
	Changes []Change // by name
}

// Since tells what is other in a newer release: a difference for each parcel of either, by platform and name.
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

// order tells which of two lists goes on first: negative for the first.
func order(a, b []Parcel) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return compareParcels(a[0], b[0])
}

// key is what makes a resource the same one.
type key struct {
	uuid [16]byte
	sub  uint32
}

// stored is bytes in a parcel: content compressed in another way is others.
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

// Total is what is other in all parcels together.
type Total struct {
	Parcels                          int // that are other
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
