package dashboard

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

const (
	maxMessages = 200  // on the page
	maxDragged  = 2000 // failures caused by others
	namedOnes   = 12   // shown failures caused by one root cause
)

// message is a problem, on all platforms on which it is the same.
type message struct {
	no                    int64 // of the asset
	Asset, Severity, Code string
	Platforms             []string
	File                  string // relative to the project
	Line, Column          int64
	Text, Hint            string
	Notes                 []string
	Before, Marked, After string // the source line before, in and after the marked part
	Cause                 string // asset that caused this failure

	Fails   int      // number of assets that fail because of it
	Dragged []string // some of them
}

// messages queries messages of a kind, root causes first, and merges those that differ only by platform. Messages about
// the project without a place come last: that a parcel was not packed is the consequence of a failed asset.
func (d *Dashboard) messages(ctx context.Context, where string, p params, limit int) ([]message, error) {
	rows, err := d.library.ask(ctx, `SELECT d.asset, a.id, p.name, d.severity, d.code, d.file, d.line, d.column, d.length, `+textOf+`, d.hint, d.notes, d.source, c.id, d.source_column
		FROM diagnostic d LEFT JOIN asset a ON a.no = d.asset LEFT JOIN platform p ON p.no = d.platform LEFT JOIN asset c ON c.no = d.cause
		WHERE `+where+` ORDER BY d.severity <> 'error', d.cause IS NOT NULL, d.asset = 0 AND coalesce(d.file, '') = '', a.id, p.no, d.seq`, p, limit)
	var all []message
	for _, r := range rows {
		m := message{no: r.int(0), Asset: r.text(1), Severity: r.text(3), Code: r.text(4), File: r.text(5), Line: r.int(6), Column: r.int(7), Text: r.text(9), Hint: r.text(10), Cause: r.text(13)}
		on := r.text(2)
		k := slices.IndexFunc(all, func(o message) bool {
			return o.Asset == m.Asset && o.Code == m.Code && o.Text == m.Text && o.File == m.File && o.Line == m.Line && o.Column == m.Column
		})
		if k < 0 {
			json.Unmarshal([]byte(r.text(11)), &m.Notes)
			m.Before, m.Marked, m.After = mark(r.text(12), int(r.int(14)), int(m.Column), int(r.int(8)))
			all, k = append(all, m), len(all)
		}
		if on != "" {
			all[k].Platforms = append(all[k].Platforms, on)
		}
	}
	return all, err
}

// Errors of their own, and errors that only report consequences of others (a parcel was not packed). If there are none
// of the first kind, the others are shown instead.
const (
	lacks     = "'" + string(diag.ParcelLacks) + "'"
	follows   = `(d.code = ` + lacks + ` OR d.asset = 0 AND coalesce(d.file, '') = '')`
	rootCause = `d.severity = 'error' AND d.cause IS NULL AND NOT ` + follows
)

// problems is the number of root causes on the page of problems.
func (d *Dashboard) problems(ctx context.Context) (int64, error) {
	return d.shelf.problems.of(ctx, d.version, "", func() (int64, error) {
		rows, err := d.library.ask(ctx, `SELECT count(DISTINCT CASE WHEN `+rootCause+` THEN `+sameMessage+` END), count(DISTINCT `+sameMessage+`) FROM diagnostic d WHERE d.severity = 'error' AND (d.cause IS NULL OR d.code = `+lacks+`)`, nil, 1)
		if err != nil {
			return 0, err
		}
		if roots := rows[0].int(0); roots > 0 {
			return roots, nil
		}
		return rows[0].int(1), nil
	})
}

// sameMessage is equal for messages that differ only by platform.
const sameMessage = `concat_ws(char(0), d.asset, d.code, d.file, d.line, d.column, ` + textOf + `)`

// textOf is the text of a message. The text about a parcel contains the platform, which is removed.
const textOf = `CASE WHEN d.code = ` + lacks + ` AND d.platform > 0 THEN replace(d.text, ' [' || (SELECT name FROM platform WHERE no = d.platform) || ']', '') ELSE d.text END`

