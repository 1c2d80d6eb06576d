package contentdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"zombiezen.com/go/sqlite/sqlitex"
)

// Build takes the records of one build. Its methods may be called from several goroutines, up to
// Finish or Cancel; their arguments must not be changed afterwards. They return at once: one
// goroutine writes, and Finish returns its first error.
type Build struct {
	db         *DB
	number     int64
	everything bool

	ops  chan func(*writer) error
	done sync.WaitGroup
	w    *writer
	err  error // set by the writing goroutine; read after done
}

// queued is how many records may wait for the writer before Put blocks.
const queued = 1024

// Begin begins a build. Readers see the build before it until Finish. It must end with Finish or
// Cancel.
func (db *DB) Begin(s Start) (*Build, error) {
	switch {
	case db.building != nil:
		return nil, errors.New("contentdb: begin: the build before has not ended")
	case db.conn == nil:
		return nil, errors.New("contentdb: begin: the file is not open")
	}
	b := &Build{
		db:         db,
		number:     s.Number,
		everything: s.Everything || !db.Complete() || s.After != db.last.finished,
		ops:        make(chan func(*writer) error, queued),
	}
	if err := b.begin(s); err != nil {
		return nil, b.failed("begin", err)
	}
	db.building = b
	b.done.Go(func() {
		for op := range b.ops {
			if b.err == nil {
				b.err = op(b.w)
			}
		}
	})
	return b, nil
}

// begin records that a build began, and opens its transaction. The record is a transaction of its
// own, so that the next build sees if this one did not finish.
func (b *Build) begin(s Start) error {
	conn := b.db.conn
	// Rows of a later build come from a state that no longer exists.
	err := sqlitex.Execute(conn, "DELETE FROM build WHERE number > ?", &sqlitex.ExecOptions{Args: []any{s.Number}})
	if err == nil {
		err = sqlitex.Execute(conn, "INSERT OR REPLACE INTO build (number, started) VALUES (?, ?)",
			&sqlitex.ExecOptions{Args: []any{s.Number, s.Started.UTC().Format("2006-01-02T15:04:05Z")}})
	}
	if err != nil {
		return err
	}
	if b.db.last, err = readLast(conn); err != nil {
		return err
	}
	if err := sqlitex.ExecuteTransient(conn, "BEGIN IMMEDIATE", nil); err != nil {
		return err
	}
	b.w, err = newWriter(conn, s, b.everything)
	return err
}

// Everything reports that the file is empty, and that all records must be passed: every source
// file, every asset with its jobs on all platforms, every parcel.
func (b *Build) Everything() bool { return b.everything }

// Put writes an asset. It replaces the asset's records on the platforms of this build.
func (b *Build) Put(a Asset) { b.ops <- func(w *writer) error { return w.putAsset(&a) } }

// PutMeta writes the metadata from rules of all assets that have any, by id, changed or not. It skips assets that are
// not in the database, and removes the metadata of those that are not in all.
func (b *Build) PutMeta(all map[string][]Meta) {
	b.ops <- func(w *writer) error { return w.putMetas(all) }
}

// Delete removes an asset, and everything that refers to it.
func (b *Build) Delete(assetID string) {
	b.ops <- func(w *writer) error { return w.deleteAsset(assetID) }
}

// PutFiles writes source files that are new, changed, or removed (Missing). Call it before Put for
// the assets that read them: that saves a write for each.
func (b *Build) PutFiles(files []File) {
	b.ops <- func(w *writer) error { return w.putFiles(files) }
}

// PutParcels replaces all parcels.
func (b *Build) PutParcels(parcels []Parcel) {
	b.ops <- func(w *writer) error { return w.putParcels(parcels) }
}

// TouchParcels writes changes of parcels: sizes and hashes, and added and removed products.
func (b *Build) TouchParcels(parcels []Parcel) {
	b.ops <- func(w *writer) error { return w.touchParcels(parcels) }
}

// Finish writes the rest, and from then on readers see this build. If the file turns out to be
// damaged, the error is ErrDamaged, and the DB is closed: open it again and pass everything. After
// any other error the file still describes the build before.
func (b *Build) Finish(s Summary) error {
	b.stop()
	err := b.err
	if err == nil {
		err = b.w.finish(b.number, s)
	}
	if err == nil {
		err = sqlitex.ExecuteTransient(b.db.conn, "COMMIT", nil)
	}
	if err != nil {
		return b.failed("write", err)
	}
	b.db.last = lastBuild{begun: b.number, finished: b.number}
	if !b.db.draft {
		os.Remove(b.db.path + Aside) // harmless if it fails
		return nil
	}
	if err := b.db.publish(); err != nil {
		return fmt.Errorf("contentdb: write: %w", err)
	}
	return nil
}

// Cancel discards the records. The next build will ask for everything.
func (b *Build) Cancel() error {
	b.stop()
	return b.rollback()
}

// stop waits for the writing goroutine.
func (b *Build) stop() {
	close(b.ops)
	b.done.Wait()
	b.db.building = nil
}

func (b *Build) rollback() error {
	if b.db.draft { // a draft has no journal to roll back with
		return errors.Join(closeConn(b.db.conn), b.db.newDraft())
	}
	if b.db.conn.AutocommitEnabled() {
		return nil // SQLite has rolled back already
	}
	return sqlitex.ExecuteTransient(b.db.conn, "ROLLBACK", nil)
}

// failed undoes the build, and renames the file if it is damaged.
func (b *Build) failed(doing string, err error) error {
	err = fmt.Errorf("contentdb: %s: %w", doing, err)
	if _, damaged := whyUnusable(err); damaged && !b.db.draft {
		return errors.Join(ErrDamaged, err, b.db.Close(), setAside(b.db.path))
	}
	return errors.Join(err, b.rollback())
}

// list returns a JSON list, or "" for an empty one.
func list(s []string) string {
	if len(s) == 0 {
		return ""
	}
	text, err := json.Marshal(s)
	if err != nil {
		return "" // strings always marshal
	}
	return string(text)
}
