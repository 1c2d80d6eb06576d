package results

import "github.com/kiln-pipeline/kiln/internal/store/contentdb"

// Database is the content database, opened when it is first needed, and then open for all that a build asks and writes, because each
// connection of SQLite reads the definitions of all tables.
type Database struct {
	path   string
	begun  chan struct{} // closed when the rest is known; nil: it is not open
	db     *contentdb.DB
	opened contentdb.Opened
	err    error
}

// Ahead begins to open the database, for which Open then waits.
func (d *Database) Ahead() {
	if d.begun == nil {
		d.begun = make(chan struct{})
		go func() {
			defer close(d.begun)
			d.db, d.opened, d.err = contentdb.Open(d.path)
		}()
	}
}

// Open opens it, as contentdb.Open does, unless it is open. After an error, the next call tries again.
func (d *Database) Open() (*contentdb.DB, contentdb.Opened, error) {
	d.Ahead()
	<-d.begun
	db, opened, err := d.db, d.opened, d.err
	if err != nil {
		*d = Database{path: d.path}
	}
	return db, opened, err
}

// Close closes the database, if it is open. It can be opened again.
func (d *Database) Close() error { return d.end((*contentdb.DB).Close) }

// Leave is that of the database.
func (d *Database) Leave() (log int64, err error) {
	err = d.end(func(db *contentdb.DB) (err error) {
		log, err = db.Leave()
		return err
	})
	return log, err
}

func (d *Database) end(how func(*contentdb.DB) error) error {
	if d.begun == nil {
		return nil
	}
	<-d.begun
	db := d.db
	if *d = (Database{path: d.path}); db == nil {
		return nil
	}
	return how(db)
}
