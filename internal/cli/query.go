package cli

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
)

// defaultLimit is how many rows a query shows by default.
const defaultLimit = 1000

func newQueryCommand(a *app) *cobra.Command {
	var list bool
	var sql string
	limit := defaultLimit
	cmd := &cobra.Command{
		Use:   "query NAME [ARG]",
		Short: "Query the content database by name or in SQL",
		Long: `Ask the content database of the last finished build. A question has a name (--list shows all, with
their SQL), or is a SQL statement that reads: --sql "SELECT sql FROM sqlite_schema" prints the tables.`,
		GroupID: groupLook,
		Example: `  kiln query --list
  kiln query asset-references models/knight.gltf
  kiln query --sql "SELECT asset, sum(size) FROM products GROUP BY asset"`,
		ValidArgsFunction: a.completeQuery,
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return a.listQueries()
			}
			if cmd.Flags().Changed("sql") {
				if len(args) > 0 {
					return wrongUsage("", "--sql is the whole question, and %q is one too many", args[0])
				}
				args = []string{sql}
			}
			if len(args) == 0 || strings.TrimSpace(args[0]) == "" {
				return wrongUsage("`kiln query --list` lists the questions", "kiln query needs a NAME, or --sql")
			}
			if limit < 0 {
				return wrongUsage("0 sets no limit", "--limit cannot be %d", limit)
			}
			if a.json && !cmd.Flags().Changed("limit") {
				limit = 0
			}
			return a.query(cmd.Context(), args, cmd.Flags().Changed("sql") || isSQL(args[0]), limit)
		},
	}
	cmd.Flags().StringVar(&sql, "sql", "", "run a SQL statement that reads: `TEXT`")
	cmd.Flags().BoolVar(&list, "list", false, "list the questions")
	cmd.Flags().IntVar(&limit, "limit", defaultLimit, "show at most `N` rows, 0 for all; with --json all is the default")
	return cmd
}

func (a *app) completeQuery(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var names []string
	switch len(args) {
	case 0:
		for _, q := range contentdb.Queries() {
			names = append(names, q.Name+"\t"+q.Doc)
		}
	case 1:
		return a.assetIDs(2)(cmd, args, toComplete)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// isSQL distinguishes a statement from the name of a question, which has no white space.
func isSQL(s string) bool { return strings.ContainsAny(s, " \t\r\n(") }

func (a *app) query(ctx context.Context, args []string, inSQL bool, limit int) error {
	res, err := a.rows(ctx, args, inSQL, limit)
	if err != nil {
		return err
	}
	if a.json {
		err = a.emitRows(res)
	} else {
		err = a.listRows(res)
	}
	if err == nil && res.More && !a.quiet {
		fmt.Fprintln(a.errs, a.paint(a.errs, dim, fmt.Sprintf("cut after %s; --limit 0 shows all", count(limit, "row", "rows"))))
	}
	return err
}

// rows answers a question.
func (a *app) rows(ctx context.Context, args []string, inSQL bool, limit int) (res *contentdb.Result, err error) {
	if !inSQL && args[0] == "needs-rebuild" && len(args) == 2 {
		return a.needsRebuild(ctx, args[1])
	}
	p, err := a.open()
	if err != nil {
		return nil, err
	}
	db, err := openDatabase(p)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	switch {
	case !inSQL:
		about := slices.Clone(args[1:])
		for i := range about {
			about[i] = p.InDatabase(a.namedFile(p, about[i]))
		}
		res, err = db.Run(ctx, args[0], about, limit)
	case len(args) > 1:
		return nil, wrongUsage("put the whole statement in quotes", "%q is one argument too many", args[1])
	default:
		res, err = db.RunSQL(ctx, args[0], limit)
	}
	return res, err
}

// openDatabase opens the content database of a project.
func openDatabase(p *build.Project) (*contentdb.Reader, error) {
	db, err := contentdb.OpenReadOnly(p.DatabasePath())
	var m *diag.Message
	if errors.As(err, &m) { // paths in messages are relative to the project
		if rel, rerr := filepath.Rel(p.Dir, m.File); rerr == nil {
			m.File = filepath.ToSlash(rel)
		}
	}
	return db, err
}

type queryLine struct {
	Type string `json:"type"`
	contentdb.Query
}

func (a *app) listQueries() error {
	t := a.tableOn(a.out)
	for _, q := range contentdb.Queries() {
		q.Args, q.SQL = slices.Concat([]string{}, q.Args), strings.TrimSpace(q.SQL)
		if a.json {
			if err := a.emit(queryLine{"query", q}); err != nil {
				return err
			}
			continue
		}
		args := ""
		for _, arg := range q.Args {
			args += strings.ToUpper(arg)
		}
		t.row(styled(bold, q.Name), left(args), styled(dim, q.Doc))
	}
	return t.write()
}

func (a *app) listRows(res *contentdb.Result) error {
	if len(res.Rows) == 0 {
		if !a.quiet {
			fmt.Fprintln(a.errs, a.paint(a.errs, dim, "no rows"))
		}
		return nil
	}
	t := a.tableOn(a.out)
	titles := make([]string, len(res.Columns))
	numbers := make([]bool, len(res.Columns))
	for i, name := range res.Columns {
		if titles[i], numbers[i] = name, isNumbers(res, i); numbers[i] {
			titles[i] = ">" + name
		}
	}
	t.header(titles...)
	for _, row := range res.Rows {
		cells := make([]cell, len(row))
		for i, v := range row {
			cells[i] = cell{text: valueText(v), right: numbers[i]}
		}
		t.row(cells...)
	}
	return t.write()
}

// isNumbers reports whether a column contains only numbers.
func isNumbers(res *contentdb.Result, column int) bool {
	any := false
	for _, row := range res.Rows {
		switch row[column].(type) {
		case int64, float64:
			any = true
		case nil:
		default:
			return false
		}
	}
	return any
}

// valueText is a value in a table: one line, with blobs in hexadecimal.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return numberText(v)
	case []byte:
		return hex.EncodeToString(v)
	case string:
		return strings.NewReplacer("\n", " ", "\t", " ").Replace(v)
	}
	return fmt.Sprint(v)
}

// numberText is a number with six digits. It has no exponent unless it is extremely large or small, because 5.3e-05 is
// hard to read in a column of seconds.
func numberText(v float64) string {
	s := strconv.FormatFloat(v, 'g', 6, 64)
	switch a := math.Abs(v); {
	case !strings.Contains(s, "e") || a >= 1e15 || a < 1e-6:
		return s
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strings.TrimRight(strconv.FormatFloat(v, 'f', 6, 64), "0")
}

// emitRows writes each row as an object whose keys are the columns, in their order.
func (a *app) emitRows(res *contentdb.Result) error {
	keys := make([][]byte, len(res.Columns))
	seen := map[string]int{}
	for i, name := range res.Columns {
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s_%d", name, seen[name])
		}
		keys[i], _ = json.Marshal(name)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, row := range res.Rows {
		b.Reset()
		b.WriteByte('{')
		for i, v := range row {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(keys[i])
			b.WriteByte(':')
			if blob, ok := v.([]byte); ok {
				v = hex.EncodeToString(blob)
			}
			if err := enc.Encode(v); err != nil {
				return err
			}
			b.Truncate(b.Len() - 1) // the encoder's newline
		}
		b.WriteString("}\n")
		if _, err := a.out.Write(b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
