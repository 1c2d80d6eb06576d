package treemap

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// Sizes in pixels.
const (
	margin     = 16
	titleSpace = 44
	legendRow  = 22
	header     = 17 // bar with a folder's name
	padding    = 3  // around the content of a folder
	leastSide  = 3  // smallest side of a rectangle that is drawn separately
	leastArea  = 30 // smallest area of it, in square pixels
	lineHeight = 13
	bold       = 12.3 // bold text of 11 pixels is as wide as normal text of this size
	leastLabel = 5    // fewest letters of a name that is cut
)

// palette is the number of kinds with a colour of their own. The others share one.
const palette = 10

// style has the colours: k0 to k9 for ten kinds, kx for the others, d0 and up for folders by depth. Text on them has a
// contrast of at least 4.5 in both schemes.
const style = `:root, svg { --page: #fff; --text: #1d2129; --soft: #5a6270; --edge: #fff; --d0: #e9ecf0; --d1: #dde1e7; --ink: #14181f;
  --k0: #8fbbe8; --k1: #f4b97a; --k2: #98d4a3; --k3: #ea9c9c; --k4: #c7abe6; --k5: #e2cf72; --k6: #7fd0cd; --k7: #eba8d0; --k8: #c2b59b; --k9: #a3b4cc; --kx: #c9cdd3 }
@media (prefers-color-scheme: dark) {
  :root, svg { --page: #15181d; --text: #e6e9ee; --soft: #9aa3b0; --edge: #15181d; --d0: #23282f; --d1: #2d333c; --ink: #f4f6f9;
    --k0: #2f6299; --k1: #93591a; --k2: #2d7440; --k3: #98404a; --k4: #67478f; --k5: #73641c; --k6: #1c6f6d; --k7: #85406d; --k8: #635a45; --k9: #475a75; --kx: #4a505a }
}
text { font: 11px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: var(--text) }
.page { fill: var(--page) } .title { font-size: 17px; font-weight: 600 } .soft { fill: var(--soft) }
.d0 { fill: var(--d0) } .d1 { fill: var(--d1) } .folder { font-weight: 600; fill: var(--text) }
.c rect, .key { stroke: var(--edge); stroke-width: 1 } .c text { fill: var(--ink) } .c:hover rect { stroke: var(--text); stroke-width: 2 } .c .soft { opacity: .75 }
.k0 { fill: var(--k0) } .k1 { fill: var(--k1) } .k2 { fill: var(--k2) } .k3 { fill: var(--k3) } .k4 { fill: var(--k4) } .k5 { fill: var(--k5) }
.k6 { fill: var(--k6) } .k7 { fill: var(--k7) } .k8 { fill: var(--k8) } .k9 { fill: var(--k9) } .kx { fill: var(--kx) }
text { pointer-events: none }
`

// picture is a tree being drawn.
type picture struct {
	root             item
	title            string
	width, mapHeight int
	top, side        int // position and size of the map
	links            bool
	legend           []kind
	colour           map[string]string // CSS class by kind
}

func newPicture(root Node, o Options) *picture {
	p := &picture{root: measure(&root, ""), title: o.Title, width: o.Width, mapHeight: o.Height, top: titleSpace, side: margin, colour: map[string]string{}}
	if p.width <= 0 || p.mapHeight <= 0 {
		p.width, p.mapHeight = 1200, 700
	}
	p.legend = kinds(&p.root)
	for i, k := range p.legend {
		p.colour[k.name] = "kx"
		if i < palette && k.name != "" {
			p.colour[k.name] = fmt.Sprintf("k%d", i)
		}
	}
	return p
}

func (p *picture) height() int { return p.top + p.mapHeight + p.legendRows()*legendRow + margin }

