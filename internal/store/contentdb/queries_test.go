package contentdb

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; -update accepts):\n%s", name, d)
	}
}

// table shows a result as text, with · for NULL.
func table(res *Result) string {
	var b strings.Builder
	rows := [][]any{{}}
	for _, c := range res.Columns {
		rows[0] = append(rows[0], c)
	}
	rows = append(rows, res.Rows...)
	width := make([]int, len(res.Columns))
	cell := func(v any) string {
		if v == nil {
			return "·"
		}
		return fmt.Sprintf("%v", v)
	}
	for _, row := range rows {
		for i, v := range row {
			width[i] = max(width[i], len([]rune(cell(v))))
		}
	}
	for _, row := range rows {
		line := " "
		for i, v := range row {
			line += fmt.Sprintf(" %-*s ", width[i], cell(v))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func TestNamedQueries(t *testing.T) {
	r := reader(t, knights(t))
	args := map[string][]string{
		"asset-files":          {"models/knight.gltf", "SPRITES/UI"},
		"asset-references":     {"models/knight.gltf", "data/world.json"},
		"referenced-by":        {"assets/sprites/hero.png", capeUUID, "sprites/ui/"},
		"asset-products":       {"sprites/ui", "sprites/hero.png"},
		"product-files":        {"build/pc/sprites/hero.png.ktx2", "mobile/sprites/ui.page0.ktx2", uiUUID + ":7"},
		"product-dependencies": {"models/knight.gltf.glb", "build/mobile/sprites/ui.atlas"},
		"product-dependents":   {heroUUID + ":0", "./build/pc/sprites/ui.page0.ktx2"},
		"file-origin":          {"build/pc/models/knight.gltf.glb", "build/parcels/pc/main.parcel", "data/old.txt"},
		"needs-rebuild":        {"sprites/hero.png", "data/level.json", "models/cape.png"},
	}
	var b strings.Builder
	for _, q := range Queries() {
		if (len(q.Args) == 0) != (args[q.Name] == nil) {
			t.Errorf("%s takes %d arguments; the test has %d", q.Name, len(q.Args), len(args[q.Name]))
		}
		runs := [][]string{nil}
		if a := args[q.Name]; a != nil {
			runs = nil
			for _, arg := range a {
				runs = append(runs, []string{arg})
			}
		}
		for _, args := range runs {
			res, err := r.Run(context.Background(), q.Name, args, 0)
			if err != nil {
				t.Fatalf("%s %v: %v", q.Name, args, err)
			}
			fmt.Fprintf(&b, "%s\n%s\n", strings.Join(append([]string{q.Name}, args...), " "), table(res))
		}
	}
	golden(t, "queries.txt", b.String())
}

func TestViews(t *testing.T) {
	r := reader(t, knights(t))
	var b strings.Builder
	for _, view := range views(t, r) {
		res, err := r.RunSQL(context.Background(), "SELECT * FROM "+view+" ORDER BY 1, 2, 3", 0)
		if err != nil {
			t.Fatalf("%s: %v", view, err)
		}
		fmt.Fprintf(&b, "%s\n%s\n", view, table(res))
	}
	golden(t, "views.txt", b.String())
}

func views(t *testing.T, r *Reader) []string {
	t.Helper()
	names, err := r.strings("SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY name", nil, 0)
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return names
}

func TestEdges(t *testing.T) {
	r := reader(t, knights(t))
	var b strings.Builder
	for _, c := range []struct {
		name, what string
		kinds      []EdgeKind
		all        bool
	}{
		{"deps", "models/knight.gltf", nil, false},
		{"deps", "models/knight.gltf", nil, true},
		{"deps", "data/menu.json", []EdgeKind{JobEdge}, true},
		{"deps", "data/menu.json", []EdgeKind{ProductEdge}, true},
		{"rdeps", "sprites/hero.png", nil, false},
		{"rdeps", "models/cape.png", nil, false},
		{"rdeps", "assets/models/knight.bin", nil, false},
		{"rdeps", "models/knight.lod1.gltf", []EdgeKind{SourceEdge}, false},
		{"rdeps", "data/level.json", nil, true},
		{"rdeps", "data/level.json", []EdgeKind{JobEdge}, false},
	} {
		f := r.Deps
		if c.name == "rdeps" {
			f = r.Rdeps
		}
		edges, err := f(context.Background(), c.what, c.kinds, c.all)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s %v all=%v\n", c.name, c.what, c.kinds, c.all)
		for _, e := range edges {
			fmt.Fprintf(&b, "  %s -> %s %s required=%v %s\n", e.From, e.To, e.Kind, e.Required, e.Saw)
		}
		b.WriteString("\n")
	}
	golden(t, "edges.txt", b.String())
}

// Rings of runtime references are legal; following them must end.
func TestEdgesEndAtARing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	assets := knightsAssets()[:2]
	hero := assets[0].Jobs[0].Products
	hero[0].References = append(hero[0].References, ref(uiUUID, 7))
	page := assets[1].Jobs[0].Products
	page[1].References = append(page[1].References, ref(heroUUID, 0))
	db := open(t, path)
	b := begin(t, db, knightsStart(1, 0))
	b.Put(assets[0])
	b.Put(assets[1])
	finish(t, b)
	edges, err := reader(t, path).Deps(context.Background(), "sprites/hero.png", []EdgeKind{ProductEdge}, true)
	want := []Edge{
		{From: "sprites/hero.png", To: "sprites/ui/", Kind: ProductEdge, Required: true},
		{From: "sprites/ui/", To: "sprites/hero.png", Kind: ProductEdge, Required: true},
	}
	if d := cmp.Diff(want, edges); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestQueryMessages(t *testing.T) {
	r := reader(t, knights(t))
	run := func(args ...string) error {
		_, err := r.Run(context.Background(), args[0], args[1:], 0)
		return err
	}
	sql := func(s string) error {
		_, err := r.RunSQL(context.Background(), s, 0)
		return err
	}
	deps := func(asset string, kinds ...EdgeKind) error {
		_, err := r.Deps(context.Background(), asset, kinds, false)
		return err
	}
	rdeps := func(what string) error {
		_, err := r.Rdeps(context.Background(), what, nil, false)
		return err
	}
	var b strings.Builder
	for _, c := range []struct {
		what string
		err  error
	}{
		{"unknown query", run("asset-file", "x")},
		{"unknown query, nothing like it", run("weather")},
		{"argument missing", run("asset-files")},
		{"argument too many", run("assets", "x")},
		{"unknown asset, a slip", run("asset-files", "sprites/heroo.png")},
		{"unknown asset, only its last name", run("asset-files", "hero.png")},
		{"unknown asset, nothing like it", run("asset-files", "music/theme.ogg")},
		{"unknown product file", run("product-files", "build/pc/sprites/hero.png.ktx")},
		{"a product that is not there", run("product-files", heroUUID+":5")},
		{"a parcel is not a product", run("product-dependencies", "build/parcels/pc/main.parcel")},
		{"unknown file", run("file-origin", "build/pc/nothing")},
		{"deps of an unknown asset", deps("sprites/her.png")},
		{"deps of an unknown kind", deps("sprites/hero.png", "sauce")},
		{"rdeps of an unknown file", rdeps("models/knight.bun")},
		{"SQL, syntax", sql("SELECT *\nFRUM assets")},
		{"SQL, unknown table", sql("SELECT * FROM aset")},
		{"SQL, unknown column", sql("SELECT asset,\n  procesor FROM assets")},
		{"SQL, unknown column of a table", sql("SELECT a.uid FROM asset a")},
		{"SQL, unknown function", sql("SELECT frobnicate(1)")},
		{"SQL, two statements", sql("SELECT 1; SELECT 2")},
		{"SQL, nothing", sql(" ")},
		{"SQL, NUL", sql("SELECT 1\x00")},
		{"SQL, parameter", sql("SELECT :x")},
		{"SQL, too long a value", sql("SELECT zeroblob(1000000000)")},
	} {
		var m *diag.Message
		if !errors.As(c.err, &m) || m.Code != diag.QueryFailed {
			t.Errorf("%s: %v", c.what, c.err)
			continue
		}
		fmt.Fprintf(&b, "# %s\n%s\n", c.what, m.String())
	}
	golden(t, "messages.txt", b.String())
}

func TestQueriesOnlyRead(t *testing.T) {
	path := knights(t)
	r := reader(t, path)
	elsewhere := filepath.Join(t.TempDir(), "other.db")
	for _, sql := range []string{
		"DELETE FROM asset",
		"DELETE FROM asset RETURNING id",
		"UPDATE project SET name = 'x'",
		"INSERT INTO root VALUES (9, 'x')",
		"DROP TABLE asset",
		"CREATE TABLE x (y)",
		"CREATE TEMP TABLE x (y)",
		"ATTACH '" + elsewhere + "' AS other",
		"VACUUM",
		"VACUUM INTO '" + elsewhere + "'",
		"PRAGMA query_only = 0",
		"PRAGMA user_version = 7",
		"PRAGMA journal_mode = delete",
		"PRAGMA wal_checkpoint",
		"PRAGMA writable_schema = 1",
		"SELECT load_extension('x')",
		"BEGIN IMMEDIATE", "COMMIT", "ROLLBACK", "REINDEX", "ANALYZE",
	} {
		if _, err := r.RunSQL(context.Background(), sql, 0); err == nil {
			t.Errorf("%s: allowed", sql)
		}
	}
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("a query wrote a file")
	}
	for sql, want := range map[string]string{
		"SELECT name FROM project":                         "knights",
		"PRAGMA user_version":                              fmt.Sprint(Version),
		"SELECT name FROM pragma_table_info('root')":       "no",
		"SELECT json_extract('{\"a\":\"b\"}', '$.a') ; ":   "b",
		"WITH x(y) AS (VALUES ('z')) SELECT y FROM x":      "z",
		"SELECT count(*) FROM (SELECT 1 AS a, 2 AS a)":     "1",
		"SELECT application_id FROM pragma_application_id": fmt.Sprint(ApplicationID),
	} {
		res, err := r.RunSQL(context.Background(), sql, 1)
		if err != nil || fmt.Sprint(res.Rows[0][0]) != want {
			t.Errorf("%s: %v %v", sql, res, err)
		}
	}
}

const endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"

func TestQueryStopsInTime(t *testing.T) {
	r := reader(t, knights(t))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := r.RunSQL(ctx, endless, 0)
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != diag.QueryStopped {
		t.Errorf("%v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	cancel()
	if _, err := r.RunSQL(ctx, endless, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if res, err := r.RunSQL(context.Background(), "SELECT 1", 0); err != nil || len(res.Rows) != 1 {
		t.Errorf("a query after one that was stopped: %v %v", res, err)
	}
}

func TestRowLimit(t *testing.T) {
	r := reader(t, knights(t))
	for limit, more := range map[int]bool{3: true, 8: false, 9: false, 0: false} {
		res, err := r.Run(context.Background(), "assets", nil, limit)
		if err != nil || res.More != more || len(res.Rows) != min(8, max(limit, 8*(1-min(limit, 1)))) {
			t.Errorf("limit %d: %d rows, more %v, %v", limit, len(res.Rows), res.More, err)
		}
	}
	res, err := r.RunSQL(context.Background(), "SELECT 1 AS a, 2.5 AS a, 'x', x'00ff', NULL", 0)
	want := &Result{Columns: []string{"column_1", "a", "'x'", "x'00ff'", "NULL"}, Rows: [][]any{{int64(1), 2.5, "x", []byte{0, 255}, nil}}}
	if d := cmp.Diff(want, res); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}
