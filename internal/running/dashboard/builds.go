package dashboard

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

const (
	timelineBuilds = 80  // bars in the timeline
	listedBuilds   = 15  // rows below it
	listedJobs     = 500 // of one build
)

// build is a row of table build.
type buildRow struct {
	Number                                        int64
	Started                                       time.Time
	Seconds                                       float64
	Assets, Jobs, Built, Reused, Failed, Products int64
	Bytes                                         int64
	Compared                                      int64  // jobs and parts
	Because                                       string // why all were checked
}

const buildColumns = "number, started, seconds, assets, jobs, built, reused, failed, products, bytes, compared, because"

func newBuildRow(r row) buildRow {
	started, _ := time.Parse(time.RFC3339, r.text(1))
	return buildRow{
		r.int(0), started, r.float(2), r.int(3), r.int(4), r.int(5), r.int(6), r.int(7), r.int(8), r.int(9), r.int(10), r.text(11),
	}
}

// job is a job at its last run.
type job struct {
	Asset, Platform, Processor string
	Failed                     bool
	Built                      int64
	Reason                     string
	Seconds                    float64
	Memory                     int64
	Share                      float64 // relative to the longest on the page
}

// lastBuilds returns the last finished builds, the newest first.
func (d *Dashboard) lastBuilds(ctx context.Context, n int) ([]buildRow, error) {
	const sql = "SELECT " + buildColumns + " FROM build WHERE seconds IS NOT NULL ORDER BY number DESC LIMIT :n"
	rows, err := d.library.ask(ctx, sql, params{":n": int64(n)}, 0)
	all := make([]buildRow, len(rows))
	for i, r := range rows {
		all[i] = newBuildRow(r)
	}
	return all, err
}

// bar is a build in the timeline, in a drawing 100 units high.
type bar struct {
	buildRow
	X, Y, Height int
}

type buildsBody struct {
	Now    nowPanel
	Bars   []bar
	Width  int // of the timeline, in units
	Grid   []gridLine
	Builds []buildRow
	Older  []buildRow // of the timeline
	Slow   []job
	Large  []product
	Kinds  []facet
}

// gridLine is a horizontal line in the timeline.
type gridLine struct {
	Y     int
	Label string
}

func (d *Dashboard) buildsPage(r *http.Request) (*view, error) {
	ctx := r.Context()
	builds, err := d.lastBuilds(ctx, timelineBuilds)
	if databaseMissing(err) && d.cfg.Feed != nil { // the first build is under way
		return &view{Page: "builds", Title: "Builds", Body: buildsBody{Now: d.nowPanel(ctx)}}, nil
	}
	if err != nil {
		return nil, err
	}
	body := buildsBody{Now: d.nowPanel(ctx), Builds: builds[:min(len(builds), listedBuilds)], Older: builds[min(len(builds), listedBuilds):]}
	body.Bars, body.Grid = timeline(builds)
	body.Width = 12 * timelineBuilds
	if body.Slow, err = d.slowest(ctx); err != nil {
		return nil, err
	}
	if body.Large, err = d.largest(ctx); err != nil {
		return nil, err
	}
	if body.Kinds, err = d.byType(ctx); err != nil {
		return nil, err
	}
	return &view{Page: "builds", Title: "Builds", Body: body}, nil
}

// timeline draws the durations of builds, the last one at the right, on a logarithmic scale, because builds take 10 ms
// or an hour.
func timeline(builds []buildRow) ([]bar, []gridLine) {
	height := func(seconds float64) int {
		return int(math.Round(100 * min(1, max(0.06, (math.Log10(max(seconds, 0.001))+3)/(math.Log10(max(longest(builds), 1))+3.1)))))
	}
	bars := make([]bar, len(builds))
	for i, b := range builds {
		k := len(builds) - 1 - i
		h := height(b.Seconds)
		bars[k] = bar{b, 12 * (timelineBuilds - 1 - i), 100 - h, h} // the last one is at the right edge
	}
	var grid []gridLine
	for _, s := range []float64{0.01, 0.1, 1, 10, 100, 1000} {
		if s <= longest(builds)*1.01 || s <= 1 {
			grid = append(grid, gridLine{100 - height(s), secondsText(s)})
		}
	}
	return bars, grid
}

func longest(builds []buildRow) float64 {
	t := 0.0
	for _, b := range builds {
		t = max(t, b.Seconds)
	}
	return t
}

type buildBody struct {
	Build buildRow
	Jobs  []job
	More  bool
}