// draw writes the title, the map and the legend.
func (p *picture) draw(b *bytes.Buffer) {
	if p.top > 0 {
		fmt.Fprintf(b, `<text class="title" x="%d" y="28">%s</text>`+"\n", margin, escape(fit(p.title, float64(p.width)-180, 17, 1)))
		fmt.Fprintf(b, `<text class="soft" x="%d" y="28" text-anchor="end">%s</text>`+"\n", p.width-margin, diag.Size(p.root.size))
	}
	area := rect{float64(p.side), float64(p.top), float64(p.width - 2*p.side), float64(p.mapHeight)}
	if p.root.size > 0 && area.w > 2*padding && area.h > 2*padding {
		p.children(b, &p.root, area, 0)
	} else {
		fmt.Fprintf(b, `<rect class="d0" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", area.x, area.y, max(0, area.w), area.h)
	}
	p.drawLegend(b)
}

// children draws the content of a folder. Things that are too small to see share one rectangle.
func (p *picture) children(b *bytes.Buffer, it *item, r rect, depth int) {
	list := it.children
	perPixel := float64(it.size) / (r.w * r.h)
	shown := len(list)
	for shown > 0 && float64(list[shown-1].size) < leastArea*perPixel {
		shown--
	}
	sizes := make([]int64, 0, shown+1)
	for _, c := range list[:shown] {
		sizes = append(sizes, c.size)
	}
	if shown == len(list)-1 && shown > 0 { // a single one is drawn separately
		shown++
		sizes = append(sizes, list[shown-1].size)
	}
	var rest int64
	for _, c := range list[shown:] {
		rest += c.size
	}
	if rest > 0 {
		// The shared rectangle is sorted by its size, like the others.
		at := len(sizes)
		for at > 0 && sizes[at-1] < rest {
			at--
		}
		sizes = append(sizes[:at], append([]int64{rest}, sizes[at:]...)...)
		small := item{name: fmt.Sprintf("%d smaller", len(list)-shown), path: it.path, size: rest, kind: commonKind(list[shown:])}
		list = append(append(append([]item{}, list[:at]...), small), list[at:shown]...)
	}
	for i, c := range squarify(sizes, r) {
		if list[i].folder {
			p.folder(b, &list[i], c, depth)
		} else {
			p.leaf(b, &list[i], c)
		}
	}
}

// commonKind returns the kind of all items, or "" if the items differ.
func commonKind(list []item) string {
	for i := range list {
		if list[i].folder || list[i].kind != list[0].kind {
			return ""
		}
	}
	return list[0].kind
}

func (p *picture) folder(b *bytes.Buffer, it *item, r rect, depth int) {
	inner := rect{r.x + padding, r.y + padding, r.w - 2*padding, r.h - 2*padding}
	named := r.h >= 3*header && r.w >= 40
	if named {
		inner.y += header - padding
		inner.h -= header - padding
	}
	if inner.w < 2*leastSide || inner.h < 2*leastSide {
		p.leaf(b, &item{name: it.name, path: it.path + "/", size: it.size, kind: commonKind(it.children)}, r)
		return
	}
	fmt.Fprintf(b, `<g><title>%s</title><rect class="d%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"/>`, p.hover(it, it.path+"/"), depth%2, r.x+0.5, r.y+0.5, max(0, r.w-1), max(0, r.h-1))
	if named {
		p.folderName(b, it, r)
	}
	b.WriteString("</g>\n")
	p.children(b, it, inner, depth+1)
}

// folderName writes the name of a folder, and at the right its size if both fit.
func (p *picture) folderName(b *bytes.Buffer, it *item, r rect) {
	size := diag.Size(it.size)
	room := r.w - 2*padding - 4
	if width(it.name, bold)+width(size, 11)+12 <= room {
		fmt.Fprintf(b, `<text class="soft" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, r.x+r.w-padding-3, r.y+12.5, size)
	}
	fmt.Fprintf(b, `<text class="folder" x="%.1f" y="%.1f">%s</text>`, r.x+padding+2, r.y+12.5, escape(fit(it.name, room, bold, 3)))
}

