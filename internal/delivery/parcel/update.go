package parcel

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// How is how a parcel was updated.
type How string

// The ways.
const (
	Nothing   How = "nothing"   // it was correct already
	Appended  How = "appended"  // changes were appended
	Rewritten How = "rewritten" // written again: there was none, or too much would be unused
)

// Report is the result of Update.
type Report struct {
	How     How
	Written int64 // bytes
	Added   int   // resources
	Removed int
	Changed int // in content, name or anything else
}

// Unused bytes are limited: a parcel is rewritten when more than a quarter of it, and more than a MiB, is unused. So
// over time a change costs at most five times what it appends.
const (
	wasteShare = 4
	wasteFree  = 1 << 20
)

// Update makes the parcel at a path contain exactly the resources, and writes only what is missing: new contents and
// changed parts of the index. See "What a change does" in docs/formats/parcel.md. A missing or damaged parcel is
// written again. A parcel must not be updated twice at once.
func Update(path string, rs []Resource, o Options) (Report, error) {
	items, err := prepare(rs, o)
	if err != nil {
		return Report{}, err
	}
	old, err := kilnrt.Open(path)
	if err == nil {
		defer old.Close()
		var was []item
		if was, err = itemsOf(old); err == nil {
			return update(path, old, was, items, o)
		}
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, kilnrt.ErrDamaged) {
		return Report{}, err
	}
	return rewrite(path, Report{Added: len(items)}, items, o, old)
}

func rewrite(path string, rep Report, items []item, o Options, was *kilnrt.Parcel) (Report, error) {
	if err := write(path, items, o, was); err != nil {
		return Report{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Report{}, err
	}
	rep.How, rep.Written = Rewritten, info.Size()
	return rep, nil
}

// change is an update in progress.
type change struct {
	old     *kilnrt.Parcel
	header  kilnrt.Header
	was     []item
	now     []item
	same    bool  // ids, UUIDs, names, types and needs are unchanged: records are written in their pages
	touched []int // indexes of now whose record changes, if same
	dropped int64 // bytes of contents that are no longer used
}

func update(path string, old *kilnrt.Parcel, was, now []item, o Options) (Report, error) {
	c := &change{old: old, header: old.Header(), was: was, now: now}
	rep := c.compare()
	fresh := c.keep()
	if o.Sign == nil {
		o.Sign = keepSignature(old)
	}
	if bytes.Equal(old.Dictionary(), o.Dictionary) && c.header.Order == o.Order {
		if rep.Added+rep.Removed+rep.Changed == 0 && len(c.touched) == 0 && c.same {
			return resign(path, old, o)
		}
		if _, err := loadOrder(now, nil); err != nil {
			return Report{}, err
		}
		waste := c.header.Waste + c.dropped + c.indexWaste()
		if waste <= wasteFree || waste <= c.header.End/wasteShare {
			f, err := disk.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return Report{}, err
			}
			defer f.Close()
			rep.How = Appended
			rep.Written, err = c.append(f, fresh, waste, o)
			return rep, errors.Join(err, f.Close())
		}
	}
	if !bytes.Equal(old.Dictionary(), o.Dictionary) {
		c.forget()
	}
	return rewrite(path, rep, now, o, old)
}

// resign replaces only the signature of a parcel.
func resign(path string, old *kilnrt.Parcel, o Options) (Report, error) {
	text, err := o.signature(old.Digest())
	if err != nil || bytes.Equal(text, old.Signature()) {
		return Report{How: Nothing}, err
	}
	err = Sign(path, func([32]byte) ([]byte, error) { return text, nil })
	return Report{How: Appended, Written: int64(len(text)) + kilnrt.SlotSize}, err
}

// compare finds the differences.
func (c *change) compare() Report {
	var rep Report
	c.same = len(c.was) == len(c.now)
	i, k := 0, 0
	for i < len(c.was) || k < len(c.now) {
		switch {
		case k == len(c.now) || i < len(c.was) && c.was[i].ID < c.now[k].ID:
			rep.Removed++
			i++
			c.same = false
		case i == len(c.was) || c.was[i].ID > c.now[k].ID:
			rep.Added++
			k++
			c.same = false
		default:
			a, b := &c.was[i], &c.now[k]
			alike := a.alike(b)
			c.same = c.same && alike
			if !alike || a.Hash != b.Hash || a.Size != b.Size || a.codec != b.codec || a.Align != b.Align {
				rep.Changed++
			}
			i, k = i+1, k+1
		}
	}
	return rep
}

// alike reports whether two items differ at most in content and position.
func (it *item) alike(o *item) bool {
	return it.UUID == o.UUID && it.SubID == o.SubID && it.Name == o.Name && it.Type == o.Type &&
		slices.Equal(it.Required, o.Required) && slices.Equal(it.Optional, o.Optional)
}

