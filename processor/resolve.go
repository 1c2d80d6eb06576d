package processor

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

// Resolve converts a relative path in the source file `from` to a path for Job's
// reads. It refuses paths that could lead out of the source roots: absolute paths,
// drive letters, backslashes, ".." above the root, and control characters.
func Resolve(from, ref string) (string, error) {
	refuse := func(why string) error { return fmt.Errorf("path %q %s", ref, why) }
	switch {
	case ref == "":
		return "", refuse("is empty")
	case !utf8.ValidString(ref):
		return "", refuse("is not valid UTF-8")
	case strings.HasPrefix(ref, "/"):
		return "", refuse("is absolute")
	case strings.Contains(ref, `\`):
		return "", refuse("has a backslash; use forward slashes")
	}
	for _, c := range ref {
		if c < ' ' {
			return "", refuse("has a control character")
		}
	}
	p := path.Join(path.Dir(from), ref)
	if drive(ref) || drive(p) { // the second for "./C:/x"
		return "", refuse("has a drive letter")
	}
	if !fs.ValidPath(p) {
		return "", refuse("leads out of the source roots")
	}
	return p, nil
}

// uuidMark is the prefix of a UUID that names an asset.
const uuidMark = "uuid:"

// ByUUID returns the name of an asset by its UUID, for Job's Find, Products and Reference: "uuid:99c12a91-57d9-5420-9207-3cc986bfe503".
// The asset is found whatever its path is.
func ByUUID(uuid string) string { return uuidMark + strings.ToLower(uuid) }

// UUIDOf returns the UUID in a name of the form that ByUUID returns.
func UUIDOf(name string) (uuid string, ok bool) {
	uuid, ok = strings.CutPrefix(name, uuidMark)
	if !ok || len(uuid) != 36 {
		return "", false
	}
	for i := range len(uuid) {
		c := uuid[i] | 0x20 // makes letters lower case; digits and the dash do not change
		switch i {
		case 8, 13, 18, 23:
			ok = ok && uuid[i] == '-'
		default:
			ok = ok && ('0' <= uuid[i] && uuid[i] <= '9' || 'a' <= c && c <= 'f')
		}
	}
	return strings.ToLower(uuid), ok
}

// ResolveAsset converts a reference in the source file `from` to a name for Job's Find, Products and Reference: a UUID after "uuid:", which
// survives a rename, or a path as for Resolve.
func ResolveAsset(from, ref string) (string, error) {
	if !strings.HasPrefix(ref, uuidMark) {
		return Resolve(from, ref)
	}
	uuid, ok := UUIDOf(ref)
	if !ok {
		return "", fmt.Errorf("%q is not a UUID; write it like %q", ref, ByUUID("0f1d7c2e-91a4-4c7e-8b35-3c6f0a9d2e11"))
	}
	return ByUUID(uuid), nil
}

func drive(p string) bool { return len(p) >= 2 && p[1] == ':' }

// ResolveURI is like Resolve for a relative URI reference, as in glTF: percent escapes
// are decoded, and URIs with a scheme, a host, a query or a fragment are refused.
func ResolveURI(from, uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", fmt.Errorf("%q is not a URI: %w", uri, err)
	}
	if u.Scheme != "" || u.Host != "" || u.Opaque != "" {
		return "", fmt.Errorf("URI %q is not relative", uri)
	}
	if strings.ContainsAny(uri, "?#") {
		return "", fmt.Errorf("URI %q has a query or a fragment", uri)
	}
	return Resolve(from, u.Path)
}

// QuoteGlob returns a pattern for Job's Glob that matches only this path: path.Join(QuoteGlob(folder), "*.png").
func QuoteGlob(path string) string { return globQuoter.Replace(path) }

var globQuoter = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `\`, `\\`)
