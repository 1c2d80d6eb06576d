package processors

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/media/whole"
)

// TestList: each entry is complete, and what it says of itself is true.
func TestList(t *testing.T) {
	names, taken := map[string]bool{}, map[string]string{}
	for _, k := range Kinds {
		if k.Name == "" || k.Doc == "" || names[k.Name] || len(k.Formats) == 0 {
			t.Errorf("%q has no name of its own, no words or no formats", k.Name)
		}
		names[k.Name] = true
		if k.Page != "" {
			if _, err := os.Stat("../../docs/" + k.Page); err != nil {
				t.Error(err)
			}
		}
		var read []string
		for _, f := range k.Formats {
			for _, ext := range f.Extensions {
				if !regexp.MustCompile(`^\.[a-z0-9]+$`).MatchString(ext) || taken[ext] != "" {
					t.Errorf("%s, %s: extension %q, which %q has", k.Name, f.Name, ext, taken[ext])
				}
				taken[ext] = k.Name + ", " + f.Name
			}
			if !f.Made {
				read = append(read, f.Extensions...)
			}
			if (f.View == preview.Data) != (f.Parse != nil) {
				t.Errorf("%s: shown as %q, and can be parsed: %v", f.Name, f.View, f.Parse != nil)
			}
			if f.Placeholder != nil {
				f.standsFor(t)
			}
		}
		if k.Processor == nil {
			continue
		}
		info := k.Processor().Info()
		if k.Page == "" || k.Codes == "" {
			t.Errorf("%s has a processor and no page, or no codes", k.Name)
		}
		slices.Sort(read)
		if claimed := slices.Sorted(slices.Values(info.Extensions)); !info.Folder && !slices.Equal(claimed, read) {
			t.Errorf("processor %s takes %q; the list of kinds says %q", info.Name, claimed, read)
		}
		for _, ext := range info.Extensions {
			if taken[ext] == "" {
				t.Errorf("processor %s takes %q, which no kind has", info.Name, ext)
			}
		}
	}
}

// standsFor: what is said of a placeholder is what is said of a whole file.
func (f Format) standsFor(t *testing.T) {
	t.Helper()
	b := f.Placeholder()
	if f.Describe != nil {
		if words, err := f.Describe("a"+f.Extensions[0], b); err != nil || words == "" {
			t.Errorf("%s: the placeholder is described as %q, %v", f.Name, words, err)
		}
	}
	if f.Check != nil && Check("a"+f.Extensions[0], bytes.NewReader(b), int64(len(b))) != whole.Whole {
		t.Errorf("%s: the placeholder is not whole", f.Name)
	}
}

// mayList are files that name several extensions for reasons of their own.
var mayList = map[string]string{
	"internal/processors/kinds.go": "the list",
	"internal/ask/setup/roots.go":  "source code, which is no content",
}

