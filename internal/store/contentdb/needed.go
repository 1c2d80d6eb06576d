package contentdb

import (
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Table asset has a column that says whether anything needs the asset. Computing this for 100,000 assets takes 120 ms;
// reading the index of unneeded ones takes 1 ms. It is computed again for the assets that a build began or ceased to
// need, by comparing what their users needed before and after.

// isNeeded is true if an asset is in a parcel, or another asset's job or product needs it, or the job of one
// with another primary source file reads its primary source file.
const isNeeded = `(EXISTS (SELECT 1 FROM parcel_product m WHERE m.asset = asset.no)
	OR EXISTS (SELECT 1 FROM job_dependency d WHERE d.on_asset = asset.no AND d.asset <> asset.no)
	OR EXISTS (SELECT 1 FROM product_dependency d WHERE d.to_uuid = asset.uuid AND d.asset <> asset.no)
	OR EXISTS (SELECT 1 FROM observation o JOIN asset u ON u.no = o.asset WHERE o.file = asset.file AND u.file IS NOT asset.file))`

// named identifies an asset by its number, its UUID or its primary source file. One of them is set.
type named struct {
	asset, file int64
	uuid        string
	own         bool // it is a name of the current asset, not something that it needs
}

type namedSet map[named]bool

// needing collects the assets for which the column must be computed again.
type needing struct {
	all           bool
	before, after namedSet // what the current asset needed before, and needs now; and its own names
	changed       namedSet
	names         *sqlite.Stmt // asset.no to its own names; nil if all assets are computed
	of            *sqlite.Stmt // asset.no to what it needs
	packed        *sqlite.Stmt // what is in parcels
}

// saying are the columns that refer to other assets, in the form of named, for deleted rows.
var saying = map[string]string{
	"job_dependency": "on_asset, NULL, NULL", "product_dependency": "NULL, to_uuid, NULL", "observation": "NULL, NULL, file",
}

const (
	namesOf   = "SELECT NULL, uuid, NULL FROM asset WHERE no = ?1 UNION ALL SELECT NULL, NULL, file FROM asset WHERE no = ?1"
	inParcels = "SELECT DISTINCT asset, NULL, NULL FROM parcel_product"
	needsOf   = `SELECT on_asset, NULL, NULL FROM job_dependency WHERE asset = ?1
		UNION ALL SELECT NULL, to_uuid, NULL FROM product_dependency WHERE asset = ?1
		UNION ALL SELECT NULL, NULL, file FROM observation WHERE asset = ?1`
)

func newNeeding(everything bool) needing {
	return needing{all: everything, before: namedSet{}, after: namedSet{}, changed: namedSet{}}
}

// read adds the names that a statement returns.
func (s namedSet) read(st *sqlite.Stmt, own bool) error {
	return each(st, func(st *sqlite.Stmt) {
		if x := (named{asset: st.ColumnInt64(0), uuid: st.ColumnText(1), file: st.ColumnInt64(2)}); x != (named{}) {
			x.own = own
			s[x] = true
		}
	})
}

// needs adds something that the current asset needs, or one of its own names.
func (n *needing) needs(x named) {
	if !n.all {
		n.after[x] = true
	}
}

// done finishes the current asset: it collects what it began or ceased to need, and itself if its names changed,
// because others may have needed it under other names.
func (n *needing) done() {
	for x := range n.before {
		if !n.after[x] {
			n.changed[x] = true
		}
	}
	for x := range n.after {
		if !n.before[x] {
			n.changed[x] = true
		}
	}
	clear(n.before)
	clear(n.after)
}

// tell updates the column.
func (n *needing) tell(conn *sqlite.Conn) error {
	const flip = "UPDATE asset SET needed = NOT needed WHERE needed <> " + isNeeded
	if n.all {
		return sqlitex.Execute(conn, flip, nil)
	}
	for x := range n.changed {
		where, arg := " AND no = ?", any(x.asset)
		switch {
		case x.uuid != "":
			where, arg = " AND uuid = ?", x.uuid
		case x.file != 0:
			where, arg = " AND file = ?", x.file
		}
		if err := sqlitex.Execute(conn, flip+where, &sqlitex.ExecOptions{Args: []any{arg}}); err != nil {
			return err
		}
	}
	return nil
}
