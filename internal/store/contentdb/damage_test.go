package contentdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// run executes SQL on a file behind Kiln's back.
func run(t testing.TB, path, sql string) {
	t.Helper()
	conn, err := openConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	if err := sqlitex.ExecuteScript(conn, sql, nil); err != nil {
		t.Fatal(err)
	}
}

func TestUnusableFilesAreMadeAnew(t *testing.T) {
	cut := func(n int64) func(string) {
		return func(path string) {
			if err := os.Truncate(path, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name, reason string
		damage       func(path string)
	}{
		{"text", "it is not a SQLite file", func(path string) { os.WriteFile(path, []byte(strings.Repeat("hello\n", 1000)), 0o644) }},
		{"empty", "it is empty", cut(0)},
		{"cut in the header", "it is damaged", cut(50)},
		{"cut in the tables", "it is damaged", cut(9000)},
		{"next version", fmt.Sprintf("it has version %d, not %d", Version+1, Version),
			func(path string) { run(t, path, fmt.Sprintf("PRAGMA user_version = %d", Version+1)) }},
		{"another program's", "it is not a content database", func(path string) { run(t, path, "PRAGMA application_id = 7") }},
		{"tables gone", "its tables are not those of a content database", func(path string) { run(t, path, "DROP TABLE build") }},
	} {
		path := knights(t)
		c.damage(path)
		if _, err := OpenReadOnly(path); err == nil {
			t.Errorf("%s: opened for reading", c.name)
		}
		db, opened, err := Open(path)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(Opened{Fresh: true, Reason: c.reason}, opened); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if _, err := os.Stat(path + Aside); err != nil {
			t.Errorf("%s: not set aside: %v", c.name, err)
		}
		if db.Complete() {
			t.Errorf("%s: complete", c.name)
		}
		finish(t, begin(t, db, knightsStart(3, 2)))
		db.Close()
		if db, opened, err = Open(path); err != nil || opened.Fresh {
			t.Errorf("%s: afterwards: %v %v", c.name, opened, err)
		}
		if _, err := os.Stat(path + Aside); err != nil {
			t.Errorf("%s: gone before the new file took in a build: %v", c.name, err)
		}
		finish(t, begin(t, db, knightsStart(4, 3)))
		db.Close()
		if _, err := os.Stat(path + Aside); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: it stays aside for ever: %v", c.name, err)
		}
	}
}

// Damage that opening cannot see is found by the build that meets it.
func TestDamageFoundByBuild(t *testing.T) {
	path := knights(t)
	spoil(t, path, "SELECT rootpage FROM sqlite_schema WHERE name = 'source_file_path'")
	db, opened, err := Open(path)
	if err != nil || opened.Fresh {
		t.Fatal(opened, err)
	}
	b := begin(t, db, knightsStart(3, 2))
	b.PutFiles([]File{{Path: "new.png"}})
	if err := b.Finish(Summary{}); !errors.Is(err, ErrDamaged) {
		t.Fatalf("%v", err)
	}
	db, opened, err = Open(path)
	if err != nil || !opened.Fresh || opened.Reason != "" {
		t.Fatal(opened, err)
	}
	defer db.Close()
	b = begin(t, db, knightsStart(3, 2))
	if !b.Everything() {
		t.Error("not everything is asked for")
	}
	finish(t, b)
}

func TestDamageFoundByBegin(t *testing.T) {
	path := knights(t)
	run(t, path, "DROP TABLE product")
	db, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Begin(knightsStart(3, 2)); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
}

func TestDamageFoundByQuery(t *testing.T) {
	path := knights(t)
	spoil(t, path, "SELECT rootpage FROM sqlite_schema WHERE name = 'job'")
	_, err := reader(t, path).RunSQL(context.Background(), "SELECT * FROM job", 0)
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != diag.ContentDBUnusable || m.Hint == "" {
		t.Errorf("%v", err)
	}
}

// spoil overwrites the page that a query names.
func spoil(t *testing.T, path, query string) {
	t.Helper()
	conn, err := openConn(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	page, err := number(conn, query)
	closeConn(conn)
	if err != nil || page < 2 {
		t.Fatal(page, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0x5a}, 8192), (page-1)*8192); err != nil {
		t.Fatal(err)
	}
}

// A log that was lost takes the file back to an older build: the next one must notice.
func TestLostLog(t *testing.T) {
	path := knights(t)
	db := open(t, path)
	finish(t, begin(t, db, knightsStart(3, 2)))
	lost := filepath.Join(t.TempDir(), "content.db")
	copyFile(t, path, lost) // without its log, which is copied into it on closing
	older := open(t, lost)
	b := begin(t, older, knightsStart(4, 3))
	if !b.Everything() {
		t.Error("changes since build 3 are taken for changes since build 2")
	}
	finish(t, b)
}

func TestNothingToReadYet(t *testing.T) {
	code := func(path string) diag.Code {
		r, err := OpenReadOnly(path)
		if err == nil {
			r.Close()
		}
		var m *diag.Message
		if !errors.As(err, &m) || m.Hint == "" {
			t.Errorf("%v", err)
			return ""
		}
		return m.Code
	}
	path := filepath.Join(t.TempDir(), "content.db")
	if c := code(path); c != diag.ContentDBMissing {
		t.Errorf("no file: %s", c)
	}
	db := open(t, path)
	if c := code(path); c != diag.ContentDBMissing {
		t.Errorf("no build: %s", c)
	}
	b := begin(t, db, knightsStart(1, 0))
	if c := code(path); c != diag.ContentDBMissing {
		t.Errorf("first build under way: %s", c)
	}
	finish(t, b)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	run(t, path, "PRAGMA user_version = 99")
	if c := code(path); c != diag.ContentDBUnusable {
		t.Errorf("another version: %s", c)
	}
}

// A read-only disk has no room for the files of a write-ahead log.
func TestReadOnlyFolder(t *testing.T) {
	path := knights(t)
	u := "file:" + path + "?immutable=1"
	conn, err := openWith(u, sqlite.OpenURI)
	if err != nil {
		t.Fatal(err)
	}
	closeConn(conn)
	folder := filepath.Dir(path)
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(folder, 0o755)
	if f, err := os.Create(filepath.Join(folder, "x")); err == nil {
		f.Close()
		os.Remove(f.Name())
		t.Skip("this user may write into read-only folders")
	}
	if res, err := reader(t, path).Run(context.Background(), "assets", nil, 0); err != nil || len(res.Rows) != 8 {
		t.Errorf("%v %v", res, err)
	}
}

// The tables of a version never change: files of that version are out there.
func TestSchemaHasItsVersion(t *testing.T) {
	strip := regexp.MustCompile(`(?m)[ \t]*--.*$`)
	golden(t, fmt.Sprintf("schema.v%d.sql", Version), strip.ReplaceAllString(tablesSQL+indexesSQL+viewsSQL, ""))
}

// The format's page names every table, view, index and column.
func TestFormatIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/formats/contentdb.md")
	if err != nil {
		t.Fatal(err)
	}
	r := reader(t, knights(t))
	res, err := r.RunSQL(context.Background(), `SELECT s.name, c.name FROM sqlite_schema s LEFT JOIN pragma_table_info(s.name) c
		WHERE s.sql IS NOT NULL`, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range res.Rows {
		section := string(page)
		if row[1] != nil {
			_, section, _ = strings.Cut(section, fmt.Sprintf("### %s\n", row[0]))
			section, _, _ = strings.Cut(section, "\n### ")
			if !regexp.MustCompile(fmt.Sprintf("`%s`", row[1])).MatchString(section) {
				t.Errorf("docs/formats/contentdb.md does not explain %s.%s", row[0], row[1])
			}
		} else if !strings.Contains(section, fmt.Sprintf("`%s`", row[0])) {
			t.Errorf("docs/formats/contentdb.md does not name %s", row[0])
		}
	}
}

// The users' page names every question, and its SQL works.
func TestQueriesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/queries.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range Queries() {
		if !strings.Contains(string(page), "`"+q.Name) {
			t.Errorf("docs/queries.md does not name %s", q.Name)
		}
	}
	r := reader(t, knights(t))
	examples := regexp.MustCompile(`(?m)^\$ .*"((?:SELECT|WITH) .*)"$`).FindAllStringSubmatch(string(page), -1)
	if len(examples) < 5 {
		t.Errorf("only %d examples found", len(examples))
	}
	for _, m := range examples {
		if _, err := r.RunSQL(context.Background(), m[1], 0); err != nil {
			t.Errorf("%s\n%v", m[1], err)
		}
	}
}

