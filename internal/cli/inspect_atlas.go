package cli

import (
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/media/atlasview"
	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
)

// draw writes the pages of an atlas as PNG files: the first with the given name, further ones with a
// number.
func (x *inspector) draw(name, file string) error {
	var tables []string
	if found := x.v.Asset(name); found != nil {
		tables = x.tablesOf(found.ID)
	}
	if len(tables) == 0 {
		return diag.Errorf(diag.NothingKnown, diag.Pos{}, "%q is not an atlas that was built", name).
			WithHint("--png draws the pages of an atlas: `kiln inspect sprites/ui/ --png ui.png`, after `kiln build`")
	}
	n := 0
	for _, rel := range tables {
		full := filepath.Join(x.p.OutputDir(), filepath.FromSlash(rel))
		data, err := disk.ReadFile(full)
		if err != nil {
			return err
		}
		read := atlas.Read
		if strings.HasSuffix(rel, atlas.JSONExtension) {
			read = atlas.ReadJSON
		}
		t, err := read(data)
		if err != nil {
			return fmt.Errorf("%s: %w", rel, err)
		}
		for page := range t.Pages {
			to := numbered(file, n)
			n++
			if err := drawPage(t, page, filepath.Dir(full), to); err != nil {
				return err
			}
			s := atlasview.Measure(t, page)
			fmt.Fprintf(x.a.out, "%s  %s, %d frames in %d places, %.1f %% filled\n", to, t.Pages[page].File, s.Frames, s.Places, 100*s.Fill())
		}
	}
	return nil
}

// tablesOf returns the frame tables of an asset on the first platform that has any.
func (x *inspector) tablesOf(name string) (files []string) {
	x.each(func(av *view.AssetView, j *view.JobView) {
		if av.ID != name || len(files) > 0 {
			return
		}
		for _, p := range productsOf(j) {
			if p.Type == atlas.Type {
				files = append(files, p.File)
			}
		}
	})
	return files
}

// numbered inserts a number before the extension, except for the first page.
func numbered(file string, n int) string {
	if n == 0 {
		return file
	}
	ext := filepath.Ext(file)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(file, ext), n, ext)
}

// drawPage draws one page to a file.
func drawPage(t *atlas.Table, page int, dir, to string) error {
	data, err := disk.ReadFile(filepath.Join(dir, filepath.FromSlash(t.Pages[page].File)))
	if err != nil {
		return err
	}
	img, err := pageImage(data)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Pages[page].File, err)
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := png.Encode(f, atlasview.Draw(t, page, img)); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// pageImage decodes a page, as a game sees it.
func pageImage(data []byte) (*pixel.Image, error) {
	if !texture.IsFile(data) {
		return pixel.Decode("page.png", data, pixel.DefaultLimits())
	}
	f, err := texture.Open(data, pixel.DefaultLimits())
	if err != nil {
		return nil, err
	}
	p, err := f.Picture(0, 0, 0, 0)
	if err != nil {
		return nil, err
	}
	return p.Eight, nil // pages of light have no such form: their frames are drawn empty
}
