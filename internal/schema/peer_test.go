package schema_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kiln-pipeline/kiln/internal/codec/document"
)

// files are schemas by their names; main.json is the one that is asked for.
type files map[string][]byte

// Load gives the library what is there.
func (f files) Load(url string) (any, error) {
	for name, data := range f {
		if url == "kiln:///"+name {
			v, err := document.JSON(data)
			return v.Plain(), err
		}
	}
	return nil, errors.New("there is none")
}

// peerCompile is the library's schema.
func peerCompile(f files) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(f)
	c.AssertFormat()
	return c.Compile("kiln:///main.json")
}

func encode(t testing.TB, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMaker holds the random schemas and data to what they are for: some of each are refused, and most of neither.
func TestMaker(t *testing.T) {
	for _, draft := range drafts {
		const schemas, data = 300, 4
		compiled, valid := 0, 0
		for seed := range uint64(schemas) {
			m := newMaker(seed, draft)
			root, f := m.files(t)
			s, err := peerCompile(f)
			if err != nil {
				continue
			}
			compiled++
			for range data {
				if v := parse(t, encode(t, m.data(root, root, 4))); s.Validate(v.Plain()) == nil {
					valid++
				}
			}
		}
		t.Logf("draft %d: the library compiles %d %% of the schemas, and of the data %d %% are valid", draft, compiled*100/schemas, valid*100/(compiled*data))
		if compiled*100 < 60*schemas || compiled*100 > 95*schemas || valid*100 < 40*compiled*data || valid*100 > 80*compiled*data {
			t.Errorf("draft %d: of %d schemas, %d compile; of their %d documents, %d are valid", draft, schemas, compiled, compiled*data, valid)
		}
	}
}

func newMaker(seed uint64, draft int) *maker {
	return &maker{Rand: rand.New(rand.NewPCG(seed, uint64(draft))), draft: draft}
}

// files makes a schema, and what it refers to.
func (m *maker) files(t testing.TB) (root map[string]any, f files) {
	root = m.document()
	return root, files{"main.json": encode(t, root), "other.json": encode(t, m.other())}
}

func parse(t testing.TB, data []byte) *document.Value {
	v, err := document.JSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return &v
}
