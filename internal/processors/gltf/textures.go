package gltf

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	codec "github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/role"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// The model's own textures are requests to the processor of textures. Equal requests, for the same picture, use and
// settings, are one task, whichever models make them.

// wanted is a texture to be made from an image inside the model.
type wanted struct {
	image   *codec.Value
	what    string // of the image, for display
	name    string // of the product
	request processor.Request
}

// variant is a texture of an image file for another use than that of the file's own texture. A part makes it, so that
// the model is not written again whenever the image changes.
type variant struct {
	images     []*codec.Value // images that mean this file
	path, name string         // of the file, and of the product
	use        string
}

// part is the name of the part that makes it.
func (v *variant) part() string { return strings.Join([]string{"texture", v.use, v.name, v.path}, ":") }

// variantOf reads the name of a part.
func variantOf(part string) (v variant, ok bool) {
	fields := strings.SplitN(part, ":", 4)
	if len(fields) != 4 || fields[0] != "texture" {
		return v, false
	}
	return variant{use: fields[1], name: fields[2], path: fields[3]}, true
}

// make requests the texture, with the file's settings from rules, and adopts it.
func (v *variant) make(job processor.Job) error {
	_, given, err := rulesOf(job, v.path)
	if err != nil {
		return err
	}
	given = maps.Clone(given)
	if given == nil {
		given = map[string]any{}
	}
	given["use"] = v.use
	made, err := job.Request(processor.Request{Processor: "texture", Settings: given, Path: v.path})
	if err != nil {
		return err
	}
	return job.Adopt(made[0][0], processor.Output{Name: v.name})
}

// rulesOf returns the settings that rules and the platform give to the texture of an image file, and those of them that
// a request has to contain; nil if it has no texture of its own.
func rulesOf(job processor.Job, file string) (*texture.Options, map[string]any, error) {
	j, ok := job.(interface {
		AssetSettings(name, by string) (all any, given map[string]any, err error)
	})
	if !ok {
		return nil, nil, nil
	}
	all, given, err := j.AssetSettings(file, "texture")
	o, _ := all.(*texture.Options)
	return o, given, err
}

// as describes a purpose, for display.
var as = [role.Purposes]string{"colours, which are sRGB", "directions, which are linear", "measures, which are linear"}

// slots are where materials use an image, for each purpose.
type slots [role.Purposes]codec.Slot

// purposes returns what materials use the image for.
func (u *slots) purposes() (list []role.Purpose) {
	for p := range role.Purposes {
		if u[p].At != nil {
			list = append(list, p)
		}
	}
	return list
}

// slotsOf returns the slots of each image.
func slotsOf(doc *codec.Document) []slots {
	var all []slots
	for _, u := range doc.ImageUses() {
		all = append(all, slots{role.Colours: u.Colours, role.Directions: u.Directions, role.Measures: u.Measures})
	}
	return all
}

// inside adds textures for the images inside the model.
func (m *model) inside(all []slots) {
	for i, image := range m.doc.Root.Array("images") {
		uri, inView := image.Get("uri"), image.Get("bufferView")
		var data []byte
		switch {
		case inView != nil:
			n, _ := inView.Int()
			data = m.viewBytes(int(n))
			m.drop[int(n)] = true
		case uri != nil && codec.IsDataURI(uri.Text):
			if data = m.dataURI(uri, m.limits.Data); data == nil {
				continue
			}
		default:
			continue
		}
		what := fmt.Sprintf("image %d", i)
		extension := extensionOf(data)
		if extension == "" {
			_, _, err := pixel.DecodeDamaged("", data, pixel.DefaultLimits())
			p := texture.Problem("", what, err)
			where := m.at(image, "", "", "")
			p.Line, p.Column = where.Line, where.Column
			m.fail(p)
			continue
		}
		if data == nil {
			data = []byte{}
		}
		if name := image.Str("name"); name != "" {
			what += fmt.Sprintf(" %q", name)
		}
		given := maps.Clone(m.settings.Textures)
		if given == nil {
			given = map[string]any{}
		}
		if given["use"] == nil {
			given["use"] = m.useOf(image, i, all[i])
		}
		if given["gamma"] == nil { // glTF 2.0, 3.8.4: what an image says of its colours is ignored
			given["gamma"] = false
		}
		m.wanted = append(m.wanted, wanted{
			image: image, what: what, name: m.productName(i, image.Str("name")),
			request: processor.Request{Processor: "texture", Settings: given, Bytes: data, Extension: extension},
		})
	}
}

// viewBytes returns the bytes of a bufferView. The file was validated.
func (m *model) viewBytes(n int) []byte {
	v := m.doc.Root.Array("bufferViews")[n]
	buffer, _ := v.Get("buffer").Int()
	offset, _ := v.Get("byteOffset").Int()
	length, _ := v.Get("byteLength").Int()
	if b := m.buffers[buffer]; offset+length <= int64(len(b)) {
		return b[offset : offset+length]
	}
	return []byte{} // of a compressed view: package pixel reports that it is not an image
}

