package ship

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/manifest"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// ResourceName is the name of a product for games: the asset's id, followed by # and its name unless it is the main
// product.
func ResourceName(asset, product string) string {
	if product == "" {
		return asset
	}
	return asset + "#" + product
}

// Declared returns the declared parcel with this name or, for a parcel made by splitting, the first of those that it is
// made for, which decides how it is packed; nil if there is none.
func Declared(p *project.Project, name string) *project.Parcel { return p.Parcel(manifest.First(name)) }

// pack writes the parcels of a platform and the list of them.
func (s *shipment) pack(pl *Platform, contents []manifest.Contents) {
	declared := s.parcelsOn(pl.Name)
	list := List{Version: 1, Platform: pl.Name, Parcels: []ListEntry{}}
	for i := range contents {
		c := &contents[i]
		file := Folder(pl.Name) + "/" + c.Name + ".parcel"
		of := declared[c.Of[0]]
		if s.o.Only != nil && !slices.ContainsFunc(c.Of, func(i int) bool { return slices.Contains(s.o.Only, declared[i]) }) {
			if s.keepParcel(pl, c.Name, file, &list) {
				s.res.Made = append(s.res.Made, s.file(file))
			}
			continue
		}
		if s.lacks(pl.Name, c, of) || !s.packOne(pl, c, of, file) {
			if s.stopped() {
				return
			}
			s.res.Left = append(s.res.Left, file)
			if !s.keepParcel(pl, c.Name, file, &list) {
				continue
			}
		} else if s.settled(s.file(file)); !s.add(pl, c, file, &list) {
			continue
		}
		s.res.Made = append(s.res.Made, s.file(file))
		if len(c.Of) == 1 {
			s.weigh(pl.Name, of, list.Parcels[len(list.Parcels)-1].Bytes)
		}
	}
	s.keepSplit(pl, contents, &list)
	if len(declared) == 0 {
		return
	}
	if s.writeList(&list) {
		s.made(s.listFile(pl.Name))
	}
}

func (s *shipment) listFile(platform string) string {
	return s.file(path.Join(Folder(platform), ListName))
}

func (s *shipment) writeList(l *List) bool {
	data, _ := json.MarshalIndent(l, "", "  ") // strings and numbers
	return s.write(s.listFile(l.Platform), append(data, '\n'))
}

// oldList returns the existing list of a platform's parcels; empty if it cannot be read.
func (s *shipment) oldList(platform string) *List {
	file := s.listFile(platform)
	l, err := ReadList(s.abs(file))
	if err == nil {
		return l
	}
	var failed *fs.PathError
	if errors.As(err, &failed) && !errors.Is(err, fs.ErrNotExist) {
		s.failNow(diag.Errorf(diag.ParcelWrite, diag.Pos{File: file}, "the list of parcels cannot be read: %v", cause(err)).WithHint("check its permissions, and build again"))
	}
	return &List{}
}

// keepSplit keeps the parcels to which split parcels left content before, if one of the split parcels is not replaced,
// because it needs them.
func (s *shipment) keepSplit(pl *Platform, contents []manifest.Contents, list *List) {
	held := slices.ContainsFunc(contents, func(c manifest.Contents) bool {
		of := s.p.Parcel(c.Name)
		return of != nil && of.Split && len(c.Lacks) > 0
	})
	if !held {
		return
	}
	for _, e := range s.oldList(pl.Name).Parcels {
		now := slices.ContainsFunc(contents, func(c manifest.Contents) bool { return c.Name == e.Name })
		if file := Folder(pl.Name) + "/" + e.File; !now && manifest.First(e.Name) != e.Name && s.keepParcel(pl, e.Name, file, list) {
			s.res.Left = append(s.res.Left, file)
			s.res.Made = append(s.res.Made, s.file(file))
		}
	}
}

