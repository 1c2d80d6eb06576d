package release

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Limits of a file.
const (
	maxSize = 512 << 20 // bytes
	maxLine = 4*kilnrt.MaxName + 256
)

const head = "# kiln release 1"

// Format writes the file.
func (m *Manifest) Format() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: what was released, made by `kiln parcel release`. Commit this file.\nrelease %s\n", head, quoted(m.Name))
	for i := range m.Parcels {
		x := &m.Parcels[i]
		fmt.Fprintf(&b, "parcel %s %s %d %x\n", x.Platform, x.Name, x.Size, x.Digest)
		for k := range x.Resources {
			r := &x.Resources[k]
			id := "-"
			if !usualUUID(r.Name, r.UUID) {
				id = uuid.UUID(r.UUID).String()
			}
			fmt.Fprintf(&b, "%s %d %d %d %x %s\n", id, r.SubID, r.Size, r.Stored, r.Hash, quoted(r.Name))
		}
	}
	return b.Bytes()
}

// quoted is a text as the rest of a line: in quotes if it could not be parsed again otherwise.
func quoted(s string) string {
	if strings.ContainsAny(s, "\n\r\x00") || strings.HasPrefix(s, `"`) || strings.TrimSpace(s) != s || !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}

func unquoted(s string) (string, bool) {
	if !strings.HasPrefix(s, `"`) {
		return s, true
	}
	text, err := strconv.Unquote(s)
	return text, err == nil
}

// Load reads a file. The error has the place of the problem.
func Load(file string) (*Manifest, error) {
	text, err := disk.ReadText(file, maxSize) // parse reports the additional byte
	if err != nil {
		return nil, err
	}
	return parse(file, text)
}

// parse reads a file's text.
func parse(file string, text []byte) (*Manifest, error) {
	number := 1
	wrong := func(format string, args ...any) error {
		return diag.Errorf(diag.ReleaseWrong, diag.Pos{File: file, Line: number, Column: 1}, format, args...).
			WithHint("take the file as it was committed; `kiln parcel release` makes one of the parcels that are there")
	}
	if len(text) > maxSize {
		return nil, wrong("the manifest has %d bytes, more than %d", len(text), maxSize)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxLine)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), head+":") {
		return nil, wrong("this is not a manifest of a release: it does not begin with %q", head)
	}
	m := &Manifest{}
	known := map[string]bool{}
	for lines.Scan() {
		number++
		line := lines.Text()
		first, rest, _ := strings.Cut(line, " ")
		switch first {
		case "", "#":
			if line != "" && first == "" {
				return nil, wrong("the line begins with a space")
			}
		case "release":
			name, ok := unquoted(rest)
			if !ok {
				return nil, wrong("the name of the release is not text")
			}
			m.Name = name
		case "parcel":
			x, ok := parseParcel(rest)
			if !ok {
				return nil, wrong("this is not a parcel: platform, name, size and digest are required")
			}
			if known[x.Platform+" "+x.Name] {
				return nil, wrong("parcel %s [%s] is there twice", x.Name, x.Platform)
			}
			known[x.Platform+" "+x.Name] = true
			m.Parcels = append(m.Parcels, x)
		default:
			r, ok := parseResource(line)
			if !ok || len(m.Parcels) == 0 {
				return nil, wrong("this is not a resource of a parcel: UUID or -, sub id, size, size in the file, hash and name are required")
			}
			x := &m.Parcels[len(m.Parcels)-1]
			x.Resources = append(x.Resources, r)
		}
	}
	if err := lines.Err(); err != nil {
		number++
		return nil, wrong("the line has more than %d bytes", maxLine)
	}
	for i := range m.Parcels {
		m.Parcels[i].sort()
	}
	m.Sort()
	return m, nil
}

func parseParcel(s string) (x Parcel, ok bool) {
	f := strings.Fields(s)
	if len(f) != 4 {
		return x, false
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	x = Parcel{Platform: f[0], Name: f[1], Size: size}
	return x, err == nil && size >= 0 && fromHex(x.Digest[:], f[3])
}

func parseResource(s string) (r Resource, ok bool) {
	f := strings.SplitN(s, " ", 6)
	if len(f) != 6 {
		return r, false
	}
	sub, err1 := strconv.ParseUint(f[1], 10, 32)
	size, err2 := strconv.ParseInt(f[2], 10, 64)
	stored, err3 := strconv.ParseInt(f[3], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || size < 0 || stored < 0 || !fromHex(r.Hash[:], f[4]) {
		return r, false
	}
	r.SubID, r.Size, r.Stored = uint32(sub), size, stored
	if r.Name, ok = unquoted(f[5]); !ok {
		return r, false
	}
	if f[0] == "-" {
		r.UUID = identity(r.Name)
		return r, true
	}
	u, err := uuid.Parse(f[0])
	r.UUID = u
	return r, err == nil && len(f[0]) == 36
}

// fromHex decodes exactly len(to) bytes.
func fromHex(to []byte, s string) bool {
	if len(s) != hex.EncodedLen(len(to)) {
		return false
	}
	_, err := hex.Decode(to, []byte(s))
	return err == nil
}
