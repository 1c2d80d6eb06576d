package atlas

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// WriteJSON encodes a table as JSON, one page or frame a line:
//
//	{
//	  "version": 1,
//	  "pages": [
//	    {"file":"ui.0.ktx2","sub_id":873244444,"width":64,"height":32}
//	  ],
//	  "frames": {
//	    "button/down": {"page":0,"x":0,"y":0,"w":30,"h":12,"offset_x":1,"offset_y":0,"source_w":32,"source_h":12}
//	  }
//	}
//
// The error is that of [Table.Check].
func WriteJSON(t *Table) ([]byte, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"version\": %d,\n  \"pages\": [", Version)
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
	b.WriteString("\n  }\n}\n")
	return b.Bytes(), nil
}

func separator(i int) string {
	if i == 0 {
		return "\n    "
	}
	return ",\n    "
}

// appendJSON writes a value without the line end that an Encoder adds, and without escapes for HTML.
func appendJSON(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings and integers always encode
	}
	b.Truncate(b.Len() - 1)
}
