package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// words are the functions for templates.
func (d *Dashboard) words() template.FuncMap {
	return template.FuncMap{
		"count":        count,
		"plural":       plural,
		"bytes":        bytesText,
		"seconds":      secondsText,
		"asset":        assetPath,
		"product":      func(platform, file, hash string) string { return bytesPath("/product/", platform, file, hash) },
		"picture":      func(platform, file, hash string) string { return bytesPath("/picture/", platform, file, hash) },
		"query":        withQuery,
		"filelink":     func(p string) string { return (&url.URL{Path: "/file/" + p}).String() },
		"folder":       folderLink,
		"edit":         func(file string, line, column int64) template.URL { return d.editor.link(file, line, column) },
		"ago":          func(t time.Time) string { return agoText(d.now().Sub(t)) },
		"iso":          func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"clock":        func(t time.Time) string { return t.Local().Format("2 Jan 2006 15:04:05") },
		"hour":         func(t time.Time) string { return t.Local().Format("15:04:05") },
		"base":         base,
		"dir":          dirOf,
		"percent":      percent,
		"lower":        strings.ToLower,
		"join":         func(s []string) string { return strings.Join(s, ", ") },
		"dict":         dict,
		"add":          func(a, b int) int { return a + b },
		"less":         func(a, b int) int { return a - b },
		"permille":     func(part, whole int) int { return 1000 * min(part, whole) / max(1, whole) },
		"under":        func(id, folder string) string { return strings.TrimPrefix(id, folder) },
		"saw":          sawText,
		"stopped":      stopped,
		"whole":        func(file string) string { return filepath.Join(d.cfg.Dir, filepath.FromSlash(file)) },
		"glyph":        func(id, processor string) string { return cmp.Or(processors.Glyph(id, processor), "··") },
		"least":        func(a, b int) int { return min(a, b) },
		"level":        levelText,
		"mip":          func(side, level int) int { return max(1, side>>level) },
		"part":         func(name, asset string) string { return strings.TrimPrefix(name, asset) },
		"face":         func(i int) string { return [...]string{"+x", "−x", "+y", "−y", "+z", "−z"}[i%6] },
		"chans":        channelChoices,
		"looking":      looking,
		"picturable":   func(path string) bool { return processors.View(path, "") == preview.Picture },
		"settingslink": func(id string) string { return (&url.URL{Path: "/settings/" + id}).String() },
		"seq": func(n int) []int {
			return slices.Collect(func(yield func(int) bool) {
				for i := 0; i < n && yield(i); i++ {
				}
			})
		},
	}
}

// levelText is a number in an address; "" for 0.
func levelText(i int) string {
	if i == 0 {
		return ""
	}
	return strconv.Itoa(i)
}

// choice is an option with its label.
type choice struct{ Value, Label string }

func channelChoices() []choice {
	return []choice{{"rgb", "RGB"}, {"r", "R"}, {"g", "G"}, {"b", "B"}, {"a", "A"}}
}

// looking is the address of the requested view of a picture.
func looking(s *shown) (string, error) {
	return withQuery(s.Address, "level", levelText(s.Look.Level), "layer", levelText(s.Look.Layer), "face", levelText(s.Look.Face),
		"slice", levelText(s.Look.Slice), "show", s.Look.Channels)
}

// sawText describes how a job observed a file.
func sawText(kind string) string {
	words := map[string]string{"file": "read it", "missing": "looked for it", "exists": "asked whether it is there", "glob": "listed it", "listing": "listed it"}
	if w, ok := words[kind]; ok {
		return w
	}
	return kind
}

// dict makes a map of pairs, for templates with several arguments.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, errors.New("dict wants names")
		}
		m[key] = pairs[i+1]
	}
	return m, nil
}

