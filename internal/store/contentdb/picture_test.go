package contentdb

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pictureColumns are where tables stand, each beside those that it points to.
var pictureColumns = [][]string{
	{"source_file", "parcel_product", "parcel", "root", "project"},
	{"asset", "asset_meta", "observation", "platform", "build"},
	{"job", "job_held", "job_dependency", "product_dependency", "diagnostic"},
	{"product", "product_fact", "shared_text", "shared_list"},
}

// Lengths in the picture, in pixels.
const (
	pictureWidth = 196 // of a table
	pictureGap   = 56  // between columns of tables
	pictureRow   = 17
	pictureHead  = 24
	pictureSpace = 26 // between tables above each other
)

// tableShape is a table as the file's own schema tells of it.
type tableShape struct {
	name    string
	columns []columnShape
	x, y    int
}

type columnShape struct {
	name, to     string // to: "asset.no", as a comment in the schema says
	key, indexed bool
}

// shapes reads tables from the schema, in the order in which they were made.
func shapes(t *testing.T, r *Reader) []*tableShape {
	t.Helper()
	ask := func(sql string, params map[string]any) [][]any {
		res, err := r.query(sql, params, 0)
		if err != nil {
			t.Fatal(err)
		}
		return res.Rows
	}
	var all []*tableShape
	for _, row := range ask("SELECT name, sql FROM sqlite_schema WHERE type = 'table'", nil) {
		s, sql := &tableShape{name: row[0].(string)}, row[1].(string)
		indexed := map[string]bool{}
		for _, i := range ask("SELECT c.name FROM pragma_index_list(:table) i, pragma_index_info(i.name) c WHERE i.origin <> 'pk' AND c.seqno = 0", map[string]any{":table": s.name}) {
			indexed[i[0].(string)] = true
		}
		for _, c := range ask("SELECT name, pk FROM pragma_table_info(:table)", map[string]any{":table": s.name}) {
			column := columnShape{name: c[0].(string), key: c[1].(int64) > 0, indexed: indexed[c[0].(string)]}
			if m := regexp.MustCompile(`(?m)^ +` + column.name + ` .*-- (\w+\.\w+)`).FindStringSubmatch(sql); m != nil {
				column.to = m[1]
			}
			s.columns = append(s.columns, column)
		}
		all = append(all, s)
	}
	return all
}

func (s *tableShape) height() int { return pictureHead + pictureRow*len(s.columns) + 6 }

// row is the middle of a column's line.
func (s *tableShape) row(name string) int {
	i := slices.IndexFunc(s.columns, func(c columnShape) bool { return c.name == name })
	return s.y + pictureHead + pictureRow*i + pictureRow/2
}

// curve goes from a column to the one that it points to.
func curve(from, to *tableShape, column, target string) string {
	y0, y1 := from.row(column), to.row(target)
	x0, x1, bend := from.x, to.x+pictureWidth, -pictureGap/2 // to a column of tables at the left
	switch {
	case to.x > from.x:
		x0, x1, bend = from.x+pictureWidth, to.x, pictureGap/2
	case to.x == from.x && from.x == pictureMargin: // above or below, past the left side
		x1 = to.x
		return fmt.Sprintf("M%d,%d C%d,%d %d,%d %d,%d", x0, y0, x0-22, y0, x1-22, y1, x1-5, y1)
	case to.x == from.x:
		x0 = from.x + pictureWidth
		return fmt.Sprintf("M%d,%d C%d,%d %d,%d %d,%d", x0, y0, x0+26, y0, x1+26, y1, x1+5, y1)
	}
	end := x1 - bend/abs(bend)*5
	return fmt.Sprintf("M%d,%d C%d,%d %d,%d %d,%d", x0, y0, x0+bend, y0, x1-bend, y1, end, y1)
}

func abs(n int) int { return max(n, -n) }

const pictureMargin = 34