func (p *picture) leaf(b *bytes.Buffer, it *item, r rect) {
	class := cmp.Or(p.colour[it.kind], "kx")
	if p.links && it.link != "" {
		fmt.Fprintf(b, `<a href="%s" tabindex="-1">`, escape(it.link))
		defer b.WriteString("</a>\n")
	}
	fmt.Fprintf(b, `<g class="c"><title>%s</title><rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, p.hover(it, it.path), class, r.x, r.y, r.w, r.h)
	if label := fit(it.name, r.w-8, 11, leastLabel); label != "" && r.h >= lineHeight+4 {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`, r.x+4, r.y+lineHeight, escape(label))
		if size := diag.Size(it.size); r.h >= 2*lineHeight+5 && width(size, 11) <= r.w-8 {
			fmt.Fprintf(b, `<text class="soft" x="%.1f" y="%.1f">%s</text>`, r.x+4, r.y+2*lineHeight, size)
		}
	}
	b.WriteString("</g>\n")
}

// hover returns the text that is shown while the pointer is on an item.
func (p *picture) hover(it *item, path string) string {
	s := strings.TrimPrefix(path, "/")
	if it.name != "" && !strings.HasSuffix(strings.TrimSuffix(path, "/"), it.name) {
		s += ": " + it.name
	}
	s += fmt.Sprintf("\n%s, %.1f %%", diag.Size(it.size), 100*float64(it.size)/float64(p.root.size))
	if it.kind != "" {
		s += ", " + it.kind
	}
	if it.note != "" {
		s += "\n" + it.note
	}
	return escape(s)
}

// legendSlots returns the kinds with a colour of their own, and one entry for all others.
func (p *picture) legendSlots() []kind {
	if n := len(p.legend); n <= palette || n == palette+1 && p.legend[palette].name == "" {
		return p.legend
	}
	others := kind{name: fmt.Sprintf("%d others", len(p.legend)-palette)}
	for _, k := range p.legend[palette:] {
		others.size += k.size
	}
	return append(append([]kind{}, p.legend[:palette]...), others)
}

const legendWidth = 190

func (p *picture) legendRows() int {
	perRow := max(1, (p.width-2*p.side)/legendWidth)
	return (len(p.legendSlots()) + perRow - 1) / perRow
}

func (p *picture) drawLegend(b *bytes.Buffer) {
	perRow := max(1, (p.width-2*p.side)/legendWidth)
	for i, k := range p.legendSlots() {
		class := cmp.Or(p.colour[k.name], "kx")
		x, y := p.side+i%perRow*legendWidth, p.top+p.mapHeight+10+i/perRow*legendRow
		name := k.name
		if name == "" {
			name = "other"
		}
		size := diag.Size(k.size)
		fmt.Fprintf(b, `<rect class="key %s" x="%d" y="%d" width="12" height="12" rx="2"/><text x="%d" y="%d">%s <tspan class="soft">%s</tspan></text>`+"\n",
			class, x, y, x+18, y+10, escape(fit(name, legendWidth-40-width(size, 11), 11, 1)), size)
	}
}

// width estimates the width of a text in pixels at a font size. It is slightly more than the width in Arial, so that
// the text fits in most fonts.
func width(s string, size float64) float64 {
	var em float64
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljtfrI.,:;|!'()[]/ ", r):
			em += 0.36
		case strings.ContainsRune("mwMW@%", r):
			em += 0.92
		case r >= 'A' && r <= 'Z':
			em += 0.70
		case r >= 0x2e80: // East Asian scripts
			em += 1.05
		default:
			em += 0.61
		}
	}
	w := em * size
	return w
}

// fit cuts a text at its end so that it fits. It returns "" if fewer than least letters would be left.
func fit(s string, room, size float64, least int) string {
	if width(s, size) <= room {
		return s
	}
	room -= width("…", size)
	kept := 0
	for i := range s { // i is the start of each letter
		if width(s[:i], size) > room {
			break
		}
		kept = i
	}
	if utf8.RuneCountInString(s[:kept]) < least {
		return ""
	}
	return s[:kept] + "…"
}
