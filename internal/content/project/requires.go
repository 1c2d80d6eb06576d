package project

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// release is a version in up to three numbers.
type release [3]int

// parseRelease reads the numbers of a version; what follows them, as in 0.4.0-dev+1a2b3c, does not count.
func parseRelease(s string) (r release, ok bool) {
	s, _, _ = strings.Cut(s, "+")
	s, _, _ = strings.Cut(s, "-")
	parts := strings.Split(strings.TrimPrefix(s, "v"), ".")
	if len(parts) > len(r) {
		return r, false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return r, false
		}
		r[i] = int(n)
	}
	return r, true
}

func (r release) compare(o release) int {
	return cmp.Or(cmp.Compare(r[0], o[0]), cmp.Compare(r[1], o[1]), cmp.Compare(r[2], o[2]))
}

// bounds are the comparisons that a requirement may have, the longer ones first.
var bounds = []struct {
	sign  string
	holds func(order int) bool
}{
	{">=", func(order int) bool { return order >= 0 }},
	{"<=", func(order int) bool { return order <= 0 }},
	{">", func(order int) bool { return order > 0 }},
	{"<", func(order int) bool { return order < 0 }},
	{"=", func(order int) bool { return order == 0 }},
}

// meets reports whether a version meets a requirement, bounds with commas between. valid is false if it is none.
func meets(version release, requirement string) (ok, valid bool) {
	ok = true
	for _, part := range strings.Split(requirement, ",") {
		part, found := strings.TrimSpace(part), false
		for _, b := range bounds {
			if number, is := strings.CutPrefix(part, b.sign); is {
				bound, right := parseRelease(strings.TrimSpace(number))
				if !right {
					return false, false
				}
				found, ok = true, ok && b.holds(version.compare(bound))
				break
			}
		}
		if !found {
			return false, false
		}
	}
	return ok, true
}

// requires checks the version of Kiln that the project needs. If this one is another, that alone is reported: what else seems wrong may be
// right for the other.
func (d *decoder) requires(e *settings.Entry) {
	version, known := parseRelease(d.names.kiln)
	text := d.str(e)
	ok, valid := meets(version, text)
	switch {
	case text == "":
	case !valid:
		d.bad(e.Value, `write it like ">=0.4" or ">=0.4, <0.6"`, "%q is not a version of Kiln that can be required", text)
	case known && !ok:
		d.other = e.Value.Span.Errorf(diag.VersionRequired, "the project requires Kiln %s, and this is %s", text, shortVersion(d.names.kiln)).
			WithHint("install a Kiln that is %s, or change this line; `kiln version` shows which one runs", text)
	}
}

// shortVersion leaves out all but 12 digits of the revision.
func shortVersion(v string) string {
	number, revision, ok := strings.Cut(v, "+")
	if !ok {
		return v
	}
	return number + "+" + revision[:min(len(revision), 12)]
}
