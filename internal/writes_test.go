package internal_test

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writers are the functions of packages that write, rename or remove files, or open them for that.
var writers = map[string][]string{
	"os": {"WriteFile", "Create", "CreateTemp", "MkdirTemp", "OpenFile", "Rename", "Remove", "RemoveAll", "Mkdir", "MkdirAll",
		"Symlink", "Link", "Truncate", "Chmod", "Chtimes", "Chown", "Lchown", "OpenRoot", "OpenInRoot", "CopyFS"},
	"disk":   {"Save", "SaveAged", "Keep", "Replace", "Remove", "RemoveLeft", "Create", "OpenFile"},
	"flock":  {"New"},
	"sqlite": {"OpenConn"},
	"net":    {"Listen", "ListenUnix"},
	"unix": {"Linkat", "Renameat", "Renameat2", "Unlinkat", "Mkdirat", "Openat", "Openat2", "Open",
		"IoctlFileClone", "Symlinkat", "Fchmodat"},
	"wazero": {"NewCompilationCacheWithDir"},
}

// notProgram are packages that are in no kiln.
var notProgram = []string{"asm", "bench", "examples", "internal/proof", "kilnrt/internal", "testbed", "internal/running/live/livetest",
	"internal/store/share/reapi/reapitest", "internal/store/share/sharetest", "internal/store/cas/castest", "processor/processortest"}

// whoWrites finds these calls: by package and function, sorted.
func whoWrites(t *testing.T) map[string]string {
	found := map[string]string{}
	for _, f := range writtenByHand(t) {
		in := func(folder string) bool { return strings.HasPrefix(f.rel, folder+"/") }
		if f.test() || slices.ContainsFunc(notProgram, in) {
			continue
		}
		for _, d := range f.tree.Decls {
			name := "(none)"
			if fn, ok := d.(*ast.FuncDecl); ok {
				name = fn.Name.Name
				if fn.Recv != nil {
					name = receiver(fn) + "." + name
				}
			}
			calls := map[string]bool{}
			ast.Inspect(d, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if pkg, ok := s.X.(*ast.Ident); ok && slices.Contains(writers[pkg.Name], s.Sel.Name) {
						calls[pkg.Name+"."+s.Sel.Name] = true
					}
				}
				return true
			})
			if len(calls) > 0 {
				key := path.Dir(f.rel) + " " + name
				all := slices.Sorted(maps.Keys(calls))
				if old := found[key]; old != "" { // one for each system
					all = slices.Compact(slices.Sorted(slices.Values(append(all, strings.Split(old, ", ")...))))
				}
				found[key] = strings.Join(all, ", ")
			}
		}
	}
	return found
}

// TestWrites: docs/internals/writes.md lists every place that writes, who names its path, and the test that shows it. A
// new one is a decision.
func TestWrites(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "internals", "writes.md"))
	if err != nil {
		t.Fatal(err)
	}
	found, tests := whoWrites(t), namesOfTests(t)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || !strings.Contains(cells[2], ".") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		key := cells[0] + " " + cells[1]
		switch calls := strings.ReplaceAll(cells[2], "`", ""); {
		case found[key] == "":
			t.Errorf("%s writes nothing: its line in writes.md goes", key)
		case found[key] != calls:
			t.Errorf("%s: writes.md says %s, the code %s", key, calls, found[key])
		case !slices.Contains([]string{"repository", "user", "Kiln", "caller"}, strings.TrimRight(strings.Fields(cells[3] + " -")[0], ":,;")):
			t.Errorf("%s: writes.md does not say who names the path", key)
		case !tests[cells[4]]:
			t.Errorf("%s: there is no test or script %q", key, cells[4])
		}
		delete(found, key)
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		pkg, fn, _ := strings.Cut(key, " ")
		t.Errorf("this writes, and is not in docs/internals/writes.md:\n%s", fmt.Sprintf("| %s | `%s` | `%s` | | |", pkg, fn, found[key]))
	}
}

// namesOfTests are the names of tests, and of the scripts that run the real command.
func namesOfTests(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, f := range writtenByHand(t) {
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test() && strings.HasPrefix(fn.Name.Name, "Test") {
				names[fn.Name.Name] = true
			}
		}
	}
	scripts, err := filepath.Glob("cli/testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(err)
	}
	for _, s := range scripts {
		names[strings.TrimSuffix(filepath.Base(s), ".txtar")] = true
	}
	return names
}
