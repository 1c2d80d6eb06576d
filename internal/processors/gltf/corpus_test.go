package gltf

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	codec "github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	textures "github.com/kiln-pipeline/kiln/internal/processors/texture"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// TestCorpus builds every model of a folder of real game content, and looks whether each reference in a
// file was recorded and whether the product is valid itself.
func TestCorpus(t *testing.T) {
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS names no folder of real game content")
	}
	files := map[string][]byte{}
	others := map[string][]processortest.OtherProduct{}
	var models []string
	err := filepath.WalkDir(corpus, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(corpus, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch path.Ext(rel) {
		case ".gltf", ".glb":
			models = append(models, rel)
		case ".png":
			others[rel] = []processortest.OtherProduct{fakeTexture(rel)}
		case ".bin":
		default:
			return nil
		}
		files[rel], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(models) == 0 {
		t.Fatal("no models there")
	}
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			r := processortest.Run(t, New(), processortest.Case{
				Files: files, Others: others, Asset: name, Processors: []processor.Processor{textures.New()},
			})
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			for _, w := range r.Warnings {
				t.Logf("warning: %v", &w)
			}
			checkObservations(t, name, files[name], r)
			checkProduct(t, r)
		})
	}
}

func fakeTexture(asset string) processortest.OtherProduct {
	return processortest.OtherProduct{Product: processor.Product{Type: "texture", File: asset + ".ktx2"}}
}

// checkObservations looks for every uri of the source.
func checkObservations(t *testing.T, name string, data []byte, r processortest.Result) {
	t.Helper()
	doc, err := codec.Read(data, codec.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for list, verb := range map[string]string{"buffers": "file ", "images": "products "} {
		for _, v := range doc.Root.Array(list) {
			uri := v.Str("uri")
			if uri == "" || strings.HasPrefix(uri, "data:") {
				continue
			}
			if want := verb + path.Join(path.Dir(name), uri); !slices.Contains(r.Observations, want) {
				t.Errorf("%q was not observed", want)
			}
		}
	}
}

// checkProduct reads the product as a game would, and packs it once more: that changes nothing.
func checkProduct(t *testing.T, r processortest.Result) {
	t.Helper()
	glb := r.Products[""].Data
	doc, err := codec.Read(glb, codec.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	buffers := make([][]byte, len(doc.Root.Array("buffers")))
	if len(buffers) > 0 {
		buffers[0] = doc.BIN
	}
	report := codec.Validate(doc, buffers, codec.DefaultLimits())
	for _, f := range report.Findings {
		if f.Level == codec.Broken {
			t.Errorf("in the product: %v", f)
		}
	}
	if images := len(doc.Root.Array("images")); images > 0 && len(r.Products[""].References) == 0 {
		t.Errorf("%d images, but no reference", images)
	}
	for i, image := range doc.Root.Array("images") {
		if image.Str("uri") == "" || strings.HasPrefix(image.Str("uri"), "data:") || image.Path("extras", "kiln", "uuid") == nil {
			t.Errorf("image %d is not a texture: %s", i, image.AppendJSON(nil))
		}
	}
	again, err := codec.WriteGLB(doc, buffers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(glb, again) {
		t.Errorf("packed again it has %d bytes, before %d", len(again), len(glb))
	}
}
