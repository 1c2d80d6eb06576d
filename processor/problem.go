package processor

import (
	"fmt"
	"strings"
)

// Problem is an error or a warning about a source file.
type Problem struct {
	// Code is stable and documented; empty for processors of a team's own.
	Code string

	// Path of the source file; empty for the asset's own.
	Path string

	// Line and Column count from 1, Column in characters; 0 if unknown. Length is
	// the number of characters to underline.
	Line, Column, Length int

	Text string // what is wrong, in a sentence without a full stop
	Hint string // what to do next; may be empty

	// Err is the cause, if there is one. It is for errors.Is and is not shown.
	Err error
}

func (p *Problem) Error() string {
	var b strings.Builder
	if p.Path != "" {
		b.WriteString(p.Path)
		b.WriteByte(':')
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:", p.Line)
		if p.Column > 0 {
			fmt.Fprintf(&b, "%d:", p.Column)
		}
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(p.Text)
	return b.String()
}

func (p *Problem) Unwrap() error { return p.Err }
