package schema

import (
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// peerFormats are the library's checks of all formats that we know.
var peerFormats = sync.OnceValue(func() map[string]*jsonschema.Schema {
	all := map[string]*jsonschema.Schema{}
	for _, f := range formatCases {
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource("mem:///"+f.name, map[string]any{"format": f.name}); err != nil {
			panic(err)
		}
		all[f.name] = c.MustCompile("mem:///" + f.name)
	}
	return all
})

// FuzzFormats holds every format to the library's, but for what peerErrs says.
func FuzzFormats(f *testing.F) {
	for _, c := range formatCases {
		for _, s := range append(c.takes, c.others...) {
			f.Add(s)
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, peer := range peerFormats() {
			ours, theirs := formatOf(name)(s), peer.Validate(s) == nil
			if ours != theirs && !peerErrs(name, s, ours) {
				t.Errorf("%s %q: ours %v, the library's %v", name, s, ours, theirs)
			}
		}
	})
}

// peerErrs tells of the forms in which the library leaves the specifications that format.go cites.
func peerErrs(name, s string, ours bool) bool {
	switch name {
	case "time", "date-time", "period": // takes +1 for two digits
		return !ours && (strings.ContainsAny(s, "+-") || strings.Contains(s, "P"))
	case "duration": // takes units with gaps, such as P1Y2D
		return !ours && s[0] == 'P'
	case "email": // knows no escapes in quotes, asks nothing else of what is in them, takes an empty name and a domain that ends in a dot
		return strings.Contains(s, `"`) || strings.Contains(strings.ToLower(s), "@[ipv6:") || !ours && (s[0] == '@' || strings.HasSuffix(s, ".") || strings.Contains(s, "+"))
	case "hostname": // takes a dot at the end
		return !ours && strings.HasSuffix(s, ".")
	case "ipv4": // takes +1
		return !ours && strings.Contains(s, "+")
	case "uri", "uri-reference", "iri", "iri-reference":
		// It is net/url, which is for what is met on the web: it takes nearly all characters, and it knows neither
		// IPvFuture nor escapes in a host.
		if !ours {
			return true
		}
		_, authority, _ := strings.Cut(s, "//")
		authority, _, _ = strings.Cut(authority, "/")
		return strings.Contains(strings.ToLower(authority), "[v") || strings.Contains(authority, "%")
	case "uri-template": // looks for pairs of braces in what net/url takes for a path
		_, err := url.Parse(s)
		return !ours || err != nil || strings.Contains(s, "{") || strings.Contains(s, "//")
	case "relative-json-pointer": // an older draft, without steps along an array
		return ours && strings.ContainsAny(s, "+-")
	}
	return false
}
