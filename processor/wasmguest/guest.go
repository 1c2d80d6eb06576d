//go:build wasip1

package wasmguest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/processor"
)

// abi is the version of the interface that this package implements.
const abi = 1

// served is the module's processor. It is global because the exports below have no parameter for it.
var served processor.Processor

// Serve makes p the module's processor. Call it once, in a package variable or in init: main does not run.
func Serve(p processor.Processor) processor.Processor {
	if served != nil {
		panic("wasmguest: a module has one processor")
	}
	served = p
	return p
}

type about struct {
	ABI        int            `json:"abi"`
	Name       string         `json:"name"`
	Version    int            `json:"version"`
	Summary    string         `json:"summary,omitempty"`
	Extensions []string       `json:"extensions,omitempty"`
	Folder     bool           `json:"folder,omitempty"`
	Memory     int64          `json:"memory,omitempty"`
	Settings   []aboutSetting `json:"settings,omitempty"`
	Products   []aboutProduct `json:"products"`
}

type aboutSetting struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Default any      `json:"default"`
	Doc     string   `json:"doc,omitempty"`
	Values  []string `json:"values,omitempty"`
	Min     *float64 `json:"min,omitempty"`
	Max     *float64 `json:"max,omitempty"`
}

type aboutProduct struct {
	Type      string `json:"type"`
	Extension string `json:"extension,omitempty"`
	Doc       string `json:"doc,omitempty"`
}

//go:wasmexport kiln_info
func kilnInfo() {
	if served == nil {
		panic("wasmguest: no processor: write `var _ = wasmguest.Serve(Name{})`")
	}
	in := served.Info()
	a := about{
		ABI: abi, Name: in.Name, Version: in.Version, Summary: in.Summary, Extensions: in.Extensions, Folder: in.Folder, Memory: in.Memory,
		Settings: describeSettings(in.Settings),
	}
	for _, p := range in.Products {
		a.Products = append(a.Products, aboutProduct{p.Type, p.Extension, p.Doc})
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	hostDescribe(pointer(text), uint32(len(text)))
}

//go:wasmexport kiln_process
func kilnProcess() int32 {
	j := &job{asset: asset()}
	var err error
	if j.settings, err = readSettings(served.Info().Settings); err == nil {
		err = served.Process(context.Background(), j)
	}
	if err == nil {
		return 0
	}
	fail(err)
	return 1
}

// fail reports each of the joined errors.
func fail(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			fail(e)
		}
		return
	}
	var p *processor.Problem
	if !errors.As(err, &p) {
		p = &processor.Problem{Text: err.Error()}
	}
	var h *hostError
	var missing *fs.PathError
	cause := int32(0)
	switch {
	case errors.As(err, &h):
		cause = h.handle
	case errors.As(err, &missing) && missing.Op == "open" && missing.Err == fs.ErrNotExist && hostOpen(missing.Path) == notFound: // the error is used now, so ask the host for its own
		cause = hostLastError()
		if err == error(missing) {
			p.Text = string(content(cause))
		}
	}
	hostFail(p.Text, p.Hint, p.Path, int32(p.Line), int32(p.Column), int32(p.Length), cause)
}

// fields calls f with each setting of a settings struct: its tag, and its value.
func fields(settings any, f func(reflect.StructTag, reflect.Value)) {
	if settings == nil {
		return
	}
	v := reflect.ValueOf(settings).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("toml") != "" {
			f(v.Type().Field(i).Tag, v.Field(i))
		}
	}
}

func describeSettings(settings any) (list []aboutSetting) {
	fields(settings, func(tag reflect.StructTag, v reflect.Value) {
		s := aboutSetting{Name: tag.Get("toml"), Type: settingType(v.Type()), Default: v.Interface(), Doc: tag.Get("doc"), Min: bound(tag.Get("min")), Max: bound(tag.Get("max"))}
		if s.Type == "" {
			panic(fmt.Sprintf("wasmguest: setting %q is a %v, which a module cannot have", s.Name, v.Type()))
		}
		if v.Kind() == reflect.Slice && v.IsNil() {
			s.Default = []int{}
		}
		if values := tag.Get("values"); values != "" {
			s.Values = strings.Split(values, ",")
		}
		list = append(list, s)
	})
	return list
}

func settingType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.String:
		return "string"
	case reflect.Slice:
		if one := settingType(t.Elem()); one != "" && t.Elem().Kind() != reflect.Slice {
			return one + "s"
		}
	}
	return ""
}

func bound(s string) *float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil
	}
	return &n
}

// readSettings fills a copy of the struct that holds the defaults.
func readSettings(defaults any) (any, error) {
	if defaults == nil {
		return nil, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text(hostSettings())), &given); err != nil {
		return nil, err
	}
	v := reflect.New(reflect.TypeOf(defaults).Elem())
	v.Elem().Set(reflect.ValueOf(defaults).Elem())
	var err error
	fields(v.Interface(), func(tag reflect.StructTag, f reflect.Value) {
		if raw := given[tag.Get("toml")]; raw != nil && err == nil {
			fresh := reflect.New(f.Type()) // do not write to the slices of the defaults
			err = json.Unmarshal(raw, fresh.Interface())
			f.Set(fresh.Elem())
		}
	})
	return v.Interface(), err
}