// lacks reports an incomplete parcel, in one message, because a build in which everything fails would have hundreds.
func (s *shipment) lacks(platform string, c *manifest.Contents, of *project.Parcel) bool {
	if len(c.Lacks) > 0 {
		l := c.Lacks[0]
		last := l.Assets[len(l.Assets)-1]
		hint := "fix that asset, or remove what refers to it; a parcel that is there stays as it is"
		if l.Circle {
			hint = "make one of these references optional: of things that require each other none can be loaded first"
		}
		m, alone := s.left(platform, c.Name, func(on string) *diag.Message {
			text := fmt.Sprintf("parcel %s [%s] was not packed: %s %s%s", c.Name, on, last, l.Why, others(c.Missing-1))
			m := of.Span.Errorf(diag.ParcelLacks, "%s", text).WithNote("%s", l.String(c.Name)).WithHint("%s", hint)
			for _, l := range c.Lacks[1:] {
				m.More = append(m.More, l.String(c.Name))
			}
			return m
		})
		s.res.Lacks = append(s.res.Lacks, Lack{m, alone, platform, l.Assets})
	}
	if c.Held != "" {
		s.left(platform, c.Name, func(on string) *diag.Message {
			return of.Span.Warningf(diag.ParcelHeld, "parcel %s [%s] was left as it is, because it shares content with %s", c.Name, on, c.Held)
		})
	}
	return len(c.Lacks) > 0 || c.Held != ""
}

func others(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", and 1 other"
	}
	return fmt.Sprintf(", and %d others", n)
}

// left is a message about parcels that were not replaced, for all platforms on which it is the same.
type left struct {
	m         *diag.Message
	platforms []string
}

// left reports a parcel that was not replaced. It returns the message, which names other platforms with the same
// message too, and the message for this platform alone.
func (s *shipment) left(platform, parcel string, say func(on string) *diag.Message) (m, alone *diag.Message) {
	same := parcel + "\n" + say("").String()
	x := s.saidOf[same]
	if x == nil {
		x = &left{m: say(platform)}
		s.saidOf[same] = x
		s.fail(x.m)
	}
	x.platforms = append(x.platforms, platform)
	*x.m = *say(strings.Join(x.platforms, ", "))
	return x.m, say(platform)
}

// packOne updates one parcel.
func (s *shipment) packOne(pl *Platform, c *manifest.Contents, of *project.Parcel, file string) bool {
	abs := s.abs(s.file(file))
	wrong := func(err error) bool {
		if s.stopped() {
			return false
		}
		if m := project.LinkMessage(s.p.Dir, err); m != nil {
			s.failNow(m)
			return false
		}
		hint := "the one that is there stays; fix what it says, and build again"
		if disk.InUse(err) {
			hint = "the one that is there stays; a game may have it open: close it, and build again"
		}
		s.failNow(diag.Errorf(diag.ParcelWrite, diag.Pos{File: s.file(file)}, "the parcel cannot be written: %s", strings.ReplaceAll(cause(err).Error(), filepath.Dir(abs)+string(filepath.Separator), "")).
			WithHint("%s", hint))
		return false
	}
	o := parcel.Options{Workers: s.o.Workers}
	if of.Dictionary != "" {
		s.reading(of.Dictionary)
		var err error
		if o.Dictionary, err = disk.ReadText(s.abs(of.Dictionary), 0); err != nil {
			s.failRead(of.DictionarySpan.Errorf(diag.BadValue, "the dictionary cannot be read: %v", cause(err)).WithHint("make one with: zstd --train"), err)
			return false
		}
		if len(o.Dictionary) > kilnrt.MaxDictionary {
			s.fail(of.DictionarySpan.Errorf(diag.BadValue, "the dictionary has %d bytes, more than %d", len(o.Dictionary), kilnrt.MaxDictionary).WithHint("make one with: zstd --train --maxdict=%d", kilnrt.MaxDictionary))
			return false
		}
	}
	if err := s.o.Below.ForWriting(abs); err != nil { // it may be changed where it is
		return wrong(err)
	}
	if !s.trusted(file) && Verify(abs) != nil { // Update trusts its index
		if err := os.Remove(abs); err != nil {
			return wrong(err)
		}
	}
	rs := s.resources(pl, c, of)
	if !s.sort(of, rs, &o) {
		return false
	}
	rep, err := parcel.Update(abs, rs, o)
	if err == nil && s.o.Compact {
		err = parcel.Compact(abs, o.First)
	}
	if err != nil {
		return wrong(err)
	}
	if rep.How != parcel.Nothing {
		s.wrote(s.file(file))
	}
	return true
}

// trusted reports whether a parcel, by its path below the output folder, is unchanged.
func (s *shipment) trusted(file string) bool {
	return s.o.Trusted != nil && s.o.Trusted(s.file(file))
}

