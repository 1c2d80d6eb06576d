package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/treemap"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

func (a *app) newParcelTreemapCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:     "treemap FILE",
		Short:   "Draw what fills a parcel",
		Long:    "Draw what fills a parcel: a rectangle for each resource, as large as the bytes it takes in the file, in the folders of its name.",
		Example: "  kiln parcel treemap level1.parcel -o level1.svg\n  kiln parcel treemap level1.parcel -o level1.html",
		Args:    exactly("FILE"),
		RunE:    func(_ *cobra.Command, args []string) error { return drawParcel(args[0], out) },
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the picture to `FILE`, .svg or .html")
	return cmd
}

func drawParcel(path, out string) error {
	draw := map[string]func(*bytes.Buffer, treemap.Node, treemap.Options) error{
		".svg":  func(b *bytes.Buffer, n treemap.Node, o treemap.Options) error { return treemap.SVG(b, n, o) },
		".html": func(b *bytes.Buffer, n treemap.Node, o treemap.Options) error { return treemap.HTML(b, n, o) },
	}[strings.ToLower(filepath.Ext(out))]
	if draw == nil {
		return wrongUsage("name the picture with -o: FILE.svg or FILE.html", "kiln parcel treemap needs -o FILE")
	}
	return withParcel(path, func(p *kilnrt.Parcel) error {
		tree, err := parcelTree(p)
		if err != nil {
			return damagedParcel(path, err)
		}
		var b bytes.Buffer
		title := fmt.Sprintf("%s, %s", filepath.Base(path), count(p.Len(), "resource", "resources"))
		if err := draw(&b, tree, treemap.Options{Title: title}); err != nil {
			return err
		}
		return os.WriteFile(out, b.Bytes(), 0o644)
	})
}

// parcelTree is the sizes of a parcel's contents by name. Content that several resources share belongs to the first
// one.
func parcelTree(p *kilnrt.Parcel) (treemap.Node, error) {
	root := treemap.Node{Children: []treemap.Node{}}
	first := map[int64]string{} // name by offset
	h := p.Header()
	left := h.End - h.Waste
	for i := range p.Len() {
		r, err := p.At(i)
		if err != nil {
			return root, err
		}
		name := r.Name()
		if name == "" {
			name = "without a name/" + strconv.Itoa(int(r.ID))
		}
		if r.Stored == 0 || first[r.Offset] != "" {
			continue
		}
		first[r.Offset] = name
		note := fmt.Sprintf("id %d", r.ID)
		if r.Codec != kilnrt.None {
			note += fmt.Sprintf(", %s unpacked", diag.Size(r.Size))
		}
		root.Add(name, treemap.Node{Size: r.Stored, Kind: r.Type(), Note: note})
		left -= r.Stored
	}
	root.Children = append(root.Children, treemap.Node{Name: "index", Size: left, Note: "look-up tables, names, and room between contents"},
		treemap.Node{Name: "waste", Size: h.Waste, Note: "left from changes; compacting gives it back"})
	return root, nil
}