// count formats a number: 12 345, with thin spaces that do not break.
func count(v any) string {
	var n int64
	switch v := v.(type) {
	case int:
		n = int64(v)
	case int64:
		n = v
	}
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// plural is a number with its noun.
func plural(v any, one, many string) string {
	s := count(v)
	if s == "1" {
		return "1 " + one
	}
	return s + " " + many
}

// bytesText formats a size that does not break between number and unit.
func bytesText(n int64) string { return strings.ReplaceAll(diag.Size(n), " ", "\u00a0") }

func secondsText(s float64) string {
	switch {
	case s < 0.001:
		return "<\u20091\u00a0ms"
	case s < 0.9995:
		return fmt.Sprintf("%.0f\u00a0ms", s*1000)
	case s < 59.95:
		return fmt.Sprintf("%.1f\u00a0s", s)
	case s < 3600:
		return fmt.Sprintf("%d\u00a0min %02d\u00a0s", int(s)/60, int(s)%60)
	}
	return fmt.Sprintf("%d\u00a0h %02d\u00a0min", int(s)/3600, int(s)/60%60)
}

func agoText(d time.Duration) string {
	switch s := int(d.Seconds()); {
	case s < 5:
		return "just now"
	case s < 60:
		return fmt.Sprintf("%d\u00a0s ago", s)
	case s < 3600:
		return fmt.Sprintf("%d\u00a0min ago", s/60)
	case s < 48*3600:
		return fmt.Sprintf("%d\u00a0h ago", s/3600)
	default:
		return fmt.Sprintf("%d\u00a0days ago", s/86400)
	}
}

func percent(part, whole float64) string {
	if whole <= 0 {
		return "0"
	}
	return strconv.FormatFloat(math.Round(1000*part/whole)/10, 'f', -1, 64)
}

// base is the last element of an id; a folder keeps its slash.
func base(id string) string {
	if b := path.Base(id); strings.HasSuffix(id, "/") {
		return b + "/"
	} else {
		return b
	}
}

// dirOf is the part before base, with its slash.
func dirOf(id string) string { return strings.TrimSuffix(id, base(id)) }

func assetPath(id string) string { return (&url.URL{Path: "/asset/" + id}).String() }

func folderLink(folder string) string { return "/content?" + url.Values{"folder": {folder}}.Encode() }

// bytesPath is the address of a product, with its hash, so that a browser can cache it permanently.
func bytesPath(where, platform, file, hash string) string {
	u := url.URL{Path: where + platform + "/" + file, RawQuery: url.Values{"h": {hash[:min(len(hash), 16)]}}.Encode()}
	return u.String()
}

// withQuery adds parameters to an address, or changes them; an empty value removes one.
func withQuery(address string, pairs ...any) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	q := u.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		name, value := fmt.Sprint(pairs[i]), fmt.Sprint(pairs[i+1])
		if q.Del(name); value != "" {
			q.Set(name, value)
		}
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// editor makes addresses that open a file in the user's editor.
type editor struct{ address, dir string }

var editorScheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://`)

// newEditor checks an address that an editor has registered: vscode://file{path}:{line}:{column},
// idea://open?file={path}&line={line}. Addresses that a browser would run or show are refused.
func newEditor(address, dir string) (editor, error) {
	if address == "" {
		address = DefaultEditor
	}
	scheme := editorScheme.FindString(address)
	if scheme == "" || slices.Contains([]string{"javascript://", "data://", "vbscript://"}, scheme) || !strings.Contains(address, "{path}") {
		return editor{}, fmt.Errorf("%q is not an editor's address: it begins with the editor's own scheme and has {path} in it, as %s", address, DefaultEditor)
	}
	return editor{address, filepath.ToSlash(dir)}, nil
}

// link opens a file, given relative to the project, at a line and column; 0 is the first.
func (e editor) link(file string, line, column int64) template.URL {
	full := path.Join(e.dir, file)
	if !strings.HasPrefix(full, "/") {
		full = "/" + full // C:/games
	}
	full = (&url.URL{Path: full}).EscapedPath()
	s := strings.NewReplacer("{path}", full, "{line}", strconv.FormatInt(max(1, line), 10), "{column}", strconv.FormatInt(max(1, column), 10)).Replace(e.address)
	return template.URL(s)
}
