package processor_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/processor"
)

// refused is the expected text of an error in a table.
type refused string

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		from, ref string
		want      any
	}{
		{"models/knight.gltf", "cape.png", "models/cape.png"},
		{"models/knight.gltf", "./cape.png", "models/cape.png"},
		{"models/knight.gltf", "../textures/cape.png", "textures/cape.png"},
		{"models/a/b.gltf", "../../x", "x"},
		{"models/a/b.gltf", "../..", "."},
		{"knight.gltf", "cape.png", "cape.png"},
		{"knight.gltf", "a//b/", "a/b"},
		{"knight.gltf", "a/../../knight.gltf", refused("out of the source roots")},
		{"knight.gltf", "..", refused("out of the source roots")},
		{"knight.gltf", "../x", refused("out of the source roots")},
		{"a/b", "../../../etc/passwd", refused("out of the source roots")},
		{"knight.gltf", "..x", "..x"},
		{"knight.gltf", "...", "..."},
		{"a/b", "", refused("empty")},
		{"a/b", "/etc/passwd", refused("absolute")},
		{"a/b", "//server/share", refused("absolute")},
		{"a/b", `..\x`, refused("backslash")},
		{"a/b", `\\server\share`, refused("backslash")},
		{"a/b", "C:/x", refused("drive letter")},
		{"a/b", "c:x", refused("drive letter")},
		{"a/b", "../C:/x", refused("drive letter")},
		{"a", "./c:x", refused("drive letter")},
		{"a/b", "x\x00.png", refused("control character")},
		{"a/b", "x\n", refused("control character")},
		{"a/b", "x\xff", refused("UTF-8")},
		{"/abs/b", "x", refused("out of the source roots")},
		{"../b", "x", refused("out of the source roots")},
		{"a/b", "ünï/剣.png", "a/ünï/剣.png"},
		{"a/b", "sp ace", "a/sp ace"},
	} {
		got, err := processor.Resolve(c.from, c.ref)
		check(t, c.from, c.ref, got, err, c.want)
	}
}

func check(t *testing.T, from, ref, got string, err error, want any) {
	t.Helper()
	switch want := want.(type) {
	case refused:
		if err == nil || !strings.Contains(err.Error(), string(want)) || got != "" {
			t.Errorf("%q from %q: %q, %v; not refused with %q", ref, from, got, err, want)
		}
	case string:
		if err != nil || got != want {
			t.Errorf("%q from %q: %q, %v; not %q", ref, from, got, err, want)
		}
	}
}

func TestResolveURI(t *testing.T) {
	for uri, want := range map[string]any{
		"cape.png":                   "models/cape.png",
		"my%20cape.png":              "models/my cape.png",
		"my cape.png":                "models/my cape.png",
		"%E5%89%A3.png":              "models/剣.png",
		"../t/a%2Bb.png":             "t/a+b.png",
		"a+b.png":                    "models/a+b.png",
		"%2e%2e/x":                   "x",
		"%2e%2e%2f%2e%2e%2fx":        refused("out of the source roots"),
		"%2Fetc/passwd":              refused("absolute"),
		"/x":                         refused("absolute"),
		"///x":                       refused("absolute"),
		"..%5Cx":                     refused("backslash"),
		"x%00":                       refused("control character"),
		"C%3A/x":                     refused("drive letter"),
		"x%FF":                       refused("UTF-8"),
		"":                           refused("empty"),
		"https://example.com/x.png":  refused("not relative"),
		"//example.com/x.png":        refused("not relative"),
		"file:///etc/passwd":         refused("not relative"),
		"data:image/png;base64,AAAA": refused("not relative"),
		"C:/x":                       refused("not relative"),
		"x?a=b":                      refused("query"),
		"x?":                         refused("query"),
		"x#frag":                     refused("fragment"),
		"x#":                         refused("fragment"),
		"x%zz":                       refused("not a URI"),
		"x\n":                        refused("not a URI"),
	} {
		got, err := processor.ResolveURI("models/knight.gltf", uri)
		check(t, "models/knight.gltf", uri, got, err, want)
	}
}

