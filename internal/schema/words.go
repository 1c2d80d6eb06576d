package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/codec/document"
	"github.com/kiln-pipeline/kiln/internal/diag"
)

// typeNames are the types in the order in which they are told.
var typeNames = [...]struct {
	bit              types
	name, is, mustBe string
}{
	{typeNull, "null", "null", "null"},
	{typeBoolean, "boolean", "a boolean", "true or false"},
	{typeNumber, "number", "a number", "a number"},
	{typeInteger, "integer", "a number", "an integer"},
	{typeString, "string", "a string", "a string"},
	{typeArray, "array", "an array", "an array"},
	{typeObject, "object", "an object", "an object"},
}

// typeList are the names as the drafts list them.
var typeList = []document.Value{{V: "array"}, {V: "boolean"}, {V: "integer"}, {V: "null"}, {V: "number"}, {V: "object"}, {V: "string"}}

// typeNamed is the type of that name, 0 if there is none.
func typeNamed(name string) types {
	for _, t := range typeNames {
		if t.name == name {
			return t.bit
		}
	}
	return 0
}

// wrongType says that a value has none of the types that it may have.
func wrongType(v any, want types) string {
	is, mustBe := "", []string(nil)
	for _, t := range typeNames {
		if is == "" && typeOf(v)&t.bit != 0 {
			is = t.is
		}
		if want&t.bit != 0 {
			mustBe = append(mustBe, t.mustBe)
		}
	}
	return fmt.Sprintf("is %s, but must be %s", is, strings.Join(mustBe, " or "))
}

// notAmong says that a value is none of those that it may be, and which may have been meant.
func notAmong(v any, list []document.Value) string {
	said := fmt.Sprintf("is %s, but must be one of %s", show(v), showSome(list))
	if got, ok := v.(string); ok {
		var names []string
		for _, x := range list {
			if s, ok := x.V.(string); ok {
				names = append(names, s)
			}
		}
		if near := diag.Nearest(got, names); near != "" {
			said += fmt.Sprintf("; did you mean %q?", near)
		}
	}
	return said
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func show(v any) string {
	switch x := v.(type) {
	case string:
		return strconv.Quote(x)
	case []document.Value:
		return "an array"
	case document.Object:
		return "an object"
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// showSome keeps a list of hundreds of names out of a message.
func showSome(list []document.Value) string {
	const most = 10
	var s []string
	for _, v := range list[:min(len(list), most)] {
		s = append(s, show(v.V))
	}
	if len(list) > most {
		s = append(s, fmt.Sprintf("... (%d in all)", len(list)))
	}
	return strings.Join(s, ", ")
}

// digits writes a number as people would.
func digits(v any) string {
	f, ok := v.(float64)
	if !ok {
		return fmt.Sprint(v)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
