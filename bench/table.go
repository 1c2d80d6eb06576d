package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Names of the minimum measurements, which are listed with the tools.
const (
	floorName = "statx"
	spawnName = "spawn"
)

type resultKey struct {
	size       int
	step, tool string
}

// results has the measurements of all sizes.
type results struct {
	runs   map[resultKey][]measure
	broken map[resultKey]error
}

func newResults() *results {
	return &results{map[resultKey][]measure{}, map[resultKey]error{}}
}

func (r *results) add(size int, step, tool string, m measure) {
	k := resultKey{size, step, tool}
	r.runs[k] = append(r.runs[k], m)
}

// wrong removes the measurements of a step, because a wrong build has no numbers.
func (r *results) wrong(size int, step, tool string, err error) {
	k := resultKey{size, step, tool}
	delete(r.runs, k)
	r.broken[k] = err
}

func (r *results) median(size int, step, tool string) (measure, bool) {
	runs := r.runs[resultKey{size, step, tool}]
	return median(runs), len(runs) > 0
}

// has reports whether a tool took part at a size, with correct or wrong results.
func (r *results) has(size int, tool string) bool {
	for _, st := range allSteps() {
		k := resultKey{size, st.name, tool}
		if len(r.runs[k]) > 0 || r.broken[k] != nil {
			return true
		}
	}
	return false
}

// table writes the measurements of one size, in Markdown.
func (r *results) table(w io.Writer, size int, tools []string) {
	tools = slices.DeleteFunc(slices.Clone(tools), func(t string) bool { return !r.has(size, t) })
	fmt.Fprintf(w, "### %s assets, %s joins\n\nMedian time, and in brackets its ratio to %s's.\n\n",
		thousands(size), thousands(size/folderSize), reference)
	r.grid(w, size, tools, func(m, ref measure, ok bool) string {
		if !ok || ref.Wall == 0 {
			return seconds(m.Wall)
		}
		return fmt.Sprintf("%s (%s)", seconds(m.Wall), ratio(m.Wall, ref.Wall))
	})
	fmt.Fprint(w, "\nProcessor time of the tool and all that it started, which other work on the machine changes less, with its ratio; "+
		"peak memory of the largest process.\n\n")
	r.grid(w, size, tools, func(m, ref measure, ok bool) string {
		cell := seconds(m.CPU)
		if ok && ref.CPU > 0 {
			cell += " (" + ratio(m.CPU, ref.CPU) + ")"
		}
		if m.Peak > 0 {
			cell += ", " + megabytes(m.Peak)
		}
		return cell
	})
	fmt.Fprintln(w)
	r.floors(w, size)
}

// grid writes a row for each step and a column for each tool.
func (r *results) grid(w io.Writer, size int, tools []string, cell func(m, ref measure, ok bool) string) {
	rows := [][]string{append([]string{"", "runs"}, tools...)}
	for _, st := range allSteps() {
		row := []string{st.title, "0"}
		for _, t := range tools {
			k := resultKey{size, st.name, t}
			row = append(row, "")
			if r.broken[k] != nil {
				row[len(row)-1] = "wrong"
			}
			if m, ok := r.median(size, st.name, t); ok {
				ref, hasRef := r.median(size, st.name, reference)
				row[len(row)-1] = cell(m, ref, hasRef)
				row[1] = fmt.Sprint(len(r.runs[k]))
			}
		}
		if row[1] != "0" {
			rows = append(rows, row)
		}
	}
	writeMarkdown(w, rows)
}

// floors writes the minimum measurements of the machine, and what they mean for this size.
func (r *results) floors(w io.Writer, size int) {
	if m, ok := r.median(size, "noop", floorName); ok {
		fmt.Fprintf(w, "Floor of a build in which nothing changed: one statx of all sources and products takes %s", seconds(m.Wall))
		if ref, ok := r.median(size, "noop", reference); ok {
			fmt.Fprintf(w, ", %s of %s", ratio(m.Wall, ref.Wall), reference)
		}
		fmt.Fprintln(w, ".")
	}
	if m, ok := r.median(size, clean.name, spawnName); ok {
		fmt.Fprintf(w, "Floor of a clean build by commands: starting `cp` takes %s, so for all of them %s.\n",
			seconds(m.Wall), seconds(m.Wall*time.Duration(size)))
	}
	fmt.Fprintln(w)
}

// bar is a requirement for Kiln: at most a given share of a peer's time, or of its own clean build.
type bar struct {
	what       string
	sizes      []int
	step, tool string
	ofStep     string // the step of the reference
	of         string // the reference
	most, aim  float64
}

