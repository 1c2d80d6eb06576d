package dashboard

import (
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/store/cas/castest"
)

// largeDashboard is about so many assets as writeLarge writes them.
func largeDashboard(t *testing.T, n int) *Dashboard {
	t.Helper()
	path := filepath.Join(t.TempDir(), "content.db")
	writeLarge(t, path, n)
	d, err := New(Config{Dir: t.TempDir(), Database: path, Blobs: new(castest.Memory)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestFiltersReadAnIndex: whatever the list is narrowed down and sorted by, SQLite reads an index of all assets and no table of assets,
// jobs or products. That is what makes the first page after a build quick.
func TestFiltersReadAnIndex(t *testing.T) {
	d := largeDashboard(t, 2000)
	for _, address := range []string{"", "q=7+png", "folder=world0/", "state=failed", "state=built", "state=up+to+date", "state=not+built", "type=level", "processor=level",
		"platform=mobile", "type=level&platform=mobile&state=built", "q=7&type=texture&processor=texture", "state=failed&platform=pc"} {
		for _, sort := range []string{"", "size", "time"} {
			q, err := url.ParseQuery(address)
			if err != nil {
				t.Fatal(err)
			}
			q.Set("sort", sort)
			f := filterOf(q)
			where, p := f.sql()
			for _, sql := range []string{"SELECT count(*) FROM asset a WHERE " + where, "SELECT a.no FROM asset a WHERE " + where + " ORDER BY " + f.order() + " LIMIT 100"} {
				plan, err := d.library.ask(t.Context(), "EXPLAIN QUERY PLAN "+sql, p, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range plan {
					step := row.text(3)
					ofFailed := strings.Contains(sql, "job WHERE failed = 1") && strings.Contains(step, "job") || strings.Contains(step, "SEARCH a USING INTEGER PRIMARY KEY")
					if regexp.MustCompile(`^(SCAN|SEARCH) (a|asset|job|product)\b`).MatchString(step) && !strings.Contains(step, "COVERING INDEX") && !(f.State == "failed" && ofFailed) {
						t.Errorf("%s sorted by %q: %s\n%s", address, sort, step, sql)
					}
				}
			}
		}
	}
}

// TestFilters: what the list finds, counted by hand of what writeLarge writes.
func TestFilters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	writeLarge(t, path, 2000) // 200 levels; assets 500 and 1500 failed
	s := serve(t, Config{Dir: t.TempDir(), Database: path, Blobs: new(castest.Memory)})
	for _, tt := range []struct{ address, found string }{
		{"", "2\u202f000"}, {"?type=level", "200"}, {"?type=level&platform=mobile", "200"}, {"?processor=texture", "1\u202f800"}, {"?state=failed", "2"}, {"?state=failed&platform=pc", "2"},
		{"?state=built", "1\u202f998"}, {"?state=up+to+date", "0"}, {"?state=not+built", "0"}, {"?platform=web", "0"}, {"?type=texture&state=built&sort=size", "1\u202f798"},
		{"?type=lev", "0"}, {"?folder=world0/level001/", "500"}, {"?q=room&folder=world0/level001/", "50"},
	} {
		page, _ := get(t, s, "/content"+tt.address, http.StatusOK)
		if m := regexp.MustCompile(`<p><b>([^<]*)</b> assets?`).FindStringSubmatch(page); m == nil || m[1] != tt.found {
			t.Errorf("%s: found %q, want %s", tt.address, m, tt.found)
		}
	}
	page, _ := get(t, s, "/content", http.StatusOK)
	has(t, page, `>failed<i>2</i>`, "built<i>1\u202f998</i>", "level<i>200</i>", "texture<i>1\u202f798</i>", "mobile<i>2\u202f000</i>")
}

// TestRanIn: the jobs of a build are the same and in the same order, whether they are looked for among the slowest or among assets.
func TestRanIn(t *testing.T) {
	d := largeDashboard(t, 2000)
	few, err := d.ranIn(t.Context(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	many, err := d.ranIn(t.Context(), 1, manyRan)
	if err != nil {
		t.Fatal(err)
	}
	if len(few) != listedJobs+1 || len(many) != listedJobs+1 {
		t.Fatalf("%d and %d jobs", len(few), len(many))
	}
	for i := range few {
		if f, m := few[i], many[i]; f.Failed != m.Failed || f.Seconds != m.Seconds || f.Failed != (i < 4) || i > 4 && f.Seconds > few[i-1].Seconds {
			t.Fatalf("job %d: %+v, %+v", i, f, m)
		}
	}
}

// TestBeyondTheLastPage: a list that became shorter shows its last page.
func TestBeyondTheLastPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	writeLarge(t, path, 250)
	s := serve(t, Config{Dir: t.TempDir(), Database: path, Blobs: new(castest.Memory)})
	page, _ := get(t, s, "/content?page=9", http.StatusOK)
	has(t, page, "Page 3 of 3", "tile000248.png")
}
