package atlas

import (
	"fmt"
	"math"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/processor"
)

// readPatch reads the guide lines of a nine-patch in the form of Android and libGDX, and returns the image without
// them. They are the outermost pixels: black at the top and the left along what is stretched, at the bottom and the
// right along the area for content; each of the two may be there without the other. The patch is nil if there are none.
func readPatch(file string, img *pixel.Image) (*table.Patch, *pixel.Image, error) {
	if img.Width < 3 || img.Height < 3 {
		return nil, nil, patchProblem(file, fmt.Sprintf("nine-patch of %d x %d pixels has no room for guide lines", img.Width, img.Height))
	}
	right, bottom := img.Width-1, img.Height-1
	lines := [4]guide{
		{file, img, 0, 0, 1, 0, img.Width}, {file, img, 0, 0, 0, 1, img.Height},
		{file, img, 0, bottom, 1, 0, img.Width}, {file, img, right, 0, 0, 1, img.Height},
	}
	var marks [4]mark
	for i, line := range lines {
		var err error
		if marks[i], err = line.mark(); err != nil {
			return nil, nil, err
		}
	}
	inner := crop(img, 1, 1, img.Width-2, img.Height-2)
	splits, pads := marks[0].found || marks[1].found, marks[2].found || marks[3].found
	if !splits && !pads {
		return nil, inner, nil
	}
	patch := &table.Patch{} // without splits all of it is stretched: 0, 0, 0, 0, as TexturePacker writes
	for axis, size := range []int{inner.Width, inner.Height} {
		if splits {
			patch.Split[2*axis], patch.Split[2*axis+1] = marks[axis].sides(size)
		}
	}
	if pads {
		pad := table.Sides{-1, -1, -1, -1}
		for axis, size := range []int{inner.Width, inner.Height} {
			if m := marks[2+axis]; m.found {
				pad[2*axis], pad[2*axis+1] = m.sides(size)
			}
		}
		if !splits || pad != patch.Split {
			patch.Pad = &pad
		}
	}
	return patch, inner, nil
}

// guide is one line of pixels along an edge.
type guide struct {
	file         string
	img          *pixel.Image
	x, y, dx, dy int
	n            int
}

// mark is the black part of a guide, in pixels of the whole image: from start up to but not including end.
type mark struct {
	found      bool
	start, end int
}

// sides returns the distances of the mark from both ends of an image without guides. Without a mark nothing is
// stretched: as in libGDX, all belongs to the second side.
func (m mark) sides(size int) (before, after int) {
	if !m.found {
		return 0, size
	}
	return m.start - 1, size - (m.end - 1)
}

// mark finds the first black part. Others are ignored.
func (g guide) mark() (m mark, err error) {
	for i := 1; i < g.n-1; i++ {
		x, y := g.x+i*g.dx, g.y+i*g.dy
		p := [4]byte(g.img.Pix[4*(y*g.img.Width+x):])
		switch {
		case p[3] == 0 && m.found:
			m.end = i
			return m, nil
		case m.found && p != [4]byte{0, 0, 0, 255}:
			return m, patchProblem(g.file, fmt.Sprintf("pixel at %d,%d is in a guide line of a nine-patch and neither black nor transparent", x, y))
		case p[3] == 255 && !m.found:
			m.found, m.start = true, i
			if p != [4]byte{0, 0, 0, 255} {
				return m, patchProblem(g.file, fmt.Sprintf("pixel at %d,%d is in a guide line of a nine-patch and neither black nor transparent", x, y))
			}
		}
	}
	m.end = g.n - 1
	return m, nil
}

func patchProblem(file, text string) error {
	return &processor.Problem{
		Code: string(diag.AtlasPatch), Path: file, Text: text,
		Hint: "the outermost pixels of an image named .9.png are guide lines, opaque black or transparent: draw them, or rename the image, or set nine_patch = false",
	}
}

// scaledPatch is the patch of a scaled image.
func scaledPatch(p *table.Patch, factor float64) *table.Patch {
	if p == nil || factor == 1 {
		return p
	}
	scaled := func(s table.Sides) table.Sides {
		for i, n := range s {
			if n > 0 {
				s[i] = int(math.Round(float64(n) * factor))
			}
		}
		return s
	}
	out := &table.Patch{Split: scaled(p.Split)}
	if p.Pad != nil {
		pad := scaled(*p.Pad)
		out.Pad = &pad
	}
	return out
}
