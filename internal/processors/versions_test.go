package processors

import (
	"encoding/hex"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

var update = flag.Bool("update", false, "write versions.txt anew")

const module = "github.com/kiln-pipeline/kiln/"

// notOutput are packages that a processor's products do not depend on: the contract, which has a version of its own, and words.
var notOutput = []string{"processor", "internal/base/diag"}

// TestVersions fails when the code behind a processor changed and its version did not: products that old code made would be
// taken for those of the new code.
func TestVersions(t *testing.T) {
	var b strings.Builder
	b.WriteString("# processor, version, hash of the sources behind it. See versions_test.go.\n")
	for _, p := range All() {
		info := p.Info()
		fmt.Fprintf(&b, "%s %d %s\n", info.Name, info.Version, sourcesOf(t, "internal/processors/"+info.Name))
	}
	const file = "versions.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != b.String() {
		t.Errorf("the code behind a processor changed:\nwas\n%s\nis\n%s\nIf any input now gives other bytes, raise the processor's Version. Then: go test ./internal/processors -update", want, b.String())
	}
}

// sourcesOf hashes the sources of a package and of all packages of Kiln that it imports, and the versions of all modules.
func sourcesOf(t *testing.T, pkg string) string {
	t.Helper()
	seen := map[string]bool{}
	var files []string
	var modules []string
	var visit func(pkg string)
	visit = func(pkg string) {
		if seen[pkg] || slices.Contains(notOutput, pkg) {
			return
		}
		seen[pkg] = true
		found, err := filepath.Glob(filepath.Join("../..", pkg, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no sources of %s: %v", pkg, err)
		}
		for _, f := range found {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			files = append(files, f)
			parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				im, _ := strconv.Unquote(spec.Path.Value)
				if rest, ok := strings.CutPrefix(im, module); ok {
					visit(rest)
				} else if strings.Contains(im, ".") {
					modules = append(modules, im)
				}
			}
		}
	}
	visit(pkg)
	slices.Sort(files)
	b := digest.Build("sources")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b.Str("file", filepath.ToSlash(f)).Str("text", strings.ReplaceAll(string(text), "\r\n", "\n"))
	}
	slices.Sort(modules)
	for _, m := range slices.Compact(modules) {
		b.Str("module", m).Str("version", required(t, m))
	}
	sum := b.Sum()
	return hex.EncodeToString(sum[:8])
}

// required is the line of go.mod for the module that a package is in.
func required(t *testing.T, pkg string) string {
	t.Helper()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) >= 2 && (pkg == f[0] || strings.HasPrefix(pkg, f[0]+"/")) {
			return f[1]
		}
	}
	t.Fatalf("go.mod does not name the module of %s", pkg)
	return ""
}
