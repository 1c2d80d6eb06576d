package atlas

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/codec/bmfont"
	"github.com/kiln-pipeline/kiln/processor"
)

// bmfont writes the fonts of the atlas: those in the folder as *.fnt with their pictures, with the places of the
// pictures on the atlas; and one for each folder of glyphs, whose images are named by their characters.
func (w *tableWriter) bmfont() error {
	var files []string
	var err error
	if folder := folderIn(w.job); folder != "" {
		files, err = w.job.Glob(path.Join(processor.QuoteGlob(folder), "**/*.[fF][nN][tT]"))
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := w.job.ReadFile(file)
		if err != nil {
			return err
		}
		f, err := bmfont.Read(data)
		if err == nil {
			err = w.moved(f, path.Dir(within(folderIn(w.job), file)))
		}
		if err != nil {
			return &processor.Problem{Code: string(diag.AtlasExport), Path: file, Text: err.Error(), Hint: "put the font's pictures beside it, or take bmfont out of exports", Err: err}
		}
		if err := w.font(frameName(folderIn(w.job), file), f); err != nil {
			return err
		}
	}
	folders := map[string][]table.Frame{}
	for _, f := range w.t.Frames {
		if _, ok := codePoint(path.Base(f.Name)); ok {
			folders[path.Dir(f.Name)] = append(folders[path.Dir(f.Name)], f)
		}
	}
	var names []string
	for name := range folders {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f := w.glyphs(folders[name])
		if name == "." {
			name = "glyphs"
		}
		f.Face = path.Base(name)
		if err := w.font(name, f); err != nil {
			return err
		}
	}
	return nil
}

// font writes one font under its name, with a dash for each slash.
func (w *tableWriter) font(name string, f *bmfont.Font) error {
	for _, p := range w.t.Pages {
		f.Pages = append(f.Pages, p.File)
		f.ScaleW, f.ScaleH = max(f.ScaleW, p.Width), max(f.ScaleH, p.Height)
	}
	slices.SortStableFunc(f.Chars, func(a, b bmfont.Char) int { return cmp.Compare(a.ID, b.ID) })
	data, err := bmfont.Write(f)
	if err != nil {
		return exportProblem(err)
	}
	return w.out(w.name(strings.ReplaceAll(name, "/", "-")), typeExport, ".fnt", data)
}

// moved changes the glyphs of a font to the places of its pictures on the atlas. A glyph whose transparent edges were
// trimmed gets smaller.
func (w *tableWriter) moved(f *bmfont.Font, folder string) error {
	frames := make([]table.Frame, len(f.Pages))
	for i, file := range f.Pages {
		name := path.Join(folder, strings.ReplaceAll(file, `\`, "/"))
		var ok bool
		if frames[i], ok = w.t.Find(strings.TrimSuffix(name, path.Ext(name))); !ok {
			return fmt.Errorf("the font's picture %q is not in the atlas", file)
		}
		if w.scale != 1000 || frames[i].Turn != table.Upright {
			return fmt.Errorf("the font's picture %q is turned or scaled, and its glyphs are not", file)
		}
	}
	for i := range f.Chars {
		c := &f.Chars[i]
		if c.Page < 0 || c.Page >= len(frames) {
			return fmt.Errorf("character %d is on page %d of %d", c.ID, c.Page, len(frames))
		}
		p := frames[c.Page]
		x, width := overlap(c.X, c.Width, p.OffsetX, p.W)
		y, height := overlap(c.Y, c.Height, p.OffsetY, p.H)
		c.XOffset, c.YOffset = c.XOffset+x-c.X, c.YOffset+y-c.Y
		c.X, c.Y, c.Width, c.Height, c.Page = p.X+x-p.OffsetX, p.Y+y-p.OffsetY, width, height, p.Page
		if width == 0 || height == 0 {
			c.X, c.Y, c.Width, c.Height = p.X, p.Y, 0, 0
		}
	}
	f.Pages, f.ScaleW, f.ScaleH = nil, 0, 0
	return nil
}

// overlap is the part of the n pixels from a that is in the m pixels from b.
func overlap(a, n, b, m int) (start, length int) {
	start = min(max(a, b), b+m)
	return start, max(0, min(a+n, b+m)-start)
}

// glyphs makes a font of glyphs: as high as the highest image, all images at the bottom, with the width of each
// image.
func (w *tableWriter) glyphs(frames []table.Frame) *bmfont.Font {
	f := &bmfont.Font{}
	for _, g := range frames {
		f.LineHeight = max(f.LineHeight, g.SourceH)
	}
	f.Size, f.Base = f.LineHeight, f.LineHeight
	for _, g := range frames {
		id, _ := codePoint(path.Base(g.Name))
		f.Chars = append(f.Chars, bmfont.Char{
			ID: int(id), X: g.X, Y: g.Y, Width: g.W, Height: g.H, Page: g.Page,
			XOffset: g.OffsetX, YOffset: g.OffsetY + f.LineHeight - g.SourceH, XAdvance: g.SourceW,
		})
	}
	return f
}

// codePoint is the character of an image named "A", "U+0041" or "u0041".
func codePoint(name string) (rune, bool) {
	if r, n := utf8.DecodeRuneInString(name); n == len(name) && r != utf8.RuneError {
		return r, true
	}
	hex, ok := strings.CutPrefix(strings.ToUpper(name), "U")
	hex = strings.TrimPrefix(hex, "+")
	n, err := strconv.ParseUint(hex, 16, 32)
	return rune(n), ok && len(hex) >= 4 && err == nil && n <= utf8.MaxRune
}
