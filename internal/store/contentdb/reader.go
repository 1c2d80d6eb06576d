package contentdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// Reader answers questions. It cannot write. Its methods may be called from several goroutines and
// run one after the other. Open one for a question or a page, and close it, so that the next one
// sees a file that was replaced meanwhile.
type Reader struct {
	mu   sync.Mutex
	conn *sqlite.Conn
	path string

	// Code are the files that the project's own processors are made of, for Deps and Rdeps: pairs of a processor and a file, relative
	// to the project folder. The database does not have them.
	Code [][2]string

	// Platforms are those whose jobs count as dependencies; none: all.
	Platforms []string
}

// Result is a table of answers.
type Result struct {
	Columns []string
	Rows    [][]any // int64, float64, string, []byte or nil
	More    bool    // there were more rows than the limit
}

// maxValue is the longest text or blob that a query may make, in bytes.
const maxValue = 16 << 20

// OpenReadOnly opens the content database for questions, and does not wait for a build. Errors are messages:
// K0217 if no build has finished, K0218 if the file is of another version or damaged.
func OpenReadOnly(path string) (*Reader, error) {
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, missing(path)
	}
	conn, err := openReadOnly(path)
	if err != nil {
		return nil, unusable(path, err)
	}
	err = check(conn)
	var last lastBuild
	if err == nil {
		last, err = readLast(conn)
	}
	if err == nil {
		err = conn.SetAuthorizer(sqlite.AuthorizeFunc(readsOnly))
	}
	switch {
	case err != nil:
		closeConn(conn)
		return nil, unusable(path, err)
	case last.finished == 0:
		closeConn(conn)
		return nil, missing(path)
	}
	return &Reader{conn: conn, path: path}, nil
}

// openReadOnly connects. Where SQLite cannot create the files of a write-ahead log, for example on
// a read-only disk, the file is read as one that nobody writes.
func openReadOnly(path string) (*sqlite.Conn, error) {
	conn, err := openWith(path, 0)
	if code := sqlite.ErrCode(err).ToPrimary(); code == sqlite.ResultCantOpen || code == sqlite.ResultReadOnly {
		if _, logged := os.Stat(path + "-wal"); errors.Is(logged, fs.ErrNotExist) {
			u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: "immutable=1"}
			return openWith(u.String(), sqlite.OpenURI)
		}
	}
	return conn, err
}

func openWith(name string, flags sqlite.OpenFlags) (*sqlite.Conn, error) {
	conn, err := openConn(name, sqlite.OpenReadOnly|flags)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(2 * time.Second)
	conn.Limit(sqlite.LimitLength, maxValue)
	// A cache of 64 MB holds a project of 80,000 assets; with SQLite's usual 2 MB, questions
	// that go through all of a project take ten times as long.
	for _, pragma := range []string{"query_only = 1", "cache_size = -64000", "schema_version"} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			closeConn(conn)
			return nil, err
		}
	}
	return conn, nil
}

// readsOnly allows what a question needs. A read-only connection alone would let ATTACH open other files,
// and VACUUM INTO write one.
func readsOnly(a sqlite.Action) sqlite.AuthResult {
	switch a.Type() {
	case sqlite.OpSelect, sqlite.OpRead, sqlite.OpRecursive, sqlite.OpFunction, sqlite.OpTransaction:
		return sqlite.AuthResultOK
	case sqlite.OpPragma:
		described := []string{"table_list", "table_info", "table_xinfo", "index_list", "index_info", "index_xinfo",
			"foreign_key_list", "user_version", "application_id", "integrity_check", "quick_check", "data_version"}
		if slices.Contains(described, strings.ToLower(a.Pragma())) {
			return sqlite.AuthResultOK
		}
	}
	return sqlite.AuthResultDeny
}

func missing(path string) error {
	return diag.Errorf(diag.ContentDBMissing, diag.Pos{File: path}, "no build of this project has finished yet").
		WithHint("run `kiln build` first")
}

func unusable(path string, err error) error {
	reason, ok := whyUnusable(err)
	hint := "run `kiln verify --fix`, which makes a new one"
	if !ok {
		reason = fmt.Sprintf("it cannot be read: %v", err)
		hint = "check its permissions and the room on the disk, and try again; if that does not help delete it, and build: that makes a new one"
	}
	return diag.Errorf(diag.ContentDBUnusable, diag.Pos{File: path}, "the content database cannot be used: %s", reason).WithHint("%s", hint)
}

// Close closes the file.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return closeConn(r.conn)
}

// RunSQL runs one statement that reads. It reads at most limit rows; 0 means all of them. ctx limits
// the time. Errors for users are messages K0216, K0218 and K0219.
func (r *Reader) RunSQL(ctx context.Context, sql string, limit int) (*Result, error) {
	var res *Result
	err := r.snapshot(ctx, func() (err error) {
		if res, err = r.query(sql, nil, limit); err != nil && strings.Contains(err.Error(), logicError) {
			return r.sqlError(sql, err)
		}
		return err
	})
	return res, err
}

// Ask runs one statement of Kiln's own, with values for its parameters: int64, string or nil, by their names with the
// colon. Limit, ctx and errors as in RunSQL.
func (r *Reader) Ask(ctx context.Context, sql string, params map[string]any, limit int) (*Result, error) {
	var res *Result
	err := r.snapshot(ctx, func() (err error) {
		res, err = r.query(sql, params, limit)
		return err
	})
	return res, err
}

// logicError is the prefix of SQLite's message about a wrong statement.
const logicError = "SQL logic error: "

