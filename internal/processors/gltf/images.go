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

// imageFiles returns them, and records those that do not exist.
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
	uses := slotsOf(m.doc)
	if err := m.referToAssets(files, uses); err != nil {
		return err
	}
	if m.settings.Images != "keep" {
		m.inside(uses)
	}
	if len(m.problems) > 0 {
		return errors.Join(m.problems...)
	}
	return m.makeTextures()
}

// needMemory waits until there is memory for writing the model. No other jobs are asked for afterwards.
func (m *model) needMemory() error {
	bytes := int64(0)
	for _, b := range m.buffers {
		bytes += 3 * int64(len(b))
	}
	return m.job.NeedMemory(bytes)
}

// noAssets asks for each image file separately, after this error for all together, to find those that are not
// assets.
func (m *model) noAssets(files []imageFile, err error) error {
	const hint = "an image file that a model names must be an asset of its own: not ignored, and in no folder that is one asset"
	for _, f := range files {
		_, one := m.job.Products(f.path)
		switch {
		case errors.Is(one, fs.ErrNotExist):
			m.fail(m.at(f.image, diag.ModelImageAsset, hint, "image %q is not an asset", f.path))
			err = nil
		case one != nil:
			return one
		}
	}
	return err
}

// referToAssets builds the assets of all image files, in parallel, and refers to their products: the first texture, or
// else the main product. If materials use a file in another way than its name says, the model requests a texture of its
// own.
func (m *model) referToAssets(files []imageFile, uses []slots) error {
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
	var assets []imageFile // whose own textures are used
	for i, f := range files {
		product, ok := pick(all[i])
		if !ok {
			m.fail(m.at(f.image, diag.ModelImageAsset, "give it a processor that makes a texture", "image %q makes no product", f.path))
			continue
		}
		switch own, err := m.other(f, product, uses[f.index]); {
		case err != nil:
			return err
		case own:
			continue
		}
		uri := relative(path.Dir(m.job.Asset().ID), product.File)
		m.refer(processor.Reference{UUID: product.UUID, SubID: product.SubID, Required: true})
		point(f.image, uri, product.AssetID, product.UUID, product.SubID)
		assets = append(assets, f)
	}
	return m.checkSpaces(assets, uses)
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

// point makes an image refer to a product: by its uri for any loader, by its ids for one that uses Kiln's
// index.
func point(image *codec.Value, uri, assetID, uuid string, subID uint32) {
	image.Delete("bufferView")
	image.Set("uri", codec.NewString(uri))
	switch ext := path.Ext(uri); {
	case ext == ".ktx2":
		image.Set("mimeType", codec.NewString("image/ktx2"))
	case ext == ".dds":
		image.Set("mimeType", codec.NewString("image/vnd-ms.dds"))
	case ext == ".png" && image.Get("mimeType") != nil: // the source may have had another format
		image.Set("mimeType", codec.NewString("image/png"))
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

// relative is the URI of a product file relative to a folder of the output.
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

const maxName = 64

// productName makes a unique name for an image's product from the image's name: lower case letters, digits, - and
// _.
func (m *model) productName(i int, imageName string) string {
	imageName = strings.ToLower(imageName)
	for _, ext := range append(pixel.Extensions("png", "jpeg", "webp"), texture.FileExtensions()...) {
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
