package atlas

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/packing"
	"github.com/kiln-pipeline/kiln/processor"
)

// cutKey identifies a cut of an image: the n-th of its part.
type cutKey struct {
	Part string
	N    int
}

// aliases is the part that finds equal pixels. For each scale it makes
//
//	aliases  the cuts that equal an earlier one, with that one
//
// It is separate from the layout, so that a changed image which still equals no other does not run the layout.
func (p proc) aliases(job processor.Job) error {
	plans, err := newPlans(job)
	if err != nil {
		return err
	}
	var parts []string
	if _, err := readPart(job, "list", "parts", &parts); err != nil {
		return err
	}
	groups, err := askGroups(job, parts)
	if err != nil {
		return err
	}
	for _, scale := range plans.s.scales() {
		hashes, err := groups.hashes(job, scale)
		if err != nil {
			return err
		}
		first := map[hash]cutKey{}
		same := [][2]cutKey{}
		for _, part := range parts {
			for n, sum := range hashes[part] {
				k := cutKey{part, n}
				if other, ok := first[sum]; ok {
					same = append(same, [2]cutKey{k, other})
				} else {
					first[sum] = k
				}
			}
		}
		if err := writeJSON(job, at("aliases", scale), same); err != nil {
			return err
		}
	}
	return nil
}

// look reads the sizes of these images, and of those that other assets request.
func (p *plans) look(files []string) error {
	var problems []error
	p.images, problems = p.sources(files)
	return errors.Join(append(problems, p.errors...)...)
}

// placed is an image on a page, as the page's part needs it.
type placed struct {
	Part    string // the part with its pixels
	Start   int    // of its pixels within those of the image, in bytes
	W, H    int
	X, Y    int   // of the image itself, without its extrusion
	Extrude int   `json:",omitempty"`
	Turn    uint8 `json:",omitempty"` // a table.Turn, as a number
}

// sheet is the product "page-NAME" of the layout.
type sheet struct {
	W, H   int
	Bands  int      // number of bands; 1: the page's part draws it
	Images []placed `json:"-"`
}

// layout is the part that finds a place for every image. It makes
//
//	page-NAME    the size of a page, see sheet
//	band-NAME/N  what is where in some rows of it, see band
//	frames       the frame table of each scale
func (p proc) layout(job processor.Job) error {
	plans, err := newPlans(job)
	if err != nil {
		return err
	}
	var files []string
	if _, err := readPart(job, "list", "files", &files); err != nil {
		return err
	}
	if err := plans.look(files); err != nil {
		return err
	}
	if plans.s.Parcel != "" && len(plans.images) == 0 {
		w, err := noSprites(job, plans.s)
		if err != nil {
			return err
		}
		plans.warned = append(plans.warned, w)
	}
	for _, w := range plans.warned {
		job.Warn(w)
	}
	parts := make([]string, len(plans.images))
	for i, src := range plans.images {
		parts[i] = src.part
	}
	groups, err := askGroups(job, parts)
	if err != nil {
		return err
	}
	for _, scale := range plans.s.scales() {
		l := layouter{proc: p, job: job, plans: plans, scale: scale}
		if err := l.read(groups); err != nil {
			return err
		}
		if err := l.run(); err != nil {
			return err
		}
	}
	return nil
}

// layouter lays out one scale.
type layouter struct {
	proc
	job   processor.Job
	plans *plans
	scale int

	frames []*frame
	pages  []sheet
}

// frame is a cut that will be a frame of the table.
type frame struct {
	cut
	source
	key    cutKey // equal for equal pixels
	start  int
	number int    // number at the end of its name; -1: none
	name   string // with the number of a cell
	place  packing.Place
}

// read makes frames from the sizes of images. Of images with the same name it uses the one that fits the
// scale best.
func (l *layouter) read(groups *grouped) error {
	sizes, err := groups.sizes(l.job, l.scale)
	if err != nil {
		return err
	}
	var same [][2]cutKey
	if _, err := readPart(l.job, "aliases", at("aliases", l.scale), &same); err != nil {
		return err
	}
	aliases := map[cutKey]cutKey{}
	for _, pair := range same {
		aliases[pair[0]] = pair[1]
	}
	for i := 0; i < len(l.plans.images); {
		k := i + 1
		for k < len(l.plans.images) && l.plans.images[k].name == l.plans.images[i].name {
			k++
		}
		// They are sorted by density: the first that need not be enlarged, else the largest.
		best := k - 1
		for n := i; n < k; n++ {
			if l.plans.images[n].density >= l.scale {
				best = n
				break
			}
		}
		src := l.plans.images[best]
		l.add(src, sizes[src.part], aliases)
		i = k
	}
	slices.SortStableFunc(l.frames, func(a, b *frame) int { return cmp.Compare(a.name, b.name) })
	return nil
}

