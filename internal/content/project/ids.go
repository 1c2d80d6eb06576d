package project

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// idFields are the fields of an id in a rule: parts of the path of each matching asset.
var idFields = []string{"folder", "parent", "name", "stem", "ext"}

var idField = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[^{}]*\}`) })

// idTemplate checks an id with fields; ok is false if it is not valid.
func (d *decoder) idTemplate(v *settings.Value) (ok bool) {
	if !strings.ContainsAny(v.Str, "{}") {
		return false
	}
	rest := idField().ReplaceAllStringFunc(v.Str, func(field string) string {
		name := field[1 : len(field)-1]
		if !slices.Contains(idFields, name) {
			hint := diag.DidYouMean(name, idFields)
			if hint == "" {
				hint = "an id is made of {" + strings.Join(idFields, "}, {") + "}"
			}
			d.bad(v, hint, "there is no field %q of an id", name)
		}
		return "x"
	})
	if !validID(rest) || strings.ContainsAny(rest, "{}") {
		d.bad(v, `write a name like "{parent}/{stem}"`, "%q cannot be an asset id", v.Str)
	}
	return true
}

func validID(s string) bool {
	return fs.ValidPath(s) && s != "." && !strings.ContainsAny(s, `\:*?"<>|`)
}

// HasFields reports whether the id of a rule has fields.
func (r *Rule) HasFields() bool { return strings.Contains(r.ID, "{") }

// IDOf returns the id that a rule sets for the asset of a path; ok is false if the result is not a
// valid id.
func (r *Rule) IDOf(file string) (id string, ok bool) {
	if !r.HasFields() {
		return r.ID, true
	}
	folder, name := path.Split(file)
	folder = strings.TrimSuffix(folder, "/")
	stem := strings.TrimSuffix(name, path.Ext(name))
	if stem == "" {
		stem = name // its only dot is the first character
	}
	id = strings.NewReplacer("{folder}", folder, "{parent}", path.Base("/"+folder), "{name}", name, "{stem}", stem,
		"{ext}", strings.TrimPrefix(path.Ext(name), ".")).Replace(r.ID)
	id = strings.TrimPrefix(path.Clean("/"+id), "/") // a file in the source root has no folder
	return id, id != "" && validID(id)
}
