package schema

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// textOf returns the text of a member, or nil if there is none.
func textOf(v *document.Value) *string {
	if v != nil {
		if s, ok := v.V.(string); ok {
			return &s
		}
	}
	return nil
}

func fragmentOf(ref string) string {
	_, fragment, _ := strings.Cut(ref, "#")
	return fragment
}

// identifier returns the $id of a schema and its fragment, as the draft defines them.
func identifier(o document.Object, d draft) (id, fragment string, at document.Pos) {
	v := o.Get("$id")
	s := textOf(v)
	if s == nil || d == draft7 && textOf(o.Get("$ref")) != nil {
		return "", "", document.Pos{}
	}
	id, fragment, _ = strings.Cut(*s, "#")
	return id, fragment, v.Pos
}

// enter returns the resource of a schema. A schema with an $id begins a new one. Up to draft 7 the fragment of an $id
// is an anchor.
func (c *compiler) enter(n *node, o document.Object) *resource {
	res := c.res
	top := n.value == &res.file.value
	d, schema := res.draft, o.Get("$schema")
	hint := ""
	if s := textOf(schema); s != nil {
		d, hint = draftOf(*s)
	}
	id, fragment, at := identifier(o, d)
	if !top && id == "" {
		d = res.draft
		id, fragment, at = identifier(o, d)
	}
	if d == 0 {
		c.add(Error{Kind: Draft, Place: c.place(schema.Pos), Keyword: "$schema", Text: fmt.Sprintf("\"$schema\" is %s, but schemas are read as draft-07 or 2020-12", quote(*textOf(schema))), Hint: hint})
		return res
	}
	if top {
		res.draft, res.root = d, n
	}
	if u, err := res.base.Parse(id); id != "" && err == nil {
		key := u.String()
		if len(key) > maxURL || len(c.resources) > maxResources {
			c.add(Error{Kind: Limit, Place: c.place(at), Text: fmt.Sprintf("there are more than %d schemas with an $id, or this one makes a URL of more than %d characters", maxResources, maxURL), Hint: "shorten it, or split the schema"})
			return res
		}
		if !top {
			res = newResource(res.file, u, d)
			res.root = n
		}
		res.base = u
		if first := res.file.resources[key]; first != nil && first != res {
			c.add(Error{Place: c.place(at), Keyword: "$id", Text: fmt.Sprintf("$id %s is given again; the first is at line %d", quote(id), first.root.value.Line), Hint: "rename one of the two"})
			return res
		}
		res.file.resources[key] = res
		if c.resources[key] == nil {
			c.resources[key] = res
		}
	}
	if name, err := url.PathUnescape(fragment); err == nil && name != "" && d == draft7 && !strings.HasPrefix(name, "/") {
		c.anchor(n, res, name, at)
	}
	return res
}

// anchor adds a name for a schema to its resource.
func (c *compiler) anchor(n *node, res *resource, name string, at document.Pos) {
	if first := res.anchors[name]; first != nil {
		c.add(Error{Place: c.place(at), Keyword: "$anchor", Text: fmt.Sprintf("anchor %s is given again; the first is at line %d", quote(name), first.value.Line), Hint: "rename one of the two"})
		return
	}
	res.anchors[name] = n
}

// pending is a reference that still has to be followed.
type pending struct {
	node          *node
	keyword, text string
	at            Place
	res           *resource // the resource that it is relative to
}

func (c *compiler) refer(n *node, keyword, text string, at document.Pos) {
	c.refs = append(c.refs, pending{n, keyword, text, c.place(at), c.res})
}

// follow resolves all references in the order of the text. The references of a file are resolved directly after the
// reference that caused it to be read.
func (c *compiler) follow() error {
	stack := c.found()
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if err := c.resolve(p); err != nil {
			return err
		}
		stack = append(stack, c.found()...)
	}
	return nil
}

// found returns the references found, the last first.
func (c *compiler) found() []pending {
	found := c.refs
	c.refs = nil
	slices.Reverse(found)
	return found
}

