package ship

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
)

// Numbers is a kiln.ids or a kiln.ids.released, with the text that was read.
type Numbers struct {
	*ids.File
	Text []byte
}

// ReadNumbers reads one of the two files; a missing one is empty. merged is that of ids.Parse.
func ReadNumbers(dir, name string, merged bool) (Numbers, error) {
	text, err := disk.ReadText(filepath.Join(dir, name), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Numbers{}, diag.Errorf(diag.IDsSyntax, diag.Pos{File: name}, "cannot be read: %v", cause(err)).WithHint("check its permissions")
	}
	f, err := ids.Parse(name, text, merged)
	return Numbers{f, text}, err
}

// Contradictions returns messages about contradictions, for example after a merge.
func (n Numbers) Contradictions() diag.List {
	var l diag.List
	for _, c := range n.Conflicts() {
		pos := diag.Pos{File: ids.FileName, Line: c.Second.Line, Column: 1}
		m := diag.Errorf(diag.IDsConflict, pos, "%s has an id already: %d", c.Second.Name, c.First.ID)
		if c.SameID {
			m = diag.Errorf(diag.IDsConflict, pos, "%d is the id of two resources: %s and %s", c.Second.ID, c.First.Name, c.Second.Name)
		}
		m.WithSource(n.Text, len([]rune(diag.SourceLine(n.Text, c.Second.Line)))).WithHint("after a merge, run: kiln ids --repair")
		l = append(l, m.WithNote("the first is at %s:%d", ids.FileName, c.First.Line))
	}
	return l
}

// Same reports whether the file has this text already, or does not exist and the text has no
// numbers.
func (n Numbers) Same(text []byte) bool {
	return bytes.Equal(text, n.Text) || len(n.Text) == 0 && bytes.Equal(text, new(ids.File).Format())
}

// SaveNumbers writes kiln.ids. Call Same first. The file's time is set back: otherwise a build would have to wait before it records the
// file's stat, until a later change shows in it.
func SaveNumbers(in *disk.Bounds, text []byte) error {
	file := filepath.Join(in.Root(), ids.FileName)
	err := in.File(file)
	if m := project.LinkMessage(in.Root(), err); m != nil {
		return m
	}
	if err = disk.SaveAged(file, text, source.Age); err != nil {
		return diag.Errorf(diag.IDsSyntax, diag.Pos{File: ids.FileName}, "cannot be written: %v", cause(err)).WithHint("check the permissions of the project folder")
	}
	return nil
}

// CheckNumbers returns what is wrong with the text of kiln.ids, if the project needs the file.
func CheckNumbers(p *project.Project) diag.List {
	if !Wanted(p) {
		return nil
	}
	n, err := ReadNumbers(p.Dir, ids.FileName, false)
	if err != nil {
		return diag.Messages(err, diag.IDsSyntax)
	}
	return n.Contradictions()
}

// Stale is the error of a file that is not what the project needs, as it was read. It has the first of the changes, if there are any.
func Stale(read Numbers, changes []ids.Change) *diag.Message {
	m := diag.Errorf(diag.IDsChange, diag.Pos{File: ids.FileName}, "the file is out of date")
	if len(read.Text) == 0 {
		m.Text = "the file is missing"
	} else if len(changes) > 0 {
		const most = 3
		var names []string
		for _, c := range changes[:min(most, len(changes))] {
			names = append(names, fmt.Sprintf("%s %s", c.What, c.Name))
		}
		if more := len(changes) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		m = m.WithNote("%d of its lines would change: %s", len(changes), strings.Join(names, ", "))
	}
	return m.WithHint("run `kiln ids`, and commit the file")
}

// assign updates kiln.ids.
func (s *shipment) assign(platforms []Platform) (*ids.File, error) {
	var names []ids.Name
	lost := map[string]bool{}
	for i := range platforms {
		for k := range platforms[i].Assets {
			a := &platforms[i].Assets[k]
			if a.Lost != "" || !platforms[i].Decided {
				lost[a.UUID] = true
			}
			for n := range a.Products {
				names = append(names, ids.Name{Asset: a.ID, UUID: a.UUID, Product: a.Products[n].Name})
			}
		}
	}
	return s.assignNames(names, func(uuid string) bool { return lost[uuid] })
}

// assignNames is ids.Assign for kiln.ids.
func (s *shipment) assignNames(names []ids.Name, keep func(uuid string) bool) (*ids.File, error) {
	s.reading(ids.FileName)
	before, err := ReadNumbers(s.p.Dir, ids.FileName, false)
	if err != nil {
		s.res.Again = before.Text == nil // its content is not known; the caller keeps everything
		return nil, err
	}
	if l := before.Contradictions(); len(l) > 0 {
		return nil, l
	}
	file, changes, err := ids.Assign(before.File, names, keep)
	if err != nil {
		return nil, err
	}
	text := file.Format()
	switch {
	case before.Same(text):
		return file, nil
	case s.o.Locked:
		return nil, Stale(before, changes)
	}
	return file, s.saveNumbers(text)
}

// saveNumbers writes kiln.ids.
func (s *shipment) saveNumbers(text []byte) error {
	if err := SaveNumbers(s.o.Project, text); err != nil {
		s.res.Again, s.unsure = true, true
		return err
	}
	s.wrote(ids.FileName)
	if s.o.Reading != nil {
		s.o.Reading(ids.FileName)
	}
	return nil
}

// IDsIn returns what a project's kiln.ids has for products of assets. Of a file with the marks of a merge both sides count; one that
// cannot be read has no number. Errors are those of an update, which reads the file as well.
func IDsIn(dir string) func(asset, uuid, product string) (uint32, bool) {
	text, err := disk.ReadText(filepath.Join(dir, ids.FileName), 0)
	if err != nil {
		text = nil
	}
	if s, ok := ids.ReadSorted(text); ok {
		return func(asset, uuid, product string) (uint32, bool) {
			return s.Of(ids.Name{Asset: asset, UUID: uuid, Product: product})
		}
	}
	f, err := ids.Parse(ids.FileName, text, true)
	if err != nil {
		f = &ids.File{}
	}
	t := newTable(f)
	return func(_, uuid, product string) (uint32, bool) { return t.ID(ids.Name{UUID: uuid, Product: product}) }
}

// numbering answers from kiln.ids.
type numbering interface {
	ID(ids.Name) (uint32, bool)
	AssetOf(uuid string) string // the id; "" if it has no number
}

// table is that of a file of which each line was read.
type table struct {
	numbers map[resource]uint32
	assets  map[string]string
}

// resource is a key of the table of numbers.
type resource struct{ uuid, product string }

func newTable(f *ids.File) *table {
	t := &table{make(map[resource]uint32, len(f.Entries)), make(map[string]string, len(f.Entries))}
	for i := range f.Entries {
		e := &f.Entries[i]
		uuid := e.Identity()
		t.numbers[resource{uuid, e.Product}] = e.ID
		t.assets[uuid] = e.Asset
	}
	return t
}

func (t *table) ID(n ids.Name) (uint32, bool) {
	id, ok := t.numbers[resource{n.UUID, n.Product}]
	return id, ok
}

func (t *table) AssetOf(uuid string) string { return t.assets[uuid] }

// numberOf is the number of a product.
func (s *shipment) numberOf(a *Asset, p *Product) (uint32, bool) {
	return s.numbers.ID(ids.Name{Asset: a.ID, UUID: a.UUID, Product: p.Name})
}
