package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// A room that outgrows its budget is cut in two, or its line here is raised: a decision, as in the list of imports. A line that
// grants more than a room has had use for is lowered.
const (
	roomLines     = 3000 // of Go in a room, tests left out
	roomNames     = 60   // that a room exports: functions, types, methods of these, constants, variables
	functionLines = 70   // of one function
	lineColumns   = 140
)

// budgets are those of rooms that need more: lines and names.
var budgets = map[string][2]int{
	"base/diag":         {1160, 275}, // the codes of messages; which of many there are, and which part of a line
	"cli":               {11300, 60}, // a file a command
	"content/project":   {3420, 67},  // what is said of a link out of the project
	"content/source":    {3000, 75},
	"engine":            {3000, 78},
	"extend/command":    {4900, 60},
	"extend/script":     {4000, 60},
	"kilnrt":            {3000, 100},
	"make/build":        {1500, 60},  // it only connects; repeats a build while contents turn out to be lost
	"make/job":          {4250, 157}, // a processor's Job, and what the build and workers ask of it
	"make/workspace":    {3000, 121}, // nine of them are the bounds of what is written
	"media/codec/astc":  {3460, 60},  // its encoder is there twice, in Go and for AVX2
	"media/codec/gltf":  {3000, 61},
	"media/codec/bptc":  {3170, 60}, // the same
	"media/codec/ktx2":  {3000, 64}, // its names are the numbers of formats
	"media/pixel":       {3450, 80},
	"media/sound":       {3000, 70},
	"running/dashboard": {3400, 60},
	"store/contentdb":   {3000, 71},
	"store/state":       {3000, 77},
}

// wide is how many lines of more than 140 columns each layer still has, in tens. It only goes down.
var wide = map[string]int{
	".": 10, "ask": 50, "base": 30, "bench": 20, "cli": 80, "content": 60, "delivery": 70, "engine": 10, "examples": 20, "extend": 200,
	"internal": 10, "kilnrt": 40, "make": 160, "media": 400, "processor": 20, "processors": 110, "proof": 20, "running": 170, "store": 70,
}

// longTests are functions in tests that are still longer than 70 lines, their tables left out. The list only gets shorter.
var longTests = map[string]int{
	"extend/command.helper":         155, // a program of its own
	"extend/seal.helper":            105, // the same
	"extend/wasm.module":            80,
	"kilnrt.conformanceSet":         130,
	"make/build.TestLastGoodParts":  72,
	"make/build.TestPlaceholder":    74,
	"media/codec/gltf.TestFindings": 120,
	"media/texture.TestPeakMemory":  76,
	"media/texture.lies":            78,
	"processors/atlas.TestSkins":    71,
}

// goFile is a Go file of the house, not generated.
type goFile struct {
	rel   string
	text  []byte
	files *token.FileSet
	tree  *ast.File
}

func (f goFile) test() bool { return strings.HasSuffix(f.rel, "_test.go") }

func (f goFile) room() string { return inHouse(path.Dir(f.rel)) }

// lines is how many lines a node stands on.
func (f goFile) lines(n ast.Node) int {
	return f.files.Position(n.End()).Line - f.files.Position(n.Pos()).Line + 1
}

// generated is how a file begins that is exempt.
var generated = []byte("// Code generated ")

// readHouse reads all Go files that people wrote, tests included, once for all tests.
var readHouse = sync.OnceValues(func() (all []goFile, err error) {
	err = filepath.WalkDir("..", func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if file != ".." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || nested(file)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, _ := filepath.Rel("..", file)
		f := goFile{rel: filepath.ToSlash(rel), files: token.NewFileSet()}
		if f.text, err = os.ReadFile(file); err != nil {
			return err
		}
		if bytes.HasPrefix(f.text, generated) {
			return nil
		}
		f.tree, err = parser.ParseFile(f.files, file, f.text, parser.SkipObjectResolution)
		all = append(all, f)
		return err
	})
	return all, err
})

func writtenByHand(t *testing.T) []goFile {
	t.Helper()
	all, err := readHouse()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// exported counts the names that a file gives to others.
func exported(f *ast.File) int {
	n := 0
	count := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				n++
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(receiver(d)) {
				count(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					count(s.Name)
				case *ast.ValueSpec:
					count(s.Names...)
				}
			}
		}
	}
	return n
}

// receiver names the type of a method.
func receiver(d *ast.FuncDecl) string {
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// TestBudgetOfRooms: a room is as large as one person can know.
func TestBudgetOfRooms(t *testing.T) {
	lines, names := map[string]int{}, map[string]int{}
	for _, f := range writtenByHand(t) {
		if !f.test() {
			lines[f.room()] += bytes.Count(f.text, []byte("\n"))
			names[f.room()] += exported(f.tree)
		}
	}
	for _, room := range slices.Sorted(maps.Keys(lines)) {
		most, named := budgets[room]
		if !named {
			most = [2]int{roomLines, roomNames}
		}
		if lines[room] > most[0] || names[room] > most[1] {
			t.Errorf("room %s has %d lines and %d exported names; its budget is %d and %d", room, lines[room], names[room], most[0], most[1])
		}
		if named && most[0] >= roomLines && lines[room] <= roomLines && names[room] <= roomNames {
			t.Errorf("room %s needs no budget of its own any more: take its line out", room)
		}
	}
	for room := range budgets {
		if _, ok := lines[room]; !ok {
			t.Errorf("room %s has a budget and is not in the tree", room)
		}
	}
}

// TestBudgetOfFunctions: a function is read without scrolling. What a table in it takes is not counted.
func TestBudgetOfFunctions(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range writtenByHand(t) {
		for _, d := range f.tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || f.lines(fn) <= functionLines {
				continue
			}
			n, most, name := f.lines(fn), functionLines, f.room()+"."+fn.Name.Name
			if f.test() {
				n -= f.tables(fn)
				most = max(most, longTests[name])
				seen[name] = n > functionLines
			}
			if n > most {
				t.Errorf("%s: %s has %d lines, more than %d: cut it where a thought ends", f.rel, fn.Name.Name, n, most)
			}
		}
	}
	for name := range longTests {
		if !seen[name] {
			t.Errorf("%s is not too long any more: take its line out", name)
		}
	}
}

// tables is how many lines the literals in a function take, but for one each.
func (f goFile) tables(fn *ast.FuncDecl) int {
	n := 0
	ast.Inspect(fn, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.CompositeLit, *ast.BasicLit:
			n += f.lines(node) - 1
			return false
		}
		return true
	})
	return n
}

// TestBudgetOfLines: a line fits on a screen beside another.
func TestBudgetOfLines(t *testing.T) {
	found := map[string]int{}
	for _, f := range writtenByHand(t) {
		wing, _, _ := strings.Cut(f.room(), "/")
		for line := range bytes.Lines(f.text) {
			if utf8.RuneCount(bytes.TrimRight(line, "\r\n")) > lineColumns {
				found[wing]++
			}
		}
	}
	for _, wing := range slices.Sorted(maps.Keys(found)) {
		if found[wing] > wide[wing] {
			t.Errorf("%s has %d lines of more than %d columns, and may have %d: break the new ones", wing, found[wing], lineColumns, wide[wing])
		}
	}
	for wing, most := range wide {
		if found[wing] < most-20 {
			t.Errorf("%s has %d lines of more than %d columns, not %d any more: lower its number", wing, found[wing], lineColumns, most)
		}
	}
}
