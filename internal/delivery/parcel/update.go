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
	old, err := kilnrt.Open(path)
	if err == nil {
		defer old.Close()
		var s *Stored
		if s, err = Read(old); err == nil {
			return s.Update(path, rs, o)
		}
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, kilnrt.ErrDamaged) {
		return Report{}, err
	}
	now, err := prepare(rs, o)
	if err != nil {
		return Report{}, err
	}
	return rewrite(path, Report{Added: len(now.items)}, now, o, old)
}

func rewrite(path string, rep Report, now *contents, o Options, was *kilnrt.Parcel) (Report, error) {
	if err := write(path, now, o, was); err != nil {
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
	now     *contents
	earlier []int // for each of now, the index in was of the item with the same id; -1: none
	same    bool  // ids, UUIDs, names, types and needs are unchanged: records are written in their pages
	touched []int // indexes of now whose record changes, if same
	dropped int64 // bytes of contents that are no longer used
}

// Update is what the function Update does with the parcel, which is at a path.
func (s *Stored) Update(path string, rs []Resource, o Options) (Report, error) {
	now, err := prepare(rs, o)
	if err != nil {
		return Report{}, err
	}
	c := &change{old: s.p, header: s.p.Header(), was: s.items, now: now}
	rep := c.compare()
	fresh := c.keep()
	if o.Sign == nil {
		o.Sign = keepSignature(c.old)
	}
	if bytes.Equal(c.old.Dictionary(), o.Dictionary) && c.header.Order == o.Order {
		if rep.Added+rep.Removed+rep.Changed == 0 && len(c.touched) == 0 && c.same {
			return resign(path, c.old, o)
		}
		if _, err := loadOrder(c.now.items, nil); err != nil {
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
	if !bytes.Equal(c.old.Dictionary(), o.Dictionary) {
		c.forget()
	}
	return rewrite(path, rep, now, o, c.old)
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
	c.same = len(c.was) == len(c.now.items)
	c.earlier = make([]int, len(c.now.items))
	i, k := 0, 0
	for i < len(c.was) || k < len(c.now.items) {
		switch {
		case k == len(c.now.items) || i < len(c.was) && c.was[i].ID < c.now.items[k].ID:
			rep.Removed++
			i++
			c.same = false
		case i == len(c.was) || c.was[i].ID > c.now.items[k].ID:
			rep.Added++
			c.earlier[k] = -1
			k++
			c.same = false
		default:
			c.earlier[k] = i
			a, b := &c.was[i], &c.now.items[k]
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
	from := c.equal()
	used := make([]bool, len(c.was))
	for i, k := range from {
		it := &c.now.items[i]
		if it.Size == 0 {
			continue
		}
		if k >= 0 {
			it.stored = c.was[k].stored
		}
		if k < 0 || c.was[k].at.offset%int64(it.Align) != 0 {
			fresh = append(fresh, i)
			continue
		}
		it.at = c.was[k].at
		used[k] = true
	}
	c.drop(used)
	if c.same {
		c.touch(fresh)
	}
	return fresh
}

// equal returns, for each of now, the index of an item in was with the same content; -1: none has it, or it is empty. Its own is
// preferred, so that nothing moves if a content exists twice.
func (c *change) equal() []int {
	from := slices.Clone(c.earlier)
	others := map[blobKey]int{} // of those that had another content: few, as a rule
	for i, k := range from {
		if it := &c.now.items[i]; it.Size > 0 && (k < 0 || c.was[k].key() != it.key()) {
			from[i] = -1
			others[it.key()] = -1
		}
	}
	if len(others) > 0 {
		for i := range c.was {
			if _, ok := others[c.was[i].key()]; ok && c.was[i].Size > 0 {
				others[c.was[i].key()] = i
			}
		}
	}
	for i, k := range from {
		it := &c.now.items[i]
		if k < 0 && it.Size > 0 {
			from[i] = others[it.key()]
		}
		if k = from[i]; k >= 0 && c.was[k].Size != it.Size {
			from[i] = -1
		}
	}
	return from
}

// drop counts the bytes of what was stored for items of which none is used.
func (c *change) drop(used []bool) {
	gone := map[int64]int64{} // sizes by offset: a content may be that of several items
	for i := range c.was {
		if at := c.was[i].at; !used[i] && at.size > 0 {
			gone[at.offset] = at.size
		}
	}
	if len(gone) == 0 {
		return
	}
	for i := range c.was {
		if used[i] {
			delete(gone, c.was[i].at.offset)
		}
	}
	for _, size := range gone {
		c.dropped += size
	}
}

// touch finds the items whose record changes. fresh is ascending.
func (c *change) touch(fresh []int) {
	for i := range c.now.items {
		a, b := &c.was[i], &c.now.items[i]
		isFresh := len(fresh) > 0 && fresh[0] == i
		if isFresh {
			fresh = fresh[1:]
		}
		if isFresh || a.at != b.at || a.Hash != b.Hash || a.Size != b.Size || a.codec != b.codec || a.Align != b.Align {
			c.touched = append(c.touched, i)
		}
	}
}

// forget forgets stored positions: with another dictionary the bytes differ.
func (c *change) forget() {
	for i := range c.now.items {
		if c.now.items[i].codec == kilnrt.ZstdDict {
			c.now.items[i].stored = nil
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
	if err := w.payloads(c.now.items, fresh, o); err != nil {
		return w.written, err
	}
	x, err := c.now.index(o.Dictionary)
	if err != nil {
		return w.written, err
	}
	if x.sections[kilnrt.SectionSignature], err = o.signature(x.digest); err != nil {
		return w.written, err
	}
	h := c.header
	h.Generation++
	h.Waste = waste
	h.Count = len(c.now.items)
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
	s, err := Read(p)
	if err != nil {
		return err
	}
	t, err := makeTables(s.items, bitsFor(len(s.items)))
	if err != nil {
		return err
	}
	return write(path, &contents{s.items, t}, Options{Dictionary: p.Dictionary(), Workers: 1, Sign: keepSignature(p), First: first, Order: p.Header().Order}, p)
}
