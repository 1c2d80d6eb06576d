package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/preview"
)

// pageRows is how many assets are on a page of the list.
const pageRows = 100

// entry is an asset in the list.
type entry struct {
	ID, Processor, State string
	Products, Bytes      int64
	Seconds              float64
	Platforms            []string // none: there is nothing on any
	Thumb                *product // nil: it has none that can be seen
}

// filter is what the list shows, as its address says.
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

// Address is where the list with this filter is. It is how templates change one thing of it.
func (f filter) Address() string {
	q := url.Values{}
	for name, v := range map[string]string{"q": f.Text, "folder": f.Folder, "state": f.State, "type": f.Type, "processor": f.Processor, "platform": f.Platform, "sort": f.Sort} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return (&url.URL{Path: "/content", RawQuery: q.Encode()}).String()
}

// Narrow tells whether anything but the folder is asked for.
func (f filter) Narrow() bool { return f.Text+f.State+f.Type+f.Processor+f.Platform != "" }

// sql is the condition on asset a, with its parameters.
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
	if f.Folder != "" { // '0' comes after '/'
		add("a.id >= :from", ":from", f.Folder)
		add("a.id < :to", ":to", strings.TrimSuffix(f.Folder, "/")+"0")
	}
	add("a.processor = (SELECT no FROM shared_text WHERE text = :processor)", ":processor", f.Processor)
	platform := ""
	if f.Platform != "" {
		platform = " AND platform = (SELECT no FROM platform WHERE name = :platform)"
		add("a.no IN (SELECT asset FROM job WHERE 1"+platform+")", ":platform", f.Platform)
	}
	if f.Type != "" {
		add("a.no IN (SELECT asset FROM product WHERE type = (SELECT no FROM shared_text WHERE text = :type)"+platform+")", ":type", f.Type)
	}
	switch f.State {
	case "failed":
		conditions = append(conditions, "a.no IN (SELECT asset FROM job WHERE failed = 1"+platform+")")
	case "built":
		conditions = append(conditions, "a.no IN (SELECT asset FROM job WHERE built = "+lastNumber+platform+")")
	case "reused":
		conditions = append(conditions, "a.no IN (SELECT asset FROM job WHERE 1"+platform+
			") AND a.no NOT IN (SELECT asset FROM job WHERE (failed = 1 OR built = "+lastNumber+")"+platform+")")
	}
	return strings.Join(conditions, " AND "), p
}

const lastNumber = "(SELECT max(number) FROM build WHERE seconds IS NOT NULL)"

// likePattern finds a word anywhere; a * in it stands for anything.
func likePattern(word string) string {
	s := strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%").Replace(word)
	return "%" + s + "%"
}

// order is how the list is sorted, and what it needs for that.
func (f filter) order() (join, by string) {
	switch f.Sort {
	case "size":
		return "LEFT JOIN (SELECT asset, sum(size) AS v FROM product GROUP BY asset) s ON s.asset = a.no", "s.v DESC, a.id"
	case "time":
		return "LEFT JOIN (SELECT asset, sum(seconds) AS v FROM job GROUP BY asset) s ON s.asset = a.no", "s.v DESC, a.id"
	}
	return "", "a.id"
}

// dear tells whether finding the assets takes going through all jobs or products: half a second for 100,000 assets. Then all that are
// found are kept, for the next page.
func (f filter) dear() bool {
	return f.Sort != "" || f.Type != "" || f.Processor != "" || f.Platform != "" || f.State != "" && f.State != "failed"
}

// selection is what a filter finds.
type selection struct {
	total int64
	nos   []int64 // of all assets, in order; nil if the filter is not dear
}