// TestNoOtherList: nothing else in Kiln has a list of extensions; codecs know what their own files are called.
func TestNoOtherList(t *testing.T) {
	err := filepath.WalkDir("../..", func(file string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel("../..", file)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testdata" || rel == "bench" || rel == "examples" || strings.HasPrefix(rel, ".") && rel != "."):
			return fs.SkipDir
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || mayList[rel] != "" ||
			strings.HasPrefix(rel, "internal/media/codec/") || strings.HasPrefix(rel, "internal/media/pixel/"):
			return nil
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if among := extensionsIn(n); len(among) > 2 {
				t.Errorf("%s has a list of extensions: %q. Ask package processors, or the codec", rel, among)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// extensionsIn are the extensions that a kind has among the elements, keys, cases or arguments right in a node.
func extensionsIn(n ast.Node) (list []string) {
	var among []ast.Expr
	switch n := n.(type) {
	case *ast.CompositeLit:
		among = n.Elts
	case *ast.CaseClause:
		among = n.List
	case *ast.CallExpr:
		among = n.Args
	}
	for _, e := range among {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			e = pair.Key
		}
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		text, _ := strconv.Unquote(lit.Value)
		for _, word := range strings.Fields(text) {
			if k, _ := Of("a" + word); k != nil && strings.HasPrefix(word, ".") && !slices.Contains(list, word) {
				list = append(list, word)
			}
		}
	}
	return list
}

// TestDocs holds the tables in the documentation to the list; -update writes them.
func TestDocs(t *testing.T) {
	tables := map[string]string{"kinds": kindsTable(), "formats": formatsTable(),
		"texture": "`" + strings.Join(KindOf("texture").Extensions(), "` `") + "`\n"}
	for file, marks := range map[string][]string{"kinds.md": {"kinds", "formats"}, "textures.md": {"texture"}} {
		page, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(page)
		for _, mark := range marks {
			begin, end := "<!-- list: "+mark+" -->\n", "<!-- end of list -->"
			head, rest, ok := strings.Cut(text, begin)
			_, tail, closed := strings.Cut(rest, end)
			if !ok || !closed {
				t.Fatalf("docs/%s has no place for the list of %s", file, mark)
			}
			text = head + begin + tables[mark] + end + tail
		}
		if *update {
			err = os.WriteFile("../../docs/"+file, []byte(text), 0o666)
		} else if text != string(page) {
			err = fmt.Errorf("docs/%s is not what the list of kinds says: go test ./internal/processors -run Docs -update", file)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// kindsTable has a row for each kind. What Kiln only writes is in a column of its own: sources of these formats are copied.
func kindsTable() string {
	var b strings.Builder
	b.WriteString("| kind | files | processor | written only | messages |\n|---|---|---|---|---|\n")
	for _, k := range Kinds {
		by, codes := "`copy`", ""
		if k.Processor != nil {
			by = fmt.Sprintf("[`%s`](%s)", k.Processor().Info().Name, k.Page)
			codes = "`" + k.Codes + "..`"
		}
		var read, written []string
		for _, f := range k.Formats {
			for _, ext := range f.Extensions {
				if f.Made {
					written = append(written, "`"+ext+"`")
				} else {
					read = append(read, "`"+ext+"`")
				}
			}
		}
		files := k.Doc
		if len(read) > 0 {
			files += ": " + strings.Join(read, " ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", k.Name, files, by, strings.Join(written, " "), codes)
	}
	return b.String()
}

// formatsTable has a row for each format of which something is known.
func formatsTable() string {
	var b strings.Builder
	b.WriteString("| format | extensions | shown as | `inspect` | checked | placeholder |\n|---|---|---|---|---|---|\n")
	yes := func(is bool) string {
		if is {
			return "yes"
		}
		return ""
	}
	for _, k := range Kinds {
		for _, f := range k.Formats {
			if f.View != preview.None || f.Describe != nil || f.Check != nil {
				fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s |\n", f.Name, strings.Join(f.Extensions, "` `"), f.View, yes(f.Describe != nil),
					yes(f.Check != nil), yes(f.Placeholder != nil))
			}
		}
	}
	return b.String()
}

func TestView(t *testing.T) {
	const bytesOnly = "application/octet-stream"
	for _, tt := range []struct {
		file, typ string
		kind      preview.Kind
		media     string
	}{
		{"a.png.KTX2", "texture", preview.Texture, "image/ktx2"},
		{"ui.atlas.json", "atlas", preview.Atlas, bytesOnly},
		{"ui.json", "data", preview.Data, bytesOnly},
		{"page.html", "file", preview.None, bytesOnly},
		{"a.svg", "file", preview.None, bytesOnly},
		{"a.js", "file", preview.None, bytesOnly},
		{"a.wav.qoa", "sound", preview.Sound, bytesOnly},
		{"a.ogg", "file", preview.Sound, "audio/ogg"},
		{"noext", "", preview.None, bytesOnly},
	} {
		if k, m := View(tt.file, tt.typ), Media(tt.file); k != tt.kind || m != tt.media {
			t.Errorf("%s: %q, %q", tt.file, k, m)
		}
	}
}
