package texture

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/role"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// sources finds and reads the input of a texture.
type sources struct {
	ctx   context.Context
	job   processor.Job
	o     texture.Options
	ready []byte // the texture itself, if the source is one that needs no work

	guessed *role.Named // what the file's name says; nil if the settings say what it is for
}

// images reads all pictures of the settings.
func (s *sources) images() (texture.Images, error) {
	o := &s.o
	var asked []string
	ask := func(yes bool, setting string) {
		if yes {
			asked = append(asked, setting)
		}
	}
	ask(o.R != "" || o.G != "" || o.B != "" || o.A != "", "r, g, b, a")
	ask(o.Cube != "none" && o.Cube != "", "cube")
	ask(len(o.Layers) > 0, "layers")
	ask(len(o.Slices) > 0, "slices")
	ask(o.SliceCount > 0, "slice_count")
	ask(o.Frames == "array", "frames")
	if len(asked) > 1 {
		return texture.Images{}, &processor.Problem{
			Code: string(diag.TextureCombination), Text: strings.Join(asked, " and ") + " cannot be together", Hint: "a texture is one of them; leave the others out",
		}
	}
	switch {
	case len(o.Layers) > 0:
		return s.listed(texture.Array, "layers", o.Layers)
	case len(o.Slices) > 0:
		return s.listed(texture.Volume, "slices", o.Slices)
	case o.Frames == "array":
		return s.frames()
	case o.Cube == "faces":
		names, err := s.faces()
		if err != nil {
			return texture.Images{}, err
		}
		return s.listed(texture.Cube, "faces", names)
	}
	return s.own()
}

// own reads the asset's own file.
func (s *sources) own() (texture.Images, error) {
	name := s.job.Asset().Path
	data, err := s.job.ReadFile(name)
	if err != nil {
		return texture.Images{}, err
	}
	o := &s.o
	others, err := s.channels()
	if err != nil {
		return texture.Images{}, err
	}
	bytes := o.Need(name, data).Made
	for _, c := range others {
		bytes += o.Need(c.file, c.data).Decoded
	}
	if err := s.need(bytes); err != nil {
		return texture.Images{}, err
	}
	whole := o.Cube != "cross" && o.Cube != "equirect" && o.SliceCount == 0 && len(others) == 0
	if texture.IsFile(data) && whole {
		return s.file(data)
	}
	p, err := s.decode(name, data, true)
	if err != nil {
		return texture.Images{}, err
	}
	misnamed(s.job, name, pixel.Sniff(name, data))
	flat := texture.Images{Pictures: []*pixel.Picture{p}}
	width, height := p.Size()
	switch {
	case o.SliceCount > 0:
		if parts := p.Cut(o.SliceCount); parts != nil {
			return texture.Images{Shape: texture.Volume, Pictures: parts}, nil
		}
		return flat, shape("slice_count must divide the longer side", "a strip of %d x %d pixels cannot be cut into %d slices", width, height, o.SliceCount)
	case o.Cube == "cross":
		if faces := p.Cross(); faces != nil {
			return texture.Images{Shape: texture.Cube, Pictures: faces}, nil
		}
		return flat, shape("it is 4 by 3 or 3 by 4 squares; docs/textures.md shows which is which", "a picture of %d x %d pixels is not a cross of six squares", width, height)
	case o.Cube == "equirect":
		if width != 2*height || width < 4 {
			return flat, shape("it is twice as wide as high", "a picture of %d x %d pixels does not show all directions", width, height)
		}
		return s.equirect(p), nil
	case !whole:
		return flat, s.mix(p, others)
	}
	return flat, nil
}

// frames is an array of all frames of an animation; a still picture becomes an array of one.
func (s *sources) frames() (texture.Images, error) {
	im := texture.Images{Shape: texture.Array}
	name := s.job.Asset().Path
	data, err := s.job.ReadFile(name)
	if err != nil {
		return im, err
	}
	if texture.IsFile(data) {
		return im, shape("take frames out", "a texture file has no frames")
	}
	if err := s.need(s.o.Need(name, data).Made); err != nil {
		return im, err
	}
	d, err := pixel.DecodeDocument(name, data, s.o.Limits())
	if err != nil {
		return im, texture.Problem("", "", err)
	}
	misnamed(s.job, name, d.Format)
	if damage := d.Frames[0].Picture.Damage; damage != "" {
		s.job.Warn(texture.DamagedImage("", "", damage))
	}
	for i, f := range d.Frames {
		s.take("", f.Picture, i == 0)
		im.Pictures = append(im.Pictures, f.Picture)
	}
	return im, nil
}

