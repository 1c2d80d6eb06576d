package document

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// YAML reads one YAML document by the core schema of YAML 1.2 (chapter 10.3): yes, no, on and off are strings, and so are
// dates; 010 is ten. Aliases are resolved. "<<" merges mappings: a mapping's own keys have priority, then those of earlier
// mappings. Keys must be strings; only tags of the core schema are allowed. An empty file is null.
func (under Reader) YAML(data []byte) (Value, error) {
	text, err := prepare(data, MaxSize)
	if err != nil {
		return Value{}, err
	}
	if err := checkMarks(text, ",\n:[{", maxMarks); err != nil {
		return Value{}, err
	}
	c := cursor{text: text}
	r := &yamlReader{end: c.at(len(text), 1), left: newBudget(under.ctx), open: map[*yaml.Node]bool{}, anchored: map[*yaml.Node]Value{}}
	dec := yaml.NewDecoder(&untilEnd{under.ctx, bytes.NewReader(oldVersion(text))})
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return Value{Pos: Pos{1, 1, 1}}, nil
	} else if under.ctx.Err() != nil {
		return Value{}, context.Cause(under.ctx)
	} else if err != nil {
		return Value{}, yamlError(text, err)
	}
	switch err := dec.Decode(&second); {
	case under.ctx.Err() != nil:
		return Value{}, context.Cause(under.ctx)
	case err == nil:
		return Value{}, errorf(Unsupported, r.place(&second), "a second YAML document begins").hint("keep one document a file")
	case !errors.Is(err, io.EOF):
		return Value{}, yamlError(text, err)
	}
	return r.value(&doc, 0)
}

// oldVersion returns the text with the directive %YAML 1.1 in place of 1.2, which the parser refuses though it reads the same syntax.
// Each line keeps its length.
func oldVersion(text []byte) []byte {
	for at := 0; at < len(text); {
		line, _, _ := bytes.Cut(text[at:], []byte("\n"))
		if version, ok := bytes.CutPrefix(line, []byte("%YAML")); ok && string(bytes.TrimSpace(version)) == "1.2" {
			text = bytes.Clone(text)
			text[at+bytes.LastIndexByte(line, '2')] = '1'
			return text
		}
		if start := bytes.TrimLeft(line, " \t\r"); len(start) > 0 && start[0] != '%' && start[0] != '#' {
			return text
		}
		at += len(line) + 1
	}
	return text
}

