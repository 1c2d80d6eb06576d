package document

import (
	"path"
	"slices"
	"strings"
)

// formats are the formats that [FormatOf] returns, with their file name extensions.
var formats = [...]struct{ name, extensions string }{
	{"json", ".json"},
	{"toml", ".toml"},
	{"yaml", ".yaml .yml"},
	{"csv", ".csv"},
	{"tsv", ".tsv"},
	{"properties", ".properties"},
}

// FormatOf returns the format for a file's extension: "json", "toml", "yaml", "csv", "tsv", "properties", or "".
func FormatOf(file string) string {
	ext := strings.ToLower(path.Ext(file))
	for _, f := range formats {
		if slices.Contains(strings.Fields(f.extensions), ext) {
			return f.name
		}
	}
	return ""
}

// Extensions returns the extensions of the named formats, or of all, in lower case and with the dot.
func Extensions(names ...string) []string {
	var list []string
	for _, f := range formats {
		if len(names) == 0 || slices.Contains(names, f.name) {
			list = append(list, strings.Fields(f.extensions)...)
		}
	}
	return list
}
