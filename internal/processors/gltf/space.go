package gltf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	codec "github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/role"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// Part makes a [variant], or finds out the space of one image file's texture: "space:" and its path. Both are parts, so
// that the model is written again only if the answer changes, and not whenever the image does.
func (proc) Part(_ context.Context, job processor.Job, name string) error {
	if v, ok := variantOf(name); ok {
		return v.make(job)
	}
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
	if space == texture.SpaceSRGB {
		converted, err := byGamma(job, file)
		if err != nil {
			return err
		}
		if converted {
			space += converts
		}
	}
	return job.Write(processor.Output{Name: "space", Type: spaceType, Hidden: true}, []byte(space))
}

// converts follows the space of a texture whose colours were converted by the gamma in its file.
const converts = ", by a gamma"

// byGamma reports whether the colours of a file's own texture were converted by the gamma that the file states.
func byGamma(job processor.Job, file string) (bool, error) {
	if ext := strings.ToLower(path.Ext(file)); ext == ".dds" || ext == ".ktx2" {
		return false, nil
	}
	o, _, err := rulesOf(job, file)
	if err != nil || o == nil || !o.Gamma {
		return false, err
	}
	data, err := job.ReadFile(file)
	return err == nil && pixel.GammaOf(file, data) != 0, err
}

// checkSpaces warns about image files whose textures are built for another use than that of the materials.
func (m *model) checkSpaces(files []imageFile, uses []slots) error {
	var asked []imageFile
	var parts []string
	used := map[string]slots{} // by path: two images may be one file
	for _, f := range files {
		all := used[f.path]
		for r, slot := range uses[f.index] {
			if all[r].At == nil {
				all[r] = slot
			}
		}
		if name := "space:" + f.path; len(all.purposes()) > 0 && !slices.Contains(parts, name) {
			asked, parts = append(asked, f), append(parts, name)
		}
		used[f.path] = all
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

// checkSpace warns if a texture does not fit the use of the materials.
func (m *model) checkSpace(f imageFile, u slots, space string) {
	if own, ok := strings.CutSuffix(space, converts); ok {
		if space = own; u[role.Colours].At != nil {
			m.job.Warn(*m.at(u[role.Colours].At, diag.ModelImageSpace,
				fmt.Sprintf("write a rule: match = %q, settings = { gamma = false }; or save the file without a gamma", processor.QuoteGlob(f.path)),
				"%s takes %q, whose colours are converted by the gamma in its file, and glTF ignores that", u[role.Colours].Name, f.path))
		}
	}
	if space != texture.SpaceSRGB && space != texture.SpaceLinear {
		return
	}
	wrong := []role.Purpose{role.Directions, role.Measures}
	if space == texture.SpaceLinear {
		wrong = []role.Purpose{role.Colours}
	}
	for _, p := range wrong {
		slot := u[p]
		if slot.At == nil {
			continue
		}
		if len(u.purposes()) > 1 {
			m.warnBoth(f.image, fmt.Sprintf("image %q", f.path), u, space)
			return
		}
		m.job.Warn(*m.at(slot.At, diag.ModelImageSpace,
			fmt.Sprintf("write a rule: match = %q, settings = { use = %q%s }", processor.QuoteGlob(f.path), p.Use(),
				map[bool]string{true: ", srgb = true"}[p == role.Colours]),
			"%s takes %q for %s, but its texture is %s", slot.Name, f.path, as[p], space))
		return
	}
}

// warnBoth warns about an image with two uses that exclude each other. space is that of its texture; empty if it is
// inside the model.
func (m *model) warnBoth(image *codec.Value, what string, u slots, space string) {
	var takes []string
	for _, p := range u.purposes() {
		takes = append(takes, u[p].Name+" for "+as[p])
	}
	becomes := "its texture is " + space
	switch {
	case space == "" && u[role.Colours].At != nil:
		becomes = "it becomes " + texture.SpaceSRGB
	case space == "":
		becomes = "it becomes a mask"
	}
	m.job.Warn(*m.at(image, diag.ModelImageUse, "use two images", "%s is taken by %s; %s", what, strings.Join(takes, ", and by "), becomes))
}
