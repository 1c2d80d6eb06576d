package schema

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/codec/document"
)

type draft int

const (
	draft4    draft = 4
	draft6    draft = 6
	draft7    draft = 7
	draft2019 draft = 2019
	draft2020 draft = 2020
	newest          = draft2020
)

// draftOf is the draft whose metaschema a URL names, or 0.
func draftOf(u string) draft {
	u, ok := strings.CutPrefix(strings.TrimSuffix(u, "#"), "http")
	if u = strings.TrimPrefix(u, "s"); !ok {
		return 0
	}
	switch u {
	case "://json-schema.org/draft-04/schema":
		return draft4
	case "://json-schema.org/draft-06/schema":
		return draft6
	case "://json-schema.org/draft-07/schema":
		return draft7
	case "://json-schema.org/draft/2019-09/schema":
		return draft2019
	case "://json-schema.org/draft/2020-12/schema", "://json-schema.org/schema":
		return draft2020
	}
	return 0
}

// file is a schema file that was read.
type file struct {
	path      string
	value     document.Value
	root      *resource
	resources map[string]*resource // by the URLs of $id in it
}

// resource is a schema with a URL of its own: a file, or a schema in it with an $id.
type resource struct {
	file    *file
	root    *node
	base    *url.URL
	draft   draft
	anchors map[string]*node
	dynamic map[string]*node // by $dynamicAnchor
}

func newResource(f *file, base *url.URL, d draft) *resource {
	return &resource{file: f, base: base, draft: d, anchors: map[string]*node{}, dynamic: map[string]*node{}}
}

// name is how people know the resource.
func (r *resource) name() string {
	if r == r.file.root {
		return r.file.path
	}
	return r.base.String()
}

// compiler turns schemas as they are written into nodes, and holds them to their drafts.
type compiler struct {
	loader       Loader
	files        map[string]*file
	resources    map[string]*resource // by URL
	nodes        map[*document.Value]*node
	tables       map[draft]map[string]*keyword
	patterns     map[string]*pattern
	instructions int                                            // of all patterns
	wide         map[*document.Value]map[string]*document.Value // objects of many members
	judging      bool                                           // the schema is data: it is held to its draft, but names and references lead nowhere
	notes        bool

	res    *resource // where the compiler is
	path   []string  // the way there
	rank   int       // of the keyword
	refs   []pending // that were found and not yet followed
	faults Errors
	failed error // of the caller's functions
}

// Compile reads the schema at a fragment of a file, and all that it refers to. from is who asks for it. Errors are
// Errors, or those of the loader.
func Compile(l Loader, from Place, path, fragment string) (*Schema, error) {
	c := &compiler{loader: l, files: map[string]*file{}, resources: map[string]*resource{}, nodes: map[*document.Value]*node{}}
	f, err := c.read(&url.URL{Scheme: "kiln", Path: "/" + path}, from, path)
	if err != nil {
		return nil, err
	}
	if err := c.follow(); err != nil {
		return nil, err
	}
	top := &node{}
	c.refs = append(c.refs, pending{node: top, keyword: "$ref", text: "#" + fragment, at: from, res: f.root})
	if err := c.follow(); err != nil {
		return nil, err
	}
	return &Schema{root: top.refs[0].target, notes: c.notes}, nil
}

// read takes in a file, once.
func (c *compiler) read(u *url.URL, from Place, path string) (*file, error) {
	f := c.files[path]
	if f == nil {
		if len(c.files) == maxFiles {
			return nil, Errors{{Kind: Limit, Place: from, Text: fmt.Sprintf("the schema has more than %d files", maxFiles), Hint: "put them together"}}
		}
		v, err := c.loader.Read(from, path)
		if err != nil {
			return nil, err
		}
		f = &file{path: path, value: v, resources: map[string]*resource{}}
		f.root = newResource(f, u, newest)
		f.resources[u.String()] = f.root
		c.files[path] = f
		c.res, c.path = f.root, nil
		f.root.root = c.schema(&f.value)
		if err := c.wrongs(); err != nil {
			return nil, err
		}
	}
	if key := u.String(); c.resources[key] == nil {
		c.resources[key] = f.root
	}
	return f, nil
}

