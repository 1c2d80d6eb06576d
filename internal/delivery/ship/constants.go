package ship

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/codegen"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/delivery/manifest"
	"github.com/kiln-pipeline/kiln/processor"
)

// ConstantsFolder below the output folder.
const ConstantsFolder = "gen"

// constants writes the source files for the game's code. A constant is in each parcel that needs its resource, on any
// platform, wherever the bytes are.
func (s *shipment) constants(platforms []Platform, contents [][]manifest.Contents) {
	if len(s.p.Constants) == 0 {
		return
	}
	if s.o.Only != nil { // the contents of other parcels may be out of date
		for i := range s.p.Constants {
			if file, ok := s.constantsFile(&s.p.Constants[i]); ok {
				s.keepFile(file)
			}
		}
		return
	}
	unknown := s.unknownNeeds(platforms)
	s.eachConstants(platforms, contents, func(c *project.Constants, file string, text []byte) {
		foreign, err := s.foreign(file, text)
		if err != nil {
			s.failNow(diag.Errorf(diag.OutputUnwritable, diag.Pos{File: file}, "cannot be read, so nobody knows whether Kiln wrote it: %v", cause(err)).WithHint("check its permissions, and build again"))
			return
		}
		if foreign {
			s.reading(file)
			s.fail(c.FileSpan.Errorf(diag.ConstantsInTheWay, "%s is there already, and Kiln did not write it", file).WithHint("remove it, or name another file"))
			return
		}
		if old, err := disk.ReadText(s.abs(file), 0); unknown != "" && err == nil {
			if s.made(file); string(old) != string(text) {
				s.fail(diag.Warningf(diag.ConstantsLeft, diag.Pos{File: file}, "the constants were left as they are: %s failed, and what it requires is not known", unknown).
					WithHint("fix that asset, and build again"))
			}
			return
		}
		if s.write(file, text) {
			s.made(file)
		}
	})
}

// unknownNeeds is an asset that failed and was never built here, in a project with parcels: which of them have what it requires is not
// known, so that a file of constants stays as it is. "": there is none.
func (s *shipment) unknownNeeds(platforms []Platform) string {
	for i := range platforms {
		for k := range platforms[i].Assets {
			a := &platforms[i].Assets[k]
			if len(s.p.Parcels) > 0 && platforms[i].Decided && a.Lost != "" && len(a.Products)+len(a.Last) == 0 && len(s.lines[a.UUID]) > 0 {
				return a.ID
			}
		}
	}
	return ""
}

// eachConstants calls a function with the text of each file of constants that can be made.
func (s *shipment) eachConstants(platforms []Platform, contents [][]manifest.Contents, made func(c *project.Constants, file string, text []byte)) {
	var model *codegen.Model
	for i := range s.p.Constants {
		c := &s.p.Constants[i]
		file, ok := s.constantsFile(c)
		if !ok {
			continue
		}
		if model == nil {
			model = s.model(platforms, contents)
		}
		m := *model
		m.Package = c.Package
		tmpl, ok := s.template(c)
		if !ok {
			s.keepFile(file)
			continue
		}
		text, err := codegen.Generate(c.Language, m, tmpl)
		if err != nil {
			s.fail(c.Span.Errorf(diag.ConstantsWrong, "constants for %s cannot be made: %s", c.Language, strings.TrimPrefix(err.Error(), "codegen: ")).
				WithHint("correct the template, or leave it out"))
			s.keepFile(file)
			continue
		}
		made(c, file, text)
	}
}

func (s *shipment) constantsFile(c *project.Constants) (string, bool) {
	if c.File != "" {
		return c.File, true
	}
	name, err := codegen.FileName(c.Language, c.Package)
	file := s.file(ConstantsFolder + "/" + name)
	if err == nil && slices.Contains(s.res.Made, file) {
		s.fail(c.Span.Errorf(diag.ConstantsInTheWay, "%s is written already by the constants before", file).WithHint("give one of them a package or a file of its own"))
		return "", false
	}
	return file, err == nil // the language was checked with the project file
}

// template is the text of the project's own template, or "".
func (s *shipment) template(c *project.Constants) (string, bool) {
	if c.Template == "" {
		return "", true
	}
	s.reading(c.Template)
	text, err := disk.ReadText(s.abs(c.Template), 0)
	if err != nil {
		s.failRead(c.TemplateSpan.Errorf(diag.BadValue, "the template cannot be read: %v", cause(err)).WithHint("name a file in the project folder"), err)
		return "", false
	}
	return string(text), true
}

