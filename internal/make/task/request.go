package task

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// Request is a processor with settings on a source. It belongs to no asset. Equal requests are one task on a platform.
type Request struct {
	Processor string
	Given     string // settings from the requester, a JSON object
	ByHand    string // further dependencies by hand, as text in the form of asset.ByHand; it does not contain the bytes 1 and 2
	Source    Source
}

// Source is the source of a request. The zero Source is nothing.
type Source struct {
	Kind SourceKind

	Path string // of File

	Hash      digest.Hash // of Bytes
	Extension string      // with the format of the bytes

	By    Subject // of Product: the task that makes it, without its platform
	SubID uint32
}

// SourceKind is the kind of a request's source. It is the first byte of its text.
type SourceKind byte

const (
	Nothing SourceKind = 0
	File    SourceKind = 'f' // followed by its path
	Bytes   SourceKind = 'b' // followed by their hash and the extension
	// Followed by its sub id, the part and the processor that make it, quoted, and the asset, which may be a
	// request.
	Product SourceKind = 'p'
)

// requestMark is the prefix of the ids of requests. No path below a source root, and no id, begins
// with it.
const requestMark = "//"

// IsRequest reports whether an id stands for a request.
func IsRequest(id string) bool { return strings.HasPrefix(id, requestMark) }

// AsksFor reports whether the text of a subject may mean a request. It is a fast check for everything that
// traces name.
func AsksFor(subject string) bool { return strings.Contains(subject, "\x00"+requestMark) }

// ID returns the id of the asset that stands for a request.
func (r Request) ID() string {
	given := r.Given
	if r.ByHand != "" {
		given += "\x02" + r.ByHand
	}
	return requestMark + r.Processor + "\x01" + given + "\x01" + r.Source.text()
}

func (s Source) text() string {
	switch s.Kind {
	case File:
		return string(s.Kind) + s.Path
	case Bytes:
		return string(s.Kind) + s.Hash.String() + s.Extension
	case Product:
		return fmt.Sprintf("%c%d %q %q %s", s.Kind, s.SubID, s.By.Part, s.By.Processor, s.By.Asset)
	}
	return ""
}

// ParseRequest is the reverse of ID.
func ParseRequest(id string) (r Request, ok bool) {
	var source string
	name, rest, _ := strings.Cut(strings.TrimPrefix(id, requestMark), "\x01")
	r.Processor = name
	if r.Given, source, ok = strings.Cut(rest, "\x01"); !ok || !IsRequest(id) {
		return r, false
	}
	var more bool
	r.Given, r.ByHand, more = strings.Cut(r.Given, "\x02")
	if more && r.ByHand == "" {
		return r, false
	}
	r.Source, ok = parseSource(source)
	return r, ok
}

func parseSource(text string) (s Source, ok bool) {
	if text == "" {
		return s, true
	}
	s.Kind, text = SourceKind(text[0]), text[1:]
	switch s.Kind {
	case File:
		s.Path = text
		return s, true
	case Bytes:
		n := min(2*len(s.Hash), len(text))
		hash, err := digest.Parse(text[:n])
		s.Hash, s.Extension = hash, text[n:]
		return s, err == nil
	case Product:
		return parseProduct(s, text)
	}
	return s, false
}

func parseProduct(s Source, text string) (Source, bool) {
	number, text, _ := strings.Cut(text, " ")
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return s, false
	}
	s.SubID = uint32(n)
	for _, to := range []*string{&s.By.Part, &s.By.Processor} {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return s, false
		}
		*to, _ = strconv.Unquote(quoted)
		text = strings.TrimPrefix(text[len(quoted):], " ")
	}
	s.By.Asset = text
	return s, text != ""
}

// SourceBlob is the hash of the bytes that are a request's source; zero if its source is something
// else.
func SourceBlob(id string) digest.Hash {
	r, _ := ParseRequest(id)
	return r.Source.Hash
}

// FileName is the name under which a processor reads bytes.
func (s Source) FileName() string { return bytesMark + s.Hash.String()[:16] + s.Extension }

const bytesMark = "~"

// IsFileName reports whether a path was made by FileName.
func IsFileName(name string) bool {
	if !strings.HasPrefix(name, bytesMark) || len(name) < 17 {
		return false
	}
	_, err := strconv.ParseUint(name[1:17], 16, 64)
	return err == nil
}

// String is a request for display. Different requests have different texts, because the engine finds cycles
// by the names of tasks.
func (r Request) String() string {
	text := r.Processor + r.Source.of()
	if r.Given != "{}" {
		text += " " + r.Given
	}
	for line := range strings.Lines(r.ByHand) {
		text += " (" + strings.TrimSuffix(line, "\n") + ")"
	}
	return text
}

func (s Source) of() string {
	switch s.Kind {
	case File:
		return " of " + s.Path
	case Bytes:
		return " of " + s.FileName()
	case Product:
		by := Name(AssetText(s.By.Asset), s.By.Processor, s.By.Part)
		if s.SubID != 0 {
			return fmt.Sprintf(" of product %08x of %s", s.SubID, by)
		}
		return " of the product of " + by
	}
	return ""
}

// AssetText is an asset's id, or a request, for display.
func AssetText(id string) string {
	if r, ok := ParseRequest(id); ok {
		return r.String()
	}
	return id
}
