package gltf

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	codec "github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

const textureType = texture.Type

// imageFile is an image that is a file, and so an asset of its own.
type imageFile struct {
	image *codec.Value
	index int
	path  string
}

// imageFiles lists them, and notes those that are not there.
func (m *model) imageFiles() []imageFile {
	var files []imageFile
	for i, image := range m.doc.Root.Array("images") {
		uri := image.Get("uri")
		if uri == nil || uri.Kind != codec.String || codec.IsDataURI(uri.Text) {
			continue
		}
		file, ok := m.resolve(uri)
		if !ok {
			continue
		}
		there, err := m.job.Exists(file)
		if err == nil && !there {
			err = m.missing(uri, file)
		}
		if err != nil {
			m.problems = append(m.problems, err)
			continue
		}
		files = append(files, imageFile{image, i, file})
	}
	return files
}

// replaceImages gives each image the uri of a texture.
func (m *model) replaceImages(files []imageFile) error {
	uses := m.doc.ImageUses()
	if err := m.referToAssets(files); err != nil {
		return err
	}
	if err := m.checkSpaces(files, uses); err != nil {
		return err
	}
	inside := m.inside()
	if err := m.needMemory(inside); err != nil {
		return err
	}
	for i, image := range m.doc.Root.Array("images") {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		if inside[i] == nil {
			continue
		}
		if err := m.embedded(i, image, inside[i], uses[i]); err != nil {
			m.problems = append(m.problems, err)
		}
		inside[i] = nil
	}
	return errors.Join(m.problems...)
}

// inside finds the files of the images that are inside the model.
func (m *model) inside() [][]byte {
	images := m.doc.Root.Array("images")
	all := make([][]byte, len(images))
	for i, image := range images {
		uri, inView := image.Get("uri"), image.Get("bufferView")
		switch {
		case inView != nil:
			n, _ := inView.Int()
			all[i] = m.viewBytes(int(n))
			m.drop[int(n)] = true
		case uri != nil && codec.IsDataURI(uri.Text):
			all[i] = m.dataURI(uri, m.limits.Data)
		}
	}
	return all
}

// needMemory waits until there is memory for the largest of the images inside the model, which become textures one after the other, and
// for the model. Nothing is asked of other jobs from then on.
func (m *model) needMemory(inside [][]byte) error {
	n, ok := m.job.(interface{ NeedMemory(bytes int64) error })
	if !ok {
		return nil
	}
	o, bytes := m.options(), int64(0)
	for _, data := range inside {
		bytes = max(bytes, o.Need("", data).Made)
	}
	for _, b := range m.buffers {
		bytes += 3 * int64(len(b))
	}
	return n.NeedMemory(bytes)
}

// options of the textures that images inside the model become.
func (m *model) options() texture.Options {
	o := texture.Defaults()
	o.MaxSize, o.Mips, o.Container = m.settings.TextureMaxSize, m.settings.TextureMips, m.settings.TextureContainer
	return o
}

// noAssets asks for each image file by itself, after all together brought this error, to tell which are no assets.
func (m *model) noAssets(files []imageFile, err error) error {
	const hint = "an image file that a model names must be an asset of its own: not ignored, and in no folder that is one asset"
	for _, f := range files {
		_, one := m.job.Products(f.path)
		switch {
		case errors.Is(one, fs.ErrNotExist):
			m.fail(m.at(f.image, diag.ModelImageAsset, hint, "image %q is no asset", f.path))
			err = nil
		case one != nil:
			return one
		}
	}
	return err
}

// referToAssets builds the assets of all image files, side by side, and refers to what came of them: the first
// texture, or whatever their main product is.
func (m *model) referToAssets(files []imageFile) error {
	if len(files) == 0 {
		return nil
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
	}
	all, err := m.job.Products(paths...)
	if errors.Is(err, fs.ErrNotExist) {
		return m.noAssets(files, err)
	}
	if err != nil {
		return err
	}
	for i, f := range files {
		product, ok := pick(all[i])
		if !ok {
			m.fail(m.at(f.image, diag.ModelImageAsset, "give it a processor that makes a texture", "image %q makes no product", f.path))
			continue
		}
		uri := relative(path.Dir(m.job.Asset().ID), product.File)
		m.refer(processor.Reference{UUID: product.UUID, SubID: product.SubID, Required: true})
		point(f.image, uri, product.AssetID, product.UUID, product.SubID)
	}
	return nil
}

func pick(products []processor.Product) (processor.Product, bool) {
	for _, p := range products {
		if p.Type == textureType {
			return p, true
		}
	}
	if len(products) == 0 {
		return processor.Product{}, false
	}
	return products[0], true
}

