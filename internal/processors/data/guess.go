package data

import (
	"bytes"
	"path"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/processor"
)

// Guess finds files that cannot be read as their extension says, and the setting with which they can. A file that no
// setting makes readable stays as it is: the build says what is wrong with it.
func Guess(file string, _ []string, size int64, read func() []byte) processor.Guess {
	g := processor.Guess{Because: path.Ext(file)}
	if size > document.MaxSize {
		return g
	}
	data := read()
	if data == nil {
		return g
	}
	switch document.FormatOf(file) {
	case "json":
		if _, err := document.JSON(data); err == nil {
			break
		}
		if _, err := document.RelaxedJSON(data); err == nil {
			g.Setting, g.Value = "input", "relaxed"
			g.Why = "written for a tolerant reader: comments, trailing commas or text without quotes"
		}
	case "csv":
		g = delimiter(data, g)
	}
	return g
}

// delimiter finds the delimiter of a CSV file: the candidate that is most frequent in the first line.
func delimiter(data []byte, g processor.Guess) processor.Guess {
	first := data[:min(len(data), 1<<16)]
	if end := bytes.IndexAny(first, "\r\n"); end >= 0 {
		first = first[:end]
	}
	n := bytes.Count(first, []byte(","))
	for _, c := range []struct{ comma, name, why string }{
		{";", "semicolon", "cells are separated by semicolons"},
		{"\t", "tab", "cells are separated by tabs"},
	} {
		if m := bytes.Count(first, []byte(c.comma)); m > n {
			n, g.Setting, g.Value, g.Why = m, "delimiter", c.name, c.why
		}
	}
	return g
}
