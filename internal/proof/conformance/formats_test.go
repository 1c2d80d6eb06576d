package conformance

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/processors"
)

// samples are files of the formats that have a processor but no placeholder.
var samples = map[string]string{
	"JSON": `{"a": [1, 2.5, "x"]}`, "TOML": "a = 1\n", "YAML": "a: [1, 2]\n", "CSV": "id,price\nsword,120\n",
	"TSV": "id\tprice\nsword\t120\n", "Java properties": "title = Knights\n",
}

// TestFormats builds a file of each format of each kind. The second build does nothing. The bytes do not depend on the
// number of workers. A truncated file is built or fails alone. A restored file gives the same products as before.
func TestFormats(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for _, k := range processors.Kinds {
		if k.Processor == nil || k.Processor().Info().Folder {
			continue
		}
		for _, f := range k.Formats {
			if f.Made {
				continue
			}
			text := samples[f.Name]
			if f.Placeholder != nil {
				text = string(f.Placeholder())
			}
			if text == "" {
				t.Errorf("%s: %s has no placeholder; give it a sample here", k.Name, f.Name)
			}
			for _, ext := range f.Extensions {
				files[k.Name+"/a"+ext] = text
			}
		}
	}
	p := newProject(t, goKind, files)
	if b := p.build(1); b.Failed > 0 || len(b.ran) != len(files) {
		t.Fatalf("%d jobs for %d files, %d failed: %v", len(b.ran), len(files), b.Failed, b.messages)
	}
	made := p.products()
	if len(made) < len(files) {
		t.Errorf("%d products of %d files", len(made), len(files))
	}
	p.ran(p.good())
	for name, text := range made {
		if processors.CanDescribe(name) {
			if words, err := processors.Describe(name, []byte(text)); err != nil || words == "" {
				t.Errorf("%s is described as %q, %v", name, words, err)
			}
		}
	}
	other := newProject(t, goKind, files)
	if b := other.build(4); b.Failed > 0 {
		t.Fatal(b.messages)
	}
	if !maps.Equal(made, other.products()) {
		t.Error("with four workers the products are others")
	}
	for name, text := range files {
		p.write("assets/"+name, text[:len(text)/2])
	}
	if b := p.build(2); len(b.ran) != len(files) || b.Failed == 0 {
		t.Errorf("%d jobs ran for %d files cut in half, and %d failed", len(b.ran), len(files), b.Failed)
	}
	for name, text := range files {
		p.write("assets/"+name, text)
	}
	p.good()
	if d := cmp.Diff(made, p.products()); d != "" {
		t.Error("what is put back gives other products")
	}
}
