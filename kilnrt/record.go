package kilnrt

import "fmt"

// Codec is the compression of stored content.
type Codec uint8

// The codecs.
const (
	None     Codec = iota // not compressed
	Zstd                  // one Zstandard frame
	ZstdDict              // one Zstandard frame with the parcel's dictionary
)

// Resource is a resource of a parcel. It is a value, valid as long as the parcel is open.
type Resource struct {
	ID       uint32
	SubID    uint32   // of the product within its asset; 0 for the main one
	UUID     [16]byte // of the asset
	Codec    Codec
	Align    int    // alignment of the stored bytes in the file
	CRC      uint32 // of the stored bytes
	Offset   int64  // of the stored bytes in the file
	Stored   int64  // number of bytes in the file
	Size     int64  // number of bytes of the content
	Hash     [32]byte
	Required int // number of resources that it requires
	Optional int // number of further resources that it would use

	p             *Parcel
	index         int
	typ           int
	name, nameLen uint32
	needs         uint32
}

// At returns the resource at an index from 0 to Len()-1. Resources are sorted by id.
func (p *Parcel) At(i int) (r Resource, err error) {
	if i < 0 || i >= p.h.Count {
		return r, fmt.Errorf("kilnrt: there is no resource %d of %d", i, p.h.Count)
	}
	b, err := p.record(i)
	if err == nil {
		r.read(p, i, b)
	}
	return r, err
}

// record returns a record, or an error if the record is not valid.
func (p *Parcel) record(i int) (*[RecordSize]byte, error) {
	page, err := p.page(i / PageSize)
	if err != nil {
		return nil, err
	}
	b := (*[RecordSize]byte)(page[i%PageSize*RecordSize:])
	if wrong := p.refuse(b); wrong != "" {
		return nil, fmt.Errorf("%w: %s is wrong in record %d", ErrDamaged, wrong, i)
	}
	return b, nil
}

// refuse returns the reason why a record is not valid, or "".
func (p *Parcel) refuse(b *[RecordSize]byte) string {
	offset, stored, size := le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])
	end, codec, align := uint64(p.h.End), Codec(b[26]), uint64(1)<<(b[27]&15)
	needs := uint64(le.Uint32(b[100:])) + uint64(le.Uint32(b[104:]))
	name := uint64(le.Uint32(b[60:]))
	switch {
	case le.Uint32(b[:]) == 1<<32-1:
		return "its id"
	case int(le.Uint16(b[24:])) >= len(p.types):
		return "its type"
	case codec > ZstdDict || codec == ZstdDict && len(p.sections[SectionDictionary]) == 0:
		return "its codec"
	case b[27] < 4 || b[27] > 12:
		return "its alignment"
	case stored > end || offset > end-stored || stored > 0 && (offset < DataStart || offset&(align-1) != 0):
		return "where it lies"
	case stored == 0 && (offset != 0 || size != 0 || le.Uint32(b[28:]) != 0 || codec != None):
		return "empty content"
	case codec == None && stored != size || codec != None && size > MaxCompressed:
		return "its size"
	case name > MaxName || uint64(le.Uint32(b[56:]))+name > uint64(len(p.sections[SectionTexts])):
		return "its name"
	case needs > MaxNeeds || uint64(le.Uint32(b[96:]))+needs > uint64(len(p.sections[SectionNeeds])/4):
		return "what it needs"
	}
	return ""
}

// read fills a resource in place, because copying its 200 bytes took half of the time of a look-up.
func (r *Resource) read(p *Parcel, i int, b *[RecordSize]byte) {
	r.ID, r.SubID, r.UUID = le.Uint32(b[:]), le.Uint32(b[4:]), [16]byte(b[8:24])
	r.Codec, r.Align, r.CRC = Codec(b[26]), 1<<(b[27]&15), le.Uint32(b[28:])
	r.Offset, r.Stored, r.Size = int64(le.Uint64(b[32:])), int64(le.Uint64(b[40:])), int64(le.Uint64(b[48:]))
	r.Hash = [32]byte(b[64:96])
	r.Required, r.Optional = int(le.Uint32(b[100:])), int(le.Uint32(b[104:]))
	r.p, r.index, r.typ = p, i, int(le.Uint16(b[24:]))
	r.name, r.nameLen, r.needs = le.Uint32(b[56:]), le.Uint32(b[60:]), le.Uint32(b[96:])
}

// Index returns its index in the parcel.
func (r *Resource) Index() int { return r.index }

// Parcel returns its parcel.
func (r *Resource) Parcel() *Parcel { return r.p }

// Type returns the product type, such as "texture".
func (r *Resource) Type() string { return r.p.types[r.typ] }

// Name returns its name; empty if it has none.
func (r *Resource) Name() string { return string(r.nameBytes()) }

func (r *Resource) nameBytes() []byte {
	return r.p.sections[SectionTexts][r.name : r.name+r.nameLen]
}

// Need returns the id of the i-th resource that it needs: the required ones first, in load order, then the optional ones. i is below
// Required + Optional.
func (r *Resource) Need(i int) uint32 {
	if i < 0 || i >= r.Required+r.Optional {
		panic("kilnrt: there is no such need")
	}
	return le.Uint32(r.p.sections[SectionNeeds][4*(int(r.needs)+i):])
}
