// Package gltf reads glTF 2.0 (.gltf and .glb), says all that is wrong with a file and where, and
// writes one .glb.
//
// Rules: what the package does not understand, properties and extensions alike, goes through unchanged, and
// numbers keep the digits they were written with. No read allocates more than its input and the Limits
// allow. The package touches no files: whoever calls it brings the bytes of each buffer.
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

// What files are called: text, and binary.
const (
	TextExtension   = ".gltf"
	BinaryExtension = ".glb"
)

// Limits of what is read.
type Limits struct {
	JSON   int   // bytes of JSON
	Depth  int   // of nested JSON values
	Values int   // in the JSON; each takes about 100 bytes, and 100 more while it is read
	Data   int64 // bytes of all buffers
}

// DefaultLimits are far above what games have and far below what hurts a build machine.
func DefaultLimits() Limits {
	return Limits{JSON: 256 << 20, Depth: 100, Values: 4 << 20, Data: 1 << 30}
}

// Problem is what is wrong, as a class.
type Problem uint8

const (
	Syntax    Problem = iota // not JSON
	Container                // a damaged .glb, or an empty file
	TooBig                   // over a limit
	Version                  // not glTF 2.x
	Property                 // missing, of a wrong type or value
	Index                    // of a thing that does not exist
	Bounds                   // a view or an accessor reaches out of its data
	Layout                   // alignment and stride
	Hierarchy                // of nodes and scenes
	Mesh                     // attributes, indices, morph targets
	Animation                // animations and skins
	Extension                // one that is required and unknown
	DataURI                  // not decodable
	Problems                 // number of classes
)

// Level says how bad a finding is.
type Level uint8

const (
	Broken   Level = iota // a loader cannot load this
	Loadable              // against the specification, but a careful loader gets along
	Advice                // allowed, but somebody should know
)

// Finding is one thing that is wrong in a file. It is an error, too.
type Finding struct {
	Problem
	Level
	Pointer string // JSON pointer of the value, "/nodes/3/children/0"; "" is the whole file

	// Line and Column of the value in the text of a .gltf, from 1, Column in characters; 0 in a .glb,
	// whose JSON nobody has in an editor. Length is how many characters the value has on that line.
	Line, Column, Length int

	Text string // what is wrong, without the pointer
}

func (f *Finding) Error() string {
	if f.Pointer == "" {
		return f.Text
	}
	return f.Pointer + ": " + f.Text
}

// Document is a file that was read.
type Document struct {
	Root *Value
	BIN  []byte // the binary chunk of a .glb; nil if there is none

	glb bool
}

// Read reads a .gltf or .glb, told apart by the first bytes. The document keeps parts of data. An error is a *Finding.
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
		var err error
		if text, d.BIN, err = splitGLB(data); err != nil {
			return nil, &Finding{Problem: Container, Text: err.Error()}
		}
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

// Find makes a finding about a value of the document.
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

// pointer is the JSON pointer (RFC 6901) from root to v, found by identity.
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

// IsDataURI tells whether a uri carries its data itself.
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