// find finds what the list shows. It is kept until the next build.
func (d *Dashboard) find(ctx context.Context, f filter) (selection, error) {
	return d.shelf.selections.of(ctx, d.version, f.Address(), func() (selection, error) {
		where, p := f.sql()
		if !f.dear() {
			rows, err := d.library.ask(ctx, "SELECT count(*) FROM asset a WHERE "+where, p, 1)
			if err != nil {
				return selection{}, err
			}
			return selection{total: rows[0].int(0)}, nil
		}
		join, by := f.order()
		rows, err := d.library.ask(ctx, "SELECT a.no FROM asset a "+join+" WHERE "+where+" ORDER BY "+by, p, 0)
		s := selection{int64(len(rows)), make([]int64, len(rows))}
		for i, r := range rows {
			s.nos[i] = r.int(0)
		}
		return s, err
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
}

// crumb is a folder on the way to where one is.
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
	found, err := d.find(ctx, f)
	if err != nil {
		return nil, err
	}
	body.Total = found.total
	body.Pages = int((body.Total + pageRows - 1) / pageRows)
	if body.Entries, err = d.entries(ctx, f, found); err != nil {
		return nil, err
	}
	if !f.Narrow() {
		if body.Folders, err = d.folders(ctx, f.Folder); err != nil {
			return nil, err
		}
	}
	body.Facets, err = d.facets(ctx)
	return &view{Page: "content", Title: "Content", Body: body, Query: f.Text}, err
}

// entries are the assets on a page of the list.
func (d *Dashboard) entries(ctx context.Context, f filter, found selection) ([]entry, error) {
	from := (f.Page - 1) * pageRows
	page, p := "", params{}
	if found.nos != nil {
		var b strings.Builder
		for i, no := range found.nos[min(from, len(found.nos)):min(from+pageRows, len(found.nos))] {
			fmt.Fprintf(&b, ", (%d, %d)", no, i)
		}
		if b.Len() == 0 {
			return nil, nil
		}
		page = "VALUES" + b.String()[1:]
	} else {
		where := ""
		where, p = f.sql()
		page = fmt.Sprintf("SELECT no, row_number() OVER () FROM (SELECT a.no FROM asset a WHERE %s ORDER BY a.id LIMIT %d OFFSET %d)", where, pageRows, from)
	}
	rows, err := d.library.ask(ctx, `WITH shown (no, place) AS (`+page+`)
		SELECT a.id, s.text,
			(SELECT CASE WHEN max(failed) THEN 'failed' WHEN max(built) = `+lastNumber+` THEN 'built' WHEN count(*) > 0 THEN 'reused' END FROM job WHERE asset = a.no),
			(SELECT count(*) FROM product WHERE asset = a.no), (SELECT sum(size) FROM product WHERE asset = a.no), (SELECT sum(seconds) FROM job WHERE asset = a.no),
			(SELECT group_concat(name, ' ') FROM (SELECT DISTINCT p.name FROM job j JOIN platform p ON p.no = j.platform WHERE j.asset = a.no ORDER BY p.no)),
			pl.name, x.file, lower(hex(x.hash)), x.size, t.text
		FROM shown JOIN asset a USING (no) LEFT JOIN shared_text s ON s.no = a.processor
			LEFT JOIN product x ON (x.asset, x.platform, x.sub_id) = (SELECT q.asset, q.platform, q.sub_id FROM product q JOIN shared_text w ON w.no = q.type WHERE q.asset = a.no AND w.text = 'texture' LIMIT 1)
			LEFT JOIN platform pl ON pl.no = x.platform LEFT JOIN shared_text t ON t.no = x.type
		ORDER BY place`, p, 0)
	all := make([]entry, len(rows))
	for i, r := range rows {
		all[i] = entry{r.text(0), r.text(1), r.text(2), r.int(3), r.int(4), r.float(5), strings.Fields(r.text(6)), nil}
		if all[i].State == "" {
			all[i].State = "not built"
		}
		x := product{Platform: r.text(7), File: r.text(8), Hash: r.text(9), Size: r.int(10), Type: r.text(11)}
		if k := preview.KindOf(x.File, x.Type); x.Size <= maxThumbSource && (k == preview.Texture || k == preview.Picture) {
			all[i].Thumb = &x
		}
	}
	return all, err
}

// folders are those right in a folder, with how many assets are below each. It goes through all ids below the folder, so it is
// done once for a build: 100,000 take 60 ms.
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

// maxFolders is how many folders are shown of one folder.
const maxFolders = 300

// endOf is after all ids below a folder.
func endOf(folder string) string {
	if folder == "" {
		return "\U0010ffff"
	}
	return strings.TrimSuffix(folder, "/") + "0"
}

// facets are what the list can be narrowed by.
type facets struct {
	Types, Processors []facet
	Platforms         []string
	Failed, Built     int64
}

// facets asks for all of them. That goes through every product and job, so it is done once for a build, and until it is done those of
// the build before are good enough.
func (d *Dashboard) facets(ctx context.Context) (*facets, error) {
	return d.shelf.facets.soon(ctx, d.version, "", func(ctx context.Context) (*facets, error) {
		f := &facets{}
		rows, err := d.library.ask(ctx, `SELECT t.text, count(*), sum(size) FROM product x JOIN shared_text t ON t.no = x.type GROUP BY x.type ORDER BY 3 DESC`, nil, 40)
		if err != nil {
			return nil, err
		}
		most := int64(1)
		for _, r := range rows {
			most = max(most, r.int(2))
			f.Types = append(f.Types, facet{r.text(0), r.int(1), r.int(2), float64(r.int(2)) / float64(most)})
		}
		if rows, err = d.library.ask(ctx, `SELECT t.text, count(*) FROM asset a JOIN shared_text t ON t.no = a.processor GROUP BY a.processor ORDER BY 2 DESC`, nil, 40); err != nil {
			return nil, err
		}
		for _, r := range rows {
			f.Processors = append(f.Processors, facet{Name: r.text(0), Count: r.int(1)})
		}
		if rows, err = d.library.ask(ctx, `SELECT name FROM platform ORDER BY no`, nil, 0); err != nil {
			return nil, err
		}
		for _, r := range rows {
			f.Platforms = append(f.Platforms, r.text(0))
		}
		rows, err = d.library.ask(ctx, `SELECT (SELECT count(DISTINCT asset) FROM job WHERE failed = 1), (SELECT count(DISTINCT asset) FROM job WHERE built = `+lastNumber+`)`, nil, 1)
		if err == nil {
			f.Failed, f.Built = rows[0].int(0), rows[0].int(1)
		}
		return f, err
	})
}

// version tells builds apart that the database tells of.
func (d *Dashboard) version(ctx context.Context) (string, error) {
	rows, err := d.library.ask(ctx, "SELECT number || ' ' || started FROM build WHERE number = "+lastNumber, nil, 1)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0].text(0), nil
}
