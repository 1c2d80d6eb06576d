package processor

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

// Resolve turns a relative path as it stands in the source file `from` into a path
// for Job's reads. It refuses what could lead out of the source roots: absolute
// paths, drive letters, backslashes, "..", once it leaves the root, and
// characters below a space.
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
	if drive(ref) || drive(p) { // the latter: "./C:/x"
		return "", refuse("has a drive letter")
	}
	if !fs.ValidPath(p) {
		return "", refuse("leads out of the source roots")
	}
	return p, nil
}

func drive(p string) bool { return len(p) >= 2 && p[1] == ':' }

// ResolveURI is Resolve for a relative URI reference such as glTF holds: percent
// escapes are decoded, and URIs with a scheme, a host, a query or a fragment are refused.
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
