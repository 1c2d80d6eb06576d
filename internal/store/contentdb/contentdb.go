// Package contentdb is the content database: every record and link of the last finished
// build, in a SQLite file that any program may read at any time.
//
// Its rules:
//
//   - It is a mirror. It is fed by builds and decides nothing; deleted, damaged or of
//     another version, it is made anew from what the build knows by itself.
//   - A build is one transaction, however long it takes. Readers see the build before it
//     until it has finished, and never half of one: that is what SQLite's write-ahead log
//     gives. Only the row in table build that says a build has begun is seen before. The
//     first build goes into another file, which takes its name when it is whole.
//   - A build hands in what changed. If the file is not about the build that those changes
//     come after, it asks for everything.
//   - One program writes, under the project's lock. Readers are not waited for.
//
// docs/formats/contentdb.md explains the tables and views.
package contentdb

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

const (
	// Version of the tables and views, in PRAGMA user_version.
	Version = 8

	// ApplicationID, in PRAGMA application_id, is "Kiln" in ASCII.
	ApplicationID = 0x4b696c6e
)

//go:embed tables.sql
var tablesSQL string

//go:embed indexes.sql
var indexesSQL string

//go:embed views.sql
var viewsSQL string

// DB is a content database open for writing.
type DB struct {
	conn  *sqlite.Conn
	path  string
	draft bool // conn writes the draft of a new file
	last  lastBuild

	building *Build // the one between Begin and Finish, or nil
}

// Opened tells how Open found the file.
type Opened struct {
	Fresh  bool   // it was made anew and has no records
	Reason string // why a file that was there is not used; empty if there was none
}

// ErrDamaged is the error of a Build that found the file damaged. The file has been set
// aside: Open makes a new one.
var ErrDamaged = errors.New("content database is damaged")

// Aside is appended to the name of a file that is not used. There is at most one, kept for inspection; it is
// deleted when the file in its place has taken in a build.
const Aside = ".aside"

// Open opens the content database at path for writing, and makes it if there is none. A
// damaged file, or one of another version, is set aside under path + ".aside" and made
// anew. Only one DB may be open for writing, in all processes.
func Open(path string) (*DB, Opened, error) {
	var opened Opened
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		opened.Fresh = true
	}
	db := &DB{path: path}
	var err error
	if !opened.Fresh {
		err = db.open()
	}
	if reason, unusable := whyUnusable(err); unusable {
		if err := setAside(path); err != nil {
			return nil, opened, fmt.Errorf("contentdb: set aside: %w", err)
		}
		opened, err = Opened{Fresh: true, Reason: reason}, nil
	}
	if err == nil && opened.Fresh {
		err = db.newDraft()
	}
	if err != nil {
		return nil, opened, fmt.Errorf("contentdb: open: %w", err)
	}
	return db, opened, nil
}

// open opens a file that is there.
func (db *DB) open() error {
	conn, err := connect(db.path, logged)
	if err == nil {
		if err = check(conn); err == nil && !intact(db.path) {
			err = cutOff
		}
	}
	if err == nil {
		db.last, err = readLast(conn)
	}
	if err != nil && conn != nil {
		closeConn(conn)
		conn = nil
	}
	db.conn = conn
	return err
}

// Complete reports whether the last build that began also finished. If not, the next one
// will ask for everything.
func (db *DB) Complete() bool { return db.last.complete() }

// Close closes the file. A build that has not finished is dropped.
func (db *DB) Close() error {
	if db.conn == nil {
		return nil
	}
	var err error
	if db.building != nil {
		err = db.building.Cancel()
	}
	err = errors.Join(err, closeConn(db.conn))
	db.conn = nil
	if db.draft {
		err = errors.Join(err, db.dropDraft())
	}
	return err
}

// Leave is Close, but what was written stays in the log beside the file, from where SQLite copies it once
// that is long enough; so this build waits for no disk. It returns how long the log is, for Intact.
//
// SQLite copies the log when the last connection is closed, unless that one may not write.
func (db *DB) Leave() (log int64, err error) {
	reader, err := openReadOnly(db.path)
	if err == nil {
		_, err = number(reader, "SELECT count(*) FROM project") // it has the log open from now on
		err = errors.Join(err, db.Close(), closeConn(reader))
	} else {
		err = db.Close()
	}
	if info, serr := os.Stat(db.path + "-wal"); serr == nil {
		log = info.Size()
	}
	return log, err
}

