package wasm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// maxAbout is the maximum size of a module's description, in bytes.
const maxAbout = 1 << 20

// description is what kiln_info passes to describe: processor.Info in JSON.
type description struct {
	ABI        int         `json:"abi"`
	Name       string      `json:"name"`
	Version    int         `json:"version"`
	Summary    string      `json:"summary"`
	Extensions []string    `json:"extensions"`
	Folder     bool        `json:"folder"`
	Memory     int64       `json:"memory"`
	Settings   []setting   `json:"settings"`
	Products   []aboutType `json:"products"`
}

type setting struct {
	Name    string          `json:"name"`
	Type    string          `json:"type"`
	Default json.RawMessage `json:"default"`
	Doc     string          `json:"doc"`
	Values  []string        `json:"values"`
	Min     *float64        `json:"min"`
	Max     *float64        `json:"max"`

	value reflect.Value // the default
}

type aboutType struct {
	Type      string `json:"type"`
	Extension string `json:"extension"`
	Doc       string `json:"doc"`
}

// settingTypes are the types of settings by their names.
var settingTypes = map[string]reflect.Type{
	"boolean": reflect.TypeFor[bool](), "integer": reflect.TypeFor[int64](), "number": reflect.TypeFor[float64](), "string": reflect.TypeFor[string](),
	"booleans": reflect.TypeFor[[]bool](), "integers": reflect.TypeFor[[]int64](), "numbers": reflect.TypeFor[[]float64](), "strings": reflect.TypeFor[[]string](),
}

var (
	validSetting   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]*$`) })
	validExtension = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\.[^./\\*?\[\]{}<>:|"\pC\pZ]+)+$`) })
)

func parseDescription(text []byte) (description, error) {
	var d description
	if len(text) == 0 {
		return d, fmt.Errorf("it does not call describe")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return d, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return d, fmt.Errorf("something follows the JSON object")
	}
	return d, d.check()
}

func (d *description) check() error {
	switch {
	case d.ABI != abi:
		return fmt.Errorf("it is for version %d of the interface; this Kiln has version %d", d.ABI, abi)
	case !validName().MatchString(d.Name):
		return fmt.Errorf("%q is not a name of a processor: use lower case letters, digits and dashes", d.Name)
	case d.Version < 1 || d.Version > 1<<31-1:
		return fmt.Errorf("version %d is not from 1 to 2147483647", d.Version)
	case d.Memory < 0 || d.Memory > 4<<30:
		return fmt.Errorf("memory %d is not from 0 to 4 GiB", d.Memory)
	case len(d.Products) == 0:
		return fmt.Errorf("it names no products")
	}
	for _, e := range d.Extensions {
		if !validExtension().MatchString(e) || strings.ToLower(e) != e {
			return fmt.Errorf("%q is not an extension: lower case, with the dot", e)
		}
	}
	for _, t := range d.Products {
		if t.Type == "" || t.Extension != "" && !validExtension().MatchString(t.Extension) {
			return fmt.Errorf("a product of type %q with extension %q cannot be", t.Type, t.Extension)
		}
	}
	seen := map[string]bool{}
	for i := range d.Settings {
		s := &d.Settings[i]
		if seen[s.Name] {
			return fmt.Errorf("setting %q is there twice", s.Name)
		}
		seen[s.Name] = true
		if err := s.check(); err != nil {
			return fmt.Errorf("setting %q: %w", s.Name, err)
		}
	}
	return nil
}

func (s *setting) check() error {
	typ, ok := settingTypes[s.Type]
	number := s.Type == "integer" || s.Type == "number"
	switch {
	case !validSetting().MatchString(s.Name):
		return fmt.Errorf("it begins with a letter, and has lower case letters, digits and underscores")
	case !ok:
		return fmt.Errorf("type %q is not known", s.Type)
	case len(s.Values) > 0 && s.Type != "string":
		return fmt.Errorf("only a string has values")
	case (s.Min != nil || s.Max != nil) && !number:
		return fmt.Errorf("only a number has bounds")
	case slices.ContainsFunc(s.Values, func(v string) bool { return v == "" || strings.ContainsAny(v, ",") }):
		return fmt.Errorf("a value is empty or has a comma")
	}
	v := reflect.New(typ)
	if len(s.Default) > 0 {
		if err := json.Unmarshal(s.Default, v.Interface()); err != nil {
			return fmt.Errorf("the default: %w", err)
		}
	}
	s.value = v.Elem()
	return nil
}

