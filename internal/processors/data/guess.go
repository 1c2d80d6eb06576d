package data

import (
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/processor"
)

// Guess finds files that cannot be read as their extension says, and the setting with which they can. A file that is
// too large, or cannot be read at all, is better copied.
func Guess(file string, size int64, read func() []byte) processor.Guess {
	g := processor.Guess{Because: path.Ext(file)}
	shipped := processor.Guess{Setting: "processor", Value: "copy", Because: g.Because,
		Why: "cannot be read as its extension says, so it is shipped as it is"}
	if size > document.MaxSize {
		return shipped
	}
	data := read()
	if data == nil {
		return g // the build reports what is wrong
	}
	var err error
	switch document.FormatOf(file) {
	case "json":
		if _, err = document.JSON(data); err == nil {
			break
		}
		if _, err := document.RelaxedJSON(data); err == nil {
			g.Setting, g.Value = "input", "relaxed"
			g.Why = "written for a tolerant reader: comments, trailing commas or text without quotes"
			return g
		}
	case "toml":
		_, err = document.TOML(data)
	case "yaml":
		_, err = document.YAML(data)
	case "csv":
		var comma rune
		comma, g = delimiter(data, g)
		_, err = document.CSV(data, document.CSVOptions{Comma: comma})
	}
	if err != nil {
		return shipped
	}
	return g
}

// delimiter returns the delimiter of a CSV file: the candidate that is most frequent in the first
// line.
func delimiter(data []byte, g processor.Guess) (rune, processor.Guess) {
	first, _, _ := strings.Cut(string(data[:min(len(data), 1<<16)]), "\n")
	comma, n := ',', strings.Count(first, ",")
	for _, c := range []struct {
		rune
		name, why string
	}{{';', "semicolon", "cells are separated by semicolons"}, {'\t', "tab", "cells are separated by tabs"}} {
		if m := strings.Count(first, string(c.rune)); m > n {
			comma, n, g.Setting, g.Value, g.Why = c.rune, m, "delimiter", c.name, c.why
		}
	}
	return comma, g
}
