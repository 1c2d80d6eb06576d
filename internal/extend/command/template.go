package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// placeholders that every command knows; settings and {out:NAME} come on top.
var placeholders = []string{"in", "out", "dep", "name", "ext", "platform", "root", "needs", "assets", "tool"}

// An argument of the template is a sequence of parts:
//
//	argument = { text | "{{" | "}}" | "{" name [ ":" detail ] "}" }
//
// A setting that is a list must be alone in its argument, and becomes one argument for each
// element.
type argument []part

// part is literal text if it has no name, else a placeholder.
type part struct{ text, name, detail string }

// parseArgument splits one argument of the template.
func parseArgument(s string) (argument, error) {
	var a argument
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			a = append(a, part{text: text.String()})
			text.Reset()
		}
	}
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			text.WriteString(s)
			break
		}
		text.WriteString(s[:i])
		brace := s[i]
		if s = s[i+1:]; s != "" && s[0] == brace {
			text.WriteByte(brace)
			s = s[1:]
			continue
		}
		if brace == '}' {
			return nil, fmt.Errorf("a } without its {")
		}
		inside, rest, ok := strings.Cut(s, "}")
		if !ok {
			return nil, fmt.Errorf("a { without its }")
		}
		flush()
		name, detail, detailed := strings.Cut(inside, ":")
		if name == "" || detailed && detail == "" || strings.Contains(inside, "{") {
			return nil, fmt.Errorf("{%s} is no placeholder", inside)
		}
		a = append(a, part{name: name, detail: detail})
		s = rest
	}
	flush()
	return a, nil
}

// parseCommand parses the template and reports everything that would fail in every job.
func parseCommand(c Config) (args []argument, errs []error) {
	bad := func(index int, hint, format string, args ...any) {
		errs = append(errs, &ConfigError{"command", index, diag.CommandTemplate, fmt.Sprintf(format, args...), hint})
	}
	if len(c.Command) == 0 || c.Command[0] == "" {
		bad(-1, `write the program and its arguments, as ["glslc", "{in}", "-o", "{out}"]`, "there is no program to run")
		return nil, errs
	}
	k := known(c)
	used := map[string]bool{}
	for i, s := range c.Command {
		a, err := parseArgument(s)
		if err != nil {
			bad(i, "write {{ for a { and }} for a }", "%v", err)
			continue
		}
		if strings.ContainsRune(s, 0) {
			bad(i, "remove it", "an argument cannot hold a zero byte")
		}
		for _, p := range a {
			if p.name == "" {
				continue
			}
			if text, hint := k.refuse(p, len(a) == 1, i == 0); text != "" {
				bad(i, hint, "%s", text)
			}
			used[p.String()] = true
		}
		args = append(args, a)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	must := []string{"{in}", "{out}"}
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		must = append(must, "{out:"+name+"}")
	}
	for _, m := range must {
		if !used[m] {
			bad(-1, "name it where the program gets the path of that file", "the command has no %s", m)
		}
	}
	return args, errs
}

func (p part) String() string {
	if p.detail != "" {
		return "{" + p.name + ":" + p.detail + "}"
	}
	return "{" + p.name + "}"
}

// knownNames are the names allowed in braces.
type knownNames struct {
	names   []string // all of them, without braces, for display
	lists   map[string]bool
	outputs map[string]string
}

func known(c Config) knownNames {
	k := knownNames{names: slices.Clone(placeholders), lists: map[string]bool{}, outputs: c.Outputs}
	k.names = slices.DeleteFunc(k.names, func(s string) bool { return s == "tool" || s == "assets" }) // never without a detail
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		k.names = append(k.names, "out:"+name)
	}
	for _, s := range c.Settings {
		k.names = append(k.names, s.Name)
		if v, ok := defaultValue(s.Default); ok {
			k.lists[s.Name] = v.Kind().String() == "slice"
		}
	}
	return k
}

// refuse explains why a placeholder is not allowed at its place, and what to do; text is "" if it is allowed.
func (k knownNames) refuse(p part, alone, program bool) (text, hint string) {
	whole := strings.Trim(p.String(), "{}")
	_, isOutput := k.outputs[p.detail]
	switch {
	case program && p.name == "tool" && p.detail != "":
		return fmt.Sprintf("the program itself cannot hold %v", p), fmt.Sprintf("write ./%s: a path is relative to the project", strings.TrimPrefix(p.detail, "./"))
	case program:
		return fmt.Sprintf("the program itself cannot hold %v", p), "name one program; a rule for each platform can choose another processor"
	case (p.name == "tool" || p.name == "assets") && p.detail != "":
	case p.name == "out" && p.detail != "" && isOutput:
	case slices.Contains(k.names, p.name) && p.detail == "":
		if k.lists[p.name] && !alone {
			return fmt.Sprintf("%v is a list, and there is more in its argument", p), "make it an argument of its own"
		}
	default:
		hint = "known are {" + strings.Join(k.names, "}, {") + "}, {assets:PATTERN} and {tool:NAME}"
		if near := diag.DidYouMean("{"+whole+"}", braced(k.names)); near != "" {
			hint = near + " " + hint
		}
		return fmt.Sprintf("the placeholder %v is not known", p), hint
	}
	return "", ""
}

func braced(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "{" + n + "}"
	}
	return out
}

// uses reports whether the template has a placeholder.
func uses(args []argument, name string) bool {
	return slices.ContainsFunc(args, func(a argument) bool {
		return slices.ContainsFunc(a, func(p part) bool { return p.name == name })
	})
}

// lists are the patterns of {assets:PATTERN}, each once.
func lists(args []argument) (patterns []string) {
	for _, a := range args {
		for _, p := range a {
			if p.name == "assets" && !slices.Contains(patterns, p.detail) {
				patterns = append(patterns, p.detail)
			}
		}
	}
	return patterns
}

// expand fills in the template. A value is the text of a placeholder; only a list that
// stands alone has other than one.
func expand(args []argument, value func(part) ([]string, error)) ([]string, error) {
	out := make([]string, 0, len(args))
	for _, a := range args {
		if len(a) == 1 && a[0].name != "" {
			values, err := value(a[0])
			if err != nil {
				return nil, err
			}
			out = append(out, values...)
			continue
		}
		var b strings.Builder
		for _, p := range a {
			if p.name == "" {
				b.WriteString(p.text)
				continue
			}
			values, err := value(p)
			if err != nil {
				return nil, err
			}
			b.WriteString(strings.Join(values, " "))
		}
		out = append(out, b.String())
	}
	return out, nil
}