// keep gives each item the position of its existing content, if it can be used, and returns the
// others.
func (c *change) keep() (fresh []int) {
	have := make(map[blobKey]*item, len(c.was))
	for i := range c.was {
		if it := &c.was[i]; it.Size > 0 {
			have[it.key()] = it
		}
	}
	used := make(map[int64]bool, len(c.now)) // offsets
	for i := range c.now {
		it := &c.now[i]
		if it.Size == 0 {
			continue
		}
		// The item's own position first, so that nothing moves if a content exists twice.
		from := have[it.key()]
		if k, ok := find(c.was, it.ID); ok && c.was[k].key() == it.key() && c.was[k].Size > 0 {
			from = &c.was[k]
		}
		if from != nil && from.Size == it.Size {
			it.stored = from.stored
		}
		if it.stored == nil || from.at.offset%int64(it.Align) != 0 {
			fresh = append(fresh, i)
			continue
		}
		it.at = from.at
		used[it.at.offset] = true
	}
	for i := range c.was {
		if at := c.was[i].at; at.size > 0 && !used[at.offset] {
			used[at.offset] = true // counted once
			c.dropped += at.size
		}
	}
	if !c.same {
		return fresh
	}
	isFresh := make(map[int]bool, len(fresh))
	for _, i := range fresh {
		isFresh[i] = true
	}
	for i := range c.now {
		a, b := &c.was[i], &c.now[i]
		if isFresh[i] || a.at != b.at || a.Hash != b.Hash || a.Size != b.Size || a.codec != b.codec || a.Align != b.Align {
			c.touched = append(c.touched, i)
		}
	}
	return fresh
}

// forget forgets stored positions: with another dictionary the bytes differ.
func (c *change) forget() {
	for i := range c.now {
		if c.now[i].codec == kilnrt.ZstdDict {
			c.now[i].stored = nil
		}
	}
}

// indexWaste is how much of the old index becomes unused.
func (c *change) indexWaste() int64 {
	if c.same {
		n := c.header.Sections[kilnrt.SectionDirectory].Size
		for _, k := range c.pages() {
			n += int64(min(kilnrt.PageSize, len(c.was)-k*kilnrt.PageSize)) * kilnrt.RecordSize // the last one is shorter
		}
		return n
	}
	n := int64(len(c.was)) * kilnrt.RecordSize
	for _, s := range c.header.Sections {
		n += s.Size
	}
	return n
}

// pages returns the pages with changed records, ascending.
func (c *change) pages() []int {
	var list []int
	for _, i := range c.touched {
		if k := i / kilnrt.PageSize; len(list) == 0 || list[len(list)-1] != k {
			list = append(list, k)
		}
	}
	return list
}

// append writes new parts after the existing ones, and makes them valid with the other slot.
func (c *change) append(f file, fresh []int, waste int64, o Options) (int64, error) {
	w := &writer{f: f, pos: c.header.End, begun: c.header.End}
	if err := w.payloads(c.now, fresh, o); err != nil {
		return w.written, err
	}
	x, err := makeIndex(c.now, o.Dictionary)
	if err != nil {
		return w.written, err
	}
	if x.sections[kilnrt.SectionSignature], err = o.signature(x.digest); err != nil {
		return w.written, err
	}
	h := c.header
	h.Generation++
	h.Waste = waste
	h.Count = len(c.now)
	if c.same {
		err = c.appendPages(w, &h, x)
	} else {
		err = w.index(&h, x)
	}
	if err != nil {
		return w.written, err
	}
	err = w.slot(&h, 1-h.Slot)
	return w.written, err
}

func (c *change) appendPages(w *writer, h *kilnrt.Header, x *index) error {
	const page = kilnrt.PageSize * kilnrt.RecordSize
	moved := map[int]int64{}
	for _, k := range c.pages() {
		at, err := w.append(x.records[k*page:min(len(x.records), (k+1)*page)], recordAlign)
		if err != nil {
			return err
		}
		moved[k] = at
	}
	dir := directory(x.records, func(k int) int64 {
		if at, ok := moved[k]; ok {
			return at
		}
		return c.old.PageOffset(k)
	})
	h.Digest = x.digest
	if err := w.section(h, kilnrt.SectionDirectory, dir); err != nil {
		return err
	}
	if text := x.sections[kilnrt.SectionSignature]; !bytes.Equal(text, c.old.Signature()) {
		h.Waste += h.Sections[kilnrt.SectionSignature].Size
		if err := w.section(h, kilnrt.SectionSignature, text); err != nil {
			return err
		}
	}
	h.End = w.pos
	return nil
}

// Compact rewrites a parcel without unused bytes; the contents of the ids in first come first, as in Options.
func Compact(path string, first []uint32) error {
	p, err := kilnrt.Open(path)
	if err != nil {
		return err
	}
	defer p.Close()
	items, err := itemsOf(p)
	if err != nil {
		return err
	}
	return write(path, items, Options{Dictionary: p.Dictionary(), Workers: 1, Sign: keepSignature(p), First: first, Order: p.Header().Order}, p)
}