// add makes frames of one image.
func (l *layouter) add(src source, s sizes, aliases map[cutKey]cutKey) {
	start := 0
	for n, c := range s.Cuts {
		f := &frame{cut: c, source: src, key: cutKey{src.part, n}, start: start, number: -1, name: src.name}
		start += 4 * c.W * c.H
		if first, ok := aliases[f.key]; ok && src.plan.aliases {
			f.key = first
		}
		if s.Cells > 0 {
			digits := len(strconv.Itoa(s.Cells - 1))
			f.number, f.name = c.Cell, fmt.Sprintf("%s_%0*d", src.name, digits, c.Cell)
		} else if m := numbered.FindStringSubmatch(src.name); m != nil && src.plan.numbers {
			f.number, _ = strconv.Atoi(m[2])
		}
		l.frames = append(l.frames, f)
	}
}

// run packs the frames of one plan after the other, and writes the results.
func (l *layouter) run() error {
	if err := l.check(); err != nil {
		return err
	}
	var groups []plan
	for _, f := range l.frames {
		if !slices.Contains(groups, f.plan) {
			groups = append(groups, f.plan)
		}
	}
	for _, g := range groups {
		var frames []*frame
		for _, f := range l.frames {
			if f.plan == g {
				frames = append(frames, f)
			}
		}
		if err := l.pack(g, frames); err != nil {
			return err
		}
	}
	for i := range l.pages {
		if err := l.writePage(&l.pages[i], pageName(l.plans.s, l.scale, i)); err != nil {
			return err
		}
	}
	t, err := table.Write(l.table())
	if err != nil {
		return &processor.Problem{
			Code: string(diag.AtlasTable), Text: "the frame table cannot be written: " + err.Error(),
			Hint: "split the folder into several atlases, or raise max_size", Err: err,
		}
	}
	return writeHidden(l.job, at("frames", l.scale), t)
}

// writePage writes the input of a page's part and of its bands.
func (l *layouter) writePage(page *sheet, name string) error {
	bands := page.bands(l.scale)
	page.Bands = len(bands)
	if err := writeJSON(l.job, "page-"+name, page); err != nil {
		return err
	}
	for i := range bands {
		if err := writeJSON(l.job, bandName(name, i), bands[i]); err != nil {
			return err
		}
	}
	return nil
}

// check finds frames that are too large, and names shared by cells of a sheet and other images.
func (l *layouter) check() error {
	var problems []error
	pixels, counted := 0, map[cutKey]bool{}
	for i, f := range l.frames {
		if item := f.item(); !l.plans.s.packing(f.plan).Fits(item) {
			problems = append(problems, f.tooBig(l.plans.s))
		}
		if !counted[f.key] {
			counted[f.key] = true
			pixels += f.W * f.H
		}
		if i > 0 && l.frames[i-1].name == f.name {
			problems = append(problems, sameName(l.frames[i-1].source, source{path: f.path, name: f.name}))
		}
	}
	if pixels > l.maxPixels {
		problems = append(problems, &processor.Problem{
			Code: string(diag.AtlasTooMuch),
			Text: fmt.Sprintf("the images in %q have more than %d pixels in all", cmp.Or(l.job.Asset().Path, l.job.Asset().ID), l.maxPixels),
			Hint: "make several atlases of it: one rule for each folder below",
		})
	}
	return errors.Join(problems...)
}

// item is the area that a frame needs.
func (f *frame) item() packing.Item {
	e := 2 * f.plan.extrude
	return packing.Item{Size: packing.Size{W: f.W + e, H: f.H + e}, Upright: f.patch}
}

// pack finds places for frames of one plan, on pages of their own.
func (l *layouter) pack(g plan, frames []*frame) error {
	labels := sortedValues(l.plans.s.Pages)
	slices.Sort(labels)
	labels = slices.Compact(labels)
	var items []packing.Item
	index := map[cutKey]int{} // index in items
	var first []*frame        // by item
	for _, f := range frames {
		label := forFile(l.plans.s.Pages, f.within)
		i, ok := index[f.key]
		if !ok {
			i = len(items)
			index[f.key] = i
			items, first = append(items, f.item()), append(first, f)
		}
		items[i].Upright = items[i].Upright || f.patch
		if label != "" && items[i].Together == 0 {
			items[i].Together = 1 + slices.Index(labels, label)
		}
	}
	o := l.plans.s.packing(g)
	made := packing.Pack(items, o)
	start := len(l.pages)
	for _, size := range made.Pages {
		l.pages = append(l.pages, sheet{W: size.W, H: size.H})
	}
	var problems []error
	for i, f := range first {
		at := made.Places[i]
		if at.Page == packing.Crowded {
			problems = append(problems, f.crowded(forFile(l.plans.s.Pages, f.within)))
			continue
		}
		made.Places[i].Page += start
		made.Places[i].X += g.extrude
		made.Places[i].Y += g.extrude
		at = made.Places[i]
		page := &l.pages[at.Page]
		page.Images = append(page.Images, placed{
			Part: f.part, Start: f.start, W: f.W, H: f.H, X: at.X, Y: at.Y, Extrude: g.extrude, Turn: uint8(l.turn(at)),
		})
	}
	for _, f := range frames {
		f.place = made.Places[index[f.key]]
	}
	return errors.Join(problems...)
}

