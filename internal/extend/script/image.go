package script

import (
	"bytes"
	"errors"
	"fmt"
	stdimage "image"
	"image/png"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// maxSide is the longest side of a picture in a script, in pixels.
const maxSide = 16384

// imageValue is a picture: RGBA, 8 bits a channel, straight alpha, rows from the top down.
type imageValue struct {
	*pixel.Image
	frozen bool
}

func (m *imageValue) String() string      { return fmt.Sprintf("image(%d x %d)", m.Width, m.Height) }
func (*imageValue) Type() string          { return "image" }
func (m *imageValue) Freeze()             { m.frozen = true }
func (*imageValue) Truth() starlark.Bool  { return true }
func (*imageValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: image") }
func (*imageValue) AttrNames() []string {
	return []string{"blit", "compose", "copy", "crop", "flipped", "get", "height", "map", "opaque", "pixels", "png", "premultiplied", "put", "resize", "swizzle", "width"}
}

func (m *imageValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "width":
		return starlark.MakeInt(m.Width), nil
	case "height":
		return starlark.MakeInt(m.Height), nil
	}
	fn := imageMethod(name)
	if fn == nil {
		return nil, nil
	}
	return starlark.NewBuiltin("image."+name, func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return fn(m, &callArgs{t, b.Name(), args, kwargs})
	}), nil
}

func imageMethod(name string) func(*imageValue, *callArgs) (starlark.Value, error) {
	switch name {
	case "crop":
		return (*imageValue).crop
	case "resize":
		return (*imageValue).resize
	case "blit":
		return (*imageValue).blit
	case "compose":
		return (*imageValue).compose
	case "map":
		return (*imageValue).mapped
	case "get":
		return (*imageValue).get
	case "put":
		return (*imageValue).put
	case "pixels":
		return (*imageValue).pixels
	case "png":
		return (*imageValue).png
	case "swizzle":
		return (*imageValue).swizzle
	case "copy", "flipped", "premultiplied", "opaque":
		return (*imageValue).plain
	}
	return nil
}

func imageModule() *starlarkstruct.Module {
	return &starlarkstruct.Module{Name: "image", Members: starlark.StringDict{
		"new":  starlark.NewBuiltin("image.new", newImage),
		"open": starlark.NewBuiltin("image.open", openImage),
		"of":   starlark.NewBuiltin("image.of", imageOf),
	}}
}

// emptyImage allocates a picture.
func emptyImage(t *starlark.Thread, width, height int) (*imageValue, error) {
	if width < 1 || height < 1 || width > maxSide || height > maxSide {
		return nil, fmt.Errorf("an image of %d x %d pixels: its sides are 1 to %d", width, height, maxSide)
	}
	if err := take(t, 4*int64(width)*int64(height)); err != nil {
		return nil, err
	}
	return &imageValue{Image: pixel.New(width, height)}, nil
}

// image.new(width, height, color=(0, 0, 0, 0))
func newImage(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var width, height int
	var color starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "width", &width, "height", &height, "color?", &color); err != nil {
		return nil, err
	}
	m, err := emptyImage(t, width, height)
	if err != nil || color == nil {
		return m, err
	}
	c, err := colorOf(color)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(m.Pix); i += 4 {
		copy(m.Pix[i:], c[:])
	}
	return m, nil
}

// image.open(data, name="") decodes the bytes of an image file.
func openImage(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value
	var name string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "data", &v, "name?", &name); err != nil {
		return nil, err
	}
	data, err := bytesOf(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	return decodeImage(t, name, data)
}

func decodeImage(t *starlark.Thread, name string, data []byte) (starlark.Value, error) {
	config, err := pixel.DecodeConfig(name, data)
	if err != nil {
		return nil, err
	}
	if err := take(t, 4*int64(config.Width)*int64(config.Height)); err != nil {
		return nil, err
	}
	limits := pixel.Limits{MaxSide: maxSide, MaxBytes: maxValue}
	if err := askMemory(t, pixel.CostOf(name, data, limits).Decode); err != nil {
		return nil, err
	}
	m, err := pixel.Decode(name, data, limits)
	if err != nil {
		return nil, err
	}
	return &imageValue{Image: m}, nil
}