// Verify returns what is wrong with a file; nil if it does not exist.
func Verify(abs string) error {
	if filepath.Ext(abs) != ".parcel" {
		return nil
	}
	p, err := kilnrt.Open(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Close()
	return parcel.Verify(p)
}

// resources returns the resources for a parcel.
func (s *shipment) resources(pl *Platform, c *manifest.Contents, of *project.Parcel) []parcel.Resource {
	one := s.resource(of, s.numbersOn(pl))
	rs := make([]parcel.Resource, len(c.Products))
	for i, at := range c.Products {
		a := &pl.Assets[at.Asset]
		rs[i] = one(a, &a.Products[at.Product])
	}
	return rs
}

// resource returns a function that turns products into resources of a parcel; numbers are those of
// all existing products.
func (s *shipment) resource(of *project.Parcel, numbers map[productKey]uint32) func(a *Asset, p *Product) parcel.Resource {
	compress := s.compress(of)
	return func(a *Asset, p *Product) parcel.Resource {
		number, _ := s.numberOf(a, p)
		r := parcel.Resource{
			ID: number, UUID: parseUUID(a.UUID), SubID: p.SubID, Name: ResourceName(a.ID, p.Name), Type: p.Type,
			Size: p.Size, Hash: p.Hash, Align: of.Align, Compress: compress(a.ID, p.Size), Open: s.open(p.Hash),
		}
		for _, ref := range p.References {
			id, ok := numbers[productKey{parseUUID(ref.UUID), ref.SubID}]
			if ok && id == r.ID {
				continue
			}
			if ok && ref.Required {
				r.Required = append(r.Required, id)
			} else if ok {
				r.Optional = append(r.Optional, id)
			}
		}
		return r
	}
}

// leastCompressed is the smallest content that is compressed without a dictionary: a frame of Zstandard adds 9 bytes or
// more.
const leastCompressed = 128

// compress reports whether a product is compressed in a parcel.
func (s *shipment) compress(of *project.Parcel) func(asset string, size int64) bool {
	stored := s.any(of.Stored)
	return func(asset string, size int64) bool {
		return !of.Store && (size >= leastCompressed || of.Dictionary != "") && !stored(asset)
	}
}

// productKey identifies a product as references do.
type productKey struct {
	uuid manifest.UUID
	sub  uint32
}

// numbersOn returns the resource ids of all products of a platform. A product that exists only on other platforms has
// none.
func (s *shipment) numbersOn(pl *Platform) map[productKey]uint32 {
	if s.on == pl.Name {
		return s.byProduct
	}
	s.on, s.byProduct = pl.Name, s.numbersOf(pl.Assets)
	return s.byProduct
}

func (s *shipment) numbersOf(assets []Asset) map[productKey]uint32 {
	numbers := map[productKey]uint32{}
	for i := range assets {
		a := &assets[i]
		for k := range a.Products {
			if id, ok := s.numberOf(a, &a.Products[k]); ok {
				numbers[productKey{parseUUID(a.UUID), a.Products[k].SubID}] = id
			}
		}
	}
	return numbers
}

// open returns a function that opens a content, any number of times.
func (s *shipment) open(h digest.Hash) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return s.o.Open(h) }
}

// add records a parcel that is up to date.
func (s *shipment) add(pl *Platform, c *manifest.Contents, file string, list *List) bool {
	x := Parcel{Name: c.Name, Platform: pl.Name, File: file, Needs: c.Needs, Resources: len(c.Products)}
	for _, at := range c.Products {
		a := &pl.Assets[at.Asset]
		x.Products = append(x.Products, Place{a.ID, a.Products[at.Product].SubID})
		if a.Placeholder && !slices.Contains(x.placeholders, a.ID) {
			x.placeholders = append(x.placeholders, a.ID)
		}
	}
	return s.note(pl, x, list)
}

// keepParcel records a parcel that could not be packed: the old one, if there is one. It warns if that is damaged.
func (s *shipment) keepParcel(pl *Platform, name, file string, list *List) bool {
	var e ListEntry
	for _, old := range s.oldList(pl.Name).Parcels {
		if old.Name == name {
			e = old
		}
	}
	whole := s.trusted(file)
	if !whole {
		err := Verify(s.abs(s.file(file)))
		if whole = err == nil; !whole {
			s.failDamaged(file, "the parcel was left as it is, and is damaged: %s", s.damage(file, err)).
				WithHint("do not ship it; fix why it was not packed, and build again")
			p, err := kilnrt.Open(s.abs(s.file(file)))
			if err != nil {
				return false // its contents are not known
			}
			p.Close()
		}
	}
	if !s.note(pl, Parcel{Name: name, Platform: pl.Name, File: file, Needs: e.Needs, placeholders: e.Placeholders}, list) {
		return false
	}
	if whole {
		s.settled(s.file(file))
	}
	if n := len(e.Placeholders); n > 0 {
		of := e.Placeholders[0]
		if n > 1 {
			of = fmt.Sprintf("%s and %d more", of, n-1)
		}
		s.left(pl.Name, name, func(on string) *diag.Message {
			return diag.Warningf(diag.ParcelPlaceholders, diag.Pos{}, "parcel %s [%s] still has the placeholders in it with which it was packed: of %s", name, on, of).
				WithHint("do not ship it before it is packed again")
		})
	}
	return true
}