func (l *layouter) turn(at packing.Place) table.Turn {
	if at.Turned {
		return l.plans.s.turn()
	}
	return table.Upright
}

// crowded is the error for images that must be on one page and do not fit.
func (f *frame) crowded(label string) error {
	return &processor.Problem{
		Code: string(diag.AtlasCrowded), Path: f.path,
		Text: fmt.Sprintf("image does not fit on page %q with the others that pages puts there", label),
		Hint: "raise max_size, or put fewer images on it",
	}
}

// pageName is the name of a page's product: 0, 1, 2 and so on; 0.5x.0 for another scale.
func pageName(s *Settings, scale, i int) string {
	if tag := s.tag(scale); tag != "" {
		return tag + "." + strconv.Itoa(i)
	}
	return strconv.Itoa(i)
}

// table returns the frame table.
func (l *layouter) table() *table.Table {
	t := &table.Table{Scale: l.scale}
	base := path.Base(strings.TrimSuffix(l.job.Asset().ID, "/"))
	for i, page := range l.pages {
		name := pageName(l.plans.s, l.scale, i)
		t.Pages = append(t.Pages, table.Page{
			File:  base + "." + name + l.plans.s.extension(),
			SubID: processor.SubID(name),
			Width: page.W, Height: page.H,
		})
	}
	animations := map[string][]int{}
	for i, f := range l.frames {
		t.Frames = append(t.Frames, table.Frame{
			Name: f.name, Page: f.place.Page, X: f.place.X, Y: f.place.Y, W: f.W, H: f.H,
			OffsetX: f.OffsetX, OffsetY: f.OffsetY, SourceW: f.SourceW, SourceH: f.SourceH,
			Turn: l.turn(f.place), Number: f.number + 1, Patch: f.Patch,
		})
		if f.number >= 0 {
			name := f.name[:strings.LastIndexByte(f.name, '_')]
			animations[name] = append(animations[name], i)
		}
	}
	for name, frames := range animations {
		slices.SortStableFunc(frames, func(a, b int) int { return cmp.Compare(l.frames[a].number, l.frames[b].number) })
		// run_1 and run_01 have the same number: the first by name counts.
		frames = slices.CompactFunc(frames, func(a, b int) bool { return l.frames[a].number == l.frames[b].number })
		t.Animations = append(t.Animations, table.Animation{Name: name, Frames: frames})
	}
	slices.SortFunc(t.Animations, func(a, b table.Animation) int { return cmp.Compare(a.Name, b.Name) })
	return t
}

// tooBig is the error for a frame, with the size of page that it would need.
func (f *frame) tooBig(s *Settings) *processor.Problem {
	const largest = 16384 // maximum of max_size
	trimmed := ""
	if f.W != f.SourceW || f.H != f.SourceH {
		trimmed = fmt.Sprintf(" (%d x %d once trimmed)", f.W, f.H)
	}
	side := max(f.W, f.H) + 2*(max(f.plan.border.W, f.plan.border.H)+f.plan.extrude)
	if f.plan.powerOfTwo {
		side = 1 << bits.Len(uint(side-1))
	}
	hint := fmt.Sprintf("set max_size = %d, make the image smaller, or move it to another folder, as a texture of its own", side)
	if side > largest {
		hint = "make the image smaller, or move it to another folder, as a texture of its own"
	}
	return &processor.Problem{
		Code: string(diag.AtlasImageTooBig), Path: f.path,
		Text: fmt.Sprintf("image of %d x %d pixels%s does not fit on a page: %s", f.SourceW, f.SourceH, trimmed, f.plan.pageRoom()),
		Hint: hint,
	}
}

// pageRoom describes the usable size of a page, and why.
func (p plan) pageRoom() string {
	side := strconv.Itoa(p.max.W)
	if p.max.W != p.max.H {
		side += fmt.Sprintf(" x %d", p.max.H)
	}
	room := "max_size is " + side
	if p.powerOfTwo && p.max.W&(p.max.W-1) != 0 {
		room += fmt.Sprintf(", which as a power of two is %d", 1<<(bits.Len(uint(p.max.W))-1))
	}
	if p.border.W > 0 {
		room += fmt.Sprintf(", border is %d", p.border.W)
	}
	if p.extrude > 0 {
		room += fmt.Sprintf(", extrude is %d", p.extrude)
	}
	return room
}
