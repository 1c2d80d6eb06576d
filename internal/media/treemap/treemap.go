// Package treemap draws a tree of named sizes as rectangles whose areas are the sizes, to see what fills something: a parcel, an output
// folder.
//
// The rules of the package:
//
//   - The same tree gives the same bytes, in whatever order its nodes are handed in.
//   - A picture stays small: what would have less than a few pixels is drawn together, and says how many it is.
//   - A picture stands alone: one file without scripts or fonts, which follows the light or dark scheme of whoever looks at it.
package treemap

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Node is a thing with a size, or a folder of things.
type Node struct {
	Name     string // within its folder
	Size     int64  // bytes; of a folder it is the sum of its children, and what stands here does not count
	Kind     string // what colour it has, as a product type; "" is grey. Of a folder it does not count
	Note     string // one line more for who points at it
	Link     string // address that it leads to, in Inline; "": nowhere
	Children []Node
}

// Add puts a thing below a folder, at a path with slashes.
func (n *Node) Add(path string, leaf Node) {
	folder, rest, deeper := strings.Cut(path, "/")
	if !deeper {
		leaf.Name = path
		n.Children = append(n.Children, leaf)
		return
	}
	// The last folder first: paths mostly come sorted.
	for i := len(n.Children) - 1; i >= 0; i-- {
		if c := &n.Children[i]; c.Name == folder && c.Children != nil {
			c.Add(rest, leaf)
			return
		}
	}
	n.Children = append(n.Children, Node{Name: folder, Children: []Node{}})
	n.Children[len(n.Children)-1].Add(rest, leaf)
}

// Options are how a tree is drawn.
type Options struct {
	Title         string
	Width, Height int // of the map in pixels, without title and legend; 0: 1200 by 700
}

// SVG writes the picture.
func SVG(w io.Writer, root Node, o Options) error {
	p := newPicture(root, o)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">`+"\n<style>\n%s</style>\n", p.width, p.height(), style)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", p.width, p.height())
	p.draw(&b)
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// HTML writes a page with the picture as wide as the window.
func HTML(w io.Writer, root Node, o Options) error {
	p := newPicture(root, o)
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>%s</title>\n", escape(o.Title))
	fmt.Fprintf(&b, "<style>\nbody { margin: 0; background: var(--page); }\nsvg { display: block; width: 100%%; height: auto; }\n%s</style>\n", style)
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d">`+"\n", p.width, p.height())
	p.draw(&b)
	b.WriteString("</svg>\n</html>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// Inline writes the picture as an element of somebody's page, without title and without colours, which the page's style gives to the
// classes: d0 and d1 are folders, k0 to k9 and kx the kinds, soft is text of less weight, key a square of the legend. It is named by
// o.Title for those who do not see it, and is no stop for the tab key: what it leads to should stand in a list beside it.
func Inline(w io.Writer, root Node, o Options) error {
	p := newPicture(root, o)
	p.links, p.top, p.side = true, 0, 0
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", p.width, p.height(), escape(o.Title))
	p.draw(&b)
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// item is a node on its way into the picture: with its size summed up, its children sorted.
type item struct {
	name, kind, note string
	link             string
	path             string
	size             int64
	children         []item
	folder           bool
}

// most is the largest size that there is, so that sums stay numbers.
const most = 1 << 60

// measure sums up and sorts a tree. Things without a size have no area and are left out; a folder that has but one folder is drawn as one.
func measure(n *Node, above string) item {
	it := item{name: n.Name, kind: n.Kind, note: n.Note, link: n.Link, path: above + n.Name, size: min(max(0, n.Size), most), folder: n.Children != nil}
	if !it.folder {
		return it
	}
	below := it.path + "/"
	if it.path == "" {
		below = ""
	}
	it.size = 0
	for i := range n.Children {
		if c := measure(&n.Children[i], below); c.size > 0 {
			it.children = append(it.children, c)
			it.size = min(it.size+c.size, most)
		}
	}
	slices.SortStableFunc(it.children, func(a, b item) int {
		return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(a.name, b.name), strings.Compare(a.kind, b.kind), strings.Compare(a.note, b.note), strings.Compare(a.link, b.link))
	})
	if len(it.children) == 1 && it.children[0].folder && above+n.Name != "" {
		only := it.children[0]
		only.name = it.name + "/" + only.name
		return only
	}
	return it
}

// kinds sums up sizes by kind, the largest first, what has none last.
func kinds(it *item) []kind {
	sum := map[string]int64{}
	var walk func(it *item)
	walk = func(it *item) {
		if !it.folder {
			sum[it.kind] += it.size
		}
		for i := range it.children {
			walk(&it.children[i])
		}
	}
	walk(it)
	list := make([]kind, 0, len(sum))
	for name, size := range sum {
		list = append(list, kind{name, size})
	}
	slices.SortFunc(list, func(a, b kind) int {
		if (a.name == "") != (b.name == "") {
			return strings.Compare(b.name, a.name)
		}
		return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(a.name, b.name))
	})
	return list
}

type kind struct {
	name string
	size int64
}

// escape makes text safe in SVG and HTML.
func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a strings.Builder has no errors
	return b.String()
}
