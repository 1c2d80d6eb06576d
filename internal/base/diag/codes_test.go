package diag_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestCodes: a code has one name and one number, and is told to somebody. A code marked "no longer used" in its comment is not.
func TestCodes(t *testing.T) {
	names := map[string]string{} // number to name
	unused := map[string]bool{}
	for _, c := range codes(t) {
		if !regexp.MustCompile(`^K\d{4}$`).MatchString(c.number) {
			t.Errorf("%s is %q, which is no code", c.name, c.number)
		}
		if other, ok := names[c.number]; ok {
			t.Errorf("%s and %s are both %s", c.name, other, c.number)
		}
		names[c.number] = c.name
		unused[c.name] = !strings.Contains(c.comment, "no longer used")
	}
	if len(names) < 50 {
		t.Fatalf("only %d codes were found", len(names))
	}
	for _, name := range named(t, "../../..") {
		delete(unused, name)
	}
	for name, should := range unused {
		if should {
			t.Errorf("nothing uses %s: take it out, or if it was ever released, mark it as no longer used", name)
		}
	}
}

// TestCodesAreExplained: docs/messages.md has one row for each code, in order in each table.
func TestCodesAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../../docs/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	last := ""
	for line := range strings.Lines(string(page)) {
		m := regexp.MustCompile(`^\| (K\d{4}) (?:\* )?\| .+ \| .+ \|$`).FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			last = ""
			continue
		}
		rows[m[1]]++
		if m[1] <= last {
			t.Errorf("%s stands behind %s", m[1], last)
		}
		last = m[1]
	}
	for _, c := range codes(t) {
		if n := rows[c.number]; n != 1 {
			t.Errorf("%s (%s) has %d rows", c.number, c.name, n)
		}
		delete(rows, c.number)
	}
	for number := range rows {
		t.Errorf("%s is no code", number)
	}
}

type code struct{ name, number, comment string }

func codes(t *testing.T) (all []code) {
	f, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.ValueSpec); ok {
			for i, name := range s.Names {
				number, _ := strconv.Unquote(s.Values[i].(*ast.BasicLit).Value)
				all = append(all, code{name.Name, number, s.Comment.Text()})
			}
		}
		return true
	})
	return all
}

// named lists what code that is no test takes from package diag.
func named(t *testing.T, root string) (all []string) {
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testdata" || e.Name() != ".." && strings.HasPrefix(e.Name(), ".") && len(e.Name()) > 2):
			return fs.SkipDir
		case !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") || filepath.Base(p) == "codes.go":
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
		if err != nil {
			return nil // the compiler says it better
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "diag" {
					all = append(all, s.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
