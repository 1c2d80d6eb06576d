package atlas

import (
	"bytes"
	"fmt"
)

// PackerJSON is one of the two JSON forms that texture packers share. TexturePacker of CodeAndWeb introduced them; PixiJS,
// Phaser, Cocos and others read them.
type PackerJSON int

const (
	Hash  PackerJSON = iota // "frames" is an object by name
	Array                   // "frames" is a list, the name is a member "filename"
)

// packerRect and packerSize are rectangles and sizes in those files.
type packerRect struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

type packerSize struct {
	W int `json:"w"`
	H int `json:"h"`
}

type packerFrame struct {
	Filename         string         `json:"filename,omitempty"`
	Frame            packerRect     `json:"frame"` // upright, whether it is turned on the page or not
	Rotated          bool           `json:"rotated"`
	Trimmed          bool           `json:"trimmed"`
	SpriteSourceSize packerRect     `json:"spriteSourceSize"`
	SourceSize       packerSize     `json:"sourceSize"`
	Borders          *packerBorders `json:"borders,omitempty"`
}

// packerBorders is a nine-patch in the form of PixiJS.
type packerBorders struct {
	Left   int `json:"left"`
	Top    int `json:"top"`
	Right  int `json:"right"`
	Bottom int `json:"bottom"`
}

type packerMeta struct {
	App     string     `json:"app"`
	Version string     `json:"version"`
	Image   string     `json:"image"`
	Format  string     `json:"format"`
	Size    packerSize `json:"size"`
	Scale   string     `json:"scale"`
	Related []string   `json:"related_multi_packs,omitempty"`
}

// WritePacker encodes one page of a table. files are the names of all pages' JSON files, which the first page lists. Turned
// frames must be turned right: the files cannot represent the other direction. Animations are stored with the first page.
func WritePacker(t *Table, page int, form PackerJSON, files []string) ([]byte, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	if page < 0 || page >= len(t.Pages) {
		return nil, fmt.Errorf("page %d of %d", page, len(t.Pages))
	}
	brackets := [][2]string{Hash: {"{", "}"}, Array: {"[", "]"}}[form]
	var b bytes.Buffer
	b.WriteString("{\n  \"frames\": " + brackets[0])
	n := 0
	for _, f := range t.Frames {
		if f.Page != page {
			continue
		}
		if f.Turn == Left {
			return nil, fmt.Errorf("%q is turned counter-clockwise, which this format cannot represent", f.Name)
		}
		b.WriteString(separator(n))
		n++
		p := f.packer()
		if form == Array {
			p.Filename = f.Name
		} else {
			appendJSON(&b, f.Name)
			b.WriteString(": ")
		}
		appendJSON(&b, p)
	}
	b.WriteString("\n  " + brackets[1] + ",\n")
	if page == 0 && len(t.Animations) > 0 {
		b.WriteString("  \"animations\": {")
		t.appendAnimations(&b, "")
		b.WriteString("\n  },\n")
	}
	p := t.Pages[page]
	meta := packerMeta{App: "Kiln", Version: "1.0", Image: p.File, Format: "RGBA8888", Size: packerSize{p.Width, p.Height}, Scale: t.scale()}
	if page == 0 && len(files) > 1 {
		meta.Related = files[1:]
	}
	b.WriteString("  \"meta\": ")
	appendJSON(&b, meta)
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

func (f *Frame) packer() packerFrame {
	p := packerFrame{
		Frame:            packerRect{f.X, f.Y, f.W, f.H},
		Rotated:          f.Turn == Right,
		Trimmed:          f.W != f.SourceW || f.H != f.SourceH,
		SpriteSourceSize: packerRect{f.OffsetX, f.OffsetY, f.W, f.H},
		SourceSize:       packerSize{f.SourceW, f.SourceH},
	}
	if f.Patch != nil {
		s := f.Patch.Split
		p.Borders = &packerBorders{Left: s[0], Right: s[1], Top: s[2], Bottom: s[3]}
	}
	return p
}
