package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/schema"
)

// files are schemas by name. main.json is the root.
type files map[string][]byte

// load gives the library a file. A relative reference means a file in the same folder, regardless of an $id above it.
func (f files) load(url string) (any, error) {
	if data, ok := f[path.Base(url)]; ok {
		v, err := document.JSON(data)
		return v.Plain(), err
	}
	return nil, errors.New("there is none")
}

// peerCompile compiles with the library. The library compiles only what the root reaches, while this package requires
// that every reference has a target. So the library is made to compile all schemas in all files that it has read.
func peerCompile(f files) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	read := map[string]any{}
	c.UseLoader(loader(func(url string) (any, error) {
		v, err := f.load(url)
		if err == nil {
			read[url] = v
		}
		return v, err
	}))
	c.AssertFormat()
	s, err := c.Compile("kiln:///main.json")
	for done := 0; err == nil && done < len(read); { // compiling can read more files
		done = len(read)
		for _, url := range slices.Sorted(maps.Keys(read)) {
			pointers(read[url], 2020, "", func(ptr string) {
				if err == nil {
					_, err = c.Compile(url + "#" + ptr)
				}
			})
		}
	}
	return s, err
}

type loader func(url string) (any, error)

func (l loader) Load(url string) (any, error) { return l(url) }

func encode(t testing.TB, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMaker checks that the random schemas and data are useful: some of each are refused, and most are accepted.
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

// files makes a schema and the files that it refers to.
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

// instance is one comparison: two files and a document, as plain values, so that they can be reduced.
type instance struct{ main, other, data any }

// verdict is the result of this package or the library for an instance.
type verdict struct {
	compiles, valid bool
	circle          bool     // the schema refers to itself without end
	at              []string // path of the only error; nil if there are several or none
	why             error
}

// differ compares the two on an instance. It returns how they differ, or "", and whether both have the place of an
// error.
func (c instance) differ(t testing.TB) (how string, placed bool) {
	f := files{"main.json": encode(t, c.main), "other.json": encode(t, c.other)}
	data := parse(t, encode(t, c.data))
	ours, theirs := oursSays(f, data), peerSays(f, data)
	switch {
	case ours.circle || theirs.circle: // they check for circles at different times
		return "", false
	case peerStrays(string(f["main.json"]), string(f["other.json"])):
		return "", false
	case ours.compiles && !theirs.compiles && strings.Contains(theirs.why.Error(), "/enum': items at ") && strings.Contains(string(f["main.json"]), "draft-07"):
		return "", false // see peerStrays about the metaschema of draft 7
	case ours.compiles && !theirs.compiles:
		return "ours takes a schema that the library refuses: " + theirs.why.Error(), false
	case !ours.compiles && theirs.compiles:
		return "ours refuses a schema that the library takes: " + ours.why.Error(), false
	case ours.valid && !theirs.valid && ours.compiles:
		return "ours takes data that the library refuses: " + theirs.why.Error(), false
	case !ours.valid && theirs.valid:
		return "ours refuses data that the library takes: " + ours.why.Error(), false
	case ours.at != nil && theirs.at != nil && !slices.Equal(ours.at, theirs.at):
		return fmt.Sprintf("ours complains at %q, the library at %q", ours.at, theirs.at), false
	}
	return "", ours.at != nil && theirs.at != nil
}

// peerStrays reports whether a schema is one where the library deviates from the specification.
func peerStrays(main, other string) bool {
	switch {
	case strings.Contains(main, `"urn:x:y`) && (strings.Contains(main, `.json`) || strings.Count(main, `id":"`) > 1):
		return true // a relative reference to a URN means the URN itself (RFC 3986, section 5.2: it has no authority, and its path is replaced)
	case strings.Contains(main, `"propertyNames"`) && strings.Contains(main, `"$dynamicRef"`):
		return true // it loses the dynamic scope at a key (2020-12 core, section 7.1)
	case strings.Contains(main, `"enum":[]`):
		return true // its metaschemas differ from those of json-schema.org: draft 7 only advises against an empty enum
	case strings.Contains(other, `"sub.json`) || strings.Contains(other, `"http://x.`) || strings.Contains(other, `"urn:x:y`):
		return true // it does not search the other files for an $id (2020-12 core, section 8.2.3: an absolute URI is one, wherever it was found)
	}
	return false
}

// oursCompile compiles with this package.
func oursCompile(f files) (*schema.Schema, error) {
	return schema.Compile(schema.Loader{
		Path: func(_ schema.Place, ref string) (string, error) {
			if strings.Contains(ref, ":") {
				return "", errors.New("it is remote")
			}
			return ref, nil
		},
		Read: func(_ schema.Place, path string) (document.Value, error) {
			if text, ok := f[path]; ok {
				return document.JSON(text)
			}
			return document.Value{}, fs.ErrNotExist
		},
	}, schema.Place{}, "main.json", "")
}

func oursSays(f files, data *document.Value) verdict {
	s, err := oursCompile(f)
	if err != nil {
		return verdict{why: err, circle: isCircle(err)}
	}
	_, err = s.Validate(data)
	v := verdict{compiles: true, valid: err == nil, circle: isCircle(err), why: err}
	var all schema.Errors
	if errors.As(err, &all) && len(all) == 1 && all[0].Keyword != "unevaluatedProperties" { // this package reports the object, not the key
		v.at = append([]string{}, all[0].Path...)
	}
	return v
}

func isCircle(err error) bool {
	var all schema.Errors
	return errors.As(err, &all) && slices.ContainsFunc(all, func(e *schema.Error) bool { return e.Kind == schema.Circle })
}

func peerSays(f files, data *document.Value) verdict {
	s, err := peerCompile(f)
	if err != nil {
		return verdict{why: err}
	}
	err = s.Validate(data.Plain())
	v := verdict{compiles: true, valid: err == nil, why: err}
	var broken *jsonschema.ValidationError
	if errors.As(err, &broken) {
		leaves := 0
		v.leaves(broken, &leaves)
		if leaves != 1 {
			v.at = nil
		}
	}
	return v
}

// leaves counts the errors without a cause, and records the place of the last one.
func (v *verdict) leaves(e *jsonschema.ValidationError, n *int) {
	if _, ok := e.ErrorKind.(*kind.RefCycle); ok {
		v.circle = true
	}
	switch e.ErrorKind.(type) {
	case *kind.Contains, *kind.MinContains: // the error is about the array, not its items
		e.Causes = nil
	case *kind.PropertyNames: // its locations share memory and change later
		*n++
	}
	if len(e.Causes) == 0 {
		*n++
		v.at = append([]string{}, e.InstanceLocation...)
	}
	for _, c := range e.Causes {
		v.leaves(c, n)
	}
}

// smaller reduces an instance while the two still differ in the same way, for at most a thousand attempts.
func (c instance) smaller(t testing.TB) instance {
	how, _ := c.differ(t)
	how, _, _ = strings.Cut(how, ":")
	attempts := 1000
	for again := true; again; {
		again = false
		for _, part := range []*any{&c.main, &c.other, &c.data} {
			whole := *part
			for v := range reductions(whole) {
				if attempts--; attempts < 0 {
					*part = whole
					return c
				}
				*part = v
				now, _ := c.differ(t)
				if now, _, _ = strings.Cut(now, ":"); now == how {
					again, whole = true, v
					break
				}
				*part = whole
			}
		}
	}
	return c
}

// reductions yields all values with one part less than v, large parts first.
func reductions(v any) iter.Seq[any] {
	return func(yield func(any) bool) {
		switch x := v.(type) {
		case map[string]any:
			keys := slices.Sorted(maps.Keys(x))
			for _, k := range keys {
				less := maps.Clone(x)
				delete(less, k)
				if !yield(less) {
					return
				}
			}
			for _, k := range keys {
				for inner := range reductions(x[k]) {
					less := maps.Clone(x)
					less[k] = inner
					if !yield(less) {
						return
					}
				}
			}
		case []any:
			for i := range x {
				if !yield(slices.Delete(slices.Clone(x), i, i+1)) {
					return
				}
			}
			for i := range x {
				for inner := range reductions(x[i]) {
					less := slices.Clone(x)
					less[i] = inner
					if !yield(less) {
						return
					}
				}
			}
		}
	}
}

// TestPeer compares the verdicts of this package and the library on random schemas and data. KILN_PEER sets the number
// of schemas for each draft and the first seed: "20000 1000". 150 schemas take a second.
func TestPeer(t *testing.T) {
	schemas, first := 100, uint64(0)
	if s := os.Getenv("KILN_PEER"); s != "" {
		if n, err := fmt.Sscan(s, &schemas, &first); n == 0 {
			t.Fatal(err)
		}
	}
	for _, draft := range drafts {
		t.Run(strconv.Itoa(draft), func(t *testing.T) {
			placed := 0
			for seed := first; seed < first+uint64(schemas); seed++ {
				m := newMaker(seed, draft)
				root := m.document()
				c := instance{main: root, other: m.other()}
				if m.in(3) {
					m.misplaced(root)
				}
				for range 4 {
					c.data = m.data(root, root, 4)
					how, same := c.differ(t)
					if same {
						placed++
					}
					if how == "" {
						continue
					}
					c = c.smaller(t)
					how, _ = c.differ(t)
					t.Errorf("draft %d, seed %d: %s\nmain.json %s\nother.json %s\ndata %s", draft, seed, how, encode(t, c.main), encode(t, c.other), encode(t, c.data))
					break
				}
			}
			if placed < schemas/4 {
				t.Errorf("of %d documents, the place of a complaint was compared in %d", 4*schemas, placed)
			}
		})
	}
}

// inside lists the keywords that contain schemas (one, a list, either of these, or some by name), and the drafts that
// have them.
var inside = map[string]struct {
	how    string
	drafts []int
}{
	"additionalItems": {"one", old}, "additionalProperties": {"one", drafts}, "allOf": {"list", drafts}, "anyOf": {"list", drafts},
	"contains": {"one", drafts}, "contentSchema": {"one", latest}, "definitions": {"map", drafts}, "$defs": {"map", latest},
	"dependencies": {"map", drafts}, "dependentSchemas": {"map", latest}, "else": {"one", drafts}, "if": {"one", drafts},
	"items": {"list", drafts}, "not": {"one", drafts}, "oneOf": {"list", drafts}, "patternProperties": {"map", drafts},
	"prefixItems": {"list", latest}, "properties": {"map", drafts}, "propertyNames": {"one", drafts}, "then": {"one", drafts},
	"unevaluatedItems": {"one", latest}, "unevaluatedProperties": {"one", latest},
}

// pointers yields the JSON pointers of all schemas in a schema of a draft.
func pointers(s any, draft int, at string, yield func(string)) {
	o, _ := s.(map[string]any)
	for d, u := range draftURLs {
		if o["$schema"] == u && (at == "" || o["$id"] != nil) {
			draft = d
		}
	}
	for _, k := range slices.Sorted(maps.Keys(o)) {
		below := func(v any, tokens ...string) {
			ptr := at
			for _, t := range tokens {
				ptr += "/" + url.PathEscape(strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1"))
			}
			switch v.(type) {
			case map[string]any, bool:
				yield(ptr)
				pointers(v, draft, ptr, yield)
			}
		}
		in := inside[k]
		if !slices.Contains(in.drafts, draft) {
			continue
		}
		switch in.how {
		case "one":
			below(o[k], k)
		case "list":
			below(o[k], k)
			list, _ := o[k].([]any)
			for i, v := range list {
				below(v, k, strconv.Itoa(i))
			}
		case "map":
			named, _ := o[k].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(named)) {
				below(named[name], k, name)
			}
		}
	}
}
