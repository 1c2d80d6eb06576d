package project

import (
	"net/url"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// Cache is where a team shares results. The zero Cache is not configured.
type Cache struct {
	Path    string // of a folder, unchanged: it may begin with ~/
	Remote  string // address of a server
	Mode    string // "read", "read-write" or ""
	MaxSize int64  // of the folder, in bytes; 0: not set

	Trust string   // "any", "signed" or ""
	Keys  []string // whose signatures count
	Span  settings.Span
}

// cacheSchemes are the schemes of a server's address.
var cacheSchemes = []string{"grpc", "grpcs"}

func (d *decoder) cache(e *settings.Entry) Cache {
	var c Cache
	t := d.table(e, "write [cache]")
	if t == nil {
		return c
	}
	c.Span = t.Span
	d.keys(t, "[cache]", []key{
		{name: "path", take: func(e *settings.Entry) {
			if c.Path = d.str(e); strings.ContainsAny(c.Path, "\x00\n") {
				d.bad(e.Value, `write a folder: "~/.cache/kiln"`, "%q is not a folder", e.Key)
				c.Path = ""
			}
		}},
		{name: "remote", take: func(e *settings.Entry) { c.Remote = d.server(e) }},
		{name: "mode", take: func(e *settings.Entry) { c.Mode = d.oneOf(e, "read", "read-write") }},
		{name: "max_size", take: func(e *settings.Entry) { c.MaxSize = d.size(e) }},
		{name: "trust", take: func(e *settings.Entry) { c.Trust = d.oneOf(e, "any", "signed") }},
		{name: "keys", take: func(e *settings.Entry) { c.Keys = d.strs(e, `["RWQ..."]`) }},
	})
	if c.Trust == "signed" && len(c.Keys) == 0 {
		d.bad(t.Get("trust").Value, `write keys = ["RWQ..."], the second line of a minisign public key file`, "%q needs keys", "trust")
	}
	return c
}

// server reads the address of a server, without credentials, because the file is committed.
func (d *decoder) server(e *settings.Entry) string {
	s := d.sent(e)
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || !slices.Contains(cacheSchemes, u.Scheme) || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		d.bad(e.Value, `write it like "grpcs://cache.example.com:443", or "grpc://" without encryption`,
			"%q is not the address of a server", e.Key)
	case u.User != nil:
		d.bad(e.Value, "give them in KILN_CACHE_USER and KILN_CACHE_PASSWORD, or in a file: this file is committed",
			"%q has a user or a password in it", e.Key)
	default:
		return s
	}
	return ""
}

// sent takes a string that a server gets. Nothing of the environment may be in it, which is not the project's to give away.
func (d *decoder) sent(e *settings.Entry) string {
	s := d.str(e)
	name := d.fromOutside(e.Value)
	if name == "" {
		return s
	}
	d.bad(e.Value, "write it here; KILN_CACHE_SERVER and KILN_EXECUTION name servers in the environment",
		"%q is sent to a server, so it cannot use %q, whose value comes from the environment", e.Key, name)
	return ""
}
