package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

type draft int

const (
	draft7    draft = 7
	draft2020 draft = 2020
)

// draftOf returns the draft whose metaschema has a URL. If there is none, it returns 0 and a hint.
func draftOf(u string) (d draft, hint string) {
	u = strings.TrimSuffix(u, "#")
	if rest, ok := strings.CutPrefix(u, "https"); ok {
		u = "http" + rest
	}
	switch u {
	case "http://json-schema.org/draft-07/schema":
		return draft7, ""
	case "http://json-schema.org/draft/2020-12/schema", "http://json-schema.org/schema":
		return draft2020, ""
	case "http://json-schema.org/draft-06/schema":
		return 0, `write "http://json-schema.org/draft-07/schema#"; all else may stay`
	case "http://json-schema.org/draft-04/schema":
		return 0, `write "http://json-schema.org/draft-07/schema#", "$id" for "id", and numbers for "exclusiveMinimum" and "exclusiveMaximum"`
	case "http://json-schema.org/draft/2019-09/schema":
		return 0, `write "https://json-schema.org/draft/2020-12/schema", "prefixItems" for a list in "items", "items" for "additionalItems", "$dynamicRef" for "$recursiveRef"`
	}
	return 0, `write "http://json-schema.org/draft-07/schema#" or "https://json-schema.org/draft/2020-12/schema"`
}

// file is a schema file that has been read.
type file struct {
	path      string
	value     document.Value
	root      *resource
	resources map[string]*resource // by the URLs of $id in the file
}

// resource is a schema with its own URL: a file, or a schema in it with an $id.
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

// name returns the name of the resource for messages.
func (r *resource) name() string {
	if r == r.file.root {
		return r.file.path
	}
	return r.base.String()
}

// compiler converts schemas to nodes, and checks them against their drafts.
type compiler struct {
	loader       Loader
	files        map[string]*file
	resources    map[string]*resource // by URL
	nodes        map[*document.Value]*node
	tables       map[draft]map[string]*keyword
	patterns     map[string]*pattern
	instructions int                                            // of all patterns together
	wide         map[*document.Value]map[string]*document.Value // lookup tables for objects with many members
	notes        bool

	res    *resource // the current resource
	path   []string  // the path to the current schema
	rank   int       // rank of the current keyword
	refs   []pending // references found and not yet followed
	faults Errors
	failed error // an error of the caller's functions
}

// Compile reads the schema at a fragment of a file, and all schemas that it refers to. from is the place of the
// reference to the file. Errors are Errors, or those of the loader.
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

// read reads a file. Each file is read once.
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
		f.root = newResource(f, u, draft2020)
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

// wrongs returns the errors found so far.
func (c *compiler) wrongs() error {
	if c.failed != nil {
		return c.failed
	}
	if len(c.faults) > 0 {
		return c.faults.sorted()
	}
	return nil
}

// schema compiles a schema and all schemas inside it.
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
	c.is(v, typeBoolean|typeObject)
	n.always, n.never = v.V == true, v.V == false
	return n
}

func (c *compiler) object(n *node, o document.Object) {
	outer := c.res
	c.res = c.enter(n, o)
	n.res = c.res
	table := c.table(c.res.draft)
	for i := range o {
		if k := table[o[i].Key]; k != nil && len(c.faults) < 1000 && c.failed == nil {
			c.rank = k.rank
			c.within(k.name, func() { k.take(c, n, &o[i]) })
		}
	}
	if c.res.draft == draft7 && textOf(o.Get("$ref")) != nil { // draft 7 ignores keywords beside $ref
		*n = node{value: n.value, res: n.res, refs: n.refs}
	}
	slices.SortStableFunc(n.asserts, func(a, b assertion) int { return a.rank - b.rank })
	if c.loader.Note != nil && c.failed == nil {
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

// within calls do with one step, a key or an index, added to the path.
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

// wrong adds the error that a value is not valid in its draft.
func (c *compiler) wrong(v *document.Value, words string) {
	c.add(Error{Place: c.place(v.Pos), Path: slices.Clone(c.path), Keyword: c.keyword(), Text: words})
}

// keyword returns the last step of the path, or "" at the top of a file.
func (c *compiler) keyword() string {
	if len(c.path) == 0 {
		return ""
	}
	return c.path[len(c.path)-1]
}