// logged is how a file is written that others read.
//
// synchronous=NORMAL costs two fsyncs when the log is copied into the file, not one a
// commit, and keeps the file whole over a power cut. OFF saves those, but then a page can be
// silently old, and nobody would see that the answers are wrong.
var logged = []string{
	"journal_mode = wal",
	"synchronous = normal",
	"cache_size = -32000", // what a build of 100,000 assets changes; more goes to the log early
	"journal_size_limit = 8000000",
}

// connect opens the file and sets it up for one writer.
func connect(path string, pragmas []string) (*sqlite.Conn, error) {
	conn, err := openConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(5 * time.Second)
	for _, pragma := range append([]string{"page_size = 8192"}, pragmas...) {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			return conn, err
		}
	}
	return conn, nil
}

// A wrong is why a file cannot be used, in words for people.
type wrong string

func (w wrong) Error() string { return string(w) }

// check looks at what the file says of itself, and at the first pages. It does not look at
// every page, which would cost more than most builds; ErrDamaged is for the rest.
func check(conn *sqlite.Conn) error {
	app, err := number(conn, "PRAGMA application_id")
	if err != nil {
		return err
	}
	version, err := number(conn, "PRAGMA user_version")
	if err != nil {
		return err
	}
	switch {
	case app == 0 && version == 0:
		return wrong("it is empty")
	case app != ApplicationID:
		return wrong("it is not a content database")
	case version != Version:
		return wrong(fmt.Sprintf("it has version %d, not %d", version, Version))
	}
	_, err = number(conn, "SELECT count(*) FROM build, project")
	return err
}

const wrongTables = wrong("its tables are not those of a content database")

// whyUnusable tells a file that must be made anew from an error that says nothing about
// the file: no rights, disk full, locked.
func whyUnusable(err error) (reason string, unusable bool) {
	if err == nil {
		return "", false
	}
	var w wrong
	if errors.As(err, &w) {
		return string(w), true
	}
	switch code := sqlite.ErrCode(err); code.ToPrimary() {
	case sqlite.ResultNotADB:
		return "it is not a SQLite file", true
	case sqlite.ResultCorrupt, sqlite.ResultFormat:
		return "it is damaged", true
	case sqlite.ResultError:
		// ErrCode says this of errors that are not SQLite's, too.
		return string(wrongTables), strings.Contains(err.Error(), logicError)
	case sqlite.ResultReadOnly:
		return "it cannot be written", true
	case sqlite.ResultIOErr:
		return string(cutOff), code == sqlite.ResultIOErrShortRead
	}
	return "", false
}

func setAside(path string) error {
	if err := removeLog(path); err != nil {
		return err
	}
	return disk.Replace(path, path+Aside)
}

// execute runs statements one after the other. sqlitex.ExecuteScript puts a savepoint around them, and panics if the disk fails
// while that is undone.
func execute(conn *sqlite.Conn, statements string) error {
	for statements = strings.TrimSpace(statements); statements != ""; statements = strings.TrimSpace(statements) {
		st, rest, err := conn.PrepareTransient(statements)
		if err != nil {
			return err
		}
		statements = statements[len(statements)-rest:]
		for more := true; more && err == nil; {
			more, err = st.Step()
		}
		if ferr := st.Finalize(); err == nil {
			err = ferr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lastBuild is the newest build that the file knows of.
type lastBuild struct {
	begun    int64 // 0: none
	finished int64 // 0: none
}

func (l lastBuild) complete() bool { return l.finished > 0 && l.begun == l.finished }

func readLast(conn *sqlite.Conn) (l lastBuild, err error) {
	if l.begun, err = number(conn, "SELECT max(number) FROM build"); err == nil {
		l.finished, err = number(conn, "SELECT max(number) FROM build WHERE seconds IS NOT NULL")
	}
	return l, err
}

// number runs a query that gives one integer; NULL is 0.
func number(conn *sqlite.Conn, query string) (n int64, err error) {
	err = sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		n = st.ColumnInt64(0)
		return nil
	}})
	return n, err
}