// FuzzDamage changes bytes of a file; whatever SQLite makes of it, nothing panics, and in the end there is a file
// that works.
func FuzzDamage(f *testing.F) {
	good, err := os.ReadFile(knights(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte("x"))
	f.Add(uint32(18), []byte{9, 9})
	f.Add(uint32(8192*3), []byte{0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, at uint32, b []byte) {
		if len(b) > 64 {
			return
		}
		bad := bytes.Clone(good)
		copy(bad[int(at)%len(bad):], b)
		path := filepath.Join(t.TempDir(), "content.db")
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := OpenReadOnly(path); err == nil {
			for _, q := range Queries() {
				if len(q.Args) == 0 {
					r.Run(context.Background(), q.Name, nil, 100)
				}
			}
			r.Deps(context.Background(), "sprites/hero.png", nil, true)
			r.Close()
		}
		for try := 0; ; try++ {
			db, _, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := db.Begin(knightsStart(3, 2))
			if err == nil {
				b.PutFiles(knightsFiles())
				for _, a := range knightsAssets() {
					b.Put(a)
				}
				err = b.Finish(Summary{})
			}
			db.Close()
			if err == nil {
				return
			}
			if try == 2 {
				t.Fatal(err)
			}
		}
	})
}

// FuzzSQL runs what anybody may type; the file stays as it is.
func FuzzSQL(f *testing.F) {
	path := knights(f)
	before, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	r := reader(f, path)
	for _, sql := range []string{"SELECT * FROM assets", "DELETE FROM asset", "SELECT a.b.c", ";", "VACUUM INTO 'x'", "PRAGMA x = 1", "SELECT 1 AS é, '"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		ctx, cancel := context.WithTimeout(context.Background(), 1e9)
		defer cancel()
		r.RunSQL(ctx, sql, 10)
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%q changed the file: %v", sql, err)
		}
	})
}
