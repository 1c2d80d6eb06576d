package settings

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/processor"
)

// Name matches valid names of platforms, processors and parcels: they are parts of paths and of
// keys on every system.
var Name = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`) })

var settingName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]*$`) })

// Check finds a programmer's errors in a processor's Info: names, extensions, settings of a type that
// files cannot have, tags that do not fit, invalid defaults. Everything else in this package may panic
// with an Info that Check rejects.
func Check(info processor.Info) error {
	c := checker{}
	if !Name().MatchString(info.Name) || info.Name == "none" || info.Name == "textures" {
		c.add("the name may have lower case letters, digits, dashes and underscores, and is not none or textures")
	}
	for i, e := range info.Extensions {
		if len(e) < 2 || e[0] != '.' || e != strings.ToLower(e) || strings.ContainsAny(e, `/\*?[]{} `) {
			c.add("extension %q is not lower case with a dot in front", e)
		}
		if slices.Contains(info.Extensions[:i], e) {
			c.add("extension %q is there twice", e)
		}
	}
	if info.Settings != nil {
		v := reflect.ValueOf(info.Settings)
		if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
			c.add("Settings is a %T, not a pointer to a struct", info.Settings)
		} else {
			c.structure(v.Elem(), "")
		}
	}
	if len(c.errs) == 0 {
		return nil
	}
	return fmt.Errorf("processor %q: %w", info.Name, errors.Join(c.errs...))
}

type checker struct{ errs []error }

func (c *checker) add(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

func (c *checker) structure(v reflect.Value, prefix string) {
	seen := map[string]bool{}
	for i, f := range fieldsOf(v.Type()) {
		name := prefix + f.name
		switch {
		case !f.IsExported() || f.Anonymous:
			c.add("field %s%s is embedded or not exported", prefix, f.Name)
			continue
		case !settingName().MatchString(f.name):
			c.add(`field %s%s has no usable tag toml:"name"`, prefix, f.Name)
			continue
		case seen[f.name]:
			c.add("setting %q is there twice", name)
		}
		seen[f.name] = true
		if f.Type.Kind() == reflect.Struct {
			c.structure(v.Field(i), name+".")
			continue
		}
		if f.Tag.Get("doc") == "" {
			c.add(`setting %q has no tag doc:"..."`, name)
		}
		if f.Tag.Get("of") != "" && f.Type != reflect.TypeFor[map[string]any]() {
			c.add("setting %q is of another processor, but is not a map[string]any", name)
		}
		if !leaf(f.Type) {
			c.add("setting %q is a %s, which files cannot give", name, f.Type)
			continue
		}
		c.bounds(f, name, v.Field(i))
		if f.Type.Kind() == reflect.Map {
			if _, ok := asInFile(v.Field(i)); !ok {
				c.add("setting %q: its default holds something that files cannot give", name)
			}
		}
	}
}

// leaf reports whether a setting may have this type: bool, int, int64, float64, string, a slice of
// those, map[string]string or map[string]any.
func leaf(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice:
		return scalar(t.Elem())
	case reflect.Map:
		return t == reflect.TypeFor[map[string]string]() || t == reflect.TypeFor[map[string]any]()
	}
	return scalar(t)
}

func scalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64, reflect.String:
		return true
	}
	return false
}

// bounds checks the tags values, min and max, and the default.
func (c *checker) bounds(f field, name string, v reflect.Value) {
	elem := f.Type
	if elem.Kind() == reflect.Slice || elem.Kind() == reflect.Map {
		elem = elem.Elem()
	}
	if f.values() != nil && elem.Kind() != reflect.String {
		c.add("setting %q has values, but is not a string", name)
		return
	}
	number := elem.Kind() == reflect.Int || elem.Kind() == reflect.Int64 || elem.Kind() == reflect.Float64
	limits := [2]float64{math.Inf(-1), math.Inf(1)}
	for i, tag := range []string{"min", "max"} {
		text, ok := f.Tag.Lookup(tag)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !number || elem.Kind() != reflect.Float64 && x != math.Trunc(x) {
			c.add("setting %q: %s %q does not fit its type", name, tag, text)
			return
		}
		limits[i] = x
	}
	each(v, func(v reflect.Value) {
		switch {
		case v.Kind() == reflect.String && f.values() != nil && !slices.Contains(f.values(), v.String()):
			c.add("setting %q: its default %q is none of its values", name, v.String())
		case v.CanInt() && outside(float64(v.Int()), limits), v.CanFloat() && outside(v.Float(), limits):
			c.add("setting %q: its default %v is out of its bounds", name, v)
		}
	})
}

func outside(x float64, limits [2]float64) bool { return !(limits[0] <= x && x <= limits[1]) }

// each visits a value, or the elements of a slice.
func each(v reflect.Value, visit func(reflect.Value)) {
	if v.Kind() != reflect.Slice {
		visit(v)
		return
	}
	for i := range v.Len() {
		visit(v.Index(i))
	}
}
