// Package parcel writes parcels, changes them in place, and makes and applies patches between them. docs/formats/parcel.md is
// the format, package kilnrt reads it.
//
// The rules of the package:
//
//   - The output depends only on the resources: not on their order in the call, on workers, or, once it is compacted,
//     on the earlier parcel.
//   - A kill at any moment leaves the old parcel or the new one.
//   - It knows no project: resources are plain values.
package parcel

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Resource is a resource to be put into a parcel.
type Resource struct {
	ID       uint32
	UUID     [16]byte // of the asset
	SubID    uint32   // of the product within its asset
	Name     string   // may be empty
	Type     string
	Required []uint32 // resource ids, in load order; they need not be in this parcel
	Optional []uint32

	Open func() (io.ReadCloser, error) // returns its content from the beginning
	Size int64
	Hash digest.Hash // of the content, which is checked

	Align    int  // of the content in the file: a power of two from 16 to 4096; 0: 16
	Compress bool // with Zstandard. Contents of more than 256 MiB, and empty ones, are stored uncompressed
}

// Options are the options for writing a parcel.
type Options struct {
	Dictionary []byte // of Zstandard; nil: none
	Workers    int    // how many goroutines read, hash and compress; 0: one

	// First are the ids of resources whose contents come first, in that order, each after what it requires; ids that
	// the parcel does not have are ignored. Order identifies the source of First: a parcel with another one is
	// rewritten completely. Zero: contents are in the order of ids.
	First []uint32
	Order digest.Hash

	// Sign returns a minisign signature of the digest, like Key.Sign. The same digest must return the same text, or
	// every Update writes. If Sign is nil, there is no signature, but Update keeps an existing one if the digest is
	// unchanged.
	Sign func(digest [32]byte) ([]byte, error)
}

// ErrResource is wrapped by all errors about invalid resources.
var ErrResource = errors.New("parcel")

// item is a resource being written.
type item struct {
	Resource
	codec  kilnrt.Codec
	stored *kilnrt.Resource // where its bytes exist already, to be copied; nil: nowhere
	at     blob
}

// blob is the position of stored bytes.
type blob struct {
	offset, size int64
	crc          uint32
}

// blobKey is equal for contents that are stored once.
type blobKey struct {
	hash  digest.Hash
	codec kilnrt.Codec
}

func (it *item) key() blobKey { return blobKey{it.Hash, it.codec} }

// contents are the resources of a parcel to be written, sorted by id, with the tables to find them.
type contents struct {
	items []item
	tables
}

// prepare checks resources and sorts them by id.
func prepare(rs []Resource, o Options) (*contents, error) {
	if len(rs) > kilnrt.MaxResources {
		return nil, fmt.Errorf("%w: %d resources are more than %d", ErrResource, len(rs), kilnrt.MaxResources)
	}
	if len(o.Dictionary) > kilnrt.MaxDictionary {
		return nil, fmt.Errorf("%w: the dictionary has %d bytes, more than %d", ErrResource, len(o.Dictionary), kilnrt.MaxDictionary)
	}
	items := make([]item, len(rs))
	sorted := true
	for i := range rs {
		r := &rs[i]
		if err := check(r); err != nil {
			return nil, err
		}
		it := &items[i]
		it.Resource, it.codec = *r, codecOf(r, o)
		if r.Align == 0 || it.codec != kilnrt.None {
			it.Align = 16 // compressed bytes cannot be used in place
		}
		sorted = sorted && (i == 0 || rs[i-1].ID < r.ID)
	}
	if !sorted {
		slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.ID, b.ID) })
	}
	t, err := makeTables(items, bitsFor(len(items)))
	return &contents{items, t}, err
}

func codecOf(r *Resource, o Options) kilnrt.Codec {
	switch {
	case !r.Compress || r.Size == 0 || r.Size > kilnrt.MaxCompressed:
		return kilnrt.None
	case len(o.Dictionary) > 0:
		return kilnrt.ZstdDict
	}
	return kilnrt.Zstd
}

// Label is the name of a resource in messages.
func (r *Resource) Label() string {
	if r.Name != "" {
		return r.Name
	}
	return fmt.Sprintf("resource %d", r.ID)
}