// wrongs is what was found wrong until now.
func (c *compiler) wrongs() error {
	if c.failed != nil {
		return c.failed
	}
	if len(c.faults) > 0 {
		return c.faults.sorted()
	}
	return nil
}

// schema compiles one schema and all inside it.
func (c *compiler) schema(v *document.Value) *node {
	if n := c.nodes[v]; n != nil {
		return n
	}
	n := &node{value: v, res: c.res, minContains: -1, maxContains: -1}
	if len(c.nodes) == maxSchemas {
		c.add(Error{Kind: Limit, Place: c.place(v.Pos), Text: fmt.Sprintf("there are more than %d schemas in this one", maxSchemas), Hint: "split it"})
		return n
	}
	c.nodes[v] = n
	if o, ok := v.V.(document.Object); ok {
		c.object(n, o)
		return n
	}
	want := typeObject
	if c.res.draft > draft4 {
		want |= typeBoolean
	}
	c.is(v, want)
	n.always, n.never = v.V == true, v.V == false
	return n
}

func (c *compiler) object(n *node, o document.Object) {
	outer := c.res
	if !c.judging {
		c.res = c.enter(n, o)
		n.res = c.res
	}
	table := c.table(c.res.draft)
	for i := range o {
		if k := table[o[i].Key]; k != nil && len(c.faults) < 1000 && c.failed == nil {
			c.rank = k.rank
			c.within(k.name, func() { k.take(c, n, &o[i]) })
		}
	}
	if c.res.draft <= draft7 && textOf(o.Get("$ref")) != nil { // all that stands beside it means nothing
		*n = node{value: n.value, res: n.res, refs: n.refs}
	}
	slices.SortStableFunc(n.asserts, func(a, b assertion) int { return a.rank - b.rank })
	if c.loader.Note != nil && !c.judging && c.failed == nil {
		n.note, c.failed = c.loader.Note(c.res.file.path, o)
		c.notes = c.notes || n.note != nil
	}
	n.always = len(o) == 0
	c.res = outer
}

func (c *compiler) table(d draft) map[string]*keyword {
	if c.tables == nil {
		c.tables = map[draft]map[string]*keyword{}
	}
	if c.tables[d] == nil {
		c.tables[d] = keywordsOf(d)
	}
	return c.tables[d]
}

// within does something one step further inside: a key or an index.
func (c *compiler) within(step any, do func()) {
	token, isKey := step.(string)
	if i, isIndex := step.(int); !isKey && isIndex {
		token = strconv.Itoa(i)
	}
	c.path = append(c.path, token)
	do()
	c.path = c.path[:len(c.path)-1]
}

func (c *compiler) place(at document.Pos) Place { return Place{c.res.file.path, at} }

func (c *compiler) add(e Error) {
	e.depth = len(e.Path)
	c.faults = append(c.faults, &e)
}

// wrong says that a value is not as its draft has it.
func (c *compiler) wrong(v *document.Value, words string) {
	keyword := ""
	if len(c.path) > 0 {
		keyword = c.path[len(c.path)-1]
	}
	c.add(Error{Place: c.place(v.Pos), Path: slices.Clone(c.path), Keyword: keyword, Text: words})
}

// The methods that follow read values of keywords, and say what is wrong with them.

func (c *compiler) is(v *document.Value, want types) bool {
	if typeOf(v.V)&want != 0 {
		return true
	}
	c.wrong(v, wrongType(v.V, want))
	return false
}

func (c *compiler) text(v *document.Value) (string, bool) {
	s, _ := v.V.(string)
	return s, c.is(v, typeString)
}

