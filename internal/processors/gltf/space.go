package gltf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	codec "github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// Part tells how the numbers of one image file's texture are to be read: "space:" and its path. It is a part, so that the model is written
// again only when that is another, and not whenever somebody paints.
func (proc) Part(_ context.Context, job processor.Job, name string) error {
	file, ok := strings.CutPrefix(name, "space:")
	if !ok {
		return fmt.Errorf("gltf has no part %q", name)
	}
	all, err := job.Products(file)
	if err != nil {
		return err
	}
	space := ""
	if product, ok := pick(all[0]); ok && product.Type == textureType {
		f, err := job.OpenProduct(product)
		if err != nil {
			return err
		}
		defer f.Close()
		head := make([]byte, texture.SpaceHead)
		n, err := f.ReadAt(head, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		space = texture.SpaceOf(head[:n])
	}
	return job.Write(processor.Output{Name: "space", Type: spaceType, Hidden: true}, []byte(space))
}

// checkSpaces warns of image files whose textures are built as something else than the materials take them for.
func (m *model) checkSpaces(files []imageFile, uses []codec.Use) error {
	var asked []imageFile
	var parts []string
	used := map[string]codec.Use{} // by path: two images may be one file
	for _, f := range files {
		old, use := used[f.path], uses[f.index]
		if use.Colour && !old.Colour {
			old.Colour, old.ColourAt, old.ColourName = true, use.ColourAt, use.ColourName
		}
		if use.Data && !old.Data {
			old.Data, old.DataAt, old.DataName = true, use.DataAt, use.DataName
		}
		if name := "space:" + f.path; (old.Colour || old.Data) && !slices.Contains(parts, name) {
			asked, parts = append(asked, f), append(parts, name)
		}
		used[f.path] = old
	}
	if len(parts) == 0 || len(m.problems) > 0 {
		return nil
	}
	made, err := m.job.Parts(parts...)
	if err != nil {
		return err
	}
	for i, f := range asked {
		r, err := m.job.OpenProduct(made[i][0])
		if err != nil {
			return err
		}
		space, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return err
		}
		m.checkSpace(f, used[f.path], string(space))
	}
	return nil
}

// checkSpace warns if a texture is not what materials take it for.
func (m *model) checkSpace(f imageFile, u codec.Use, space string) {
	at, slot, as, use := u.DataAt, u.DataName, "measures, which are linear", "mask"
	switch {
	case space != texture.SpaceSRGB && space != texture.SpaceLinear:
		return
	case u.Colour && u.Data:
		m.warnBoth(f.image, f.index, space)
		return
	case u.Data && space == texture.SpaceSRGB:
		if strings.HasSuffix(strings.ToLower(slot), "normaltexture") {
			as, use = "directions, which are linear", "normal"
		}
	case u.Colour && space == texture.SpaceLinear:
		at, slot, as, use = u.ColourAt, u.ColourName, "colours, which are sRGB", "color"
	default:
		return
	}
	m.job.Warn(*m.at(at, diag.ModelImageSpace,
		fmt.Sprintf("write a rule: match = %q, settings = { use = %q%s }", processor.QuoteGlob(f.path), use,
			map[bool]string{true: ", srgb = true"}[use == "color"]),
		"%s takes %q for %s, but its texture is %s", slot, f.path, as, space))
}

// warnBoth tells of an image that no texture can be right for.
func (m *model) warnBoth(image *codec.Value, i int, space string) {
	wrong := "data"
	if space == texture.SpaceLinear {
		wrong = "colour"
	}
	m.job.Warn(*m.at(image, diag.ModelImageUse, "use two images; as "+wrong+" it will be read wrongly",
		"image %d is used as colour, which is sRGB, and as data, which is linear; it becomes %s", i, space))
}
