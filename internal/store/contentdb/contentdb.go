// Package contentdb is the content database: every record and link of the last finished
// build, in a SQLite file that any program may read at any time.
//
// Its rules:
//
//   - It is a mirror. Builds write it, and it decides nothing. If it is deleted, damaged or of
//     another version, it is created again from what the build knows.
//   - A build is one transaction, however long it takes. Readers see the build before it
//     until it has finished, and never half of one, because of SQLite's write-ahead
//     log. Only the row in table build which records that a build has begun is visible earlier. The
//     first build goes into another file, which is renamed when it is complete.
//   - A build passes what changed. If the file does not describe the build that those changes
//     follow, it asks for everything.
//   - One program writes, under the project's lock. It does not wait for readers.
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
	Version = 10

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
	draft bool // conn writes a draft of a new file
	last  lastBuild

	building *Build // the build between Begin and Finish, or nil
}

// Opened is how Open found the file.
type Opened struct {
	Fresh  bool   // it was created and has no records
	Reason string // why an existing file is not used; empty if there was none
}

// ErrDamaged is the error of a Build that found the file damaged. The file was renamed: Open
// creates a new one.
var ErrDamaged = errors.New("content database is damaged")

// Aside is appended to the name of a file that is not used. There is at most one, kept for inspection; it is
// deleted when its replacement has recorded a build.
const Aside = ".aside"

// Open opens the content database at path for writing, and creates it if there is none. A damaged
// file, or one of another version, is renamed to path + ".aside" and replaced. Only one DB may be
// open for writing, in all processes.
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

// open opens an existing file.
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

// Close closes the file. An unfinished build is discarded.
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

// Leave is Close, but what was written stays in the log beside the file, and SQLite copies it into the
// file later, when the log is long enough. So this build waits for no disk. It returns the length of the
// log, for Intact.
//
// SQLite copies the log when the last connection is closed, unless that connection is read-only.
func (db *DB) Leave() (log int64, err error) {
	reader, err := openReadOnly(db.path)
	if err == nil {
		_, err = number(reader, "SELECT count(*) FROM project") // opens the log
		err = errors.Join(err, db.Close(), closeConn(reader))
	} else {
		err = db.Close()
	}
	if info, serr := os.Stat(db.path + "-wal"); serr == nil {
		log = info.Size()
	}
	return log, err
}

// logged are the settings for a file that others read.
//
// synchronous=NORMAL costs two fsyncs when the log is copied into the file, not one a commit, and
// protects the file against power failures. With OFF, a page can be old without any sign, so that
// answers are wrong.
var logged = []string{
	"journal_mode = wal",
	"synchronous = normal",
	"cache_size = -32000", // enough for the changes of a build of 100,000 assets; more is written to the log early
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

// A wrong is the reason why a file cannot be used, for display.
type wrong string

func (w wrong) Error() string { return string(w) }

// check checks the header and the first pages. It does not check every page, which would take
// longer than most builds; ErrDamaged is for the rest.
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

// whyUnusable distinguishes a file that must be replaced from an error that says nothing about the
// file: no rights, disk full, locked.
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
		// ErrCode also returns this for errors that are not SQLite's.
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

// execute runs statements one after the other. sqlitex.ExecuteScript would add a savepoint, and panic if the disk fails
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

// lastBuild is the newest build in the file.
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

// number runs a query that returns one integer; NULL is 0.
func number(conn *sqlite.Conn, query string) (n int64, err error) {
	err = sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		n = st.ColumnInt64(0)
		return nil
	}})
	return n, err
}
