// Package judge returns the Go reader's judgement of a parcel, in the form of the conformance set. It also damages
// parcels. Tests compare the readers in other languages with it.
package judge

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Parcel returns the judgement of a parcel: docs/formats/parcel.md, "Conformance". queries are lines like "find id=1"
// and "load id=1".
func Parcel(file []byte, queries []string) string {
	p, err := kilnrt.OpenReaderAt(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return "open error\n"
	}
	defer p.Close()
	return Opened(p, queries)
}

// Opened returns the judgement of a parcel that could be opened.
func Opened(p *kilnrt.Parcel, queries []string) string {
	var b strings.Builder
	b.WriteString("open ok\n")
	if p.Check() == nil {
		b.WriteString("check ok\n")
	} else {
		b.WriteString("check error\n")
	}
	fmt.Fprintf(&b, "count %d\n", p.Len())
	for i := range p.Len() {
		resource(&b, p, i)
	}
	for _, q := range queries {
		fmt.Fprintf(&b, "%s %s\n", q, answer(p, q))
	}
	return b.String()
}

func resource(b *strings.Builder, p *kilnrt.Parcel, i int) {
	r, err := p.At(i)
	var content []byte
	if err == nil {
		content, err = r.Bytes()
	}
	if err != nil {
		fmt.Fprintf(b, "%d error\n", i)
		return
	}
	name := r.Name()
	if !utf8.ValidString(name) {
		name = "?"
	}
	fmt.Fprintf(b, "%d id=%d sub=%d type=%s name=\"%s\" size=%d content=%08x", i, r.ID, r.SubID, r.Type(), name, r.Size, crc32.ChecksumIEEE(content))
	if r.Codec != kilnrt.None {
		b.WriteString(" zstd")
	}
	for k := range r.Required + r.Optional {
		mark := ","
		switch {
		case k == 0 && r.Required > 0:
			mark = " needs="
		case k == 0:
			mark = " needs=;"
		case k == r.Required:
			mark = ";"
		}
		fmt.Fprintf(b, "%s%d", mark, r.Need(k))
	}
	if r.Required > 0 && r.Optional == 0 {
		b.WriteString(";")
	}
	b.WriteString("\n")
}

func answer(p *kilnrt.Parcel, query string) string {
	var id uint32
	if scanned(query, "load id=%d", &id) {
		return order(p, id)
	}
	return find(p, query)
}

// order returns the ids that are loaded with a resource, including optional ones.
func order(p *kilnrt.Parcel, id uint32) string {
	l := kilnrt.NewLibrary()
	l.Mount(p)
	rs, err := l.Order(id)
	if err != nil {
		return "error"
	}
	ids := make([]string, len(rs))
	for i := range rs {
		ids[i] = fmt.Sprint(rs[i].ID)
	}
	return strings.Join(ids, ",")
}

func find(p *kilnrt.Parcel, query string) string {
	var r kilnrt.Resource
	var err error
	var id, sub uint32
	var uuid []byte
	switch {
	case scanned(query, "find id=%d", &id):
		r, err = p.ByID(id)
	case scanned(query, "find uuid=%x sub=%d", &uuid, &sub):
		r, err = p.ByUUID([16]byte(uuid), sub)
	default:
		r, err = p.ByName(strings.TrimSuffix(strings.TrimPrefix(query, `find name="`), `"`))
	}
	switch {
	case errors.Is(err, kilnrt.ErrNotFound):
		return "none"
	case err != nil:
		return "error"
	}
	return fmt.Sprint(r.Index())
}

func scanned(query, format string, into ...any) bool {
	n, err := fmt.Sscanf(query, format, into...)
	return err == nil && n == len(into)
}

// Queries returns queries for everything in a good parcel by all its names, and for resources that it does not have.
func Queries(file []byte) []string {
	qs := []string{"find id=4294967294", `find name="nobody"`, "find uuid=ffffffffffffffffffffffffffffffff sub=1"}
	p, err := kilnrt.OpenReaderAt(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return qs
	}
	defer p.Close()
	for i := range p.Len() {
		if r, err := p.At(i); err == nil {
			qs = append(qs, fmt.Sprintf("find id=%d", r.ID), fmt.Sprintf("load id=%d", r.ID), fmt.Sprintf("find uuid=%x sub=%d", r.UUID, r.SubID), fmt.Sprintf("find name=%q", r.Name()))
		}
	}
	return qs
}