// note adds an existing parcel to the result, and reads its contents if they are not known. It returns false if there
// is none, or if it cannot be read, which it reports.
func (s *shipment) note(pl *Platform, x Parcel, list *List) bool {
	p, err := kilnrt.Open(s.abs(s.file(x.File)))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		s.failDamaged(x.File, "the parcel cannot be read: %s", s.damage(x.File, err)).
			WithHint("build again; or delete it, and fix what else is reported of it")
		return false
	}
	defer p.Close()
	if x.Products == nil {
		x.Products = holds(pl, p)
	}
	x.Resources, x.Size, x.Digest = p.Len(), p.Header().End, digest.Hash(p.Digest())
	s.res.Parcels = append(s.res.Parcels, x)
	needs := x.Needs
	if needs == nil {
		needs = []string{}
	}
	e := ListEntry{
		Name: x.Name, File: path.Base(x.File), Needs: needs, Resources: x.Resources, Bytes: x.Size, Digest: x.Digest.String(),
		Placeholders: x.placeholders,
	}
	if of := Declared(s.p, x.Name); of != nil && of.Listed {
		e.Contents = listed(pl, p)
	}
	list.Parcels = append(list.Parcels, e)
	return true
}

// listed are the resources of a parcel of a platform.
func listed(pl *Platform, p *kilnrt.Parcel) []Listed {
	type made struct {
		*Asset
		*Product
	}
	all := map[productKey]made{}
	for i := range pl.Assets {
		a := &pl.Assets[i]
		for k := range a.Products {
			all[productKey{parseUUID(a.UUID), a.Products[k].SubID}] = made{a, &a.Products[k]}
		}
	}
	list := make([]Listed, 0, p.Len())
	for i := range p.Len() {
		r, err := p.At(i)
		if err != nil {
			continue // which is reported when it is verified
		}
		l := Listed{ID: r.ID, Name: r.Name(), Type: r.Type(), Size: r.Size, Offset: r.Offset, Stored: r.Stored}
		if m, ok := all[productKey{r.UUID, r.SubID}]; ok && m.Hash == digest.Hash(r.Hash) {
			l.Asset, l.Processor, l.Facts, l.Meta = m.ID, m.Processor, m.Facts, m.Meta
		}
		list = append(list, l)
	}
	return list
}

// damage is what is wrong with a parcel, without its path: the message has it already.
func (s *shipment) damage(file string, err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(cause(err).Error(), s.abs(s.file(file))+": "), "kilnrt: ")
}

// holds returns the products of a platform that a parcel contains.
func holds(pl *Platform, p *kilnrt.Parcel) []Place {
	ids := make(map[manifest.UUID]string, len(pl.Assets))
	for i := range pl.Assets {
		ids[parseUUID(pl.Assets[i].UUID)] = pl.Assets[i].ID
	}
	var list []Place
	for i := range p.Len() {
		if r, err := p.At(i); err == nil && ids[r.UUID] != "" {
			list = append(list, Place{ids[r.UUID], r.SubID})
		}
	}
	return list
}

// weigh compares the size of a parcel with its budget.
func (s *shipment) weigh(platform string, of *project.Parcel, size int64) {
	if of.Budget == 0 || size <= of.Budget {
		return
	}
	m := of.Span.Errorf(diag.ParcelBudget, "parcel %s [%s] has %s, %s over its budget of %s", of.Name, platform,
		diag.Size(size), diag.Size(size-of.Budget), diag.Size(of.Budget))
	if of.WarnOnly {
		m.Severity = diag.Warning
	}
	s.fail(m.WithHint("see what fills it: kiln parcel treemap %s", s.file(Folder(platform)+"/"+of.Name+".parcel")))
}
