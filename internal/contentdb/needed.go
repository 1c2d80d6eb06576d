package contentdb

import (
	"maps"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Table asset says of each asset whether anything needs it, since to find out takes 120 ms for 100,000 assets, and to ask the index of
// those that nothing needs takes 1. It is found out again for the assets that a build began or ceased to need, by what their
// users said before and after.

// isNeeded is whether an asset is in a parcel, or another asset's job or product needs it, or another's job reads its primary source file.
const isNeeded = `(EXISTS (SELECT 1 FROM parcel_product m WHERE m.asset = asset.no)
	OR EXISTS (SELECT 1 FROM job_dependency d WHERE d.on_asset = asset.no AND d.asset <> asset.no)
	OR EXISTS (SELECT 1 FROM product_dependency d WHERE d.to_uuid = asset.uuid AND d.asset <> asset.no)
	OR EXISTS (SELECT 1 FROM observation o WHERE o.file = asset.file AND o.asset <> asset.no))`

// named is how something names an asset: by its number, its UUID or its primary source file. One of them is set.
type named struct {
	asset, file int64
	uuid        string
}

type namedSet map[named]bool

// needing tells of which assets it has to be found out whether they are needed.
type needing struct {
	all     bool
	changed namedSet
	of      *sqlite.Stmt // asset.no to what it needs; nil if all
	packed  *sqlite.Stmt // what is in parcels
}

const (
	needsOf = `SELECT on_asset, NULL, NULL FROM job_dependency WHERE asset = ?1
		UNION ALL SELECT NULL, to_uuid, NULL FROM product_dependency WHERE asset = ?1
		UNION ALL SELECT NULL, NULL, file FROM observation WHERE asset = ?1 AND file IS NOT NULL`
	inParcels = "SELECT DISTINCT asset, NULL, NULL FROM parcel_product"
)

// read is what a statement of the three columns says.
func (n *needing) read(st *sqlite.Stmt) (namedSet, error) {
	set := namedSet{}
	for {
		more, err := st.Step()
		if err != nil {
			return nil, err
		}
		if !more {
			return set, st.Reset()
		}
		set[named{asset: st.ColumnInt64(0), uuid: st.ColumnText(1), file: st.ColumnInt64(2)}] = true
	}
}

// needs is what an asset needs, if it matters.
func (n *needing) needs(asset int64) (namedSet, error) {
	if n.all {
		return nil, nil
	}
	n.of.BindInt64(1, asset)
	return n.read(n.of)
}

// inParcels is what parcels need, if it matters.
func (n *needing) inParcels() (namedSet, error) {
	if n.all {
		return nil, nil
	}
	return n.read(n.packed)
}

// differ notes what is in one of two sets.
func (n *needing) differ(before, after namedSet) {
	maps.DeleteFunc(before, func(x named, _ bool) bool {
		both := after[x]
		delete(after, x)
		return both
	})
	maps.Copy(n.changed, before)
	maps.Copy(n.changed, after)
}

// tell writes it into the table.
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