func check(r *Resource) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrResource, r.Label(), fmt.Sprintf(format, args...))
	}
	switch {
	case r.ID == 1<<32-1:
		return wrong("its id is reserved")
	case len(r.Type) == 0 || len(r.Type) > 255:
		return wrong("its type %q has %d bytes, not 1 to 255", r.Type, len(r.Type))
	case len(r.Name) > kilnrt.MaxName || !utf8.ValidString(r.Name) || strings.IndexByte(r.Name, 0) >= 0:
		return wrong("its name %q is too long or no text", r.Name)
	case len(r.Required)+len(r.Optional) > kilnrt.MaxNeeds:
		return wrong("it needs %d others, more than %d", len(r.Required)+len(r.Optional), kilnrt.MaxNeeds)
	case r.Align != 0 && (r.Align < 16 || r.Align > 4096 || r.Align&(r.Align-1) != 0):
		return wrong("its alignment %d is not a power of two from 16 to 4096", r.Align)
	case r.Size < 0:
		return wrong("it has %d bytes", r.Size)
	}
	return nil
}

// loadOrder returns the indexes of items so that each comes after what it requires: those with the ids of first, then
// all others. items are sorted by id. A cycle is an error that shows it.
func loadOrder(items []item, first []uint32) ([]int, error) {
	const (
		fresh = iota
		open
		done
	)
	state := make([]uint8, len(items))
	order := make([]int, 0, len(items))
	var chain []string
	var visit func(i int) error
	visit = func(i int) error {
		chain = append(chain, items[i].Label())
		if state[i] == open {
			return fmt.Errorf("%w: resources require each other in a circle: %s", ErrResource, strings.Join(chain, " -> "))
		}
		if len(chain) > kilnrt.MaxChain {
			return fmt.Errorf("%w: more than %d resources require each other one after the other, from %s on", ErrResource, kilnrt.MaxChain, chain[0])
		}
		state[i] = open
		for _, id := range items[i].Required {
			if k, ok := find(items, id); ok && state[k] != done {
				if err := visit(k); err != nil {
					return err
				}
			}
		}
		state[i] = done
		order = append(order, i)
		chain = chain[:len(chain)-1]
		return nil
	}
	from := make([]int, 0, len(first)+len(items))
	for _, id := range first {
		if k, ok := find(items, id); ok {
			from = append(from, k)
		}
	}
	for i := range items {
		from = append(from, i)
	}
	for _, i := range from {
		if state[i] == fresh {
			if err := visit(i); err != nil {
				return nil, err
			}
		}
	}
	return order, nil
}

func find(items []item, id uint32) (int, bool) {
	return slices.BinarySearchFunc(items, id, func(it item, id uint32) int { return cmp.Compare(it.ID, id) })
}

// Stored is what an open parcel holds.
type Stored struct {
	p     *kilnrt.Parcel
	items []item
}

// Read reads the index of a parcel. The result is valid while the parcel is open.
func Read(p *kilnrt.Parcel) (*Stored, error) {
	items, err := itemsOf(p)
	return &Stored{p, items}, err
}

// Resources returns those of a parcel, to write them again, and the options except First.
func (s *Stored) Resources() ([]Resource, Options) {
	rs := make([]Resource, len(s.items))
	for i := range s.items {
		rs[i] = s.items[i].Resource
	}
	return rs, Options{Dictionary: bytes.Clone(s.p.Dictionary()), Order: s.p.Header().Order}
}

// itemsOf reads the index of a parcel.
func itemsOf(p *kilnrt.Parcel) ([]item, error) {
	items := make([]item, p.Len())
	found := make([]kilnrt.Resource, p.Len())
	for i := range items {
		r, err := p.At(i)
		if err != nil {
			return nil, err
		}
		found[i] = r
		from := &found[i]
		needs := make([]uint32, r.Required+r.Optional)
		for k := range needs {
			needs[k] = r.Need(k)
		}
		items[i] = item{
			Resource: Resource{
				ID: r.ID, UUID: r.UUID, SubID: r.SubID, Name: r.Name(), Type: r.Type(), Required: needs[:r.Required:r.Required], Optional: needs[r.Required:],
				Open: func() (io.ReadCloser, error) { return from.Reader() }, Size: r.Size, Hash: r.Hash, Align: r.Align, Compress: r.Codec != kilnrt.None,
			},
			codec: r.Codec, stored: from, at: blob{r.Offset, r.Stored, r.CRC},
		}
	}
	return items, nil
}