// drawn is the schema as an SVG.
func drawn(t *testing.T, all []*tableShape) string {
	t.Helper()
	byName := map[string]*tableShape{}
	for _, s := range all {
		byName[s.name] = s
	}
	height := 0
	for i, names := range pictureColumns {
		y := 18
		for _, name := range names {
			s := byName[name]
			if s == nil {
				t.Fatalf("there is no table %s", name)
			}
			s.x, s.y = pictureMargin+i*(pictureWidth+pictureGap), y
			y += s.height() + pictureSpace
		}
		height = max(height, y)
	}
	width := 2*pictureMargin + len(pictureColumns)*(pictureWidth+pictureGap) - pictureGap
	var tables, curves strings.Builder
	for _, s := range all {
		if s.x == 0 {
			t.Errorf("table %s has no place in the picture", s.name)
		}
		fmt.Fprintf(&tables, "<g><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"#fff\" stroke=\"#8a93a3\"/>\n", s.x, s.y, pictureWidth, s.height())
		fmt.Fprintf(&tables, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\" font-size=\"13\" fill=\"#1d4f91\">%s</text>\n", s.x+9, s.y+17, s.name)
		for _, c := range s.columns {
			y := s.row(c.name)
			weight := ""
			if c.key {
				weight = ` font-weight="bold"`
			}
			fmt.Fprintf(&tables, "<text x=\"%d\" y=\"%d\"%s>%s</text>\n", s.x+18, y+4, weight, c.name)
			if c.indexed {
				fmt.Fprintf(&tables, "<circle cx=\"%d\" cy=\"%d\" r=\"2.5\" fill=\"#c2571a\"/>\n", s.x+11, y)
			}
			if c.to == "" {
				continue
			}
			table, column, _ := strings.Cut(c.to, ".")
			fmt.Fprintf(&tables, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" font-size=\"10\" fill=\"#7d8796\">%s</text>\n", s.x+pictureWidth-8, y+4, c.to)
			if table != "platform" && table != "shared_text" && table != "build" && c.name != "sub_id" { // many lines that say little
				fmt.Fprintf(&curves, "<path d=\"%s\" marker-end=\"url(#tip)\"/>\n", curve(s, byName[table], c.name, column))
			}
		}
		tables.WriteString("</g>\n")
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-label="The tables of the content database and how they point to each other">
<defs><marker id="tip" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#5b7fb0"/></marker></defs>
<rect width="%[1]d" height="%[2]d" rx="8" fill="#f4f6f9"/>
<g fill="none" stroke="#5b7fb0" stroke-width="1.3">
%[3]s</g>
<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="11.5" fill="#20262f">
%[4]s<text x="%[5]d" y="%[6]d" font-size="11"><tspan font-weight="bold">bold</tspan>: the table's key · <tspan fill="#c2571a">●</tspan> begins an index · <tspan fill="#7d8796">table.column</tspan>: what it points to</text>
</g>
</svg>
`, width, height+16, curves.String(), tables.String(), pictureMargin, height+2)
}

// TestPicture: docs/formats/contentdb.svg is drawn of the schema that a file holds.
func TestPicture(t *testing.T) {
	got := drawn(t, shapes(t, reader(t, knights(t))))
	const file = "../../../docs/formats/contentdb.svg"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got {
		t.Errorf("%s is not as the schema is; run the test with -update, and look at it: %v", file, err)
	}
}

// TestLinks: what the schema says that a column points to is there, in every row.
func TestLinks(t *testing.T) {
	r := reader(t, knights(t))
	links := 0
	for _, s := range shapes(t, r) {
		for _, c := range s.columns {
			table, column, ok := strings.Cut(c.to, ".")
			if !ok {
				continue
			}
			links++
			astray := map[string]int64{"product_dependency.to_uuid": 1}[s.name+"."+c.name] // one that is made to point to nobody
			sql := fmt.Sprintf("SELECT count(DISTINCT x.%[1]s) FROM %[2]s x WHERE x.%[1]s <> 0 AND NOT EXISTS (SELECT 1 FROM %[3]s y WHERE y.%[4]s = x.%[1]s)", c.name, s.name, table, column)
			if res, err := r.RunSQL(context.Background(), sql, 0); err != nil || res.Rows[0][0] != astray {
				t.Errorf("%s.%s points to %s: %v, %v", s.name, c.name, c.to, res, err)
			}
		}
	}
	if links < 30 {
		t.Errorf("only %d links are in the schema's comments", links)
	}
}
