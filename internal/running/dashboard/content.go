package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// pageRows is the number of assets on a page of the list.
const pageRows = 100

// entry is an asset in the list.
type entry struct {
	ID, Processor, State string
	Products, Bytes      int64
	Seconds              float64
	Platforms            string   // separated by ", "
	Thumb                *product // nil: it has no picture
}

// filter is what the list shows, from its address.
type filter struct {
	Text, Folder, State, Type, Processor, Platform, Sort string
	Page                                                 int // from 1
}

func filterOf(q url.Values) filter {
	f := filter{
		Text: strings.TrimSpace(q.Get("q")), Folder: q.Get("folder"), State: q.Get("state"), Type: q.Get("type"),
		Processor: q.Get("processor"), Platform: q.Get("platform"), Sort: q.Get("sort"),
	}
	if f.Folder != "" && !strings.HasSuffix(f.Folder, "/") {
		f.Folder += "/"
	}
	f.Page, _ = strconv.Atoi(q.Get("page"))
	f.Page = min(max(1, f.Page), 1_000_000)
	return f
}

// Address is the address of the list with this filter. Templates use it to change one part.
func (f filter) Address() string {
	q := url.Values{}
	for name, v := range map[string]string{"q": f.Text, "folder": f.Folder, "state": f.State, "type": f.Type, "processor": f.Processor, "platform": f.Platform, "sort": f.Sort} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return (&url.URL{Path: "/content", RawQuery: q.Encode()}).String()
}

// Narrow reports whether anything except the folder is set.
func (f filter) Narrow() bool { return f.Text+f.State+f.Type+f.Processor+f.Platform != "" }

// sql is the condition on asset a, with its parameters. The + makes SQLite use the index asset_list, which has
// everything that a list needs; with another one it would look up each asset.
func (f filter) sql() (string, params) {
	conditions, p := []string{"1"}, params{}
	add := func(condition, name, value string) {
		if value != "" {
			conditions = append(conditions, condition)
			p[name] = value
		}
	}
	for i, word := range strings.Fields(f.Text) {
		name := ":word" + strconv.Itoa(i)
		add("a.id LIKE "+name+` ESCAPE '\'`, name, likePattern(word))
	}
	if f.Folder != "" { // '0' follows '/'
		add("a.id >= :from", ":from", f.Folder)
		add("a.id < :to", ":to", strings.TrimSuffix(f.Folder, "/")+"0")
	}
	add("+a.processor = (SELECT no FROM shared_text WHERE text = :processor)", ":processor", f.Processor)
	add("a.platforms IN "+listsWith(":platform"), ":platform", f.Platform)
	add("a.types IN "+listsWith(":type"), ":type", f.Type)
	switch f.State {
	case "failed":
		conditions = append(conditions, "a.failed = 1")
		if f.Platform != "" { // few assets fail, so reading their jobs is fast
			conditions = append(conditions, "a.no IN (SELECT asset FROM job WHERE failed = 1 AND platform = (SELECT no FROM platform WHERE name = :platform))")
		}
	case held:
		conditions = append(conditions, "a.failed = 0 AND a.no"+isHeld)
	case "built":
		conditions = append(conditions, "a.failed = 0 AND NOT a.no"+isHeld+" AND a.built = "+lastNumber)
	case upToDate:
		conditions = append(conditions, "a.failed = 0 AND NOT a.no"+isHeld+" AND a.built < "+lastNumber)
	case notBuilt:
		conditions = append(conditions, "a.built IS NULL")
	}
	return strings.Join(conditions, " AND "), p
}

// States of assets, with the words of kiln ls and of the database, besides failed and built.
const (
	upToDate = "up to date"
	held     = "held by ignore"
	notBuilt = "not built" // it has no jobs
)

// isHeld follows the number of an asset.
const isHeld = " IN (SELECT asset FROM job_held)"

// listsWith are the shared lists that have a name in them.
func listsWith(parameter string) string {
	return "(SELECT no FROM shared_list WHERE instr(', ' || text || ',', ', ' || " + parameter + " || ',') > 0)"
}

const lastNumber = "(SELECT max(number) FROM build WHERE seconds IS NOT NULL)"

// likePattern finds a word anywhere; * in it means any text.
func likePattern(word string) string {
	s := strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%").Replace(word)
	return "%" + s + "%"
}

