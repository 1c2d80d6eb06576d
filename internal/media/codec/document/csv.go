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
	Comma    rune // the separator of cells; 0 is ','
	Strings  bool // every cell is a string; otherwise its type is inferred
	NoHeader bool // the first row is data, too, and a row is an array
}

// CSV reads RFC 4180 as an array of objects, one per row, with the cells of the first row as keys; without a header, as an
// array of arrays. Every row must be as long as the first one; empty lines are skipped. Lines end with LF, CR LF or, as old
// Macs wrote them, CR. Columns at the end that have neither a name nor a value are left out: some programs write a comma
// after the last cell.
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
	text = unixLines(text, true)
	if err := checkMarks(text, string(o.Comma)+"\n", MaxValues); err != nil {
		return Value{}, err
	}
	r := &csvReader{text: text, cur: cursor{text: text}, left: newBudget(under.ctx), line: 1, strings: o.Strings, csv: csv.NewReader(bytes.NewReader(text))}
	r.csv.Comma, r.csv.FieldsPerRecord = o.Comma, -1
	if o.NoHeader {
		return r.arrays()
	}
	return r.table()
}

// unixLines returns the text with LF in place of each CR that ends a line by itself: not followed by LF and, if quotes
// count, outside them. Offsets stay as they are. The text is copied only if there is one.
func unixLines(text []byte, quotes bool) []byte {
	var out []byte
	quoted := false
	for i, c := range text {
		switch {
		case c == '"' && quotes:
			quoted = !quoted // a quote within a quoted cell is doubled
		case c != '\r' || quoted || i+1 < len(text) && text[i+1] == '\n':
		default:
			if out == nil {
				out = bytes.Clone(text)
			}
			out[i] = '\n'
		}
	}
	if out == nil {
		return text
	}
	return out
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
	names, err := columns(header)
	if err != nil {
		return v, err
	}
	v.V, err = r.rows(func(row []csvCell) (any, error) { return r.object(header, row, names) })
	return v, err
}

// columns checks the header, and returns how many columns have names: those behind the last name need none.
func columns(header []csvCell) (int, error) {
	n := len(header)
	for n > 1 && !header[n-1].quoted && strings.TrimSpace(header[n-1].text) == "" {
		n--
	}
	var seen keys
	for i, name := range header[:n] {
		if strings.TrimSpace(name.text) == "" {
			return 0, errorf(Syntax, name.at, "column %d has no name", i+1).hint("name it in the first line")
		}
		if err := seen.add(name.text, name.at); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// arrays reads a table without a header.
func (r *csvReader) arrays() (Value, error) {
	v := Value{Pos: Pos{1, 1, 1}, V: []Value{}}
	first, err := r.row()
	if errors.Is(err, io.EOF) {
		return v, nil
	} else if err != nil {
		return v, err
	}
	value := func(row []csvCell) (any, error) {
		if len(row) != len(first) {
			return nil, errorf(Ragged, row[min(len(row), len(first)+1)-1].at, "the row has %d cells, the first row %d", len(row), len(first)).
				hint("give all rows the same number of cells; they may be empty. Put quotes around a cell with the delimiter in it")
		}
		return r.cells(row, 0)
	}
	top, err := value(first)
	if err != nil {
		return v, err
	}
	rest, err := r.rows(value)
	v.V = append([]Value{{first[0].at, top}}, rest...)
	return v, err
}

// rows reads the rows that are left.
func (r *csvReader) rows(value func([]csvCell) (any, error)) ([]Value, error) {
	rows := []Value{}
	for {
		row, err := r.row()
		if errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return nil, err
		}
		v, err := value(row)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Value{row[0].at, v})
	}
}

// cells returns the values of a row, whose keys have so many bytes.
func (r *csvReader) cells(row []csvCell, keys int) ([]Value, error) {
	if err := r.left.spend(row[0].at, keys); err != nil {
		return nil, err
	}
	list := make([]Value, len(row))
	for i, cell := range row {
		v, err := r.value(cell)
		if err != nil {
			return nil, err
		}
		if err := r.left.spend(cell.at, len(cell.text)); err != nil {
			return nil, err
		}
		list[i] = Value{cell.at, v}
	}
	return list, nil
}

// object returns a row as an object. The header has names in its first columns.
func (r *csvReader) object(header, row []csvCell, names int) (Object, error) {
	switch {
	case len(row) > len(header):
		return nil, errorf(Ragged, row[len(header)].at, "the row has %d cells, the header %d", len(row), len(header)).
			hint("remove the surplus, or put quotes around a cell with the delimiter in it")
	case len(row) < names:
		return nil, errorf(Ragged, row[len(row)-1].at, "the row ends after cell %d of %d; %q is missing", len(row), names, header[len(row)].text).
			hint("add the missing cells; they may be empty")
	}
	for i, cell := range row[names:] {
		if cell.quoted || strings.TrimSpace(cell.text) != "" {
			return nil, errorf(Syntax, cell.at, "column %d has a value, but no name", names+i+1).hint("name it in the first line, or remove the value")
		}
	}
	text := 0
	for _, name := range header[:names] {
		text += len(name.text)
	}
	cells, err := r.cells(row[:names], text)
	if err != nil {
		return nil, err
	}
	o := make(Object, names)
	for i, v := range cells {
		o[i] = Member{Key: header[i].text, KeyPos: v.Pos, Value: v}
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
