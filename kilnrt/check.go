package kilnrt

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"unicode/utf8"
)

// Check checks the whole index: "Checking a whole parcel" in docs/formats/parcel.md. It does not check contents; Bytes
// checks each of them.
func (p *Parcel) Check() error {
	for i, b := range p.sections {
		if crc32.ChecksumIEEE(b) != p.h.Sections[i].CRC {
			return fmt.Errorf("%w: section %d is not what it was", ErrDamaged, i)
		}
	}
	for i := 1; i < len(p.types); i++ {
		if p.types[i-1] >= p.types[i] {
			return fmt.Errorf("%w: type %d is out of order", ErrDamaged, i)
		}
	}
	for k := range pages(p.h.Count) {
		if err := p.checkPage(k); err != nil {
			return err
		}
	}
	var before int64 = -1
	for i := range p.h.Count {
		r, err := p.At(i)
		if err != nil {
			return err
		}
		if int64(r.ID) <= before {
			return fmt.Errorf("%w: record %d is out of order", ErrDamaged, i)
		}
		before = int64(r.ID)
		if err := p.checkRecord(&r); err != nil {
			return err
		}
	}
	return nil
}

func (p *Parcel) checkPage(k int) error {
	b, err := p.page(k)
	if err != nil {
		return err
	}
	entry := p.sections[SectionDirectory][16*k:]
	if le.Uint32(entry[8:]) != crc32.ChecksumIEEE(b) || le.Uint32(entry[12:]) != 0 {
		return fmt.Errorf("%w: page %d of records is not what it was", ErrDamaged, k)
	}
	for ; len(b) > 0; b = b[RecordSize:] {
		if [20]byte(b[108:RecordSize]) != [20]byte{} {
			return fmt.Errorf("%w: something stands where record %d has zeros", ErrDamaged, le.Uint32(b))
		}
	}
	return nil
}

func (p *Parcel) checkRecord(r *Resource) error {
	name := r.nameBytes()
	if !utf8.Valid(name) || bytes.IndexByte(name, 0) >= 0 {
		return fmt.Errorf("%w: the name of resource %d is not text", ErrDamaged, r.ID)
	}
	id, err := p.ByID(r.ID)
	if err != nil || id.index != r.index {
		return fmt.Errorf("%w: resource %d is not found by its id", ErrDamaged, r.ID)
	}
	uuid, err := p.ByUUID(r.UUID, r.SubID)
	if err != nil || uuid.index != r.index {
		return fmt.Errorf("%w: resource %d is not found by its UUID", ErrDamaged, r.ID)
	}
	if len(name) == 0 {
		return nil
	}
	named, err := p.ByName(string(name))
	if err != nil || named.index != r.index {
		return fmt.Errorf("%w: resource %d is not found by its name", ErrDamaged, r.ID)
	}
	return nil
}
