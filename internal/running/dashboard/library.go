package dashboard

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
)

const (
	// maxIdle is how many open connections are kept for the next page: each caches up to 64 MB of the file, which
	// makes pages over 100,000 assets fast.
	maxIdle = 2

	// askTime is the timeout of a question.
	askTime = 10 * time.Second
)

// library lends connections to the content database. If the file was replaced, the next question uses the
// new one.
type library struct {
	path string

	mu     sync.Mutex // guards all fields below
	idle   []connection
	closed bool
}

type connection struct {
	*contentdb.Reader
	file os.FileInfo // the file for which they were opened
}

// row is a row of an answer. Its methods return zero values for missing columns.
type row []any

func (r row) text(i int) string {
	s, _ := r[i].(string)
	return s
}

func (r row) int(i int) int64 {
	switch v := r[i].(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}

func (r row) float(i int) float64 {
	switch v := r[i].(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// params are values of a statement's parameters.
type params = map[string]any

// ask runs a statement. It reads at most limit rows; 0 means all.
func (l *library) ask(ctx context.Context, sql string, p params, limit int) ([]row, error) {
	return l.with(ctx, func(ctx context.Context, c *contentdb.Reader) (*contentdb.Result, error) {
		return c.Ask(ctx, sql, p, limit)
	})
}

// question answers a named question.
func (l *library) question(ctx context.Context, name string, args []string, limit int) ([]row, error) {
	return l.with(ctx, func(ctx context.Context, c *contentdb.Reader) (*contentdb.Result, error) {
		return c.Run(ctx, name, args, limit)
	})
}

func (l *library) with(ctx context.Context, f func(context.Context, *contentdb.Reader) (*contentdb.Result, error)) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c, err := l.take()
	if err != nil {
		return nil, err
	}
	res, err := f(ctx, c.Reader)
	if err != nil {
		c.Close()
		return nil, err
	}
	l.give(c)
	rows := make([]row, len(res.Rows))
	for i, r := range res.Rows {
		rows[i] = r
	}
	return rows, nil
}

// take opens a connection, or returns an idle one if it is of the current file.
func (l *library) take() (connection, error) {
	file, err := os.Stat(l.path)
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := len(l.idle); n > 0; n-- {
		c := l.idle[n-1]
		l.idle = l.idle[:n-1]
		if err == nil && os.SameFile(c.file, file) {
			return c, nil
		}
		c.Close()
	}
	r, err := contentdb.OpenReadOnly(l.path)
	return connection{r, file}, err
}

func (l *library) give(c connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.idle) >= maxIdle || c.file == nil {
		c.Close()
		return
	}
	l.idle = append(l.idle, c)
}

func (l *library) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var err error
	for _, c := range l.idle {
		if cerr := c.Close(); cerr != nil {
			err = cerr
		}
	}
	l.idle = nil
	return err
}
