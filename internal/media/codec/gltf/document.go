// Package gltf reads glTF 2.0 (.gltf and .glb), reports all errors of a file with their places, and writes a single .glb.
//
// Unknown properties and extensions are preserved, and numbers keep their digits. Reading never allocates more than the
// input and the Limits allow. The package does not access files: the caller provides the bytes of each buffer.
//
// Source: Khronos glTF 2.0 specification (ISO/IEC 12113:2022).
package gltf

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// File name extensions of the text form and the binary form.
const (
	TextExtension   = ".gltf"
	BinaryExtension = ".glb"
)

// Limits are the limits of a document.
type Limits struct {
	JSON   int   // bytes of JSON
	Depth  int   // of nested JSON values
	Values int   // number in the JSON; each takes about 100 bytes, and another 100 while it is read
	Data   int64 // bytes of all buffers
}

// DefaultLimits are far above real games, and far below what overloads a build machine.
func DefaultLimits() Limits {
	return Limits{JSON: 256 << 20, Depth: 100, Values: 4 << 20, Data: 1 << 30}
}

// Problem is the class of a finding.
type Problem uint8

const (
	Syntax    Problem = iota // not valid JSON
	Container                // a damaged .glb, or an empty file
	TooBig                   // above a limit
	Version                  // not glTF 2.x
	Property                 // missing, or of a wrong type or value
	Index                    // an index of an object that does not exist
	Bounds                   // a view or an accessor goes beyond its data
	Layout                   // alignment and stride
	Hierarchy                // of nodes and scenes
	Mesh                     // attributes, indices, morph targets
	Animation                // animations and skins
	NotFinite                // NaN or infinite
	Extension                // a required extension that is unknown
	DataURI                  // not decodable
	Problems                 // number of classes
)

// Level is the severity of a finding.
type Level uint8

const (
	Broken   Level = iota // a loader cannot load the file
	Loadable              // invalid, but a tolerant loader can load it
	Advice                // valid, but worth a message
)

// Finding is one error in a file. It implements error.
type Finding struct {
	Problem
	Level
	Pointer string // JSON pointer of the value, "/nodes/3/children/0"; "" is the whole file

	// Line and Column are the position of the value in the text of a .gltf, from 1, Column in characters. They are 0 in a
	// .glb, whose JSON is not opened in an editor. Length is the number of characters of the value on that line.
	Line, Column, Length int

	Text string // the error, without the pointer
}

func (f *Finding) Error() string {
	if f.Pointer == "" {
		return f.Text
	}
	return f.Pointer + ": " + f.Text
}

// Document is a parsed file.
type Document struct {
	Root *Value
	BIN  []byte // the binary chunk of a .glb, or nil

	glb   bool
	wrong []string // what is wrong with the container of a .glb, and loaders pass over
}

// Read reads a .gltf or .glb, which it distinguishes by the first bytes. The document has slices of data. Errors are a
// *Finding.
func Read(data []byte, lim Limits) (*Document, error) {
	if len(data) == 0 {
		return nil, &Finding{Problem: Container, Text: "the file is empty"}
	}
	d := &Document{glb: isGLB(data)}
	text := data
	if len(data) >= 8 && d.glb && binary.LittleEndian.Uint32(data[4:]) == 1 {
		return nil, &Finding{Problem: Version, Text: "this is binary glTF 1.0 (KHR_binary_glTF, a .glb of version 1); only glTF 2.0 can be read"}
	}
	if d.glb {
		c, err := splitGLB(data)
		if err != nil {
			return nil, &Finding{Problem: Container, Text: err.Error()}
		}
		text, d.BIN, d.wrong = c.json, c.bin, c.wrong
	}
	if len(text) > lim.JSON {
		return nil, &Finding{Problem: TooBig, Text: fmt.Sprintf("%d bytes of JSON are over the limit of %d", len(text), lim.JSON)}
	}
	root, err := parse(text, lim)
	var bad *document.Error
	if errors.As(err, &bad) {
		f := &Finding{Problem: Syntax, Text: bad.Text}
		if bad.Fault == document.Limit {
			f.Problem = TooBig
		}
		if d.place(f, bad.Pos); d.glb {
			f.Text = "the JSON at " + bad.Error()
		}
		return nil, f
	}
	d.Root = root
	return d, nil
}

// Find returns a finding about a value of the document.
func (d *Document) Find(v *Value, p Problem, l Level, format string, args ...any) *Finding {
	f := &Finding{Problem: p, Level: l, Text: fmt.Sprintf(format, args...)}
	if v == nil {
		return f
	}
	f.Pointer, _ = pointer(d.Root, v)
	d.place(f, v.at)
	return f
}

func (d *Document) place(f *Finding, at document.Pos) {
	if !d.glb {
		f.Line, f.Column, f.Length = int(at.Line), int(at.Column), min(int(at.Length), 80)
	}
}

// pointer returns the JSON pointer (RFC 6901) from root to v, found by identity.
func pointer(root, v *Value) (string, bool) {
	if root == v {
		return "", true
	}
	for i, item := range root.Items {
		if v.first > 0 && item.first > 0 && (v.first < item.first || v.first > item.last) {
			continue
		}
		rest, ok := pointer(item, v)
		if !ok {
			continue
		}
		key := strconv.Itoa(i)
		if root.Kind == Object {
			key = strings.NewReplacer("~", "~0", "/", "~1").Replace(root.Names[i])
		}
		return "/" + key + rest, true
	}
	return "", false
}

// IsDataURI reports whether a uri contains its data.
func IsDataURI(uri string) bool { return len(uri) >= 5 && strings.EqualFold(uri[:5], "data:") }

// DecodeDataURI decodes a data: URI (RFC 2397), plain or base64, to its media type, which may be empty, and its bytes.
func DecodeDataURI(uri string, limit int64) (mediaType string, data []byte, err error) {
	head, body, ok := strings.Cut(uri, ",")
	if !IsDataURI(uri) || !ok {
		return "", nil, errors.New(`the data: URI has no ","`)
	}
	if int64(len(body))/4*3 > limit {
		return "", nil, fmt.Errorf("the data: URI holds more than %d bytes", limit)
	}
	mediaType, coded := strings.CutSuffix(head[len("data:"):], ";base64")
	if !coded {
		s, err := url.PathUnescape(body)
		if err != nil {
			return "", nil, fmt.Errorf("the data: URI is not decodable: %w", err)
		}
		return mediaType, []byte(s), nil
	}
	data, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(body, "="))
	if err != nil {
		return "", nil, fmt.Errorf("the data: URI is not decodable: %w", err)
	}
	return mediaType, data, nil
}