// order is the order of the list.
func (f filter) order() string {
	switch f.Sort {
	case "size":
		return "a.bytes DESC, a.id"
	case "time":
		return "a.seconds DESC, a.id"
	}
	return "a.id"
}

// count is the number of assets that a filter finds. It reads the index asset_list once, 15 to 30 ms for 100,000
// assets, and is cached until the next build.
func (d *Dashboard) count(ctx context.Context, f filter) (int64, error) {
	f.Sort = ""
	return d.shelf.counts.of(ctx, d.version, f.Address(), func() (int64, error) {
		where, p := f.sql()
		rows, err := d.library.ask(ctx, "SELECT count(*) FROM asset a WHERE "+where, p, 1)
		if err != nil {
			return 0, err
		}
		return rows[0].int(0), nil
	})
}

type contentBody struct {
	filter
	Entries []entry
	Total   int64
	Pages   int
	Folders []facet
	Crumbs  []crumb
	Facets  *facets
	All     string // platforms of an asset that is built for all of them
}

// crumb is a folder on the path to the current one.
type crumb struct{ Name, Folder string }

func crumbs(folder string) (all []crumb) {
	at := ""
	for step := range strings.SplitSeq(strings.Trim(folder, "/"), "/") {
		if step != "" {
			at += step + "/"
			all = append(all, crumb{step, at})
		}
	}
	return all
}

func (d *Dashboard) contentPage(r *http.Request) (*view, error) {
	f, ctx := filterOf(r.URL.Query()), r.Context()
	body := contentBody{filter: f, Crumbs: crumbs(f.Folder)}
	var err error
	if body.Total, err = d.count(ctx, f); err != nil {
		return nil, err
	}
	body.Pages = int((body.Total + pageRows - 1) / pageRows)
	f.Page = min(f.Page, max(1, body.Pages)) // the list may be shorter now
	body.filter = f
	if body.Entries, err = d.entries(ctx, f); err != nil {
		return nil, err
	}
	if !f.Narrow() {
		if body.Folders, err = d.folders(ctx, f.Folder); err != nil {
			return nil, err
		}
	}
	if body.Facets, err = d.facets(ctx); err != nil {
		return nil, err
	}
	all := make([]string, len(body.Facets.Platforms))
	for i, p := range body.Facets.Platforms {
		all[i] = p.Name
	}
	body.All = strings.Join(all, ", ")
	return &view{Page: "content", Title: "Content", Body: body, Query: f.Text}, err
}

// entries returns the assets on a page of the list.
func (d *Dashboard) entries(ctx context.Context, f filter) ([]entry, error) {
	where, p := f.sql()
	page := fmt.Sprintf("SELECT no, row_number() OVER () FROM (SELECT a.no FROM asset a WHERE %s ORDER BY %s LIMIT %d OFFSET %d)", where, f.order(), pageRows, (f.Page-1)*pageRows)
	rows, err := d.library.ask(ctx, `WITH shown (no, place) AS (`+page+`)
		SELECT a.id, s.text, CASE WHEN a.failed THEN 'failed' WHEN a.no`+isHeld+` THEN '`+held+`' WHEN a.built = `+lastNumber+` THEN 'built' WHEN a.built IS NULL THEN '`+notBuilt+`' ELSE '`+upToDate+`' END,
			a.products, a.bytes, a.seconds, l.text, pl.name, x.file, lower(hex(x.hash)), x.size, t.text
		FROM shown JOIN asset a USING (no) LEFT JOIN shared_text s ON s.no = a.processor LEFT JOIN shared_list l ON l.no = a.platforms
			LEFT JOIN product x ON (x.asset, x.platform, x.sub_id) = (SELECT q.asset, q.platform, q.sub_id FROM product q JOIN shared_text w ON w.no = q.type WHERE q.asset = a.no AND w.text = 'texture' LIMIT 1)
			LEFT JOIN platform pl ON pl.no = x.platform LEFT JOIN shared_text t ON t.no = x.type
		ORDER BY place`, p, 0)
	all := make([]entry, len(rows))
	for i, r := range rows {
		all[i] = entry{r.text(0), r.text(1), r.text(2), r.int(3), r.int(4), r.float(5), r.text(6), nil}
		x := product{Platform: r.text(7), File: r.text(8), Hash: r.text(9), Size: r.int(10), Type: r.text(11)}
		if k := processors.View(x.File, x.Type); x.Size <= maxThumbSource && (k == preview.Texture || k == preview.Picture) {
			all[i].Thumb = &x
		}
	}
	return all, err
}

