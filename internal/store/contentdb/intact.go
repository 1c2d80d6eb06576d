package contentdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// Intact reports whether the file has the header of a content database of this version and the size that
// it claims, and whether the log beside it has the length that Leave returned; 0 if Close was called. It
// reads 100 bytes, so a build in which nothing changed can call it; Verify reads everything.
func Intact(path string, log int64) bool {
	if info, err := os.Stat(path + "-wal"); log > 0 && (err != nil || info.Size() != log) {
		return false // removed with its content, unless another program copied it
	}
	return intact(path)
}

func intact(path string) bool {
	f, err := disk.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 100) // https://www.sqlite.org/fileformat.html#the_database_header
	info, err := f.Stat()
	if _, rerr := io.ReadFull(f, head); err == nil && rerr == nil {
		number := binary.BigEndian
		length := int64(number.Uint16(head[16:])) * int64(number.Uint32(head[28:])) // bytes of a page times number of pages
		if bytes.HasPrefix(head, []byte("SQLite format 3\x00")) && info.Size() >= length &&
			number.Uint32(head[60:]) == Version && number.Uint32(head[68:]) == ApplicationID {
			return true
		}
	}
	log, err := os.Stat(path + "-wal") // it has what is missing in the file
	return err == nil && log.Size() > 0
}

// Verify reads the whole file. If it cannot be used, reason says why, and with fix it is renamed; reason is empty if it
// is good or missing. The error is a *diag.Message if the file cannot be read now. The caller holds the project's lock.
func Verify(path string, fix bool) (reason string, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	conn, err := openReadOnly(path)
	if err == nil {
		if err = check(conn); err == nil {
			err = integrity(conn)
		}
		closeConn(conn)
	}
	if err == nil && !intact(path) {
		err = cutOff
	}
	reason, is := whyUnusable(err)
	switch {
	case is && fix:
		return reason, setAside(path)
	case is:
		return reason, nil
	case err != nil:
		return "", unusable(path, err)
	}
	return "", nil
}

const cutOff = wrong("it is cut off")

// integrity has SQLite check all pages, tables and indexes.
func integrity(conn *sqlite.Conn) error {
	said := "nothing"
	err := sqlitex.ExecuteTransient(conn, "PRAGMA integrity_check(1)", &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		said = st.ColumnText(0)
		return nil
	}})
	if err == nil && said != "ok" {
		err = wrong("it is damaged")
	}
	return err
}