var bars = []bar{
	{"nothing changed", []int{10_000}, "noop", "kiln", "noop", reference, 0.45, 0.32},
	{"nothing changed", []int{100_000}, "noop", "kiln", "noop", reference, 0.30, 0.24},
	{"nothing changed", []int{1_000_000}, "noop", "kiln", "noop", reference, 0.30, 0.22},
	{"one file edited", []int{100_000}, "edit", "kiln", "edit", reference, 0.40, 0.28},
	{"one file touched", []int{100_000}, "touch", "kiln", "touch", reference, 0.40, 0.28},
	{"one file added", []int{100_000}, "added", "kiln", "added", reference, 0.40, 0.28},
	{"one file removed", []int{100_000}, "removed", "kiln", "removed", reference, 0.40, 0.28},
	{"all files touched, share of ninja's clean build", []int{10_000}, "touchall", "kiln", "clean", reference, 0.015, 0.008},
	{"clean, in process", []int{10_000, 100_000}, "clean", "kiln", "clean", reference, 0.12, 0.07},
	{"clean, by cp", []int{10_000, 100_000}, "clean", "kiln cp", "clean", reference, 0.85, 0.72},
	{"output folder deleted, share of ninja's clean build", []int{10_000, 100_000}, "restore", "kiln", "clean", reference, 0.04, 0.02},
}

// verdict compares the results with the bars for which both sides were measured.
func (r *results) verdict(w io.Writer) {
	rows := [][]string{{"", "assets", "time", "processor time", "bar", "aim", ""}}
	for _, b := range bars {
		for _, size := range b.sizes {
			m, ok := r.median(size, b.step, b.tool)
			ref, okRef := r.median(size, b.ofStep, b.of)
			if !ok || !okRef || ref.Wall == 0 {
				continue
			}
			got, said := m.Wall.Seconds()/ref.Wall.Seconds(), "missed"
			switch {
			case got <= b.aim:
				said = "aim reached"
			case got <= b.most:
				said = "bar held"
			}
			rows = append(rows, []string{b.what, thousands(size),
				ratio(m.Wall, ref.Wall), ratio(m.CPU, ref.CPU), fmt.Sprint(b.most), fmt.Sprint(b.aim), said})
		}
	}
	if len(rows) > 1 {
		fmt.Fprintf(w, "### Ratios to %s, and what is asked\n\n", reference)
		writeMarkdown(w, rows)
		fmt.Fprintln(w)
	}
}

// writeMarkdown writes rows. The first one is the header. All columns except the first are aligned right.
func writeMarkdown(w io.Writer, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			width[i] = max(width[i], len([]rune(c)), 3)
		}
	}
	for n, row := range rows {
		for i, c := range row {
			if i == 0 {
				fmt.Fprintf(w, "| %-*s ", width[i], c)
			} else {
				fmt.Fprintf(w, "| %*s ", width[i], c)
			}
		}
		fmt.Fprintln(w, "|")
		if n == 0 {
			for i := range row {
				if i == 0 {
					fmt.Fprintf(w, "|%s", strings.Repeat("-", width[i]+2))
				} else {
					fmt.Fprintf(w, "|%s:", strings.Repeat("-", width[i]+1))
				}
			}
			fmt.Fprintln(w, "|")
		}
	}
}

// seconds formats a time with three significant digits.
func seconds(d time.Duration) string {
	switch s := d.Seconds(); {
	case s >= 100:
		return fmt.Sprintf("%.0f s", s)
	case s >= 10:
		return fmt.Sprintf("%.1f s", s)
	case s >= 1:
		return fmt.Sprintf("%.2f s", s)
	case s >= 0.1:
		return fmt.Sprintf("%.0f ms", s*1e3)
	case s >= 0.01:
		return fmt.Sprintf("%.1f ms", s*1e3)
	default:
		return fmt.Sprintf("%.2f ms", s*1e3)
	}
}

func ratio(a, b time.Duration) string {
	r := a.Seconds() / b.Seconds()
	if r < 0.1 {
		return fmt.Sprintf("%.3f", r)
	}
	return fmt.Sprintf("%.2f", r)
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

// thousands formats 100000 as 100,000.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// err returns an error that names the wrong builds, or nil.
func (r *results) err() error {
	var errs []error
	for k, err := range r.broken {
		errs = append(errs, fmt.Errorf("%s, %s, %d assets: %w", k.tool, k.step, k.size, err))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}
