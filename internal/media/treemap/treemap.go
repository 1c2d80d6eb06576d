// Package treemap draws a tree of named sizes as rectangles whose areas are the sizes. It shows what takes the space in
// a parcel or an output folder.
//
// The rules of the package:
//
//   - The same tree gives the same bytes, whatever the order of its nodes.
//   - A picture stays small: items of less than a few pixels share one rectangle that shows their number.
//   - A picture is one file without scripts or fonts. It follows the viewer's light or dark scheme.
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

// Node is an item with a size, or a folder of items.
type Node struct {
	Name     string // name within its folder
	Size     int64  // in bytes; ignored for a folder, whose size is the sum of its children
	Kind     string // decides the colour, for example a product type; "" is grey; ignored for a folder
	Note     string // an additional line in the text under the pointer
	Link     string // address that Inline links to; "" for none
	Children []Node
}

// Add adds a leaf at a path below a folder. The path has slashes.
func (n *Node) Add(path string, leaf Node) {
	folder, rest, deeper := strings.Cut(path, "/")
	if !deeper {
		leaf.Name = path
		n.Children = append(n.Children, leaf)
		return
	}
	// Begin with the last folder: paths are usually sorted.
	for i := len(n.Children) - 1; i >= 0; i-- {
		if c := &n.Children[i]; c.Name == folder && c.Children != nil {
			c.Add(rest, leaf)
			return
		}
	}
	n.Children = append(n.Children, Node{Name: folder, Children: []Node{}})
	n.Children[len(n.Children)-1].Add(rest, leaf)
}

// Options are settings for drawing.
type Options struct {
	Title         string
	Width, Height int // size of the map in pixels, without title and legend; 0 means 1200 by 700
}

// SVG writes the tree as an SVG picture.
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

// HTML writes a page with the picture, as wide as the window.
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

// Inline writes the picture as an SVG element for a page, without title and colours. The page's style sets the colours
// of these classes: d0 and d1 are folders, k0 to k9 and kx are kinds, soft is less important text, key is a square of
// the legend. o.Title is the label for screen readers. The links are not reachable with the tab key; the page should
// have the same links in a list.
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

// item is a node with its total size and sorted children.
type item struct {
	name, kind, note string
	link             string
	path             string
	size             int64
	children         []item
	folder           bool
}

// most is the largest size. It keeps sums from overflowing.
const most = 1 << 60

// measure computes the total sizes of a tree, and sorts it. Items without a size are left out. A folder that contains
// only one folder is joined with it.
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

// kinds returns the total size of each kind, largest first. The empty kind is last.
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

// escape escapes text for SVG and HTML.
func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a strings.Builder returns no errors
	return b.String()
}
