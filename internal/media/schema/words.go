package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// typeNames are the types in the order in which messages list them.
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

// typeList are the names in the order of the drafts.
var typeList = []document.Value{{V: "array"}, {V: "boolean"}, {V: "integer"}, {V: "null"}, {V: "number"}, {V: "object"}, {V: "string"}}

// typeNamed returns the type with a name, or 0.
func typeNamed(name string) types {
	for _, t := range typeNames {
		if t.name == name {
			return t.bit
		}
	}
	return 0
}

// wrongType returns the message for a value that has none of the wanted types.
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

// notAmong returns the message for a value that is not in the list, with a suggestion.
func (r *run) notAmong(v any, list []document.Value) string {
	if len(list) == 0 {
		return fmt.Sprintf("is %s, but the schema lists nothing that it may be", show(v))
	}
	if showSome(list) == show(v) {
		return fmt.Sprintf("is %s, but not the one that it must be", show(v))
	}
	return fmt.Sprintf("is %s, but must be one of %s", show(v), showSome(list)) + r.meant(v, len(list), func(i int) any { return list[i].V })
}

// meant returns a suggestion: the text among n that is most similar to a wrong one. After 20 million comparisons of
// letters it returns nothing, because there may be a hundred thousand errors.
func (r *run) meant(v any, n int, candidate func(int) any) string {
	wrong, ok := v.(string)
	var names []string
	for i := 0; i < n && ok; i++ {
		if s, isText := candidate(i).(string); isText {
			names = append(names, s)
			r.guessed += (1 + min(len(s), 256)) * (1 + min(len(wrong), 256))
		}
		if r.guessed > 20e6 {
			return ""
		}
	}
	if near := diag.Nearest(wrong, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
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
		return quote(x)
	case []document.Value:
		return "an array"
	case document.Object:
		return "an object"
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// quote quotes a text and shortens a long one.
func quote(s string) string { return strconv.Quote(shorten(s)) }

func shorten(s string) string {
	const most = 100 // bytes; a cut character is removed
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// showSome shows the first values of a long list.
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

// digits formats a number for people.
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