// equirect projects a panorama onto a cube, as light: faces are a quarter as wide, so that the middle of a face keeps
// its detail.
func (s *sources) equirect(p *pixel.Picture) texture.Images {
	width, _ := p.Size()
	side := width / 4
	im := texture.Images{Shape: texture.Cube}
	for _, f := range p.Light(s.o.SRGB).Cube(side, texture.Workers(6*side*side)) {
		face := &pixel.Picture{Format: p.Format, HDR: true, Float: f}
		if !p.HDR {
			face = &pixel.Picture{Format: p.Format, Eight: face.Bits(s.o.SRGB)}
		}
		im.Pictures = append(im.Pictures, face)
	}
	return im
}

// file reads a source that is a texture file already.
func (s *sources) file(data []byte) (texture.Images, error) {
	f, err := texture.Open(data, s.o.Limits())
	var p *processor.Problem
	if errors.As(err, &p) && p.Code == string(diag.ImageUnsupported) {
		if ok, warning := texture.Foreign(data, s.o); ok {
			if warning.Code != "" {
				s.job.Warn(warning)
			}
			s.ready = data
			return texture.Images{}, nil
		}
	}
	if err != nil {
		return texture.Images{}, err
	}
	if f.Keeps(s.o) {
		s.ready, err = f.Repack(s.o)
		return texture.Images{}, err
	}
	s.o = f.Options(s.o)
	return f.Images()
}

// colors reports whether the result is colours, or light.
func (s *sources) colors() bool {
	return s.o.SRGB && (s.o.Use == "color" || s.o.Use == "ui" || s.o.Use == "hdr")
}

// decode reads a picture, or the first image of a texture file. If it may contain colours, they are converted to sRGB,
// using the gamma in the file.
func (s *sources) decode(name string, data []byte, colors bool) (*pixel.Picture, error) {
	where := name
	if name == s.job.Asset().Path {
		where = ""
	}
	if texture.IsFile(data) {
		f, err := texture.Open(data, s.o.Limits())
		if err != nil {
			return nil, err
		}
		return f.Picture(0, 0, 0, 0)
	}
	p, err := pixel.DecodePicture(name, data, s.o.Limits())
	if err != nil {
		return nil, texture.Problem(where, "", err)
	}
	if p.Damage != "" {
		s.job.Warn(texture.DamagedImage(where, "", p.Damage))
	}
	if colors {
		s.take(where, p, true)
	}
	return p, nil
}

// take converts a picture that may contain colours to sRGB, using the gamma in its file, and warns about other colour
// spaces.
func (s *sources) take(where string, p *pixel.Picture, warn bool) {
	if !s.colors() {
		return
	}
	if s.o.Gamma {
		p.Encode()
	}
	if p.Space != "" && warn {
		s.job.Warn(processor.Problem{
			Code: string(diag.TextureSpace), Path: where, Text: fmt.Sprintf("its colours are of %s, and are taken for sRGB", p.Space),
			Hint: "convert it to sRGB in an image editor, or colours will be off",
		})
	}
}

// input is a picture named by a setting.
type input struct {
	setting, file string
	data          []byte
	to, channel   int // for a packed channel: its place, and the channel of the picture
}

// read reads its file.
func (s *sources) read(in *input) (err error) {
	in.data, err = s.job.ReadFile(in.file)
	if errors.Is(err, fs.ErrNotExist) {
		return named(in.setting, "%q does not exist", in.file)
	}
	return err
}

// listed reads all pictures of a list. It asks for memory when all of them are known.
func (s *sources) listed(as texture.Shape, setting string, list []string) (texture.Images, error) {
	im := texture.Images{Shape: as}
	var inputs []input
	var bytes int64
	for _, entry := range list {
		found, err := s.find(setting, entry)
		if err != nil {
			return im, err
		}
		for _, file := range found {
			in := input{setting: setting, file: file}
			if err := s.read(&in); err != nil {
				return im, err
			}
			bytes += s.o.Need(file, in.data).Made
			inputs = append(inputs, in)
		}
	}
	if err := s.need(bytes); err != nil {
		return im, err
	}
	for i := range inputs {
		in := &inputs[i]
		p, err := s.decode(in.file, in.data, true)
		if err != nil {
			return im, err
		}
		in.data = nil
		if len(im.Pictures) > 0 {
			w, h := p.Size()
			if fw, fh := im.Pictures[0].Size(); w != fw || h != fh {
				return im, shape("make them the same size", "%s: %q has %d x %d pixels, the first %d x %d", setting, in.file, w, h, fw, fh)
			}
		}
		im.Pictures = append(im.Pictures, p)
	}
	return im, uniform(im)
}

