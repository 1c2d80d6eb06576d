package contentdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// A file that is not there yet, or was set aside, is written as a draft: a file beside it that nobody reads, without a log, which takes the
// name when its first build is whole. What goes wrong before loses the draft and nothing else. With a log, every page is
// written twice and waited for twice: 100,000 assets take 2.8 s, and 2.2 without (BenchmarkWrite).

// drafted is how a draft is written.
var drafted = []string{
	"journal_mode = off",
	"synchronous = off", // publish waits for the disk, once
	"cache_size = -32000",
}

// draftName is where the draft of a file is. There is at most one.
func draftName(path string) string { return path + ".new" }

// newDraft begins a draft, with nothing in it but tables.
func (db *DB) newDraft() error {
	db.conn, db.draft, db.last = nil, true, lastBuild{}
	if err := db.dropDraft(); err != nil { // of a program that was killed
		return err
	}
	conn, err := connect(draftName(db.path), drafted)
	if err == nil {
		err = execute(conn, fmt.Sprintf("BEGIN; %s;%s;%s; PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;", tablesSQL, indexesSQL, viewsSQL, ApplicationID, Version))
	}
	if err != nil && conn != nil {
		err = errors.Join(err, closeConn(conn), db.dropDraft())
		conn = nil
	}
	db.conn = conn
	return err
}

// publish gives a draft that is whole its name.
func (db *DB) publish() error {
	err := execute(db.conn, "PRAGMA journal_mode = wal") // whoever opens it next need not ask for it
	err = errors.Join(err, closeConn(db.conn))
	db.conn = nil
	if err == nil {
		err = flush(draftName(db.path))
	}
	if err == nil {
		err = removeLog(db.path) // of a file that somebody removed: SQLite would take it for the log of this one
	}
	if err == nil {
		err = disk.Replace(draftName(db.path), db.path)
	}
	if err != nil {
		return errors.Join(err, db.newDraft())
	}
	db.draft = false
	return db.open()
}

// dropDraft removes a draft that is not open.
func (db *DB) dropDraft() error {
	name := draftName(db.path)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return removeLog(name)
}

// flush waits until a file is on the disk.
func flush(path string) error {
	f, err := disk.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeLog removes what SQLite keeps beside a file.
func removeLog(path string) error {
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