func (c *compiler) resolve(p pending) error {
	text, fragment, _ := strings.Cut(p.text, "#")
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return Errors{{Place: p.at, Keyword: p.keyword, Text: fmt.Sprintf("%s %s is not a URI reference", p.keyword, quote(p.text)), Hint: "write a relative path"}}
	}
	res, err := c.resourceOf(p, text)
	if err != nil {
		return err
	}
	r := reference{}
	switch {
	case fragment == "":
		r.target = res.root
	case strings.HasPrefix(fragment, "/"):
		near := ""
		if r.target, near = c.pointer(res, fragment); r.target == nil {
			return c.nothing(p, fmt.Sprintf("nothing at %s#%s%s", res.name(), shorten(fragment), near))
		}
	default:
		if r.target = res.anchors[fragment]; r.target == nil {
			names := slices.Sorted(maps.Keys(res.anchors))
			near := new(run).meant(fragment, len(names), func(i int) any { return names[i] })
			return c.nothing(p, fmt.Sprintf("no anchor %s#%s%s", res.name(), shorten(fragment), near))
		}
	}
	if p.keyword == "$dynamicRef" && r.target.dynamicAnchor == fragment {
		r.anchor = fragment
	}
	p.node.refs = append(p.node.refs, r)
	return c.wrongs()
}

func (c *compiler) nothing(p pending, what string) error {
	return Errors{{Place: p.at, Keyword: p.keyword, Text: "there is " + what, Hint: "correct what follows the #"}}
}

// resourceOf returns the target of a reference without its fragment: a known resource, or a file.
func (c *compiler) resourceOf(p pending, text string) (*resource, error) {
	if text == "" {
		return p.res, nil
	}
	u, err := p.res.base.Parse(text)
	if err != nil {
		return nil, Errors{{Place: p.at, Keyword: p.keyword, Text: fmt.Sprintf("%s %s is not a URI reference", p.keyword, quote(p.text)), Hint: "write a relative path"}}
	}
	key := u.String()
	if res := p.res.file.resources[key]; res != nil {
		return res, nil
	}
	if res := c.resources[key]; res != nil {
		return res, nil
	}
	path, err := c.loader.Path(p.at, text)
	if err != nil {
		return nil, err
	}
	f, err := c.read(u, p.at, path)
	if err != nil {
		return nil, err
	}
	return f.root, nil
}

// pointer returns the schema at a JSON pointer (RFC 6901). It compiles the schema if it is in a place where the draft
// has no keyword. If there is none, it returns a similar key as a suggestion.
func (c *compiler) pointer(res *resource, pointer string) (n *node, near string) {
	v := res.root.value
	c.path = c.path[:0]
	if !isPointer(pointer) {
		return nil, ""
	}
	for _, t := range strings.Split(pointer[1:], "/") {
		plain := strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
		o, _ := v.V.(document.Object)
		if v = c.step(v, plain); v == nil {
			return nil, new(run).meant(plain, len(o), func(i int) any { return o[i].Key })
		}
		if n := c.nodes[v]; n != nil {
			res = n.res
		}
		c.path = append(c.path, plain)
	}
	c.res = res
	return c.schema(v), ""
}

// step is like At, with a table for objects of many members: thousands of references into one object would otherwise
// take seconds.
func (c *compiler) step(v *document.Value, token string) *document.Value {
	o, ok := v.V.(document.Object)
	if !ok || len(o) <= 64 {
		return v.At(token)
	}
	if c.wide == nil {
		c.wide = map[*document.Value]map[string]*document.Value{}
	}
	if c.wide[v] == nil {
		c.wide[v] = make(map[string]*document.Value, len(o))
		for i := range o {
			c.wide[v][o[i].Key] = &o[i].Value
		}
	}
	return c.wide[v][token]
}

// isPointer reports whether a text is a JSON pointer (RFC 6901, section 3).
func isPointer(s string) bool {
	plain := strings.NewReplacer("~0", "", "~1", "").Replace(s)
	return (s == "" || s[0] == '/') && !strings.Contains(plain, "~")
}