var (
	yamlLine   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^line (\d+): `) })
	yamlAnchor = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^unknown anchor '(.+)' referenced$`) })

	// The parser counts lines from 0 in errors of its grammar, and from 1 in errors of its scanner.
	yamlGrammar = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(did not find expected (<|node content|'-' indicator|key|',' or)|found (duplicate|incompatible|undefined))`)
	})
)

// yamlError converts an error of the parser to an Error. The parser reports at most a line.
func yamlError(text []byte, err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	c := cursor{text: text}
	if m := yamlAnchor().FindStringSubmatch(message); m != nil {
		off := max(0, bytes.Index(text, []byte("*"+m[1])))
		return errorf(Syntax, c.at(off, len(m[1])+1), "there is no anchor %q above", m[1]).hint("define it with &" + m[1] + " before it is used")
	}
	at := Pos{Line: 1}
	if m := yamlLine().FindStringSubmatch(message); m != nil {
		n, _ := strconv.Atoi(m[1])
		at.Line, message = int32(n), message[len(m[0]):]
		if yamlGrammar().MatchString(message) {
			at.Line++
		}
	}
	lines := bytes.Split(bytes.TrimRight(text, "\r\n"), []byte("\n"))
	at.Line = min(at.Line, int32(len(lines))) // for the parser, the end of the file is a separate line
	e := errorf(Syntax, at, "%s", message)
	for n := max(0, int(at.Line)-2); n < min(len(lines), int(at.Line)+1); n++ {
		if i := bytes.IndexByte(lines[n], '\t'); i >= 0 && len(bytes.TrimLeft(lines[n][:i], " ")) == 0 {
			e.Pos = Pos{int32(n + 1), int32(i + 1), 1}
			return e.hint("YAML does not indent with tabs; use spaces")
		}
	}
	return e
}

// untilEnd reads until its context ends. The parser reads a few bytes at a time.
type untilEnd struct {
	ctx context.Context
	io.Reader
}

func (u *untilEnd) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.Reader.Read(p[:min(len(p), 4096)])
}

type yamlReader struct {
	end  Pos // position of the end of the text
	left budget
	open map[*yaml.Node]bool // anchored nodes on the path to the current node

	anchored map[*yaml.Node]Value // values of anchored nodes that were read
}

// place returns the position of a node, at most the end of the text: the parser reports empty nodes after it.
func (r *yamlReader) place(n *yaml.Node) Pos {
	if int32(n.Line) > r.end.Line {
		return r.end
	}
	length := 1
	if n.Kind == yaml.ScalarNode && !strings.Contains(n.Value, "\n") {
		length = max(1, utf8.RuneCountInString(n.Value))
		if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			length += 2
		}
	}
	return Pos{int32(n.Line), int32(n.Column), int32(length)}
}

// value reads a node. The value of an alias is copied at each use and counts against the budget, so ten lines cannot become a billion
// values.
func (r *yamlReader) value(n *yaml.Node, depth int) (Value, error) {
	if n.Anchor == "" || n.Kind == yaml.AliasNode {
		return r.read(n, depth)
	}
	if r.open[n] {
		return Value{}, errorf(Unsupported, r.place(n), "anchor %q holds an alias of itself", n.Anchor).hint("data cannot contain itself; refer to the value by a key instead")
	}
	if v, ok := r.anchored[n]; ok {
		return r.copyOf(v, depth)
	}
	r.open[n] = true
	v, err := r.read(n, depth)
	delete(r.open, n)
	if err == nil {
		r.anchored[n] = v
	}
	return v, err
}

// copyOf copies a value that was read, with the values in it. To read them again would take as long as reading all that they were merged
// from.
func (r *yamlReader) copyOf(v Value, depth int) (Value, error) {
	text := 0
	switch x := v.V.(type) {
	case string:
		text = len(x)
	case Object, []Value:
		if err := r.left.checkDepth(v.Pos, depth+1); err != nil {
			return v, err
		}
	}
	err := r.left.spend(v.Pos, text)
	switch x := v.V.(type) {
	case Object:
		o := make(Object, len(x))
		for i, m := range x {
			if err == nil {
				err = r.left.spend(m.KeyPos, len(m.Key))
			}
			if err != nil {
				return v, err
			}
			o[i] = m
			o[i].Value, err = r.copyOf(m.Value, depth+1)
		}
		v.V = o
	case []Value:
		list := make([]Value, len(x))
		for i := range x {
			if err != nil {
				return v, err
			}
			list[i], err = r.copyOf(x[i], depth+1)
		}
		v.V = list
	}
	return v, err
}

// read reads a node, not considering its anchor.
func (r *yamlReader) read(n *yaml.Node, depth int) (Value, error) {
	at := r.place(n)
	v := Value{Pos: at}
	var err error
	switch n.Kind {
	case yaml.DocumentNode:
		return r.value(n.Content[0], depth)
	case yaml.AliasNode:
		return r.value(n.Alias, depth)
	case yaml.ScalarNode:
		if v.V, err = yamlScalar(n, at); err == nil {
			err = r.left.spend(at, len(n.Value))
		}
		return v, err
	}
	if err := r.left.checkDepth(at, depth+1); err != nil {
		return v, err
	}
	if err := r.left.spend(at, 0); err != nil {
		return v, err
	}
	if want := map[yaml.Kind]string{yaml.SequenceNode: "!!seq", yaml.MappingNode: "!!map"}[n.Kind]; n.ShortTag() != want {
		return v, errorf(Unsupported, at, "tag %s is not of YAML's core schema", n.Tag).hint("remove the tag")
	}
	if n.Kind == yaml.MappingNode {
		v.V, err = r.mapping(n, depth)
		return v, err
	}
	list := make([]Value, len(n.Content))
	for i, item := range n.Content {
		if list[i], err = r.value(item, depth+1); err != nil {
			return v, err
		}
	}
	v.V = list
	return v, nil
}

func (r *yamlReader) mapping(n *yaml.Node, depth int) (Object, error) {
	o := make(Object, 0, len(n.Content)/2)
	var seen keys
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		m, err := r.key(key)
		if err != nil {
			return nil, err
		}
		if err := seen.add(m.Key, m.KeyPos); err != nil {
			return nil, err
		}
		if m.Value, err = r.value(value, depth+1); err != nil {
			return nil, err
		}
		o = append(o, m)
	}
	for _, value := range merged {
		v, err := r.value(value, depth)
		if err != nil {
			return nil, err
		}
		sources, ok := v.V.([]Value)
		if !ok {
			sources = []Value{v}
		}
		for _, s := range sources {
			from, ok := s.V.(Object)
			if !ok {
				return nil, errorf(Unsupported, r.place(value), `"<<" merges mappings only`).hint("give it an alias of a mapping, or a list of those")
			}
			for _, m := range from {
				if _, ok := seen[m.Key]; !ok {
					seen.add(m.Key, m.KeyPos)
					o = append(o, m)
				}
			}
		}
	}
	return o, nil
}

// key reads a key of a mapping.
func (r *yamlReader) key(n *yaml.Node) (Member, error) {
	at := r.place(n)
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return Member{}, errorf(Unsupported, at, "a key is a list or a mapping").hint("keys are strings")
	}
	v, err := yamlScalar(n, at)
	if err != nil {
		return Member{}, err
	}
	s, ok := v.(string)
	if !ok {
		return Member{}, errorf(Unsupported, at, "key %s is not a string", shorten(n.Value)).hint(`put it in quotes: ` + strconv.Quote(shorten(n.Value)))
	}
	return Member{Key: s, KeyPos: at}, r.left.spend(at, len(s))
}

// yamlScalar resolves a scalar: by its tag if it has one, as a string if it is quoted or a block, otherwise by its content.
func yamlScalar(n *yaml.Node, at Pos) (any, error) {
	if n.Style&yaml.TaggedStyle != 0 {
		return yamlTagged(n, at)
	}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Value, nil
	}
	return yamlPlain(n.Value, at)
}

// yamlTagged reads a scalar with an explicit tag, such as !!str 12.
func yamlTagged(n *yaml.Node, at Pos) (any, error) {
	tag := n.ShortTag()
	if tag == "!!str" {
		return n.Value, nil
	}
	v, err := yamlPlain(n.Value, at)
	if err != nil {
		return nil, err
	}
	fits := false
	switch x := v.(type) {
	case nil:
		fits = tag == "!!null"
	case bool:
		fits = tag == "!!bool"
	case int64:
		fits = tag == "!!int" || tag == "!!float"
		if tag == "!!float" {
			v = float64(x)
		}
	case uint64:
		fits = tag == "!!int"
	case float64:
		fits = tag == "!!float"
	}
	if fits {
		return v, nil
	}
	switch tag {
	case "!!null", "!!bool", "!!int", "!!float":
		return nil, errorf(Unsupported, at, "%q is not of its tag %s", shorten(n.Value), tag).hint("correct the value or the tag")
	}
	return nil, errorf(Unsupported, at, "tag %s is not of YAML's core schema", n.Tag).hint("remove the tag")
}

var (
	yamlInt   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-+]?[0-9]+$`) })
	yamlBase  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^0(o[0-7]+|x[0-9a-fA-F]+)$`) })
	yamlFloat = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	})
)

// yamlPlain resolves text without quotes or tag by the table of YAML 1.2, section 10.3.2.
func yamlPlain(s string, at Pos) (any, error) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nil, nil
	case "true", "True", "TRUE":
		return true, nil
	case "false", "False", "FALSE":
		return false, nil
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN":
		return nil, errorf(Number, at, "%s is not a finite number", s).hint("write null or a very large number")
	}
	switch {
	case yamlInt().MatchString(s):
		return integerOf(strings.TrimPrefix(s, "+"), 10, at)
	case yamlBase().MatchString(s):
		base := 16
		if s[1] == 'o' {
			base = 8
		}
		return integerOf(s[2:], base, at)
	case yamlFloat().MatchString(s):
		return floatOf(s, at)
	}
	return s, nil
}