// refer adds a reference, once.
func (m *model) refer(r processor.Reference) {
	if !m.referred[r] {
		m.referred[r] = true
		m.references = append(m.references, r)
	}
}

// point lets an image mean a product: by its uri for any loader, by its ids for one that asks Kiln's index.
func point(image *codec.Value, uri, assetID, uuid string, subID uint32) {
	image.Delete("bufferView")
	image.Set("uri", codec.NewString(uri))
	switch path.Ext(uri) {
	case ".ktx2":
		image.Set("mimeType", codec.NewString("image/ktx2"))
	case ".dds":
		image.Set("mimeType", codec.NewString("image/vnd-ms.dds"))
	}
	kiln := codec.NewObject()
	kiln.Set("asset", codec.NewString(assetID))
	kiln.Set("uuid", codec.NewString(uuid))
	kiln.Set("sub", codec.NewInt(int64(subID)))
	extras := image.Get("extras")
	if extras == nil || extras.Kind != codec.Object {
		old := extras
		extras = codec.NewObject()
		if old != nil {
			extras.Set("extras", old)
		}
	}
	extras.Set("kiln", kiln)
	image.Set("extras", extras)
}

// relative is the URI of a product file, seen from a folder of the output.
func relative(from, file string) string {
	var up []string
	for from != "." && !strings.HasPrefix(file, from+"/") {
		up = append(up, "..")
		from = path.Dir(from)
	}
	if from != "." {
		file = strings.TrimPrefix(file, from+"/")
	}
	return (&url.URL{Path: strings.Join(append(up, file), "/")}).String()
}

// viewBytes is the bytes of a bufferView in a file that is not broken.
func (m *model) viewBytes(n int) []byte {
	v := m.doc.Root.Array("bufferViews")[n]
	buffer, _ := v.Get("buffer").Int()
	offset, _ := v.Get("byteOffset").Int()
	length, _ := v.Get("byteLength").Int()
	if b := m.buffers[buffer]; offset+length <= int64(len(b)) {
		return b[offset : offset+length]
	}
	return []byte{} // of a compressed view: pixel says that it is no image
}

// embedded makes a texture of an image inside the model.
func (m *model) embedded(i int, image *codec.Value, data []byte, use codec.Use) error {
	o := m.options()
	o.SRGB = use.Colour || !use.Data
	if use.Colour && use.Data {
		m.warnBoth(image, i, texture.SpaceSRGB)
	}
	ext, out := ready(data), data
	if ext == "" {
		ext = o.Extension()
		img, mended, err := pixel.DecodeMended("", data, pixel.DefaultLimits())
		if err != nil {
			p := texture.Problem("", fmt.Sprintf("image %d", i), err)
			where := m.at(image, "", "", "")
			p.Line, p.Column = where.Line, where.Column
			return p
		}
		if mended != "" {
			p := texture.MendedImage("", fmt.Sprintf("image %d", i), mended)
			where := m.at(image, "", "", "")
			p.Line, p.Column = where.Line, where.Column
			m.job.Warn(p)
		}
		if out, err = texture.Encode(img, o); err != nil {
			return fmt.Errorf("image %d: %w", i, err)
		}
	}
	name := m.productName(i, image.Str("name"))
	if err := m.job.Write(processor.Output{Name: name, Type: textureType, Extension: ext}, out); err != nil {
		return err
	}
	asset := m.job.Asset()
	own := processor.Own(m.job, name, true)
	m.refer(own)
	point(image, relative(path.Dir(asset.ID), asset.ID+"."+name+ext), asset.ID, asset.UUID, own.SubID)
	return nil
}

// ready is the extension of an image that is a texture file already, as extensions of glTF allow.
func ready(data []byte) string {
	switch {
	case strings.HasPrefix(string(data[:min(len(data), 12)]), "\xabKTX 20\xbb\r\n\x1a\n"):
		return ".ktx2"
	case strings.HasPrefix(string(data[:min(len(data), 4)]), "DDS "):
		return ".dds"
	}
	return ""
}

const maxName = 64

// productName makes a name for an image's product out of the image's own: lower case letters, digits, - and _, and
// no other image's.
func (m *model) productName(i int, imageName string) string {
	imageName = strings.ToLower(imageName)
	for _, ext := range [...]string{".png", ".jpg", ".jpeg", ".webp", ".ktx2", ".dds"} {
		imageName = strings.TrimSuffix(imageName, ext)
	}
	var b strings.Builder
	for _, r := range imageName {
		if b.Len() == maxName {
			break
		}
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	base := strings.Trim(b.String(), "-")
	if base == "" {
		base = fmt.Sprintf("image%d", i)
	}
	name := base
	for n := 2; m.names[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	m.names[name] = true
	return name
}
