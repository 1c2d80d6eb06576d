package contentdb

import (
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// AssetIDs lists the assets in the file. Call it before Begin.
func (db *DB) AssetIDs() ([]string, error) {
	var ids []string
	err := sqlitex.Execute(db.conn, "SELECT id FROM asset", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		ids = append(ids, stmt.ColumnText(0))
		return nil
	}})
	return ids, err
}

// Referring lists, for each of some assets by UUID, the assets with products that refer to its
// products.
func (db *DB) Referring(uuids []string) (map[string][]string, error) {
	ids := map[string][]string{}
	for _, uuid := range uuids {
		err := sqlitex.Execute(db.conn, "SELECT DISTINCT a.id FROM product_dependency d JOIN asset a ON a.no = d.asset WHERE d.to_uuid = ?",
			&sqlitex.ExecOptions{Args: []any{uuid}, ResultFunc: func(stmt *sqlite.Stmt) error {
				ids[uuid] = append(ids[uuid], stmt.ColumnText(0))
				return nil
			}})
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// Several lists the assets that have several jobs on a platform. Call it before Begin.
func (db *DB) Several() ([]string, error) {
	var ids []string
	err := sqlitex.Execute(db.conn, "SELECT id FROM asset WHERE no IN (SELECT asset FROM job GROUP BY asset, platform HAVING count(*) > 1)",
		&sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			ids = append(ids, stmt.ColumnText(0))
			return nil
		}})
	return ids, err
}
