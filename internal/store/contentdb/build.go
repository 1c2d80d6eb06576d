package contentdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"zombiezen.com/go/sqlite/sqlitex"
)

// Build takes the records of one build. Its methods may be called from several goroutines,
// up to Finish or Cancel; what is handed in must not be changed afterwards. They return at
// once: one goroutine writes, and its first error comes out of Finish.
type Build struct {
	db         *DB
	number     int64
	everything bool

	ops  chan func(*writer) error
	done sync.WaitGroup
	w    *writer
	err  error // of the writing goroutine; read after done
}

// queued is how many records may wait for the writer before Put does.
const queued = 1024

// Begin begins a build. Until Finish, readers see the build before it. End it with Finish or Cancel.
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

// begin notes that a build began, and opens its transaction. The note is a transaction of
// its own: it is what tells the next build that this one did not finish.
func (b *Build) begin(s Start) error {
	conn := b.db.conn
	// Rows of a later build come from a state that is gone.
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

// Everything reports that the file was made empty, and that all records must be handed in:
// every source file, every asset with its jobs on all platforms, every parcel.
func (b *Build) Everything() bool { return b.everything }

// Put hands in an asset. It replaces the asset's records on the platforms of this build.
func (b *Build) Put(a Asset) { b.ops <- func(w *writer) error { return w.putAsset(&a) } }

// PutMeta hands in what rules say of assets, by id, whether it changed or not. Assets that the database does not have are passed over, and
// those that it has and are not among these have none.
func (b *Build) PutMeta(all map[string][]Meta) {
	b.ops <- func(w *writer) error { return w.putMetas(all) }
}

// Delete drops an asset that the project no longer has, and all that points to it.
func (b *Build) Delete(assetID string) {
	b.ops <- func(w *writer) error { return w.deleteAsset(assetID) }
}

// PutFiles hands in source files that are new or changed, or are gone (Missing). Hand them
// in before the assets that read them: it saves a write for each.
func (b *Build) PutFiles(files []File) {
	b.ops <- func(w *writer) error { return w.putFiles(files) }
}

// PutParcels hands in all parcels; those that were there are dropped.
func (b *Build) PutParcels(parcels []Parcel) {
	b.ops <- func(w *writer) error { return w.putParcels(parcels) }
}

// TouchParcels hands in what changed of parcels: their sizes and hashes, and which products came and went.
func (b *Build) TouchParcels(parcels []Parcel) {
	b.ops <- func(w *writer) error { return w.touchParcels(parcels) }
}

// Finish writes what is left, and from then on readers see this build. If the file turns out to be
// damaged, the error is ErrDamaged, and the DB is closed: Open it anew and hand in everything.
// After any other error the file still tells of the build before.
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
		os.Remove(b.db.path + Aside) // if it stays it does no harm
		return nil
	}
	if err := b.db.publish(); err != nil {
		return fmt.Errorf("contentdb: write: %w", err)
	}
	return nil
}

// Cancel drops what was handed in. The next build will ask for everything.
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
	if b.db.draft { // it has no journal to go back by
		return errors.Join(closeConn(b.db.conn), b.db.newDraft())
	}
	if b.db.conn.AutocommitEnabled() {
		return nil // SQLite has rolled back by itself
	}
	return sqlitex.ExecuteTransient(b.db.conn, "ROLLBACK", nil)
}

// failed undoes the build, and sets the file aside if it is damaged.
func (b *Build) failed(doing string, err error) error {
	err = fmt.Errorf("contentdb: %s: %w", doing, err)
	if _, damaged := whyUnusable(err); damaged && !b.db.draft {
		return errors.Join(ErrDamaged, err, b.db.Close(), setAside(b.db.path))
	}
	return errors.Join(err, b.rollback())
}

// list is a JSON list, or "" for an empty one.
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
