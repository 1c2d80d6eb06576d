package ship

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

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

// KeptName is the copy of kiln.ids in the folder of Kiln's state, as the last build left it. If kiln.ids is missing, or empty, its numbers
// count, so that no resource gets another one.
const KeptName = "ids"

// FindNumbers is ReadNumbers for kiln.ids, with the kept numbers if the file is lost.
func FindNumbers(dir, state string, merged bool) (n Numbers, lost bool, err error) {
	if n, err = ReadNumbers(dir, ids.FileName, merged); err != nil || len(n.Text) > 0 {
		return n, false, err
	}
	kept, err := ReadNumbers(state, KeptName, false)
	if err != nil || len(kept.Entries) == 0 || len(kept.Conflicts()) > 0 {
		return n, false, nil
	}
	n.File = kept.File
	return n, true, nil
}

// KeepNumbers keeps the text of kiln.ids. If it cannot, it is as if it had none; what else is in the folder cannot be written either then.
func KeepNumbers(state string, text []byte) {
	file := filepath.Join(state, KeptName)
	if old, err := disk.ReadText(file, 0); err != nil || !bytes.Equal(old, text) {
		if disk.Save(file, text) != nil {
			os.Remove(file)
		}
	}
}

// Lost is the message about a kiln.ids that was written again. With kept, its numbers were known; else, it is nil if there was no file.
func Lost(dir string, kept bool) *diag.Message {
	pos := diag.Pos{File: ids.FileName}
	switch git := inGit(dir, ids.FileName); {
	case kept && git:
		return diag.Warningf(diag.IDsLost, pos, "the file was missing; it was written again with the numbers of the last build").
			WithHint("for those that git has, run: %s", restore)
	case kept:
		return diag.Warningf(diag.IDsLost, pos, "the file was missing; it was written again with the numbers of the last build")
	case git:
		return diag.Warningf(diag.IDsLost, pos, "the file was missing, and resources have new numbers; git has the file with those that they had").
			WithHint("run: %s, then build again", restore)
	}
	return nil
}

// restore is the command for a file that is in git's index. It does not need git 2.23, as git restore does.
const restore = "git checkout -- " + ids.FileName

// Contradictions returns messages about contradictions, for example after a merge.
func (n Numbers) Contradictions() diag.List {
	var l diag.Collector
	lines := diag.NewLines(n.Text)
	for _, c := range n.Conflicts() {
		pos := diag.Pos{File: ids.FileName, Line: c.Second.Line, Column: 1}
		m := diag.Errorf(diag.IDsConflict, pos, "%s has an id already: %d", c.Second.Name, c.First.ID)
		if c.SameID {
			m = diag.Errorf(diag.IDsConflict, pos, "%d is the id of two resources: %s and %s", c.Second.ID, c.First.Name, c.Second.Name)
		}
		m.WithLine(lines, utf8.RuneCountInString(lines.Line(c.Second.Line))).WithHint("run: kiln ids --repair")
		l.Add(m.WithNote("the first is at %s:%d", ids.FileName, c.First.Line))
	}
	return l.List()
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
func Stale(dir string, read Numbers, changes []ids.Change) *diag.Message {
	m := diag.Errorf(diag.IDsChange, diag.Pos{File: ids.FileName}, "the file is out of date")
	if len(read.Text) == 0 {
		m.Text = "the file is missing"
		if inGit(dir, ids.FileName) {
			return m.WithHint("git has it: run %s", restore)
		}
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
	return s.assignNames(s.wantedNames(platforms))
}

// wantedNames are the resources that there are, and of which assets more may be there.
func (s *shipment) wantedNames(platforms []Platform) (names []ids.Name, keep func(uuid string) bool) {
	lost := map[string]bool{}
	for i := range platforms {
		for k := range platforms[i].Assets {
			a := &platforms[i].Assets[k]
			if a.Lost != "" || a.More || !platforms[i].Decided {
				lost[a.UUID] = true
			}
			for n := range a.Products {
				names = append(names, ids.Name{Asset: a.ID, UUID: a.UUID, Product: a.Products[n].Name})
			}
		}
		for k := range platforms[i].Others {
			lost[platforms[i].Others[k].UUID] = true
		}
	}
	return names, func(uuid string) bool { return lost[uuid] }
}

// assignNames is ids.Assign for kiln.ids.
func (s *shipment) assignNames(names []ids.Name, keep func(uuid string) bool) (*ids.File, error) {
	s.reading(ids.FileName)
	before, lost, err := FindNumbers(s.p.Dir, s.o.State, false)
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
		if len(before.Text) > 0 {
			KeepNumbers(s.o.State, text)
		}
		return file, nil
	case s.o.Locked:
		return nil, Stale(s.p.Dir, before, changes)
	}
	if len(before.Text) == 0 {
		if m := Lost(s.p.Dir, lost); m != nil {
			s.res.Notes = append(s.res.Notes, m)
		}
	}
	return file, s.saveNumbers(text)
}

// saveNumbers writes kiln.ids.
func (s *shipment) saveNumbers(text []byte) error {
	if err := SaveNumbers(s.o.Project, text); err != nil {
		s.res.Again, s.unsure = true, true
		return err
	}
	KeepNumbers(s.o.State, text)
	s.wrote(ids.FileName)
	if s.o.Reading != nil {
		s.o.Reading(ids.FileName)
	}
	return nil
}

// IDsIn returns what a project's kiln.ids, or what is kept of it in the folder of Kiln's state, has for products of assets. Of a file with the marks of a merge both sides count; one that
// cannot be read has no number. Errors are those of an update, which reads the file as well.
func IDsIn(p *project.Project, state string) func(asset, uuid, product string) (uint32, bool) {
	text, err := disk.ReadText(filepath.Join(p.Dir, ids.FileName), 0)
	if (err == nil || errors.Is(err, fs.ErrNotExist)) && len(text) == 0 && Wanted(p) {
		text, err = disk.ReadText(filepath.Join(state, KeptName), 0)
	}
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
