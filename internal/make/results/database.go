package results

import "github.com/kiln-pipeline/kiln/internal/store/contentdb"

// Database is the content database, opened when it is first needed, and then open for all that a build asks and writes, because each
// connection of SQLite reads the definitions of all tables.
type Database struct {
	path   string
	db     *contentdb.DB // nil: it is not open
	opened contentdb.Opened
}

// Open opens it, as contentdb.Open does, unless it is open.
func (d *Database) Open() (_ *contentdb.DB, _ contentdb.Opened, err error) {
	if d.db == nil {
		d.db, d.opened, err = contentdb.Open(d.path)
	}
	return d.db, d.opened, err
}

// Close closes the database, if it is open. It can be opened again.
func (d *Database) Close() error {
	db := d.db
	if d.db = nil; db == nil {
		return nil
	}
	return db.Close()
}

// Leave is that of the database, which is open.
func (d *Database) Leave() (log int64, err error) {
	db := d.db
	d.db = nil
	return db.Leave()
}
