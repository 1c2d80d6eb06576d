// Package codegen writes constants for the resources of a project, so that compilers report typing errors in code.
//
// Each language has a template here, which a project may replace. The rules:
//   - A type or namespace for each parcel, a constant for each resource, with the asset's path as its comment.
//   - Names depend only on the path, are written as usual in the language, and are valid and unique by the rules of
//     Ident and of names.
//   - The order of the input does not matter.
package codegen

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// Model is the input of constants.
type Model struct {
	Package string // namespace, module or prefix, if the language has packages; "" is "kiln"
	Parcels []Parcel
}

// Parcel becomes a type or namespace.
type Parcel struct {
	Name      string
	Resources []Resource
}

// Resource becomes a constant, in each of its parcels.
type Resource struct {
	ID      uint32
	Asset   string // id of the asset
	Product string // name of the product; "" is the main one
	Type    string // of the product; "" if it is not known, because it could not be made here yet
}

// Languages are the languages that Generate supports.
func Languages() []string {
	names := make([]string, len(languages))
	for i, l := range languages {
		names[i] = l.name
	}
	return names
}

// FileName is the usual file name for a package in a language.
func FileName(language, pkg string) (string, error) {
	l, err := find(language)
	if err != nil {
		return "", err
	}
	return l.file(l.packageName(pkg)) + l.extension, nil
}

// Template is the text of Kiln's template for a language, as a start for another one.
func Template(language string) (string, error) {
	l, err := find(language)
	if err != nil {
		return "", err
	}
	text, err := templates.ReadFile("templates/" + l.name + ".tmpl")
	return string(text), err
}

// maxOutput is the maximum output of a template, in bytes; a project with 2^24 resources is far below
// it.
const maxOutput = 4 << 30

// Generate writes the source file. tmpl is the text of a template of package text/template, or "" for Kiln's own; it
// gets a File, and the functions of helpers. The error is about the language's name, the template, or the input.
func Generate(language string, m Model, tmpl string) ([]byte, error) {
	l, err := find(language)
	if err != nil {
		return nil, err
	}
	if tmpl == "" {
		if tmpl, err = Template(language); err != nil {
			return nil, err
		}
	}
	t, err := template.New(language).Option("missingkey=error").Funcs(helpers()).Parse(tmpl)
	if err != nil {
		return nil, fmt.Errorf("codegen: %w", err)
	}
	f, err := l.resolve(m)
	if err != nil {
		return nil, fmt.Errorf("codegen: %w", err)
	}
	out := limited{left: maxOutput}
	if err := t.Execute(&out, f); err != nil {
		return nil, fmt.Errorf("codegen: %w", err)
	}
	return out.Bytes(), nil
}

// helpers are the functions for templates. Those that change a text have it as their last argument, so that they can be
// used in a pipeline.
func helpers() template.FuncMap {
	taken := map[string]scope{}
	return template.FuncMap{
		"upper": strings.ToUpper,
		"lower": strings.ToLower,
		"base":  path.Base,
		"dir":   path.Dir,
		"stem": func(s string) string {
			s = path.Base(s)
			return strings.TrimSuffix(s, path.Ext(s))
		},
		"replace": func(old, by, s string) (string, error) {
			if n := strings.Count(s, old); len(s)+n*len(by) > maxText {
				return "", errors.New("replace makes a text of more than 1 MiB")
			}
			return strings.ReplaceAll(s, old, by), nil
		},
		"pascal":  func(s string) string { return pascal(words(s)) },
		"camel":   func(s string) string { return camel(words(s)) },
		"snake":   func(s string) string { return lower(words(s)) },
		"capital": func(s string) string { return upper(words(s)) },
		// unique is the name, or the first of name_2, name_3 and so on that was not used before with the same key.
		"unique": func(key, name string) string {
			if taken[key] == nil {
				taken[key] = scope{}
			}
			return taken[key].name(name)
		},
	}
}

// maxText is the maximum result of a replacement, in bytes.
const maxText = 1 << 20

type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("the template writes more than 4 GiB")
	}
	return l.Buffer.Write(p)
}

func find(name string) (*language, error) {
	for i := range languages {
		if languages[i].name == name {
			return &languages[i], nil
		}
	}
	return nil, fmt.Errorf("codegen: there is no language %q; there are: %s", name, strings.Join(Languages(), ", "))
}

// File is the data of a template.
type File struct {
	Package string // a valid name
	Parcels []FileParcel
}

// FileParcel is a parcel with its name in the language.
type FileParcel struct {
	Name, Ident string // in the project, and in the language
	Doc         string // Name, safe for a comment
	Constants   []Constant
}

// Constant is a resource with its name in the language.
type Constant struct {
	Resource
	Ident string
	Doc   string // asset and product, safe for a comment of one line
}

// resolve sorts and names everything.
func (l *language) resolve(m Model) (*File, error) {
	f := &File{Package: l.packageName(m.Package)}
	parcels := slices.Clone(m.Parcels)
	slices.SortStableFunc(parcels, func(a, b Parcel) int { return strings.Compare(a.Name, b.Name) })
	// Of flat constants; of parcels, whose names are only prefixes in flat languages.
	global, outer := newScope(l.reserved), newScope(l.types)
	if !l.flat {
		outer = newScope(l.reserved)
		outer.take(f.Package)
	}
	for i, p := range parcels {
		if i > 0 && p.Name == parcels[i-1].Name {
			return nil, fmt.Errorf("parcel %q is there twice", p.Name)
		}
		fp := FileParcel{Name: p.Name, Ident: outer.name(l.parcel(words(p.Name))), Doc: l.comment(plain(p.Name))}
		scope := global
		if !l.flat {
			scope = newScope(l.reserved)
			scope.take(fp.Ident)
			for _, w := range l.members {
				scope.take(w)
			}
		}
		resources := slices.Clone(p.Resources)
		slices.SortFunc(resources, func(a, b Resource) int {
			return cmp.Or(strings.Compare(a.Asset, b.Asset), strings.Compare(a.Product, b.Product), cmp.Compare(a.ID, b.ID))
		})
		for k, r := range resources {
			if k > 0 && r.Asset == resources[k-1].Asset && r.Product == resources[k-1].Product {
				return nil, fmt.Errorf("parcel %q has %s %q twice", p.Name, r.Asset, r.Product)
			}
			parts := append(words(r.Asset), words(r.Product)...)
			ident := l.constant(parts)
			if l.flat {
				ident = l.prefixed(f.Package, fp.Ident, parts)
			}
			fp.Constants = append(fp.Constants, Constant{Resource: r, Ident: scope.name(ident), Doc: l.comment(describe(r))})
		}
		f.Parcels = append(f.Parcels, fp)
	}
	return f, nil
}

func describe(r Resource) string {
	s := plain(r.Asset)
	if r.Product != "" {
		s += " " + plain(r.Product)
	}
	return s
}
