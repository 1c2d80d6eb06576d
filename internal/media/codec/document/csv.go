package document

import (
	"bytes"
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
	text = unixLines(text, o.Comma)
	if err := checkMarks(text, string(o.Comma)+"\n", MaxValues); err != nil {
		return Value{}, err
	}
	r := &csvReader{text: text, cur: cursor{text: text}, left: newBudget(under.ctx), strings: o.Strings, comma: byte(o.Comma)}
	if o.NoHeader {
		return r.arrays()
	}
	return r.table()
}

// unixLines returns the text with LF in place of each CR that ends a line by itself: not followed by LF and, if cells may be in
// quotes, outside those. comma is the separator of cells, or 0 if there are none. Offsets stay as they are. The text is copied
// only if there is one.
func unixLines(text []byte, comma rune) []byte {
	var out []byte
	quoted, may := false, true // in quotes; a quote here begins or continues a cell in quotes
	for i, c := range text {
		switch {
		case quoted:
			quoted = c != '"'
			may = !quoted // a quote within is doubled
			continue
		case c == '"' && may && comma != 0:
			quoted = true
			continue
		case c == '\r' && (i+1 == len(text) || text[i+1] != '\n'):
			if out == nil {
				out = bytes.Clone(text)
			}
			out[i] = '\n'
		}
		may = c == '\n' || c == '\r' || rune(c) == comma
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
	comma   byte
	at      int // in bytes
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

// row reads a row.
func (r *csvReader) row() (row []csvCell, err error) {
	for r.at < len(r.text) && r.lineEnd() > 0 {
		r.at += r.lineEnd()
	}
	if r.at == len(r.text) {
		return nil, io.EOF
	}
	for {
		cell, err := r.cell()
		if err != nil {
			return nil, err
		}
		row = append(row, cell)
		if r.at < len(r.text) && r.text[r.at] == r.comma {
			r.at++
			continue
		}
		r.at += r.lineEnd()
		return row, nil
	}
}

// lineEnd returns how many bytes end the line here; 0 if it does not end.
func (r *csvReader) lineEnd() int {
	rest := r.text[r.at:]
	switch {
	case bytes.HasPrefix(rest, []byte("\r\n")):
		return 2
	case bytes.HasPrefix(rest, []byte("\n")):
		return 1
	}
	return 0
}

// cell reads a cell. A quote that is not its first character stands for itself, as every program reads it; but not after white space,
// where somebody wanted to put the cell in quotes.
func (r *csvReader) cell() (csvCell, error) {
	from := r.at
	if from < len(r.text) && r.text[from] == '"' {
		return r.quoted()
	}
	for r.at < len(r.text) && r.text[r.at] != r.comma && r.lineEnd() == 0 {
		if r.text[r.at] == '"' && len(bytes.TrimLeft(r.text[from:r.at], " \t")) == 0 {
			return csvCell{}, errorf(Syntax, r.cur.at(r.at, 1), "white space stands before the quotes around a cell").
				hint(`remove the white space before the quote; if the quote is part of the cell, put the whole cell in quotes and write "" for it`)
		}
		r.at++
	}
	return csvCell{string(r.text[from:r.at]), r.cur.span(from, r.at), false}, nil
}

// quoted reads a cell in quotes. Line ends in it become LF, so that a checkout with other line ends has the same values.
func (r *csvReader) quoted() (csvCell, error) {
	from := r.at
	var text []byte
	for r.at++; ; r.at++ {
		i := bytes.IndexByte(r.text[r.at:], '"')
		if i < 0 {
			return csvCell{}, errorf(Syntax, r.cur.at(from, 1), "the quotes around a cell are not closed").
				hint(`put the whole cell in quotes and write a quote within as ""`)
		}
		text = append(text, r.text[r.at:r.at+i]...)
		r.at += i + 1
		if r.at == len(r.text) || r.text[r.at] != '"' {
			break
		}
		text = append(text, '"')
	}
	if r.at < len(r.text) && r.text[r.at] != r.comma && r.lineEnd() == 0 {
		return csvCell{}, errorf(Syntax, r.cur.at(r.at, 1), "text stands after the quotes around a cell").
			hint(`put the whole cell in quotes and write a quote within as ""; remove white space behind it`)
	}
	return csvCell{string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))), r.cur.span(from, r.at), true}, nil
}
