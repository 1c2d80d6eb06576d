package kilnrt

import "fmt"

// Codec says how content is stored.
type Codec uint8

// The codecs.
const (
	None     Codec = iota // as it is
	Zstd                  // one Zstandard frame
	ZstdDict              // one Zstandard frame with the parcel's dictionary
)

// Resource is one thing in a parcel. It is a value, valid as long as the parcel is open.
type Resource struct {
	ID       uint32
	SubID    uint32   // of the product within its asset; 0: the main one
	UUID     [16]byte // of the asset
	Codec    Codec
	Align    int    // the stored bytes begin at a multiple of it in the file
	CRC      uint32 // of the stored bytes
	Offset   int64  // of the stored bytes in the file
	Stored   int64  // bytes in the file
	Size     int64  // bytes of the content
	Hash     [32]byte
	Required int // how many resources it needs
	Optional int // how many more it would use

	p             *Parcel
	index         int
	typ           int
	name, nameLen uint32
	needs         uint32
}

// At gives the resource at an index from 0 to Len()-1; they are sorted by id.
func (p *Parcel) At(i int) (Resource, error) {
	if i < 0 || i >= p.h.Count {
		return Resource{}, fmt.Errorf("kilnrt: there is no resource %d of %d", i, p.h.Count)
	}
	b, err := p.record(i)
	if err != nil {
		return Resource{}, err
	}
	return p.parse(i, b)
}

// record gives the RecordSize bytes of a record.
func (p *Parcel) record(i int) ([]byte, error) {
	page, err := p.page(i / PageSize)
	if err != nil {
		return nil, err
	}
	at := i % PageSize * RecordSize
	return page[at : at+RecordSize], nil
}

// parse reads a record and refuses it as the format says.
func (p *Parcel) parse(i int, b []byte) (Resource, error) {
	offset, stored, size := le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])
	r := Resource{
		ID: le.Uint32(b), SubID: le.Uint32(b[4:]), UUID: [16]byte(b[8:24]), Codec: Codec(b[26]), Align: 1 << (b[27] & 15), CRC: le.Uint32(b[28:]),
		Offset: int64(offset), Stored: int64(stored), Size: int64(size), Hash: [32]byte(b[64:96]),
		Required: int(le.Uint32(b[100:])), Optional: int(le.Uint32(b[104:])),
		p: p, index: i, typ: int(le.Uint16(b[24:])), name: le.Uint32(b[56:]), nameLen: le.Uint32(b[60:]), needs: le.Uint32(b[96:]),
	}
	end := uint64(p.h.End)
	needs := uint64(le.Uint32(b[100:])) + uint64(le.Uint32(b[104:]))
	var wrong string
	switch {
	case r.ID == 1<<32-1:
		wrong = "its id"
	case r.typ >= len(p.types):
		wrong = "its type"
	case r.Codec > ZstdDict || r.Codec == ZstdDict && len(p.sections[SectionDictionary]) == 0:
		wrong = "its codec"
	case b[27] < 4 || b[27] > 12:
		wrong = "its alignment"
	case stored > end || offset > end-stored || stored > 0 && (offset < DataStart || offset%uint64(r.Align) != 0):
		wrong = "where it lies"
	case stored == 0 && (offset != 0 || size != 0 || r.CRC != 0 || r.Codec != None):
		wrong = "empty content"
	case r.Codec == None && stored != size || r.Codec != None && size > MaxCompressed:
		wrong = "its size"
	case r.nameLen > MaxName || uint64(r.name)+uint64(r.nameLen) > uint64(len(p.sections[SectionTexts])):
		wrong = "its name"
	case needs > MaxNeeds || uint64(r.needs)+needs > uint64(len(p.sections[SectionNeeds])/4):
		wrong = "what it needs"
	default:
		return r, nil
	}
	return Resource{}, fmt.Errorf("%w: %s is wrong in record %d", ErrDamaged, wrong, i)
}

// Index is its place in the parcel.
func (r *Resource) Index() int { return r.index }

// Parcel is where it is.
func (r *Resource) Parcel() *Parcel { return r.p }

// Type is the product type, as "texture".
func (r *Resource) Type() string { return r.p.types[r.typ] }

// Name is its name; empty if it has none.
func (r *Resource) Name() string { return string(r.nameBytes()) }

func (r *Resource) nameBytes() []byte {
	return r.p.sections[SectionTexts][r.name : r.name+r.nameLen]
}

// Need is the id of the i-th resource that it needs: the required ones first, in the order in which to load them, then the
// optional ones. i is below Required + Optional.
func (r *Resource) Need(i int) uint32 {
	if i < 0 || i >= r.Required+r.Optional {
		panic("kilnrt: there is no such need")
	}
	return le.Uint32(r.p.sections[SectionNeeds][4*(int(r.needs)+i):])
}
