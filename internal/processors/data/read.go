package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/processor"
)

// readSource reads the asset's own file.
func readSource(ctx context.Context, job processor.Job, s *Settings) (document.Value, error) {
	file := job.Asset().Path
	input := s.Input
	if input == "auto" {
		if input = document.FormatOf(file); input == "" {
			return document.Value{}, &processor.Problem{
				Code: string(diag.DataInput),
				Text: fmt.Sprintf("the extension %q does not say how the data is written", path.Ext(file)),
				Hint: `set input to one of json, relaxed, toml, yaml, csv, tsv, properties`,
			}
		}
	}
	data, err := readBounded(job, file)
	if err != nil {
		return document.Value{}, problem(err, "")
	}
	switch input {
	case "relaxed":
		v, err := document.Under(ctx).RelaxedJSON(data)
		return v, problem(err, "")
	case "csv", "tsv":
		return readTable(ctx, job, data, input == "tsv", s)
	}
	v, err := parse(ctx, input, data)
	if err != nil && input == "json" {
		return v, relaxedHint(ctx, data, err)
	}
	return v, problem(err, "")
}

// readTable reads a table, and warns of one without a row.
func readTable(ctx context.Context, job processor.Job, data []byte, tabs bool, s *Settings) (document.Value, error) {
	comma := map[string]rune{"comma": ',', "semicolon": ';', "tab": '\t'}[s.Delimiter]
	if tabs {
		comma = '\t'
	}
	v, err := document.Under(ctx).CSV(data, document.CSVOptions{Comma: comma, Strings: s.CSVTypes == "string", NoHeader: !s.Header})
	if err != nil {
		return v, problem(err, "")
	}
	if rows, ok := v.V.([]document.Value); ok && len(rows) == 0 {
		hint := "add rows; if the first line is a row itself, set header = false"
		if !s.Header {
			hint = "add rows"
		}
		job.Warn(*problemAt(diag.DataEmpty, "", document.Pos{}, hint, "the table has no rows"))
	}
	return v, nil
}

func parse(ctx context.Context, input string, data []byte) (document.Value, error) {
	switch input {
	case "toml":
		return document.Under(ctx).TOML(data)
	case "yaml":
		return document.Under(ctx).YAML(data)
	case "properties":
		return document.Under(ctx).Properties(data)
	}
	return document.Under(ctx).JSON(data)
}

// readBounded reads a file, unless it is too large for the readers.
func readBounded(job processor.Job, file string) ([]byte, error) {
	f, err := job.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size := f.Size(); size > document.MaxSize {
		return nil, &document.Error{
			Fault: document.Limit,
			Text:  fmt.Sprintf("the file has %d bytes; data of at most %d MiB is read", size, document.MaxSize>>20),
			Hint:  "split it, or use the processor copy",
		}
	}
	return io.ReadAll(f)
}

var faultCodes = map[document.Fault]diag.Code{
	document.Syntax:      diag.DataSyntax,
	document.Duplicate:   diag.DataDuplicateKey,
	document.Encoding:    diag.DataEncoding,
	document.Limit:       diag.DataLimit,
	document.Number:      diag.DataNumber,
	document.Unsupported: diag.DataUnsupported,
	document.Ragged:      diag.DataRagged,
}

// problem turns an error of the readers into a problem. file is "" for the asset's own.
func problem(err error, file string) error {
	var e *document.Error
	if !errors.As(err, &e) {
		return err
	}
	return problemAt(faultCodes[e.Fault], file, e.Pos, e.Hint, "%s", e.Text)
}

func problemAt(code diag.Code, file string, at document.Pos, hint, format string, args ...any) *processor.Problem {
	return &processor.Problem{
		Code: string(code), Path: file, Line: int(at.Line), Column: int(at.Column), Length: int(at.Length),
		Text: fmt.Sprintf(format, args...), Hint: hint,
	}
}

// relaxedHint checks whether a tolerant reader accepts the file: most files that are not quite JSON
// are written for such a reader.
func relaxedHint(ctx context.Context, data []byte, err error) error {
	var e *document.Error
	if !errors.As(err, &e) || e.Fault != document.Syntax {
		return problem(err, "")
	}
	if _, relaxed := document.Under(ctx).RelaxedJSON(data); relaxed != nil {
		return problem(err, "")
	}
	return problemAt(diag.DataRelaxedJSON, "", e.Pos,
		`if it is written for a tolerant reader (JSON5, libGDX), give it input = "relaxed", or processor = "copy" to ship it as it is`,
		"not strict JSON: %s", e.Text)
}