// count is an integer of 0 or more. What is beyond an int is as good as the largest.
func (c *compiler) count(m *document.Member) (int, bool) {
	v := m.Value.V
	if !c.is(&m.Value, typeInteger) {
		return -1, false
	}
	if compare(v, int64(0)) < 0 {
		c.wrong(&m.Value, fmt.Sprintf("is %s, but must be at least 0", digits(v)))
		return -1, false
	}
	if compare(v, int64(math.MaxInt32)) > 0 {
		return math.MaxInt32, true
	}
	f, isFloat := v.(float64)
	if i, isInt := v.(int64); isInt && !isFloat {
		return int(i), true
	}
	return int(f), true
}

// uri reads a text of the format uri or uri-reference.
func (c *compiler) uri(v *document.Value, format string) (string, bool) {
	s, ok := c.text(v)
	if !ok {
		return "", false
	}
	loose := c.res.draft == draft4 && format == "uri-reference" // draft 4 asks for no more than a text
	if _, err := url.Parse(s); err != nil || !loose && !formatOf(format)(s) {
		keyword := "it" // data that a metaschema is asked about
		if len(c.path) > 0 {
			keyword = c.path[len(c.path)-1]
		}
		c.add(Error{Place: c.place(v.Pos), Keyword: keyword, Text: fmt.Sprintf("%s %s is no %s", keyword, quote(s), map[string]string{"uri": "URI", "uri-reference": "URI reference"}[format]), Hint: "write a relative path"})
		return "", false
	}
	return s, true
}

// anchorName is a name for a place in a schema. 2019-09 takes colons, but no _ at the start.
func (c *compiler) anchorName(m *document.Member) (string, bool) {
	s, ok := c.text(&m.Value)
	if !ok {
		return "", false
	}
	letter := func(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
	for i, r := range s {
		first := letter(r) || r == '_' && c.res.draft >= draft2020
		if !first && (i == 0 || !strings.ContainsRune("-._0123456789", r) && (r != ':' || c.res.draft >= draft2020)) {
			ok = false
		}
	}
	if !ok || s == "" {
		c.wrong(&m.Value, fmt.Sprintf("is %s, but must be a name of letters, digits, -, _ and . that begins with a letter", quote(s)))
	}
	return s, ok && s != ""
}

func (c *compiler) atLeastOne(v *document.Value) {
	if l, ok := v.V.([]document.Value); ok && len(l) == 0 {
		c.wrong(v, "has 0 items, but must have at least 1")
	}
}

func (c *compiler) unique(v *document.Value) {
	l, _ := v.V.([]document.Value)
	if i, j := (&run{steps: maxSteps}).twins(l); i >= 0 {
		c.wrong(v, fmt.Sprintf("items %d and %d are equal, but no two may be", i, j))
	}
}

// strings is a list of texts in which none stands twice.
func (c *compiler) strings(v *document.Value) []string {
	if !c.is(v, typeArray) {
		return nil
	}
	l, _ := v.V.([]document.Value)
	var all []string
	for i := range l {
		c.within(i, func() {
			if s, ok := c.text(&l[i]); ok {
				all = append(all, s)
			}
		})
	}
	if c.res.draft == draft4 {
		c.atLeastOne(v)
	}
	c.unique(v)
	return all
}

// child is the schema that a keyword has. In draft 4 true and false are none, but for additional... .
func (c *compiler) child(m *document.Member) *node {
	if allowed, isBool := m.Value.V.(bool); isBool && c.res.draft == draft4 && strings.HasPrefix(m.Key, "additional") {
		return &node{value: &m.Value, res: c.res, always: allowed, never: !allowed}
	}
	return c.schema(&m.Value)
}

func (c *compiler) schemaList(v *document.Value) []*node {
	l, _ := v.V.([]document.Value)
	nodes := make([]*node, len(l))
	for i := range l {
		c.within(i, func() { nodes[i] = c.schema(&l[i]) })
	}
	return nodes
}

func (c *compiler) schemaMap(m *document.Member) map[string]*node {
	if !c.is(&m.Value, typeObject) {
		return nil
	}
	o, _ := m.Value.V.(document.Object)
	nodes := make(map[string]*node, len(o))
	for i := range o {
		c.within(o[i].Key, func() { nodes[o[i].Key] = c.schema(&o[i].Value) })
	}
	return nodes
}
