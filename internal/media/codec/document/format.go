package document

import (
	"path"
	"slices"
	"strings"
)

// formats are those that [FormatOf] tells apart, with what their files are called.
var formats = [...]struct{ name, extensions string }{
	{"json", ".json"},
	{"toml", ".toml"},
	{"yaml", ".yaml .yml"},
	{"csv", ".csv"},
}

// FormatOf is the format that a file's name promises: "json", "toml", "yaml", "csv", or "".
func FormatOf(file string) string {
	ext := strings.ToLower(path.Ext(file))
	for _, f := range formats {
		if slices.Contains(strings.Fields(f.extensions), ext) {
			return f.name
		}
	}
	return ""
}

// Extensions are what files of some formats are called, in lower case and with the dot; of all, if none is named.
func Extensions(names ...string) []string {
	var list []string
	for _, f := range formats {
		if len(names) == 0 || slices.Contains(names, f.name) {
			list = append(list, strings.Fields(f.extensions)...)
		}
	}
	return list
}