// FuzzResolve checks that an accepted path is below the roots, and is the one that the reference means.
func FuzzResolve(f *testing.F) {
	f.Add("a/b", "../x")
	f.Add("/", "..")
	f.Add("a", "./C:/x")
	f.Add("../..", "%2e%2e/x")
	f.Add("a/b", "uuid:0f1d7c2e-91a4-4c7e-8b35-3c6f0a9d2e11")
	f.Fuzz(func(t *testing.T, from, ref string) {
		p, err := processor.Resolve(from, ref)
		uri, uerr := processor.ResolveURI(from, ref)
		for _, r := range []struct {
			p   string
			err error
		}{{p, err}, {uri, uerr}} {
			if r.err != nil && r.p != "" {
				t.Errorf("%q and an error", r.p)
			}
			if r.err == nil && (!fs.ValidPath(r.p) || strings.ContainsAny(r.p, "\\\x00") && !strings.ContainsAny(from, "\\\x00") || len(r.p) > 1 && r.p[1] == ':') {
				t.Errorf("%q from %q is %q", ref, from, r.p)
			}
		}
		if err == nil && p != path.Clean(path.Dir(from)+"/"+ref) {
			t.Errorf("%q from %q is %q", ref, from, p)
		}
		name, aerr := processor.ResolveAsset(from, ref)
		uuid, byUUID := processor.UUIDOf(ref)
		switch {
		case byUUID && (aerr != nil || name != processor.ByUUID(uuid)):
			t.Errorf("%q is %q, %v, not the UUID %s", ref, name, aerr, uuid)
		case !strings.HasPrefix(ref, "uuid:") && (name != p || (aerr == nil) != (err == nil)):
			t.Errorf("%q from %q is %q, %v as an asset, and %q, %v as a path", ref, from, name, aerr, p, err)
		}
	})
}

func TestSubID(t *testing.T) {
	for name, want := range map[string]uint32{
		"": 0, "a": 0xe40c292c, "b": 0xe70c2de5, "foobar": 0xbf9cf968, // http://www.isthe.com/chongo/tech/comp/fnv
	} {
		if got := processor.SubID(name); got != want {
			t.Errorf("SubID(%q) is %#x, not %#x", name, got, want)
		}
	}
	// The hash of this name is 0, the number of the main product.
	if got := processor.SubID("\xcc\x24\x31\xc4"); got != 1 {
		t.Errorf("a name whose hash is 0: %d", got)
	}
}

func TestProblem(t *testing.T) {
	for want, p := range map[string]processor.Problem{
		"bad":            {Text: "bad"},
		"a.png: bad":     {Text: "bad", Path: "a.png"},
		"a.png:2: bad":   {Text: "bad", Path: "a.png", Line: 2},
		"a.png:2:3: bad": {Text: "bad", Path: "a.png", Line: 2, Column: 3},
		"2:3: bad":       {Text: "bad", Line: 2, Column: 3},
	} {
		p.Err = fs.ErrNotExist
		if p.Error() != want || p.Unwrap() != fs.ErrNotExist {
			t.Errorf("%q, not %q", p.Error(), want)
		}
	}
}

func TestResolveAsset(t *testing.T) {
	const uuid = "0f1d7c2e-91a4-4c7e-8b35-3c6f0a9d2e11"
	for _, c := range []struct {
		from, ref string
		want      any
	}{
		{"models/knight.gltf", "../textures/cape.png", "textures/cape.png"},
		{"models/knight.gltf", "uuid:" + uuid, "uuid:" + uuid},
		{"models/knight.gltf", "uuid:" + strings.ToUpper(uuid), "uuid:" + uuid},
		{"knight.gltf", "uuid:" + uuid[1:], refused("is not a UUID; write it like")},
		{"knight.gltf", "uuid:" + uuid + "0", refused("is not a UUID")},
		{"knight.gltf", "uuid:" + strings.Replace(uuid, "-", "0", 1), refused("is not a UUID")},
		{"knight.gltf", "uuid:" + strings.Replace(uuid, "f", "g", 1), refused("is not a UUID")},
		{"knight.gltf", "uuid:" + strings.Replace(uuid, "1", "\x11", 1), refused("is not a UUID")},
		{"knight.gltf", "uuid:", refused("is not a UUID")},
		{"knight.gltf", uuid, uuid}, // a file may have such a name
		{"a/b", "../../x", refused("out of the source roots")},
	} {
		got, err := processor.ResolveAsset(c.from, c.ref)
		if why, ok := c.want.(refused); ok {
			if err == nil || !strings.Contains(err.Error(), string(why)) {
				t.Errorf("%q: got %q, %v, want an error with %q", c.ref, got, err, why)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.ref, got, err, c.want)
		}
	}
	if got, ok := processor.UUIDOf(processor.ByUUID(strings.ToUpper(uuid))); !ok || got != uuid {
		t.Errorf("got %q, %v", got, ok)
	}
}

// TestQuoteGlob checks that a quoted path is a glob that matches only that path, or what is below it.
func TestQuoteGlob(t *testing.T) {
	for _, c := range []string{"*", "?", "[", "]", "{", "}", "!", `\`, ",", "^", "-", "#", "[!a]", "[^x]", "{a,b}", "**", "剣", "\xff"} {
		name := c + "b" + c
		glob := processor.QuoteGlob(name) + "/*"
		if !doublestar.ValidatePattern(glob) || !doublestar.MatchUnvalidated(glob, name+"/x") {
			t.Errorf("%s does not match %s/x", glob, name)
		}
		if doublestar.MatchUnvalidated(glob, "xbx/x") || doublestar.MatchUnvalidated(glob, "aba/x") {
			t.Errorf("%s matches more than %s", glob, name)
		}
	}
}