// sqlError reports where a statement is wrong, and which table or column was probably meant.
func (r *Reader) sqlError(sql string, err error) error {
	_, text, _ := strings.Cut(err.Error(), logicError)
	m := diag.Errorf(diag.QueryFailed, diag.Pos{File: "query"}, "%s", text)
	_, name, unknown := strings.Cut(text, "no such ")
	_, name, _ = strings.Cut(name, ": ")
	offset, located := sqlite.ErrorOffset(err)
	if i := strings.Index(sql, name); unknown && !located && i >= 0 {
		offset, located = i, true
	}
	if located && offset <= len(sql) {
		before := sql[:offset]
		m.Pos.Line = strings.Count(before, "\n") + 1
		m.Column = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
		m.WithSource([]byte(sql), max(1, utf8.RuneCountInString(name)))
	}
	if !unknown || strings.HasPrefix(text, "no such function") {
		return m.WithHint("`kiln query --list` has examples")
	}
	names, err := r.strings("SELECT name FROM sqlite_schema UNION SELECT c.name FROM sqlite_schema s, pragma_table_info(s.name) c", nil, 0)
	if err != nil {
		return err
	}
	if _, column, ok := strings.Cut(name, "."); ok {
		name = column
	}
	if hint := diag.DidYouMean(name, names); hint != "" {
		return m.WithHint("%s", hint)
	}
	return m.WithHint("`kiln query \"SELECT name, sql FROM sqlite_schema\"` shows tables and views")
}

// snapshot runs several queries on one state of the file, until ctx ends.
func (r *Reader) snapshot(ctx context.Context, f func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn.SetInterrupt(ctx.Done())
	defer r.conn.SetInterrupt(nil)
	err := sqlitex.ExecuteTransient(r.conn, "BEGIN", nil)
	if err == nil {
		err = f()
		r.conn.SetInterrupt(nil) // the end of the transaction must not be interrupted
		err = errors.Join(err, sqlitex.ExecuteTransient(r.conn, "ROLLBACK", nil))
	}
	return explain(ctx, err)
}

// explain turns SQLite's errors into messages.
func explain(ctx context.Context, err error) error {
	var m *diag.Message
	switch code := sqlite.ErrCode(err).ToPrimary(); {
	case err == nil || errors.As(err, &m):
		return err
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return diag.Errorf(diag.QueryStopped, diag.Pos{}, "the query took too long and was stopped").
			WithHint("ask for less, or give it more time")
	case ctx.Err() != nil:
		return ctx.Err()
	case code == sqlite.ResultAuth || code == sqlite.ResultReadOnly:
		return diag.Errorf(diag.QueryFailed, diag.Pos{}, "a query can only read the content database").
			WithHint("it is written by builds and by nothing else; use SELECT")
	case code == sqlite.ResultCorrupt || code == sqlite.ResultNotADB:
		return unusable("", err)
	default:
		return diag.Errorf(diag.QueryFailed, diag.Pos{}, "%s", plain(err))
	}
}

// plain removes the names of software layers from the text of an error.
func plain(err error) string {
	s := err.Error()
	for _, layer := range []string{"sqlite: ", "prepare: ", "step: "} {
		s = strings.TrimPrefix(s, layer)
	}
	return s
}

// query runs one statement with values for its named parameters.
func (r *Reader) query(sql string, params map[string]any, limit int) (*Result, error) {
	if strings.ContainsRune(sql, 0) {
		return nil, errors.New("the query has a NUL character in it")
	}
	st, trailing, err := r.conn.PrepareTransient(sql)
	if err != nil {
		return nil, err
	}
	if st.ColumnCount() == 0 {
		st.Finalize()
		return nil, errors.New("the query gives no rows")
	}
	defer st.Finalize()
	if rest := sql[len(sql)-trailing:]; strings.TrimSpace(rest) != "" {
		return nil, fmt.Errorf("one statement at a time: %q is too much", strings.TrimSpace(rest))
	}
	if err := bind(st, params); err != nil {
		return nil, err
	}
	res := &Result{Columns: make([]string, st.ColumnCount()), Rows: [][]any{}}
	for i := range res.Columns {
		// The library loses the second of two equal names.
		if res.Columns[i] = st.ColumnName(i); res.Columns[i] == "" {
			res.Columns[i] = fmt.Sprintf("column_%d", i+1)
		}
	}
	for {
		more, err := st.Step()
		if err != nil {
			return nil, err
		}
		if !more {
			return res, nil
		}
		if limit > 0 && len(res.Rows) == limit {
			res.More = true
			return res, nil
		}
		row := make([]any, len(res.Columns))
		for i := range row {
			row[i] = column(st, i)
		}
		res.Rows = append(res.Rows, row)
	}
}

func bind(st *sqlite.Stmt, params map[string]any) error {
	for i := range st.BindParamCount() {
		name := st.BindParamName(i + 1)
		v, ok := params[name]
		if !ok {
			return fmt.Errorf("no value for parameter %s", name)
		}
		switch v := v.(type) {
		case int64:
			st.BindInt64(i+1, v)
		case string:
			st.BindText(i+1, v)
		default:
			st.BindNull(i + 1)
		}
	}
	return nil
}

func column(st *sqlite.Stmt, i int) any {
	switch st.ColumnType(i) {
	case sqlite.TypeInteger:
		return st.ColumnInt64(i)
	case sqlite.TypeFloat:
		return st.ColumnFloat(i)
	case sqlite.TypeText:
		return st.ColumnText(i)
	case sqlite.TypeBlob:
		b := make([]byte, st.ColumnLen(i))
		st.ColumnBytes(i, b)
		return b
	}
	return nil
}
