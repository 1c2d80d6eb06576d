package texture

import "github.com/kiln-pipeline/kiln/internal/media/pixel"

// Encode returns the bytes of the file, in pieces: of a large texture, a second copy of all levels would be large, too.
func (p *Plan) Encode(t Tools) ([][]byte, error) {
	if t.Workers == 0 {
		t.Workers = Workers(p.Width * p.Height * len(p.images.Pictures))
	}
	var levels [][]byte
	var err error
	if p.format.linear() {
		levels, err = p.lightLevels(t)
	} else {
		levels, err = p.levels(t)
	}
	if err != nil {
		return nil, err
	}
	return p.write(levels)
}

// levels returns the bytes of each level, for images with 8 bits a channel.
func (p *Plan) levels(t Tools) ([][]byte, error) {
	f := p.filter(t.Workers)
	images := make([]*pixel.Image, len(p.images.Pictures))
	for i, pic := range p.images.Pictures {
		images[i] = f.Resize(p.prepared(pic.Bits(p.color)), p.Width, p.Height)
	}
	mips := func(m *pixel.Image) []*pixel.Image {
		chain := f.Mips(m)
		if cutoff := p.o.cutoff(); cutoff > 0 && p.color && p.format.channels == 4 {
			pixel.KeepCoverage(chain, cutoff)
		}
		return chain
	}
	var first [][]byte
	all := chains(p, images, mips, f.VolumeMips)
	if t.First != nil {
		first, all = [][]byte{t.First}, all[1:]
	}
	rest, err := joined(all, func(m *pixel.Image) ([]byte, error) { return p.code(m, t) })
	return append(first, rest...), err
}

// code returns the bytes of one image of a level.
func (p *Plan) code(m *pixel.Image, t Tools) ([]byte, error) {
	if p.premultiplies() {
		m = m.Premultiplied(p.SRGB)
	}
	if p.flips() {
		m = m.Flipped()
	}
	return p.pack(m, t)
}

// prepared returns an image after all changes that are made at its full size.
func (p *Plan) prepared(m *pixel.Image) *pixel.Image {
	if key, ok, _ := p.o.Key(); ok {
		m = m.Keyed(key)
	}
	if p.o.Bleed > 0 && !m.Opaque() {
		m = m.Bled(p.o.Bleed)
	}
	if p.o.GreenUp && p.Use == "normal" {
		m = m.InvertGreen()
	}
	return m
}

// lightLevels returns the bytes of each level, for images in floating point.
func (p *Plan) lightLevels(t Tools) ([][]byte, error) {
	f := p.filter(t.Workers)
	images := make([]*pixel.Float, len(p.images.Pictures))
	encoded := p.o.SRGB && (p.Use == "color" || p.Use == "ui" || p.Use == "hdr") // decode, unless it already is light
	for i, pic := range p.images.Pictures {
		if pic.Eight != nil && (p.o.ColorKey != "" || p.o.Bleed > 0) {
			pic = &pixel.Picture{Eight: p.prepared(pic.Eight)}
		}
		images[i] = f.ResizeFloat(pic.Light(encoded), p.Width, p.Height)
	}
	return joined(chains(p, images, f.MipsFloat, f.VolumeMipsFloat), func(m *pixel.Float) ([]byte, error) {
		if p.premultiplies() {
			m = m.Premultiplied()
		}
		if p.flips() {
			m = m.Flipped()
		}
		return p.packLight(m, t)
	})
}

// flips reports whether the order of rows is reversed.
func (p *Plan) flips() bool { return p.o.Flip && p.images.Shape != Cube }

// chains returns for each level its images in the order of the containers.
func chains[T any](p *Plan, images []T, mips func(T) []T, volumeMips func([]T) [][]T) [][]T {
	switch {
	case !p.o.Mips:
		return [][]T{images}
	case p.images.Shape == Volume:
		return volumeMips(images)
	}
	var levels [][]T
	for _, m := range images {
		for n, level := range mips(m) {
			if n == len(levels) {
				levels = append(levels, nil)
			}
			levels[n] = append(levels[n], level)
		}
	}
	return levels
}

// joined encodes the images of each level, one after the other. It releases the images of a level after encoding them.
func joined[T any](levels [][]T, pack func(T) ([]byte, error)) ([][]byte, error) {
	out := make([][]byte, len(levels))
	for n, images := range levels {
		levels[n] = nil
		for i, m := range images {
			data, err := pack(m)
			if err != nil {
				return nil, err
			}
			switch {
			case len(images) == 1:
				out[n] = data // may share memory with the image
				continue
			case i == 0:
				out[n] = make([]byte, 0, len(images)*len(data))
			}
			out[n] = append(out[n], data...)
		}
	}
	return out, nil
}