// mark splits a source line, or the part of it from a column on, around what a message means. Columns start at 1 (0: 1) and length is
// in characters, as in a terminal.
func mark(line string, from, column, length int) (before, marked, after string) {
	line = strings.TrimRight(line, "\r\n")
	r := []rune(line)
	begin := column - max(from, 1)
	if column < 1 || begin < 0 || begin > len(r) {
		return line, "", ""
	}
	end := min(begin+max(1, length), len(r))
	return string(r[:begin]), string(r[begin:end]), string(r[end:])
}

// stopped returns why nothing can be built, usually an error in the project file. The database does not contain
// it.
func stopped(list diag.List) (all []message) {
	for _, x := range list {
		m := message{Severity: string(x.Severity), Code: string(x.Code), File: x.File, Line: int64(x.Pos.Line), Column: int64(x.Column), Text: x.Text, Hint: x.Hint, Notes: x.Notes}
		m.Before, m.Marked, m.After = mark(x.Line, x.From, x.Column, x.Length)
		all = append(all, m)
	}
	return all
}

type problemsBody struct {
	Stopped          []message // why nothing can be built
	Errors, Warnings []message
	Follow           []message // errors that only report consequences: a parcel was not packed
	MoreErrors       bool
	MoreWarnings     bool
	Warned           int64
	Dragged          int // number of assets that fail only because others do
	Live             bool
}

func (d *Dashboard) problemsPage(r *http.Request) (*view, error) {
	ctx := r.Context()
	body := problemsBody{Live: d.cfg.Feed != nil}
	if body.Live {
		body.Stopped = stopped(d.cfg.Feed.Status().Stopped)
	}
	errs, err := d.messages(ctx, rootCause, nil, 2*maxMessages)
	if err != nil {
		return nil, err
	}
	if body.Follow, err = d.messages(ctx, `d.severity = 'error' AND `+follows, nil, maxMessages); err != nil {
		return nil, err
	}
	if len(errs) == 0 {
		errs, body.Follow = body.Follow, nil
	}
	if body.Dragged, err = d.drag(ctx, errs); err != nil {
		return nil, err
	}
	slices.SortStableFunc(errs, func(a, b message) int { return b.Fails - a.Fails })
	body.Errors, body.MoreErrors = errs[:min(len(errs), maxMessages)], len(errs) > maxMessages
	warnings, err := d.messages(ctx, `d.severity = 'warning'`, nil, 2*maxMessages)
	body.Warnings, body.MoreWarnings = warnings[:min(len(warnings), maxMessages)], len(warnings) > maxMessages
	return &view{Page: "problems", Title: "Problems", Body: body}, err
}

// drag finds the failures that each root cause leads to, and their total number.
func (d *Dashboard) drag(ctx context.Context, roots []message) (int, error) {
	rows, err := d.library.ask(ctx, `SELECT DISTINCT d.cause, d.asset, a.id FROM diagnostic d JOIN asset a ON a.no = d.asset WHERE d.cause IS NOT NULL AND d.code <> `+lacks+` ORDER BY a.id`, nil, maxDragged)
	if err != nil {
		return 0, err
	}
	type failed struct {
		no int64
		id string
	}
	by, all := map[int64][]failed{}, map[int64]bool{}
	for _, r := range rows {
		by[r.int(0)] = append(by[r.int(0)], failed{r.int(1), r.text(2)})
		all[r.int(1)] = true
	}
	for i := range roots {
		seen := map[int64]bool{roots[i].no: true}
		for next := []int64{roots[i].no}; len(next) > 0; next = next[1:] {
			for _, f := range by[next[0]] {
				if !seen[f.no] {
					seen[f.no] = true
					next = append(next, f.no)
					roots[i].Dragged = append(roots[i].Dragged, f.id)
				}
			}
		}
		roots[i].Fails = len(roots[i].Dragged)
		roots[i].Dragged = roots[i].Dragged[:min(roots[i].Fails, namedOnes)]
	}
	return len(all), nil
}