// image.of(width, height, pixels, channels="rgba") makes an image from bytes, row by row from the
// top.
func imageOf(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var width, height int
	var v starlark.Value
	channels := "rgba"
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "width", &width, "height", &height, "pixels", &v, "channels?", &channels); err != nil {
		return nil, err
	}
	order, err := channelsOf(channels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	data, err := bytesOf(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	m, err := emptyImage(t, width, height)
	if err != nil {
		return nil, err
	}
	if n := len(order); len(data) != n*width*height {
		return nil, fmt.Errorf("%s: %d bytes, and %d x %d pixels of %d channels take %d", b.Name(), len(data), width, height, n, n*width*height)
	}
	if !strings.Contains(channels, "a") {
		for i := 3; i < len(m.Pix); i += 4 {
			m.Pix[i] = 255
		}
	}
	if channels == "rgba" {
		copy(m.Pix, data)
		return m, nil
	}
	n := len(order)
	for k, c := range order {
		for i, at := c, k; i < len(m.Pix); i, at = i+4, at+n {
			m.Pix[i] = data[at]
		}
	}
	return m, nil
}

// channelsOf turns "rgb" into 0, 1, 2.
func channelsOf(s string) ([]int, error) {
	var order []int
	for _, c := range s {
		i := strings.IndexRune("rgba", c)
		if i < 0 || len(order) == 4 {
			return nil, fmt.Errorf("channels are up to four of r, g, b, a, not %q", s)
		}
		order = append(order, i)
	}
	if order == nil {
		return nil, errors.New("channels are up to four of r, g, b, a")
	}
	return order, nil
}

// colorOf reads (r, g, b) or (r, g, b, a), 0 to 255 each.
func colorOf(v starlark.Value) ([4]byte, error) {
	c := [4]byte{3: 255}
	seq, ok := v.(starlark.Indexable)
	if !ok || seq.Len() < 3 || seq.Len() > 4 {
		return c, fmt.Errorf("a color is (r, g, b) or (r, g, b, a), not %s", v.Type())
	}
	for i := range seq.Len() {
		n, err := starlark.AsInt32(seq.Index(i))
		if err != nil || n < 0 || n > 255 {
			return c, errors.New("a color has numbers from 0 to 255")
		}
		c[i] = byte(n)
	}
	return c, nil
}

func (m *imageValue) writable(name string) error {
	if m.frozen {
		return fmt.Errorf("%s: the image is shared by all jobs and cannot be changed: change its copy()", name)
	}
	return nil
}

// plain runs the methods without arguments.
func (m *imageValue) plain(c *callArgs) (starlark.Value, error) {
	if err := c.unpack(); err != nil {
		return nil, err
	}
	if c.name == "image.opaque" {
		return starlark.Bool(m.Opaque()), nil
	}
	if err := take(c.thread, int64(len(m.Pix))); err != nil {
		return nil, err
	}
	switch c.name {
	case "image.flipped":
		return &imageValue{Image: m.Flipped()}, nil
	case "image.premultiplied":
		return &imageValue{Image: m.Premultiplied(true)}, nil
	}
	return &imageValue{Image: m.Crop(0, 0, m.Width, m.Height)}, nil
}

func (m *imageValue) crop(c *callArgs) (starlark.Value, error) {
	var x, y, w, h int
	if err := c.unpack("x", &x, "y", &y, "width", &w, "height", &h); err != nil {
		return nil, err
	}
	if x < 0 || y < 0 || w < 1 || h < 1 || w > m.Width-x || h > m.Height-y {
		return nil, fmt.Errorf("%s: %d x %d pixels at (%d, %d) are not within the image's %d x %d", c.name, w, h, x, y, m.Width, m.Height)
	}
	if err := take(c.thread, 4*int64(w)*int64(h)); err != nil {
		return nil, err
	}
	return &imageValue{Image: m.Crop(x, y, w, h)}, nil
}

// resize(width, height, srgb=True, filter="box"): "nearest" uses the pixel in the middle.
func (m *imageValue) resize(c *callArgs) (starlark.Value, error) {
	var w, h int
	srgb, filter := true, "box"
	if err := c.unpack("width", &w, "height", &h, "srgb?", &srgb, "filter?", &filter); err != nil {
		return nil, err
	}
	out, err := emptyImage(c.thread, w, h)
	if err != nil {
		return nil, err
	}
	switch filter {
	case "box":
		out.Image = pixel.Filter{SRGB: srgb, Weighted: true, Workers: 1}.Resize(m.Image, w, h)
	case "nearest":
		for y := range h {
			row := (2*y + 1) * m.Height / (2 * h) * m.Width
			for x := range w {
				copy(out.Pix[4*(y*w+x):][:4], m.Pix[4*(row+(2*x+1)*m.Width/(2*w)):])
			}
		}
	default:
		return nil, fmt.Errorf("%s: filter is \"box\" or \"nearest\", not %q", c.name, filter)
	}
	return out, nil
}

// overlap is the part of another image at (x, y) that is inside this one.
func (m *imageValue) overlap(from *imageValue, x, y int) (x0, y0, x1, y1 int) {
	return max(0, x), max(0, y), min(m.Width, x+from.Width), min(m.Height, y+from.Height)
}

func (m *imageValue) onto(c *callArgs) (from *imageValue, x, y int, err error) {
	if err := c.unpack("image", &from, "x", &x, "y", &y); err != nil {
		return nil, 0, 0, err
	}
	if x < -maxSide || y < -maxSide || x > maxSide || y > maxSide {
		x, y = maxSide, maxSide // far outside: nothing overlaps
	}
	if from == m {
		from = &imageValue{Image: m.Crop(0, 0, m.Width, m.Height)}
	}
	return from, x, y, m.writable(c.name)
}

// blit replaces pixels by those of another image; what is outside is left out.
func (m *imageValue) blit(c *callArgs) (starlark.Value, error) {
	from, x, y, err := m.onto(c)
	if err != nil {
		return nil, err
	}
	x0, y0, x1, y1 := m.overlap(from, x, y)
	for row := y0; row < y1 && x0 < x1; row++ {
		copy(m.Pix[4*(row*m.Width+x0):4*(row*m.Width+x1)], from.Pix[4*((row-y)*from.Width+x0-x):])
	}
	return starlark.None, nil
}

// compose draws another image over this one: source over destination with straight alpha (Porter and Duff, 1984), in
// whole numbers.
func (m *imageValue) compose(c *callArgs) (starlark.Value, error) {
	from, x, y, err := m.onto(c)
	if err != nil {
		return nil, err
	}
	x0, y0, x1, y1 := m.overlap(from, x, y)
	for row := y0; row < y1; row++ {
		for col := x0; col < x1; col++ {
			d, s := m.Pix[4*(row*m.Width+col):][:4], from.Pix[4*((row-y)*from.Width+col-x):][:4]
			sa := uint32(s[3]) * 255
			da := uint32(d[3]) * (255 - uint32(s[3]))
			a := sa + da // of 255*255
			if a == 0 {
				continue
			}
			for i := range 3 {
				d[i] = byte((uint32(s[i])*sa + uint32(d[i])*da + a/2) / a)
			}
			d[3] = byte((a + 127) / 255)
		}
	}
	return starlark.None, nil
}

// map(r=, g=, b=, a=, rgb=) returns an image with channels mapped by tables: bytes or a list of 256 numbers, or a
// function of a number.
func (m *imageValue) mapped(c *callArgs) (starlark.Value, error) {
	var tables [5]starlark.Value
	if err := c.unpack("r?", &tables[0], "g?", &tables[1], "b?", &tables[2], "a?", &tables[3], "rgb?", &tables[4]); err != nil {
		return nil, err
	}
	if err := take(c.thread, int64(len(m.Pix))); err != nil {
		return nil, err
	}
	out := &imageValue{Image: m.Crop(0, 0, m.Width, m.Height)}
	if tables[4] != nil {
		for i := range 3 {
			if tables[i] == nil {
				tables[i] = tables[4]
			}
		}
	}
	for i, v := range tables[:4] {
		if v == nil {
			continue
		}
		t, err := tableOf(c.thread, v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		for k := i; k < len(out.Pix); k += 4 {
			out.Pix[k] = t[out.Pix[k]]
		}
	}
	return out, nil
}

func tableOf(t *starlark.Thread, v starlark.Value) (table [256]byte, err error) {
	var at func(i int) (starlark.Value, error)
	switch v := v.(type) {
	case starlark.Bytes:
		if len(v) != 256 {
			return table, fmt.Errorf("a table has 256 bytes, not %d", len(v))
		}
		copy(table[:], v)
		return table, nil
	case starlark.Callable:
		at = func(i int) (starlark.Value, error) {
			return starlark.Call(t, v, starlark.Tuple{starlark.MakeInt(i)}, nil)
		}
	case *starlark.List:
		if v.Len() != 256 {
			return table, fmt.Errorf("a table has 256 numbers, not %d", v.Len())
		}
		at = func(i int) (starlark.Value, error) { return v.Index(i), nil }
	default:
		return table, fmt.Errorf("a table is bytes, a list or a function, not %s", v.Type())
	}
	for i := range table {
		v, err := at(i)
		if err != nil {
			return table, err
		}
		n, err := starlark.AsInt32(v)
		if err != nil || n < 0 || n > 255 {
			return table, fmt.Errorf("a table makes %s of %d: want a whole number from 0 to 255", v.Type(), i)
		}
		table[i] = byte(n)
	}
	return table, nil
}

func (m *imageValue) offset(c *callArgs, x, y int) (int, error) {
	if x < 0 || y < 0 || x >= m.Width || y >= m.Height {
		return 0, fmt.Errorf("%s: (%d, %d) is not within the image's %d x %d", c.name, x, y, m.Width, m.Height)
	}
	return 4 * (y*m.Width + x), nil
}

func (m *imageValue) get(c *callArgs) (starlark.Value, error) {
	var x, y int
	if err := c.unpack("x", &x, "y", &y); err != nil {
		return nil, err
	}
	at, err := m.offset(c, x, y)
	if err != nil {
		return nil, err
	}
	t := make(starlark.Tuple, 4)
	for i := range t {
		t[i] = starlark.MakeInt(int(m.Pix[at+i]))
	}
	return t, nil
}

func (m *imageValue) put(c *callArgs) (starlark.Value, error) {
	var x, y int
	var color starlark.Value
	if err := c.unpack("x", &x, "y", &y, "color", &color); err != nil {
		return nil, err
	}
	at, err := m.offset(c, x, y)
	if err == nil {
		err = m.writable(c.name)
	}
	if err != nil {
		return nil, err
	}
	rgba, err := colorOf(color)
	copy(m.Pix[at:], rgba[:])
	return starlark.None, err
}

// pixels(channels="rgba") returns all pixels as bytes, row by row from the top.
func (m *imageValue) pixels(c *callArgs) (starlark.Value, error) {
	channels := "rgba"
	if err := c.unpack("channels?", &channels); err != nil {
		return nil, err
	}
	order, err := channelsOf(channels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	n := len(order)
	if err := take(c.thread, int64(n*m.Width*m.Height)); err != nil {
		return nil, err
	}
	if channels == "rgba" {
		return starlark.Bytes(m.Pix), nil
	}
	out := make([]byte, n*m.Width*m.Height)
	for k, ch := range order {
		for i, at := ch, k; i < len(m.Pix); i, at = i+4, at+n {
			out[at] = m.Pix[i]
		}
	}
	return starlark.Bytes(out), nil
}

func (m *imageValue) swizzle(c *callArgs) (starlark.Value, error) {
	var order string
	if err := c.unpack("order", &order); err != nil {
		return nil, err
	}
	if len(order) != 4 || strings.Trim(order, "rgba01") != "" {
		return nil, fmt.Errorf("%s: want four of r, g, b, a, 0, 1, not %q", c.name, order)
	}
	if err := take(c.thread, int64(len(m.Pix))); err != nil {
		return nil, err
	}
	out := &imageValue{Image: m.Crop(0, 0, m.Width, m.Height)}
	out.Swizzle(order)
	return out, nil
}

// png returns the image as a PNG file.
func (m *imageValue) png(c *callArgs) (starlark.Value, error) {
	if err := c.unpack(); err != nil {
		return nil, err
	}
	if err := take(c.thread, int64(len(m.Pix))); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	img := &stdimage.NRGBA{Pix: m.Pix, Stride: 4 * m.Width, Rect: stdimage.Rect(0, 0, m.Width, m.Height)}
	if err := png.Encode(&b, img); err != nil {
		return nil, err
	}
	return starlark.Bytes(b.String()), nil
}