// structOf is a settings struct like that of a processor in Go, so that the same code decodes, checks and shows rules
// for both; nil if there are no settings.
func (d *description) structOf() any {
	if len(d.Settings) == 0 {
		return nil
	}
	fields := make([]reflect.StructField, len(d.Settings))
	for i, s := range d.Settings {
		tag := fmt.Sprintf("toml:%q doc:%q", s.Name, s.Doc)
		if len(s.Values) > 0 {
			tag += fmt.Sprintf(" values:%q", strings.Join(s.Values, ","))
		}
		if s.Min != nil {
			tag += fmt.Sprintf(" min:%q", strconv.FormatFloat(*s.Min, 'f', -1, 64))
		}
		if s.Max != nil {
			tag += fmt.Sprintf(" max:%q", strconv.FormatFloat(*s.Max, 'f', -1, 64))
		}
		fields[i] = reflect.StructField{Name: strings.ToUpper(s.Name[:1]) + s.Name[1:], Type: s.value.Type(), Tag: reflect.StructTag(tag)}
	}
	v := reflect.New(reflect.StructOf(fields))
	for i, s := range d.Settings {
		v.Elem().Field(i).Set(s.value)
	}
	return v.Interface()
}

// setInfo merges the project's declaration over the module's description.
func (p *proc) setInfo() error {
	c, d := &p.config, &p.about
	p.info = processor.Info{
		Name: d.Name, Version: d.Version, Summary: d.Summary, Extensions: d.Extensions, Folder: d.Folder || c.Folder,
		Settings: d.structOf(), Memory: d.Memory,
	}
	for _, t := range d.Products {
		p.info.Products = append(p.info.Products, processor.ProductType{Type: t.Type, Extension: t.Extension, Doc: t.Doc})
	}
	if c.Name != "" {
		p.info.Name = c.Name
	}
	if c.Version > 0 {
		p.info.Version = c.Version
	}
	if c.Summary != "" {
		p.info.Summary = c.Summary
	}
	if len(c.Extensions) > 0 {
		p.info.Extensions = c.Extensions
	}
	if c.Memory > 0 && p.info.Memory > c.Memory {
		p.info.Memory = c.Memory
	}
	if !validName().MatchString(p.info.Name) {
		return p.problem(diag.WasmInfo, "use lower case letters, digits and dashes", "%q is not a name of a processor", p.info.Name)
	}
	return nil
}

// settingsJSON is a job's settings as one JSON object in the order of the description, and each separately:
// a string unchanged, everything else in JSON.
func (d *description) settingsJSON(settings any) ([]byte, map[string][]byte, error) {
	if len(d.Settings) == 0 {
		return []byte("{}"), nil, nil
	}
	one := make(map[string][]byte, len(d.Settings))
	all := []byte{'{'}
	v := reflect.ValueOf(settings).Elem()
	for i, s := range d.Settings {
		f := v.Field(i)
		text, err := json.Marshal(f.Interface())
		if err != nil {
			return nil, nil, fmt.Errorf("setting %q: %w", s.Name, err)
		}
		if f.Kind() == reflect.Slice && f.IsNil() {
			text = []byte("[]")
		}
		if i > 0 {
			all = append(all, ',')
		}
		all = append(strconv.AppendQuote(all, s.Name), ':')
		all = append(all, text...)
		if one[s.Name] = text; f.Kind() == reflect.String {
			one[s.Name] = []byte(f.String())
		}
	}
	return append(all, '}'), one, nil
}