// Compare returns "" if a reader's judgement is the wanted one, else the first lines that differ.
func Compare(want, got string) string {
	ws, gs := strings.Split(legible(want), "\n"), strings.Split(legible(got), "\n")
	for i := range max(len(ws), len(gs)) {
		var w, g string
		if i < len(ws) {
			w = ws[i]
		}
		if i < len(gs) {
			g = gs[i]
		}
		if w != g {
			return fmt.Sprintf("line %d is\n\t%s\nand should be\n\t%s", i+1, g, w)
		}
	}
	return ""
}

// legible replaces bytes that are not UTF-8 by a replacement character, because not every language can print them.
func legible(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for strings.Contains(s, "\uFFFD\uFFFD") {
		s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
	}
	return s
}

// Damage changes a good parcel in one to three places, most of them in the index. It often corrects the checksums, so
// that a reader must notice impossible values, not only a change.
func Damage(rng *rand.Rand, good []byte) []byte {
	b := bytes.Clone(good)
	h, err := kilnrt.ReadHeader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return b
	}
	slot := h.Slot * kilnrt.SlotPitch
	for range 1 + rng.IntN(3) {
		at, size := slot, 312 // in the slot
		if k := rng.IntN(kilnrt.Sections + 4); k < kilnrt.Sections && h.Sections[k].Size > 0 {
			at, size = int(h.Sections[k].Offset), int(h.Sections[k].Size)
		} else if k > kilnrt.Sections && h.Sections[kilnrt.SectionDirectory].Size > 0 { // in a record
			at, size = page(b, h, 0)
			at += rng.IntN(size/kilnrt.RecordSize) * kilnrt.RecordSize
			size = kilnrt.RecordSize
		}
		at += rng.IntN(size)
		values := []byte{0, 1, 2, 0x7f, 0x80, 0xff, b[at] + 1, b[at] - 1, b[at] ^ 1<<rng.IntN(8), byte(rng.Uint32())}
		b[at] = values[rng.IntN(len(values))]
	}
	if rng.IntN(8) > 0 {
		mend(b, slot)
	}
	if rng.IntN(16) == 0 {
		b = b[:rng.IntN(len(b)+1)]
	}
	return b
}

// page returns the position of the k-th page of records by the undamaged header.
func page(b []byte, h *kilnrt.Header, k int) (at, size int) {
	entry := b[int(h.Sections[kilnrt.SectionDirectory].Offset)+16*k:]
	at = int(uint32(entry[0]) | uint32(entry[1])<<8 | uint32(entry[2])<<16)
	size = min(kilnrt.PageSize, h.Count-k*kilnrt.PageSize) * kilnrt.RecordSize
	if at+size > len(b) {
		return h.Slot * kilnrt.SlotPitch, kilnrt.RecordSize // the directory is damaged already; change the slot again
	}
	return at, size
}

// Mend corrects the checksums of a freshly packed parcel.
func Mend(b []byte) { mend(b, 0) }

// mend corrects the checksums of pages, sections and the slot, as far as these are within the file.
func mend(b []byte, slot int) {
	put := func(at int, crc uint32) {
		copy(b[at:], []byte{byte(crc), byte(crc >> 8), byte(crc >> 16), byte(crc >> 24)})
	}
	number := func(at int) uint64 {
		var n uint64
		for i := range 8 {
			n |= uint64(b[at+i]) << (8 * i)
		}
		return n
	}
	within := func(offset, size uint64) bool {
		return size > 0 && offset >= kilnrt.DataStart && offset < uint64(len(b)) && size <= uint64(len(b))-offset
	}
	for i := range kilnrt.Sections {
		at := slot + 64 + 24*i
		offset, size := number(at), number(at+8)
		if !within(offset, size) {
			continue
		}
		if i == kilnrt.SectionDirectory {
			count := int(number(slot+40) & 0xffffffff)
			for k := 0; k < int(size)/16 && k*kilnrt.PageSize < count; k++ {
				entry := int(offset) + 16*k
				records, n := number(entry), uint64(min(kilnrt.PageSize, count-k*kilnrt.PageSize)*kilnrt.RecordSize)
				if within(records, n) {
					put(entry+8, crc32.ChecksumIEEE(b[records:records+n]))
				}
			}
		}
		put(at+16, crc32.ChecksumIEEE(b[offset:offset+size]))
	}
	put(slot+508, crc32.ChecksumIEEE(b[slot:slot+508]))
}
