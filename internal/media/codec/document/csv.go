package document

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"
)

// CSVOptions are the options for reading a CSV file.
type CSVOptions struct {
	Comma   rune // the separator of cells; 0 is ','
	Strings bool // every cell is a string; otherwise its type is inferred
}

// CSV reads RFC 4180 as an array of objects, one per row, with the cells of the first row as keys. Every row must be as long
// as the first one; empty lines are skipped.
//
// Types are inferred: a cell in quotes is a string; an empty one is null; true and false are booleans; a number in JSON's
// syntax is that number, so 007 and 1,5 remain strings.
func (under Reader) CSV(data []byte, o CSVOptions) (Value, error) {
	text, err := prepare(data, MaxSize)
	if err != nil {
		return Value{}, err
	}
	if o.Comma == 0 {
		o.Comma = ','
	}
	if err := checkMarks(text, string(o.Comma)+"\n", MaxValues); err != nil {
		return Value{}, err
	}
	r := &csvReader{text: text, cur: cursor{text: text}, left: newBudget(under.ctx), line: 1, strings: o.Strings, csv: csv.NewReader(bytes.NewReader(text))}
	r.csv.Comma, r.csv.FieldsPerRecord = o.Comma, -1
	return r.table()
}

type csvReader struct {
	text    []byte
	cur     cursor
	left    budget
	strings bool
	csv     *csv.Reader
	line    int // a line, from 1, and its start; they only move forward
	start   int // in bytes
}

type csvCell struct {
	text   string
	at     Pos
	quoted bool
}

func (r *csvReader) table() (Value, error) {
	v := Value{Pos: Pos{1, 1, 1}}
	header, err := r.row()
	if errors.Is(err, io.EOF) {
		return v, errorf(Syntax, v.Pos, "the file has no header").hint("write the columns' names in the first line")
	} else if err != nil {
		return v, err
	}
	if first := header[0]; len(header) == 1 && !first.quoted && strings.ContainsAny(first.text, ",;\t") {
		return v, errorf(Ragged, first.at, "the header is one column, %q", shorten(first.text)).
			hint("set the delimiter that the file has; or put quotes around the name, if it is one")
	}
	var seen keys
	for i, name := range header {
		if strings.TrimSpace(name.text) == "" {
			return v, errorf(Syntax, name.at, "column %d has no name", i+1).hint("name it in the first line")
		}
		if err := seen.add(name.text, name.at); err != nil {
			return v, err
		}
	}
	rows := []Value{}
	for {
		row, err := r.row()
		if errors.Is(err, io.EOF) {
			v.V = rows
			return v, nil
		} else if err != nil {
			return v, err
		}
		o, err := r.object(header, row)
		if err != nil {
			return v, err
		}
		rows = append(rows, Value{row[0].at, o})
	}
}

func (r *csvReader) object(header, row []csvCell) (Object, error) {
	switch {
	case len(row) > len(header):
		return nil, errorf(Ragged, row[len(header)].at, "the row has %d cells, the header %d", len(row), len(header)).
			hint("remove the surplus, or put quotes around a cell with the delimiter in it")
	case len(row) < len(header):
		return nil, errorf(Ragged, row[len(row)-1].at, "the row ends after cell %d of %d; %q is missing", len(row), len(header), header[len(row)].text).
			hint("add the missing cells; they may be empty")
	}
	if err := r.left.spend(row[0].at, 0); err != nil {
		return nil, err
	}
	o := make(Object, len(row))
	for i, cell := range row {
		v, err := r.value(cell)
		if err != nil {
			return nil, err
		}
		if err := r.left.spend(cell.at, len(cell.text)+len(header[i].text)); err != nil {
			return nil, err
		}
		o[i] = Member{Key: header[i].text, KeyPos: cell.at, Value: Value{cell.at, v}}
	}
	return o, nil
}

func (r *csvReader) value(c csvCell) (any, error) {
	if r.strings || c.quoted {
		return c.text, nil
	}
	switch c.text {
	case "":
		return nil, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	if ok, integer := isNumber(c.text); ok {
		return number(c.text, integer, c.at)
	}
	return c.text, nil
}

// row reads a record.
func (r *csvReader) row() ([]csvCell, error) {
	record, err := r.csv.Read()
	var p *csv.ParseError
	if errors.As(err, &p) {
		e := errorf(Syntax, r.cur.byteColumn(p.Line, p.Column), "%s", p.Err)
		if errors.Is(p.Err, csv.ErrBareQuote) || errors.Is(p.Err, csv.ErrQuote) {
			e.hint(`put the whole cell in quotes and write a quote within as ""`)
		}
		return nil, e
	} else if err != nil {
		return nil, err
	}
	row := make([]csvCell, len(record))
	for i, text := range record {
		line, column := r.csv.FieldPos(i)
		for ; r.line < line; r.line++ {
			r.start += bytes.IndexByte(r.text[r.start:], '\n') + 1
		}
		from := r.start + column - 1
		quoted := from < len(r.text) && r.text[from] == '"'
		to := from + len(text)
		if quoted {
			to += 2
		}
		row[i] = csvCell{text, r.cur.span(from, min(to, len(r.text))), quoted}
	}
	return row, nil
}
