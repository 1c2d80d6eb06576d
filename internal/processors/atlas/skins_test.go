package atlas

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// skins are user interfaces whose atlases libGDX's own packer made of the raw images beside them.
var skins = []struct {
	name, atlas string
	trim        bool
	anySize     bool // its page's sides are no powers of two

	// Pixels that differ: the raw images were presumably edited after libGDX had packed them.
	edited map[string]int
}{
	{name: "arcade", atlas: "arcade-ui.atlas", trim: true},
	{name: "biological-attack", atlas: "biological-attack-ui.atlas"},
	{name: "clean-crispy", atlas: "clean-crispy-ui.atlas", edited: map[string]int{"scrollpane-knob-horizontal": 1, "scrollpane-knob-vertical": 1, "selectbox-pressed-over": 12}},
	{name: "comic", atlas: "comic-ui.atlas"},
	{name: "commodore64", atlas: "uiskin.atlas", anySize: true},
	{name: "glassy", atlas: "glassy-ui.atlas"},
	{name: "kenney-pixel", atlas: "skin.atlas", trim: true},
	{name: "pixthulhu", atlas: "pixthulhu-ui.atlas"},
}

// described is a region without its place.
func described(r table.Region) string {
	return fmt.Sprintf("size %v split %v pad %v orig %v offset %v index %d", r.Size, r.Split, r.Pad, r.Orig, r.Offset, r.Index)
}

// samePixels checks that regions of one name look the same: where something is transparent its colour does not count.
func samePixels(t *testing.T, a *table.LibGDX, pageA *pixel.Image, b *table.LibGDX, pageB *pixel.Image, edited map[string]int) {
	t.Helper()
	regions := map[string]table.Region{}
	for _, r := range b.Regions {
		regions[r.Name] = r
	}
	for _, r := range a.Regions {
		o := regions[r.Name]
		if o.Size != r.Size {
			continue // told already
		}
		differ := 0
		for y := range r.Size[1] {
			for x := range r.Size[0] {
				p := [4]byte(pageA.Pix[4*((r.XY[1]+y)*pageA.Width+r.XY[0]+x):])
				q := [4]byte(pageB.Pix[4*((o.XY[1]+y)*pageB.Width+o.XY[0]+x):])
				if p != q && (p[3] != 0 || q[3] != 0) {
					differ++
				}
			}
		}
		if differ != edited[r.Name] {
			t.Errorf("%q: %d of %d pixels differ, want %d", r.Name, differ, r.Size[0]*r.Size[1], edited[r.Name])
		}
	}
}

func folderOf(t *testing.T, root, prefix string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		files[prefix+filepath.ToSlash(rel)], err = os.ReadFile(p)
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	return files
}

// margins finds the least border and the least gap between two regions of an atlas of one page.
func margins(a *table.LibGDX) (border, gap int) {
	border, gap = 1<<30, 1<<30
	for i, r := range a.Regions {
		border = min(border, r.XY[0], r.XY[1], a.Pages[0].Width-r.XY[0]-r.Size[0], a.Pages[0].Height-r.XY[1]-r.Size[1])
		for _, o := range a.Regions[i+1:] {
			// How far apart they are on each axis; what is side by side on one is apart on the other.
			dx := max(o.XY[0]-r.XY[0]-r.Size[0], r.XY[0]-o.XY[0]-o.Size[0])
			dy := max(o.XY[1]-r.XY[1]-r.Size[1], r.XY[1]-o.XY[1]-o.Size[1])
			if d := max(dx, dy); d >= 0 {
				gap = min(gap, d)
			}
		}
	}
	return border, gap
}

// The skins' atlases, built of their raw images, have the frames that libGDX made of them.
func TestSkins(t *testing.T) {
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS is not set: no skins to build")
	}
	for _, skin := range skins {
		t.Run(skin.name, func(t *testing.T) {
			dir := filepath.Join(corpus, "gdx-skins", skin.name)
			data, err := os.ReadFile(filepath.Join(dir, "skin", skin.atlas))
			if err != nil {
				t.Fatal(err)
			}
			original, err := table.ReadLibGDX(data)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for _, r := range original.Regions {
				want[r.Name] = described(r)
			}
			files := folderOf(t, filepath.Join(dir, "raw"), "ui/")
			for file := range files {
				if _, ok := want[strings.TrimSuffix(frameName("ui", file), ".9")]; !ok && strings.HasSuffix(file, ".png") {
					delete(files, file) // libGDX was not given it
				}
			}
			border, gap := margins(original)
			r := run(t, files, settings(func(s *Settings) {
				s.Trim, s.Exports, s.Border, s.Padding = skin.trim, []string{"libgdx"}, border, gap
				if skin.anySize {
					s.PowerOfTwo, s.MultipleOf = false, 1
				}
			}))
			made, err := table.ReadLibGDX(r.Products["libgdx"].Data)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, r := range made.Regions {
				got[r.Name] = described(r)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			file := filepath.Join(dir, "skin", original.Pages[0].File)
			data, err = os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			page, err := pixel.Decode(file, data, pixel.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			samePixels(t, original, page, made, pagesOf(t, r)[0], skin.edited)
			theirs, ours := original.Pages[0], made.Pages[0]
			if len(made.Pages) != 1 || ours.Width*ours.Height > theirs.Width*theirs.Height {
				t.Errorf("pages %v, libGDX made %v", made.Pages, original.Pages)
			}
			used, seen := 0, map[[2]int]bool{}
			for _, r := range made.Regions {
				if !seen[r.XY] {
					used += r.Size[0] * r.Size[1]
				}
				seen[r.XY] = true
			}
			fill := func(p table.Page) float64 { return 100 * float64(used) / float64(p.Width*p.Height) }
			t.Logf("| %s | %d | %d, %d | %d x %d, %.1f %% | %d x %d, %.1f %% |", skin.name, len(want), gap, border,
				theirs.Width, theirs.Height, fill(theirs), ours.Width, ours.Height, fill(ours))
		})
	}
}
