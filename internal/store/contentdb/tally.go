package contentdb

import (
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Table asset has the sums of each asset's jobs and products, and an index has everything that lists are filtered and
// sorted by. Computing the sums takes 500 ms for 100,000 assets, reading the index 20 ms. They are computed while rows
// are written; rows are read back only if they are not all at hand.

// tally is the sum of an asset's jobs and products.
type tally struct {
	platforms []int64 // platform.no, of jobs
	failed    bool
	built     int64
	seconds   float64
	products  int64
	bytes     int64
	types     []string // of products
}

// job adds a job, or the sum of several on one platform.
func (t *tally) job(platform int64, failed bool, built int64, seconds float64) {
	if !slices.Contains(t.platforms, platform) {
		t.platforms = append(t.platforms, platform)
	}
	t.failed, t.built, t.seconds = t.failed || failed, max(t.built, built), t.seconds+seconds
}

// product adds n products of a type, with their total size.
func (t *tally) product(kind string, n, bytes int64) {
	if kind != "" && !slices.Contains(t.types, kind) {
		t.types = append(t.types, kind)
	}
	t.products, t.bytes = t.products+n, t.bytes+bytes
}

// tallies are statements about an asset by number.
type tallies struct {
	all            bool         // the sums of all assets must be computed again
	jobs, products *sqlite.Stmt // the rows to add up
	put            *sqlite.Stmt
}

const (
	jobsOf     = "SELECT platform, max(failed), max(built), sum(seconds) FROM job WHERE asset = ? GROUP BY platform"
	productsOf = "SELECT t.text, count(*), sum(x.size) FROM product x LEFT JOIN shared_text t ON t.no = x.type WHERE x.asset = ? GROUP BY x.type"
	putTally   = "UPDATE asset SET failed = ?, built = ?, seconds = ?, products = ?, bytes = ?, types = ?, platforms = ? WHERE no = ?"
)

// read adds up an asset's rows.
func (s *tallies) read(asset int64) (t tally, err error) {
	s.jobs.BindInt64(1, asset)
	err = each(s.jobs, func(st *sqlite.Stmt) {
		t.job(st.ColumnInt64(0), st.ColumnBool(1), st.ColumnInt64(2), st.ColumnFloat(3))
	})
	if err == nil {
		s.products.BindInt64(1, asset)
		err = each(s.products, func(st *sqlite.Stmt) { t.product(st.ColumnText(0), st.ColumnInt64(1), st.ColumnInt64(2)) })
	}
	return t, err
}

// each runs a statement, and resets it.
func each(st *sqlite.Stmt, row func(*sqlite.Stmt)) error {
	for {
		more, err := st.Step()
		if err != nil {
			return err
		}
		if !more {
			return st.Reset()
		}
		row(st)
	}
}

// bindTally binds seven columns, starting with failed.
func (w *writer) bindTally(row *insertion, t *tally) *insertion {
	row.bool(t.failed)
	if len(t.platforms) == 0 {
		row.null().null()
	} else {
		row.int(t.built).float(t.seconds)
	}
	slices.Sort(t.types)
	slices.Sort(t.platforms)
	names := make([]string, len(t.platforms))
	for name, no := range w.platforms {
		if i := slices.Index(t.platforms, no); i >= 0 {
			names[i] = name
		}
	}
	return row.int(t.products).int(t.bytes).intOrNull(w.list(strings.Join(t.types, ", "))).intOrNull(w.list(strings.Join(names, ", ")))
}

// retally computes the sums of all assets again, after a platform was removed with its jobs.
func (w *writer) retally() error {
	if !w.tallies.all || w.everything {
		return nil
	}
	var assets []int64
	err := sqlitex.Execute(w.conn, "SELECT no FROM asset", &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		assets = append(assets, st.ColumnInt64(0))
		return nil
	}})
	for i := 0; i < len(assets) && err == nil; i++ {
		var t tally
		if t, err = w.tallies.read(assets[i]); err == nil {
			row := insertion{st: w.tallies.put}
			err = w.bindTally(&row, &t).int(assets[i]).run()
		}
	}
	if err == nil {
		err = w.err
	}
	return err
}
