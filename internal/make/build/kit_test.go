package build

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// paletteOf is a picture of squares of colour. Two with different marks differ in one pixel.
func paletteOf(tb testing.TB, side, mark int) []byte {
	tb.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, side, side))
	for i := range side * side {
		x, y := i%side*16/side, i/side*16/side
		m.SetNRGBA(i%side, i/side, color.NRGBA{uint8(16 * x), uint8(16 * y), uint8(255 - 8*x - 7*y), 255})
	}
	m.SetNRGBA(0, 0, color.NRGBA{uint8(mark), uint8(mark >> 8), 0, 255})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// kitModel is a model with a picture inside.
func kitModel(name string, picture []byte) string {
	return fmt.Sprintf(`{"asset": {"version": "2.0"}, "scenes": [{"name": %q}],
 "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}], "textures": [{"source": 0}],
 "images": [{"name": "palette", "uri": "data:image/png;base64,%s"}]}`, name, base64.StdEncoding.EncodeToString(picture))
}

const kitProject = "[project]\nname = \"kit\"\n[platforms.pc]\ntextures = { family = \"bc\" }\n[[parcels]]\nname = \"kit\"\nassets = [\"**\"]\n"

// The models of a kit have one palette, each inside: it is encoded once, stored once, and loaded once.
func TestKit(t *testing.T) {
	const models = 40
	p := newProject(t, "-- kiln.toml --\n"+kitProject)
	p.procs = processors.All()
	palette := paletteOf(t, 32, 0)
	for i := range models {
		p.write(fmt.Sprintf("assets/kit/%02d.gltf", i), kitModel(fmt.Sprint(i), palette))
	}
	b := p.build()
	if b.Requests != 1 || b.RequestsRun != 1 || b.Built != models || b.Failed != 0 {
		t.Fatalf("%+v\n%s", b.Summary, b.messages)
	}
	pc, err := kilnrt.Open(p.path("build/parcels/pc/kit.parcel"))
	p.must(err)
	defer pc.Close()
	loaded := map[string]int{}
	library := kilnrt.NewLibrary()
	library.Mount(pc)
	library.Register("", func(l *kilnrt.Loading) (any, error) {
		loaded[l.Resource.Type()]++
		return l.Resource.Bytes()
	})
	for i := range pc.Len() {
		r, err := pc.At(i)
		p.must(err)
		if _, err := library.LoadResource(r); err != nil {
			t.Fatal(err)
		}
	}
	if pc.Len() != 2*models || loaded["model"] != models || loaded["texture"] != 1 {
		t.Errorf("of %d resources, %v were loaded", pc.Len(), loaded)
	}

	// A picture that cannot be read any more: what the model was stays, and so do all others; a placeholder has a texture of its own.
	p.write("assets/kit/00.gltf", kitModel("0", palette[:len(palette)/2]))
	texture := p.read("build/pc/kit/00.gltf.palette.ktx2")
	if b := p.buildWith(Request{OnError: results.LastGood}); b.Failed != 1 || p.read("build/pc/kit/00.gltf.palette.ktx2") != texture {
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}
	if b := p.build(); b.Failed != 1 || strings.Count(b.messages, "error[K0202]") != 1 || strings.Count(b.messages, "K1203") != 1 {
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}
	if b := p.buildWith(Request{OnError: results.Placeholders}); b.Failed != 1 || p.read("build/pc/kit/00.gltf.glb") == "" {
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}
	p.write("assets/kit/00.gltf", kitModel("0", palette))
	if b := p.build(); b.Failed != 0 || b.Requests != 1 || b.RequestsRun != 0 {
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}
	p.nothing()
}

// BenchmarkKit builds 203 models with a palette of 1024 x 1024 pixels inside: the same in all, and one of its own in each, which is what
// it cost when each image was encoded by itself.
func BenchmarkKit(b *testing.B) {
	const models = 203
	for name, apart := range map[string]bool{"apart": true, "shared": false} {
		b.Run(name, func(b *testing.B) {
			b.StopTimer()
			for range b.N {
				dir := b.TempDir()
				write := func(name string, data []byte) {
					file := filepath.Join(dir, name)
					if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
						b.Fatal(err)
					}
					if err := os.WriteFile(file, data, 0o666); err != nil {
						b.Fatal(err)
					}
				}
				write("kiln.toml", []byte(strings.Replace(kitProject, "bc", "none", 1)))
				palette := paletteOf(b, 1024, 0)
				for i := range models {
					if apart {
						palette = paletteOf(b, 1024, i)
					}
					write(fmt.Sprintf("assets/%03d.gltf", i), []byte(kitModel(fmt.Sprint(i), palette)))
				}
				p, err := Open(workspace.Config{Dir: dir, Version: "bench", Processors: processors.All()})
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Lock(b.Context(), true, func() {}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				r, err := p.Build(b.Context(), Request{Reporter: job.Silent{}})
				b.StopTimer()
				p.Unlock()
				if err != nil || r.Summary.Failed > 0 {
					b.Fatal(err)
				}
				b.ReportMetric(float64(r.Summary.RequestsRun), "encodes")
				b.ReportMetric(float64(r.Summary.Bytes), "bytes-of-products")
			}
		})
	}
}
