package atlas

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// WriteJSON encodes a table as JSON, one page, frame or animation per line:
//
//	{
//	  "version": 2,
//	  "scale": 1,
//	  "pages": [
//	    {"file":"ui.0.ktx2","sub_id":873244444,"width":64,"height":32}
//	  ],
//	  "frames": {
//	    "button/down": {"page":0,"x":0,"y":0,"w":30,"h":12,"offset_x":1,"offset_y":0,"source_w":32,"source_h":12}
//	  },
//	  "animations": {
//	    "run": ["run_00","run_01"]
//	  }
//	}
//
// The error is that of [Table.Check].
func WriteJSON(t *Table) ([]byte, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"version\": %d,\n  \"scale\": %s,\n  \"pages\": [", Version, t.scale())
	for i, p := range t.Pages {
		b.WriteString(separator(i))
		appendJSON(&b, p)
	}
	b.WriteString("\n  ],\n  \"frames\": {")
	for i, f := range t.Frames {
		b.WriteString(separator(i))
		appendJSON(&b, f.Name)
		b.WriteString(": ")
		appendJSON(&b, f)
	}
	b.WriteString("\n  },\n  \"animations\": {")
	t.appendAnimations(&b, "")
	if len(t.Animations) > 0 {
		b.WriteString("\n  ")
	}
	b.WriteString("}\n}\n")
	return b.Bytes(), nil
}

// scale returns the scale of the table as a decimal number.
func (t *Table) scale() string {
	return strconv.FormatFloat(float64(cmp.Or(t.Scale, 1000))/1000, 'f', -1, 64)
}

// appendAnimations writes the members of the object of animations, with a suffix for the names of the frames.
func (t *Table) appendAnimations(b *bytes.Buffer, suffix string) {
	for i, a := range t.Animations {
		b.WriteString(separator(i))
		appendJSON(b, a.Name)
		b.WriteString(": ")
		names := make([]string, len(a.Frames))
		for k, f := range a.Frames {
			names[k] = t.Frames[f].Name + suffix
		}
		appendJSON(b, names)
	}
}

func separator(i int) string {
	if i == 0 {
		return "\n    "
	}
	return ",\n    "
}

// appendJSON writes a value without the final line end of an Encoder, and without escapes for HTML.
func appendJSON(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // cannot happen: strings and integers always encode
	}
	b.Truncate(b.Len() - 1)
}

// ReadJSON decodes the output of [WriteJSON].
func ReadJSON(data []byte) (*Table, error) {
	var doc struct {
		Version    int                 `json:"version"`
		Scale      float64             `json:"scale"`
		Pages      []Page              `json:"pages"`
		Frames     map[string]Frame    `json:"frames"`
		Animations map[string][]string `json:"animations"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if doc.Version != Version {
		return nil, fmt.Errorf("frame table of version %d, this reader knows %d", doc.Version, Version)
	}
	if !(doc.Scale > 0 && doc.Scale*1000 <= MaxScale) {
		return nil, fmt.Errorf("scale of %g is not between 0 and %d", doc.Scale, MaxScale/1000)
	}
	t := &Table{Scale: int(math.Round(doc.Scale * 1000)), Pages: doc.Pages}
	index := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(doc.Frames)) {
		f := doc.Frames[name]
		f.Name = name
		index[name] = len(t.Frames)
		t.Frames = append(t.Frames, f)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Animations)) {
		a := Animation{Name: name}
		for _, frame := range doc.Animations[name] {
			i, ok := index[frame]
			if !ok {
				return nil, fmt.Errorf("animation %q has frame %q, which does not exist", name, frame)
			}
			a.Frames = append(a.Frames, i)
		}
		t.Animations = append(t.Animations, a)
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}