// foreign reports whether an existing file was not written by Kiln: it is not in the list of Kiln's files, and does not
// begin as the new text does.
func (s *shipment) foreign(file string, text []byte) (bool, error) {
	if slices.Contains(s.o.Before, file) && s.o.Trusted != nil && s.o.Trusted(file) || strings.HasPrefix(file, s.p.Output+"/") {
		return false, nil
	}
	old, err := disk.ReadText(s.abs(file), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return len(old) > 0 && !bytes.HasPrefix(old, first), err
}

func (s *shipment) keepFile(file string) {
	if slices.Contains(s.o.Before, file) {
		s.res.Made = append(s.res.Made, file)
	}
}

// findKept finds the lines of kiln.ids that stay although nothing in this build makes their products: assets failed, or are of another
// platform or another stage. Their constants stay with them.
func (s *shipment) findKept(f *ids.File, platforms []Platform) {
	made := map[resource]bool{}
	for i := range platforms {
		for k := range platforms[i].Assets {
			a := &platforms[i].Assets[k]
			for n := range a.Products {
				made[resource{a.UUID, a.Products[n].Name}] = true
			}
		}
	}
	s.lines, s.kept = map[string][]Product{}, map[string][]Product{}
	for i := range f.Entries {
		uuid, p := f.Entries[i].Identity(), Product{SubID: processor.SubID(f.Entries[i].Product), Name: f.Entries[i].Product}
		s.lines[uuid] = append(s.lines[uuid], p)
		if !made[resource{uuid, p.Name}] {
			s.kept[uuid] = append(s.kept[uuid], p)
		}
	}
}

// withKept is a platform with what is known of products that this build has not made. What nothing is known of but its line in kiln.ids has
// no type, and refers to nothing.
func (s *shipment) withKept(pl *Platform) (_ *Platform, more bool) {
	all := *pl
	all.Assets = slices.Concat(pl.Assets, pl.Others)
	for i := range all.Assets {
		a := &all.Assets[i]
		products := slices.Clone(a.Products)
		add := func(list []Product) {
			for k := range list {
				p := &list[k]
				has := slices.ContainsFunc(products, func(q Product) bool { return q.Name == p.Name || q.SubID == p.SubID })
				if _, numbered := s.numberOf(a, p); numbered && !has {
					products, more = append(products, *p), true
				}
			}
		}
		add(a.Last)
		add(s.kept[a.UUID])
		if len(products) == 0 && (a.Lost != "" || !pl.Decided) { // another platform may have them
			add(s.lines[a.UUID])
		}
		a.Products = products
	}
	return &all, more
}

// model has all parcels with everything that they need; a project without parcels has one with the
// project's name.
func (s *shipment) model(platforms []Platform, contents [][]manifest.Contents) *codegen.Model {
	parcels := map[string]map[resource]codegen.Resource{}
	add := func(parcel string, a *Asset, p *Product) {
		if parcels[parcel] == nil {
			parcels[parcel] = map[resource]codegen.Resource{}
		}
		key := resource{a.UUID, p.Name}
		if _, ok := parcels[parcel][key]; !ok {
			id, ok := s.numberOf(a, p)
			if !ok {
				return
			}
			parcels[parcel][key] = codegen.Resource{ID: id, Asset: a.ID, Product: p.Name, Type: p.Type}
		}
	}
	for i := range platforms {
		pl, more := s.withKept(&platforms[i])
		filled := contents[i]
		if len(s.p.Parcels) == 0 {
			for k := range pl.Assets {
				for n := range pl.Assets[k].Products {
					add(s.p.Name, &pl.Assets[k], &pl.Assets[k].Products[n])
				}
			}
			continue
		}
		if filled == nil || more { // not in this build, but code is for all platforms
			filled = s.fill(pl)
		}
		for k := range filled {
			for _, at := range filled[k].All {
				add(filled[k].Name, &pl.Assets[at.Asset], &pl.Assets[at.Asset].Products[at.Product])
			}
		}
	}
	m := &codegen.Model{}
	for name, rs := range parcels {
		p := codegen.Parcel{Name: name}
		for _, r := range rs {
			p.Resources = append(p.Resources, r)
		}
		m.Parcels = append(m.Parcels, p)
	}
	return m // sorted by codegen
}