// buildPage shows one build: the jobs whose last run was in it. For a build from before the content database was
// replaced, nothing else is known.
func (d *Dashboard) buildPage(r *http.Request) (*view, error) {
	number, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if err != nil || number < 1 {
		return nil, notFound{"A build has a number."}
	}
	const sql = "SELECT " + buildColumns + " FROM build WHERE number = :n AND seconds IS NOT NULL"
	rows, err := d.library.ask(r.Context(), sql, params{":n": number}, 1)
	if err != nil {
		return nil, err
	}
	body := buildBody{Build: buildRow{Number: number}}
	if len(rows) > 0 {
		body.Build = newBuildRow(rows[0])
	}
	body.Jobs, err = d.ranIn(r.Context(), number, body.Build.Built)
	if err == nil && len(rows)+len(body.Jobs) == 0 {
		err = notFound{fmt.Sprintf("There is no finished build %d.", number)}
	}
	if len(body.Jobs) > listedJobs {
		body.Jobs, body.More = body.Jobs[:listedJobs], true
	}
	return &view{Page: "build", Title: fmt.Sprintf("Build %d", number), Body: body}, err
}

// manyRan is the number of jobs of a build from which on they are looked up among the slowest of all, which an index
// has in order; fewer are looked up among assets built since. With 200,000 jobs, all of one build, the former takes 3
// ms and the latter 600; for a build of few jobs it is the reverse.
const manyRan = 2000

// ranIn returns the jobs whose last run was in a build, failed ones first, then the slowest: one more than are listed.
func (d *Dashboard) ranIn(ctx context.Context, number, ran int64) ([]job, error) {
	found := `SELECT j.asset, j.platform, j.processor FROM asset a CROSS JOIN job j ON j.asset = a.no WHERE a.built >= :n AND j.built = :n ORDER BY j.failed DESC, j.seconds DESC LIMIT :most`
	if ran >= manyRan {
		found = `SELECT * FROM (SELECT asset, platform, processor FROM job WHERE failed = 1 AND built = :n LIMIT :most)
			UNION ALL SELECT * FROM (SELECT asset, platform, processor FROM job WHERE failed = 0 AND built = :n ORDER BY seconds DESC LIMIT :most)`
	}
	return d.jobs(ctx, `(`+found+`) k CROSS JOIN job j ON j.asset = k.asset AND j.platform = k.platform AND j.processor = k.processor`, `ORDER BY j.failed DESC, j.seconds DESC`, params{":n": number, ":most": int64(listedJobs + 1)}, listedJobs+1)
}

func (d *Dashboard) slowest(ctx context.Context) ([]job, error) {
	return d.jobs(ctx, `job j`, `WHERE j.seconds IS NOT NULL ORDER BY j.seconds DESC`, nil, 8)
}

// jobs queries jobs j of some tables; where is the rest of the query.
func (d *Dashboard) jobs(ctx context.Context, from, where string, p params, limit int) ([]job, error) {
	rows, err := d.library.ask(ctx, `SELECT a.id, p.name, s.text, j.failed, j.built, j.reason, j.seconds, j.peak_memory
		FROM `+from+` CROSS JOIN asset a ON a.no = j.asset CROSS JOIN platform p ON p.no = j.platform LEFT JOIN shared_text s ON s.no = j.processor `+where, p, limit)
	all := make([]job, len(rows))
	most := 0.0
	for i, r := range rows {
		all[i] = job{r.text(0), r.text(1), r.text(2), r.int(3) == 1, r.int(4), r.text(5), r.float(6), r.int(7), 0}
		most = max(most, all[i].Seconds)
	}
	for i := range all {
		all[i].Share = all[i].Seconds / max(most, 1e-9)
	}
	return all, err
}

func (d *Dashboard) largest(ctx context.Context) ([]product, error) {
	return d.products(ctx, `WHERE (x.asset, x.platform, x.sub_id) IN (SELECT asset, platform, sub_id FROM product ORDER BY size DESC LIMIT 8) ORDER BY x.size DESC`, nil, 8)
}

// facet is a value that assets or products can have, with their number.
type facet struct {
	Name  string
	Count int64
	Bytes int64
	Share float64
}

// byType returns the sizes by type of product. It reads all products, so it runs once for each build.
func (d *Dashboard) byType(ctx context.Context) ([]facet, error) {
	return d.shelf.types.soon(ctx, d.version, "", func(ctx context.Context) ([]facet, error) {
		rows, err := d.library.ask(ctx, `SELECT t.text, count(*), sum(size) FROM product x JOIN shared_text t ON t.no = x.type GROUP BY x.type ORDER BY 3 DESC`, nil, maxChoices)
		var all []facet
		for _, r := range rows {
			all = append(all, facet{r.text(0), r.int(1), r.int(2), float64(r.int(2)) / float64(max(1, rows[0].int(2)))})
		}
		return all, err
	})
}
