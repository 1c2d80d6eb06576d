package parcel

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

var le = binary.LittleEndian

// index is a parcel's index without its position.
type index struct {
	records  []byte
	bits     int
	types    int
	sections [kilnrt.Sections][]byte // without the directory
	digest   digest.Hash
}

// index builds the index, when the places of all items are known.
func (c *contents) index(dictionary []byte) (*index, error) {
	items := c.items
	x := &index{records: make([]byte, len(items)*kilnrt.RecordSize), bits: c.bits}
	types := typesOf(items)
	if x.types = len(types); x.types > kilnrt.MaxTypes {
		return nil, fmt.Errorf("%w: %d types are more than %d", ErrResource, x.types, kilnrt.MaxTypes)
	}
	number := make(map[string]int, len(types))
	sizeOfNames, sizeOfNeeds := 0, 0
	for i := range items {
		sizeOfNames += len(items[i].Name)
		sizeOfNeeds += 4 * (len(items[i].Required) + len(items[i].Optional))
	}
	names, needs, typeText := make([]byte, 0, sizeOfNames), make([]byte, 0, sizeOfNeeds), []byte(nil)
	for i, t := range types {
		number[t] = i
		typeText = append(le.AppendUint16(typeText, uint16(len(t))), t...)
	}
	var wg sync.WaitGroup
	wg.Go(func() { x.digest = digestOf(items) })
	for i := range items {
		it := &items[i]
		putRecord(x.records[i*kilnrt.RecordSize:], it, number[it.Type], len(names), len(needs)/4)
		names = append(names, it.Name...)
		needs = appendNeeds(needs, it)
	}
	wg.Wait()
	if uint64(len(names)) >= 1<<32 || uint64(len(needs)) >= 1<<32 {
		return nil, fmt.Errorf("%w: the names or the needs of all resources are more than 4 GiB", ErrResource)
	}
	x.sections = [kilnrt.Sections][]byte{
		kilnrt.SectionIDs: c.ids, kilnrt.SectionUUIDs: c.uuids, kilnrt.SectionNames: c.names,
		kilnrt.SectionTypes: typeText, kilnrt.SectionTexts: names, kilnrt.SectionNeeds: needs, kilnrt.SectionDictionary: dictionary,
	}
	return x, nil
}

func typesOf(items []item) []string {
	seen := map[string]bool{}
	var types []string
	for i := range items {
		if t := items[i].Type; !seen[t] {
			seen[t] = true
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return types
}

func appendNeeds(b []byte, it *item) []byte {
	for _, id := range it.Required {
		b = le.AppendUint32(b, id)
	}
	for _, id := range it.Optional {
		b = le.AppendUint32(b, id)
	}
	return b
}

func putRecord(b []byte, it *item, typ, name, needs int) {
	le.PutUint32(b, it.ID)
	le.PutUint32(b[4:], it.SubID)
	copy(b[8:], it.UUID[:])
	le.PutUint16(b[24:], uint16(typ))
	putPlace(b, it)
	le.PutUint32(b[56:], uint32(name))
	le.PutUint32(b[60:], uint32(len(it.Name)))
	le.PutUint32(b[96:], uint32(needs))
	le.PutUint32(b[100:], uint32(len(it.Required)))
	le.PutUint32(b[104:], uint32(len(it.Optional)))
}

// putPlace writes the fields of a record that depend on its content.
func putPlace(b []byte, it *item) {
	b[26] = byte(it.codec)
	b[27] = byte(bits.TrailingZeros(uint(it.Align)))
	le.PutUint32(b[28:], it.at.crc)
	le.PutUint64(b[32:], uint64(it.at.offset))
	le.PutUint64(b[40:], uint64(it.at.size))
	le.PutUint64(b[48:], uint64(it.Size))
	copy(b[64:], it.Hash[:])
}

// tables are the three hash tables of an index.
type tables struct {
	bits              int
	ids, uuids, names []byte
}

// bitsFor is the least with 2^bits >= 2 x count.
func bitsFor(count int) int { return max(1, bits.Len(uint(max(2*count-1, 0)))) }

// makeTables builds the tables of items, which are sorted by id. Two with the same id, UUID and sub id, or name are an error.
func makeTables(items []item, bits int) (tables, error) {
	t := tables{bits: bits}
	var errs [3]error
	var wg sync.WaitGroup
	wg.Go(func() {
		t.ids, errs[0] = table(items, bits, "id", func(it *item) (uint32, bool) { return it.ID, true },
			func(a, b *item) bool { return a.ID == b.ID })
	})
	wg.Go(func() {
		t.uuids, errs[1] = table(items, bits, "UUID and sub id",
			func(it *item) (uint32, bool) { return kilnrt.KeyOfUUID(it.UUID, it.SubID), true },
			func(a, b *item) bool { return a.UUID == b.UUID && a.SubID == b.SubID })
	})
	t.names, errs[2] = table(items, bits, "name", func(it *item) (uint32, bool) { return kilnrt.KeyOfName(it.Name), it.Name != "" },
		func(a, b *item) bool { return a.Name == b.Name })
	wg.Wait()
	return t, cmp.Or(errs[:]...)
}

// table builds one of them: of the items that have a key. Two that are the same are an error.
func table(items []item, bits int, what string, key func(*item) (uint32, bool), same func(a, b *item) bool) ([]byte, error) {
	b := make([]byte, 8<<bits)
	mask := 1<<bits - 1
	for i := range items {
		k, ok := key(&items[i])
		if !ok {
			continue
		}
		at := kilnrt.Bucket(k, bits)
		for n := le.Uint32(b[8*at+4:]); n != 0; n = le.Uint32(b[8*at+4:]) {
			if other := &items[n-1]; le.Uint32(b[8*at:]) == k && same(other, &items[i]) {
				return nil, fmt.Errorf("%w: %s and %s have one %s", ErrResource, other.Label(), items[i].Label(), what)
			}
			at = (at + 1) & mask
		}
		le.PutUint32(b[8*at:], k)
		le.PutUint32(b[8*at+4:], uint32(i+1))
	}
	return b, nil
}

// digestOf is the hash of everything in a parcel, independent of positions.
func digestOf(items []item) digest.Hash {
	h := digest.New()
	b := make([]byte, 0, 1<<16)
	for i := range items {
		it := &items[i]
		b = le.AppendUint32(b, it.ID)
		b = le.AppendUint32(b, it.SubID)
		b = append(b, it.UUID[:]...)
		b = le.AppendUint64(b, uint64(it.Size))
		b = append(b, it.Hash[:]...)
		b = append(le.AppendUint16(b, uint16(len(it.Type))), it.Type...)
		b = append(le.AppendUint16(b, uint16(len(it.Name))), it.Name...)
		b = le.AppendUint32(b, uint32(len(it.Required)))
		b = le.AppendUint32(b, uint32(len(it.Optional)))
		b = appendNeeds(b, it)
		if len(b) > 1<<15 {
			h.Write(b)
			b = b[:0]
		}
	}
	h.Write(b)
	return h.Sum()
}

// directory has the position and the CRC of each page of records.
func directory(records []byte, at func(page int) int64) []byte {
	const page = kilnrt.PageSize * kilnrt.RecordSize
	var b []byte
	for k := 0; k*page < len(records); k++ {
		b = le.AppendUint64(b, uint64(at(k)))
		b = le.AppendUint32(b, crc32.ChecksumIEEE(records[k*page:min(len(records), (k+1)*page)]))
		b = le.AppendUint32(b, 0)
	}
	return b
}
