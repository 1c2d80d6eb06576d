package contentdb

// Once opens a content database when it is first needed, and keeps it open for all that a build asks and writes: SQLite reads the
// definitions of its tables anew for each connection.
type Once struct {
	path   string
	begun  chan struct{} // closed when the rest is known; nil: it is not open
	db     *DB
	opened Opened
	err    error
}

// NewOnce opens nothing yet.
func NewOnce(path string) *Once { return &Once{path: path} }

// Ahead begins to open the database, for which Open then waits.
func (o *Once) Ahead() {
	if o.begun == nil {
		o.begun = make(chan struct{})
		go func() {
			defer close(o.begun)
			o.db, o.opened, o.err = Open(o.path)
		}()
	}
}

// Open is the function Open, once.
func (o *Once) Open() (*DB, Opened, error) {
	o.Ahead()
	<-o.begun
	return o.db, o.opened, o.err
}

// Close closes the database, if it is open. It can be opened again.
func (o *Once) Close() error { return o.end((*DB).Close) }

// Leave is that of the database.
func (o *Once) Leave() (log int64, err error) {
	err = o.end(func(db *DB) (err error) {
		log, err = db.Leave()
		return err
	})
	return log, err
}

func (o *Once) end(how func(*DB) error) error {
	if o.begun == nil {
		return nil
	}
	<-o.begun
	db := o.db
	if *o = (Once{path: o.path}); db == nil {
		return nil
	}
	return how(db)
}