// folders returns the direct subfolders of a folder, with the number of assets below each. It reads all ids below the
// folder, so it runs once for each build: 100,000 take 60 ms.
func (d *Dashboard) folders(ctx context.Context, in string) ([]facet, error) {
	return d.shelf.folders.soon(ctx, d.version, in, func(ctx context.Context) ([]facet, error) {
		rows, err := d.library.ask(ctx, `SELECT substr(id, 1, :after - 1 + instr(substr(id, :after), '/')) AS name, count(*) FROM asset
			WHERE id >= :in AND id < :end AND instr(substr(id, :after), '/') BETWEEN 1 AND length(substr(id, :after)) - 1 GROUP BY 1 ORDER BY 1`,
			params{":in": in, ":end": endOf(in), ":after": int64(len([]rune(in)) + 1)}, maxFolders)
		var all []facet
		for _, r := range rows {
			all = append(all, facet{Name: r.text(0), Count: r.int(1)})
		}
		return all, err
	})
}

// maxFolders is how many subfolders of a folder are shown.
const maxFolders = 300

// endOf is a text that sorts after all ids below a folder.
func endOf(folder string) string {
	if folder == "" {
		return "\U0010ffff"
	}
	return strings.TrimSuffix(folder, "/") + "0"
}

// facets are the values by which the list can be filtered, each with its number of assets.
type facets struct {
	States, Types, Processors, Platforms []facet
}

// facets queries all of them. It reads the index of all assets, so it runs once for each build; see soon.
func (d *Dashboard) facets(ctx context.Context) (*facets, error) {
	return d.shelf.facets.soon(ctx, d.version, "", func(ctx context.Context) (*facets, error) {
		rows, err := d.library.ask(ctx, `SELECT s.text, t.text, p.text, g.* FROM (
				SELECT processor, types, platforms, count(*) AS n, sum(failed), sum(failed = 0 AND NOT no`+isHeld+` AND built = `+lastNumber+`),
				sum(built IS NULL), sum(failed = 0 AND no`+isHeld+`) FROM asset GROUP BY processor, types, platforms) g
			LEFT JOIN shared_text s ON s.no = g.processor LEFT JOIN shared_list t ON t.no = g.types LEFT JOIN shared_list p ON p.no = g.platforms`, nil, 0)
		if err != nil {
			return nil, err
		}
		states, processors, types, platforms := tallied{}, tallied{}, tallied{}, tallied{}
		for _, r := range rows {
			n, failed, built, none, holds := r.int(6), r.int(7), r.int(8), r.int(9), r.int(10)
			states.add("failed", failed)
			states.add("built", built)
			states.add(notBuilt, none)
			states.add(held, holds)
			states.add(upToDate, n-failed-built-none-holds)
			processors.add(r.text(0), n)
			for name := range strings.SplitSeq(r.text(1), ", ") {
				types.add(name, n)
			}
			for name := range strings.SplitSeq(r.text(2), ", ") {
				platforms.add(name, n)
			}
		}
		f := &facets{Types: types.sorted(), Processors: processors.sorted()}
		for _, name := range []string{"failed", held, "built", upToDate, notBuilt} {
			if states[name] > 0 {
				f.States = append(f.States, facet{Name: name, Count: states[name]})
			}
		}
		rows, err = d.library.ask(ctx, `SELECT name FROM platform ORDER BY no`, nil, 0)
		for _, r := range rows {
			f.Platforms = append(f.Platforms, facet{Name: r.text(0), Count: platforms[r.text(0)]})
		}
		return f, err
	})
}

// tallied is the number of assets by value.
type tallied map[string]int64

func (t tallied) add(name string, n int64) {
	if name != "" {
		t[name] += n
	}
}

// maxChoices is the number of values to choose from.
const maxChoices = 40

// sorted returns the most frequent values first.
func (t tallied) sorted() []facet {
	all := make([]facet, 0, len(t))
	for name, n := range t {
		all = append(all, facet{Name: name, Count: n})
	}
	slices.SortFunc(all, func(a, b facet) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	return all[:min(len(all), maxChoices)]
}

// version identifies the build that the database describes.
func (d *Dashboard) version(ctx context.Context) (string, error) {
	rows, err := d.library.ask(ctx, "SELECT number || ' ' || started FROM build WHERE number = "+lastNumber, nil, 1)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].text(0), nil
}