// uniform makes all pictures light or none, because a texture cannot be both.
func uniform(im texture.Images) error {
	for _, p := range im.Pictures {
		if p.HDR != im.Pictures[0].HDR {
			return shape("take pictures of one kind", "some of the pictures hold light in floating point, others do not")
		}
	}
	return nil
}

// find returns the files of an entry of a list: one, or those that match a glob.
func (s *sources) find(setting, entry string) ([]string, error) {
	own := s.job.Asset().Path
	file, err := processor.Resolve(own, entry)
	if err != nil {
		return nil, named(setting, "%v", err)
	}
	if !strings.ContainsAny(entry, "*?[{") {
		return []string{file}, nil
	}
	found, err := s.job.Glob(path.Join(processor.QuoteGlob(path.Dir(own)), entry))
	if err != nil {
		return nil, named(setting, "%v", err)
	}
	if len(found) == 0 {
		return nil, named(setting, "no file matches %q", entry)
	}
	return found, nil
}

// faceNames are the ends of the names of the six files of a cube, in the order +x -x +y -y +z -z.
var faceNames = [][6]string{
	{"px", "nx", "py", "ny", "pz", "nz"},
	{"posx", "negx", "posy", "negy", "posz", "negz"},
	{"right", "left", "top", "bottom", "front", "back"},
	{"rt", "lf", "up", "dn", "ft", "bk"},
}

// faces returns the names of the six files of a cube, relative to the asset's folder.
func (s *sources) faces() ([]string, error) {
	if list := s.o.Faces; len(list) > 0 {
		if len(list) != 6 {
			return nil, shape("name six: +x, -x, +y, -y, +z, -z", "faces names %d pictures", len(list))
		}
		return list, nil
	}
	base := path.Base(s.job.Asset().Path)
	ext := path.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	at := strings.LastIndexAny(stem, "_-.") + 1
	for _, set := range faceNames {
		if !slices.Contains(set[:], strings.ToLower(stem[at:])) {
			continue
		}
		files := make([]string, 6)
		for i, face := range set {
			files[i] = stem[:at] + face + ext
			if face == strings.ToLower(stem[at:]) {
				files[i] = base
			}
		}
		return files, nil
	}
	return nil, named("cube", "%q does not end in the name of a face", base)
}

// channels reads the files whose channels replace the asset's own.
func (s *sources) channels() (all []input, err error) {
	for to, ref := range [4]string{s.o.R, s.o.G, s.o.B, s.o.A} {
		if ref == "" {
			continue
		}
		name, channel := channelOf(ref)
		in := input{setting: "rgba"[to : to+1], to: to, channel: channel}
		if in.file, err = processor.Resolve(s.job.Asset().Path, name); err != nil {
			return nil, named(in.setting, "%v", err)
		}
		if err := s.read(&in); err != nil {
			return nil, err
		}
		all = append(all, in)
	}
	return all, nil
}

// mix replaces channels of p by those of other pictures.
func (s *sources) mix(p *pixel.Picture, others []input) error {
	width, height := p.Size()
	own := pixel.New(width, height)
	copy(own.Pix, p.Bits(s.o.SRGB).Pix)
	var deep *pixel.Float // of numbers with more than 8 bits in any of the pictures
	if p.Float != nil && !p.HDR {
		deep = p.Float
	}
	p.Eight, p.Float, p.HDR = own, nil, false
	for _, in := range others {
		from, err := s.decode(in.file, in.data, false) // channels are numbers
		if err != nil {
			return err
		}
		if w, h := from.Size(); w != width || h != height {
			return shape("make them the same size", "%s: %q has %d x %d pixels, the asset's own picture %d x %d", in.setting, in.file, w, h, width, height)
		}
		if deep == nil && from.Float != nil && !from.HDR {
			deep = own.Light(false)
		}
		own.Pick(in.to, from.Bits(false), in.channel)
		if deep != nil {
			deep.Pick(in.to, from.Light(false), in.channel)
		}
	}
	p.Float = deep
	return nil
}

// channelOf splits "file.png:a" into the file and the channel's number; red is the default.
func channelOf(ref string) (file string, channel int) {
	if i := strings.LastIndexByte(ref, ':'); i >= 0 {
		if c := strings.Index("rgba", ref[i+1:]); c >= 0 && len(ref) == i+2 {
			return ref[:i], c
		}
	}
	return ref, 0
}

func named(setting, text string, args ...any) error {
	return &processor.Problem{
		Code: string(diag.TextureSource), Text: setting + ": " + fmt.Sprintf(text, args...),
		Hint: "paths are relative to the asset's folder",
	}
}

func shape(hint, text string, args ...any) error {
	return &processor.Problem{Code: string(diag.TextureShape), Text: fmt.Sprintf(text, args...), Hint: hint}
}