// extensionOf is the extension of a picture or texture file by its content alone, so that equal pictures make equal
// requests; "" if it is neither.
func extensionOf(data []byte) string {
	begins := func(s string) bool { return strings.HasPrefix(string(data[:min(len(data), len(s))]), s) }
	switch format := pixel.Sniff("", data); {
	case begins("\xabKTX 20\xbb\r\n\x1a\n"):
		return ".ktx2"
	case begins("DDS "):
		return ".dds"
	case format != "":
		return "." + format
	}
	return ""
}

// useOf is the use of a texture of an image inside the model: that of the materials, or else the one that its name
// says.
func (m *model) useOf(image *codec.Value, i int, u slots) string {
	switch purposes := u.purposes(); len(purposes) {
	case 0:
		return role.Of(image.Str("name")+".png", nil).Use
	case 1:
		return purposes[0].Use()
	}
	m.warnBoth(image, fmt.Sprintf("image %d", i), u, "")
	if u[role.Colours].At != nil {
		return "color"
	}
	return "mask" // keeps all channels
}

// other adds a texture for an image file that is an asset, if the materials use it in another way than its name says.
// Settings of rules have precedence over both.
func (m *model) other(f imageFile, product processor.Product, u slots) (bool, error) {
	purposes := u.purposes()
	if len(purposes) != 1 || product.Type != textureType || product.Processor != "texture" {
		return false, nil
	}
	o, given, err := rulesOf(m.job, f.path)
	if err != nil || o == nil || o.Use != "auto" || given["srgb"] != nil {
		return false, err
	}
	if ext := strings.ToLower(path.Ext(f.path)); ext == ".dds" || ext == ".ktx2" { // these formats contain their use
		return false, nil
	}
	named, err := texture.Named(m.job, f.path)
	if err != nil {
		return false, err
	}
	of, purpose := o.For(named).Use, purposes[0]
	if purpose.ServedBy(of) {
		return false, nil
	}
	slot, use := u[purpose], purpose.Use()
	if named.Because != "" {
		m.job.Warn(*m.at(slot.At, diag.ModelImageSpace,
			fmt.Sprintf("rename the file, or write a rule: match = %q, settings = { use = %q }", processor.QuoteGlob(f.path), use),
			"%s takes %q for %s, but its name, with %q, says %q; the model gets a texture of its own",
			slot.Name, f.path, as[purpose], named.Because, of))
	}
	for i := range m.variants {
		if v := &m.variants[i]; v.path == f.path && v.use == use {
			v.images = append(v.images, f.image)
			return true, nil
		}
	}
	name := f.image.Str("name")
	if name == "" {
		name = strings.TrimSuffix(path.Base(f.path), path.Ext(f.path))
	}
	m.variants = append(m.variants, variant{[]*codec.Value{f.image}, f.path, m.productName(f.index, name), use})
	return true, nil
}

// makeTextures requests all textures, and makes their images refer to them.
func (m *model) makeTextures() error {
	if err := m.makeVariants(); err != nil || len(m.wanted) == 0 {
		return err
	}
	requests := make([]processor.Request, len(m.wanted))
	for i := range m.wanted {
		requests[i] = m.wanted[i].request
	}
	made, err := m.job.Request(requests...)
	if err != nil {
		return m.notMade(err)
	}
	for i, w := range m.wanted {
		p := made[i][0]
		if err := m.job.Adopt(p, processor.Output{Name: w.name}); err != nil {
			return err
		}
		m.pointToOwn(w.image, w.name, p.Extension)
	}
	return nil
}

func (m *model) makeVariants() error {
	if len(m.variants) == 0 {
		return nil
	}
	parts := make([]string, len(m.variants))
	for i := range m.variants {
		parts[i] = m.variants[i].part()
	}
	made, err := m.job.Parts(parts...)
	if err != nil {
		return err
	}
	for i, v := range m.variants {
		for _, image := range v.images {
			m.pointToOwn(image, v.name, path.Ext(made[i][0].File))
		}
	}
	return nil
}

// pointToOwn makes an image refer to a product of the model.
func (m *model) pointToOwn(image *codec.Value, name, extension string) {
	asset, own := m.job.Asset(), processor.Own(m.job, name, true)
	m.refer(own)
	point(image, relative(path.Dir(asset.ID), asset.ID+"."+name+extension), asset.ID, asset.UUID, own.SubID)
}

// notMade requests each texture separately, after this error for all together, to find out which failed.
func (m *model) notMade(err error) error {
	var problems []error
	said := map[string]bool{} // one picture may occur twice, and settings may be wrong for all
	for _, w := range m.wanted {
		if _, err := m.job.Request(w.request); err != nil && !said[err.Error()] {
			said[err.Error()] = true
			p := m.at(w.image, diag.JobFailed, `fix the image and export the model again; or images = "keep" leaves it in the model as it is`,
				"%s cannot be made a texture: %v", w.what, err)
			p.Err = err
			problems = append(problems, p)
		}
	}
	if len(problems) == 0 {
		return err
	}
	return errors.Join(problems...)
}
