package atlas

import (
	"fmt"
	"image/color"
	"testing"

	"pgregory.net/rapid"

	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// Images of any size come back from any atlas.
func TestAnySizes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		side := rapid.IntRange(1, 17)
		files := map[string][]byte{}
		for i := range rapid.IntRange(1, 12).Draw(rt, "images") {
			w, h, holes := side.Draw(rt, "w"), side.Draw(rt, "h"), rapid.IntRange(1, 5).Draw(rt, "holes")
			files[fmt.Sprintf("ui/%d.png", i)] = paint(w, h, func(x, y int) color.NRGBA {
				if (x+y*y)%holes > 0 {
					return color.NRGBA{}
				}
				return color.NRGBA{uint8(40 * i), uint8(15 * x), uint8(15 * y), uint8(255 - 9*x)}
			})
		}
		few := rapid.IntRange(0, 3)
		s := settings(func(s *Settings) {
			s.MaxSize = rapid.IntRange(40, 64).Draw(rt, "max_size")
			s.PowerOfTwo, s.Square = rapid.Bool().Draw(rt, "power_of_two"), rapid.Bool().Draw(rt, "square")
			s.Padding, s.Border, s.Extrude = few.Draw(rt, "padding"), few.Draw(rt, "border"), few.Draw(rt, "extrude")
			s.Rotate, s.Trim, s.Aliases = rapid.Bool().Draw(rt, "rotate"), rapid.Bool().Draw(rt, "trim"), rapid.Bool().Draw(rt, "aliases")
			if rapid.Bool().Draw(rt, "for libGDX") {
				s.Exports = []string{"libgdx"}
			}
		})
		r := run(t, files, s)
		restores(t, files, frames(t, r), pagesOf(t, r))
		if t.Failed() {
			rt.Fatal("with these")
		}
	})
}

// Whatever is in a pack.json, the worst that happens are problems.
func FuzzPackJSON(f *testing.F) {
	f.Add([]byte("{ maxWidth: 64, pot: false, wrapX: Repeat, wrapY: Repeat, scale: [ 1, 0.5 ], duplicatePadding: true, paddingX: 3 }"))
	f.Add([]byte("{ paddingX: 16384, edgePadding: true, minWidth: 9, ignore: true, flattenPaths: true }"))
	dot := fill(2, 1, red)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := processortest.Run(t, New(), processortest.Case{Files: map[string][]byte{"ui/pack.json": data, "ui/a/dot.png": dot}, Asset: "ui/"})
		if r.Err == nil && r.Products[""].Data == nil {
			t.Error("neither a problem nor a table")
		}
		for _, p := range processortest.Problems(r.Err) {
			if p.Code == "" || p.Text == "" {
				t.Errorf("%+v", p)
			}
		}
	})
}
