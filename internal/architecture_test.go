// Package internal_test holds the house to its plan: who may import whom.
package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/kiln-pipeline/kiln"

// allowed lists, for every package, exactly the packages of Kiln and the modules that it imports outside
// its tests; the standard library is free to all. A new line, or a new word in one, is a
// decision: ARCHITECTURE.md says what each room is for, RATIONALE.md why a module is taken.
var allowed = map[string]string{
	".":                                     "internal/build internal/cli internal/diag internal/processors internal/project processor",
	"bench":                                 "",
	"bench/atlases":                         "internal/packing",
	"bench/parcels":                         "internal/digest internal/parcel kilnrt",
	"bench/latency":                         "kilnrt/live",
	"bench/textures":                        "internal/codec/astc internal/codec/bcn internal/codec/block internal/codec/bptc internal/codec/etc2 internal/pixel",
	"cmd/kiln":                              ".",
	"examples/knights/gen":                  "",
	"examples/own-processors/draw":          "",
	"examples/own-processors/tools/kiln":    ". examples/own-processors/tools/tilemap",
	"examples/own-processors/tools/tilemap": "processor",
	"examples/own-processors/tools/tilemap/guest": "examples/own-processors/tools/tilemap processor/wasmguest",

	"kilnrt":                "blake3 compress minisign",
	"kilnrt/internal/judge": "compress internal/digest internal/parcel kilnrt",
	"kilnrt/live":           "blake3 kilnrt websocket",

	"processor":               "",
	"processor/pack":          "internal/codec/atlas processor",
	"processor/processortest": "processor doublestar",

	"processor/wasmguest":         "processor",
	"processor/wasmguest/example": "processor processor/wasmguest",

	"internal/digest":      "blake3",
	"internal/fingerprint": "internal/digest processor",
	"internal/diag":        "",
	"internal/disk":        "x/sys",
	"internal/settings":    "internal/diag processor",
	"internal/project":     "internal/codec/document internal/diag internal/disk internal/settings processor doublestar go-toml uuid",
	"internal/source":      "internal/diag internal/digest internal/disk x/sys",
	"internal/asset":       "internal/diag internal/digest internal/project internal/settings processor doublestar uuid x/text",
	"internal/engine":      "internal/digest",
	"internal/cas":         "internal/digest internal/disk internal/source x/sys",
	"internal/state":       "internal/digest internal/disk internal/engine internal/source",
	"internal/contentdb":   "internal/diag internal/digest internal/disk internal/used processor zombiezen-sqlite",
	"internal/used":        "",
	"internal/build": "internal/asset internal/cas internal/command internal/contentdb internal/diag internal/digest internal/disk internal/engine internal/fingerprint " +
		"internal/ids internal/placeholder internal/project internal/script internal/settings internal/ship internal/source internal/state internal/wasm processor doublestar flock uuid x/sys",
	"internal/session": "internal/build internal/diag internal/digest internal/engine internal/source internal/watch",
	"internal/relay":   "",
	"internal/watch":   "internal/diag internal/disk fsnotify x/sys",
	"internal/command": "internal/diag internal/digest internal/disk internal/seal processor doublestar x/sys",

	"internal/codec/astc":           "internal/codec/block",
	"internal/atlasview":            "internal/codec/atlas internal/pixel x/image",
	"internal/codec/atlas":          "",
	"internal/codec/bcn":            "internal/codec/block",
	"internal/codec/block":          "",
	"internal/codec/bmp":            "",
	"internal/codec/bmfont":         "",
	"internal/codec/bptc":           "internal/codec/block",
	"internal/codec/dds":            "",
	"internal/codec/dds/ddscheck":   "",
	"internal/codec/document":       "go-toml yaml",
	"internal/codec/etc2":           "internal/codec/block",
	"internal/codec/exr":            "",
	"internal/codec/gltf":           "",
	"internal/codec/hdr":            "",
	"internal/codec/hdrpack":        "",
	"internal/codec/ktx2":           "compress",
	"internal/codec/ktx2/ktx2check": "compress",
	"internal/codec/psd":            "",
	"internal/codec/qoi":            "",
	"internal/codec/tga":            "",
	"internal/codec/tiff":           "",
	"internal/packing":              "",
	"internal/pixel":                "internal/codec/block internal/codec/bmp internal/codec/exr internal/codec/hdr internal/codec/psd internal/codec/qoi internal/codec/tga internal/codec/tiff x/image",
	"internal/texture": "internal/codec/astc internal/codec/bcn internal/codec/block internal/codec/bptc internal/codec/dds internal/codec/etc2 " +
		"internal/codec/hdrpack internal/codec/ktx2 internal/diag internal/pixel processor",

	"internal/schema": "internal/codec/document internal/diag",

	"internal/processors": "internal/processors/atlas internal/processors/copy internal/processors/data internal/processors/gltf " +
		"internal/processors/texture processor",
	"internal/processors/atlas":   "internal/codec/atlas internal/codec/bmfont internal/codec/document internal/diag internal/packing internal/pixel internal/texture processor doublestar",
	"internal/processors/copy":    "processor",
	"internal/processors/data":    "internal/codec/document internal/diag internal/schema processor",
	"internal/processors/gltf":    "internal/codec/gltf internal/diag internal/pixel internal/texture processor",
	"internal/processors/texture": "internal/diag internal/pixel internal/texture processor",

	"internal/live":          "internal/diag internal/digest internal/ids internal/used processor websocket",
	"internal/thorough":      "",
	"internal/drive/acts":    "processor",
	"internal/live/livetest": "kilnrt/live",
	"internal/serve":         "internal/cas internal/dashboard internal/diag internal/digest internal/ids internal/live internal/session internal/ship internal/source internal/used",
	"internal/parcel":        "compress internal/digest internal/disk kilnrt minisign x/sys",
	"internal/seal":          "x/sys",
	"internal/script":        "internal/codec/document internal/diag internal/digest internal/disk internal/pixel internal/settings processor processor/pack starlark",
	"internal/wasm":          "internal/diag internal/digest internal/disk internal/gocode processor wazero",
	"internal/golden":        "internal/build internal/diag internal/disk internal/gocode internal/project processor",
	"internal/skeleton":      "internal/diag internal/disk internal/gocode internal/project processor/wasmguest",
	"internal/setup":         "internal/codec/document internal/diag internal/disk internal/pixel internal/project internal/texture",
	"internal/gocode":        "internal/diag internal/digest internal/disk internal/source processor",
	"internal/own":           "internal/diag internal/gocode internal/project internal/settings processor x/sys",
	"internal/doctor":        "internal/asset internal/build internal/diag internal/engine internal/project internal/seal internal/source x/sys",
	"internal/header":        "internal/codec/atlas internal/codec/dds internal/codec/gltf internal/codec/ktx2",
	"internal/impact":        "internal/asset internal/build internal/diag internal/engine internal/project internal/source processor doublestar uuid",
	"internal/codegen":       "x/text",
	"internal/ids":           "internal/asset internal/diag uuid",
	"internal/loadorder":     "internal/diag internal/digest doublestar",
	"internal/manifest":      "internal/digest uuid",
	"internal/placeholder":   "",
	"internal/release":       "internal/asset internal/diag internal/disk kilnrt uuid",
	"internal/ship":          "internal/codegen internal/diag internal/digest internal/disk internal/ids internal/loadorder internal/manifest internal/parcel internal/project internal/release kilnrt processor uuid",

	"internal/preview":   "internal/codec/atlas internal/codec/document internal/pixel internal/texture",
	"internal/dashboard": "internal/build internal/cas internal/codec/atlas internal/contentdb internal/diag internal/digest internal/disk internal/parcel internal/pixel internal/preview internal/release internal/treemap",

	"internal/move":    "internal/build internal/disk internal/project internal/settings",
	"internal/treemap": "",
	"internal/cli":     "internal/asset internal/atlasview internal/build internal/codec/atlas internal/contentdb internal/dashboard internal/diag internal/digest internal/disk internal/doctor internal/engine internal/fingerprint internal/golden internal/header internal/ids internal/impact internal/live internal/loadorder internal/move internal/own internal/parcel internal/pixel internal/project internal/relay internal/release internal/serve internal/session internal/settings internal/setup internal/ship internal/skeleton internal/source internal/texture internal/treemap internal/used kilnrt processor cobra pflag uuid x/sys x/term x/text",
}

// modules are the short names of modules in allowed.
var modules = map[string]string{
	"blake3":           "github.com/zeebo/blake3",
	"cobra":            "github.com/spf13/cobra",
	"compress":         "github.com/klauspost/compress",
	"doublestar":       "github.com/bmatcuk/doublestar/v4",
	"fsnotify":         "github.com/fsnotify/fsnotify",
	"flock":            "github.com/gofrs/flock",
	"go-toml":          "github.com/pelletier/go-toml/v2",
	"minisign":         "aead.dev/minisign",
	"pflag":            "github.com/spf13/pflag",
	"starlark":         "go.starlark.net",
	"uuid":             "github.com/google/uuid",
	"wazero":           "github.com/tetratelabs/wazero",
	"websocket":        "github.com/coder/websocket",
	"x/image":          "golang.org/x/image",
	"x/sys":            "golang.org/x/sys",
	"x/term":           "golang.org/x/term",
	"x/text":           "golang.org/x/text",
	"yaml":             "go.yaml.in/yaml/v3",
	"zombiezen-sqlite": "zombiezen.com/go/sqlite",
}

func TestImports(t *testing.T) {
	imports := importsOf(t, "..")
	for pkg, found := range imports {
		want, ok := allowed[pkg]
		if !ok {
			t.Errorf("package %s is not in the list: give it a line, and a room in ARCHITECTURE.md", pkg)
			continue
		}
		may := strings.Fields(want)
		for _, im := range slices.Sorted(maps.Keys(found)) {
			if !slices.Contains(may, im) {
				t.Errorf("package %s imports %s, which its line does not allow", pkg, im)
			}
		}
		for _, im := range may {
			if !found[im] {
				t.Errorf("the line of package %s allows %s, which it does not import: take it out", pkg, im)
			}
		}
	}
	for pkg := range allowed {
		if imports[pkg] == nil {
			t.Errorf("package %s is in the list and not in the tree", pkg)
		}
	}
}

// TestOneWay says in rules what the list says in detail: what must never be.
func TestOneWay(t *testing.T) {
	for pkg, found := range importsOf(t, "..") {
		for im := range found {
			if strings.HasPrefix(pkg, "internal/processors/") && (strings.HasPrefix(im, "internal/processors") || im == "internal/build") {
				t.Errorf("%s imports %s: a processor knows no sibling and no builder", pkg, im)
			}
			if strings.HasPrefix(pkg, "internal/codec/") && strings.HasPrefix(im, "internal/") && im != "internal/codec/block" {
				t.Errorf("%s imports %s: a codec is bytes to struct and back", pkg, im)
			}
			if pkg == "processor" || pkg == "internal/digest" && strings.HasPrefix(im, "internal/") {
				t.Errorf("%s imports %s", pkg, im)
			}
		}
	}
}

// TestOneConfig holds what a project is built with to one place: whoever writes it anew leaves something out, as the processors of a team's
// own kiln.
func TestOneConfig(t *testing.T) {
	var found []string
	eachFile(t, "..", 0, func(rel string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok {
				if s, ok := lit.Type.(*ast.SelectorExpr); ok && fmt.Sprint(s.X, ".", s.Sel) == "build.Config" {
					found = append(found, rel)
				}
			}
			return true
		})
	})
	if want := []string{"internal/cli/cli.go"}; !slices.Equal(found, want) {
		t.Errorf("a build.Config is written in %v, and is to be in %v alone: cli.Config's Project makes one", found, want)
	}
}

// importsOf finds, for each package below root, the packages of Kiln (by folder) and modules (by short name) that
// it imports on any system, tests left out.
func importsOf(t *testing.T, root string) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	eachFile(t, root, parser.ImportsOnly, func(rel string, f *ast.File) {
		pkg := path.Dir(rel)
		if all[pkg] == nil {
			all[pkg] = map[string]bool{}
		}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if im := short(name); im != "" {
				all[pkg][im] = true
			}
		}
	})
	return all
}

// eachFile parses each Go file below root, tests and other modules left out.
func eachFile(t *testing.T, root string, mode parser.Mode, do func(rel string, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, file)
		rel = filepath.ToSlash(rel)
		if e.IsDir() && rel != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || nested(file)) {
			return fs.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, mode)
		if err == nil {
			do(rel, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// nested tells whether a folder is a module of its own.
func nested(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
	return len(found) > 0
}

func short(im string) string {
	if im == module {
		return "."
	}
	if rest, ok := strings.CutPrefix(im, module+"/"); ok {
		return rest
	}
	for name, mod := range modules {
		if im == mod || strings.HasPrefix(im, mod+"/") {
			return name
		}
	}
	if first, _, _ := strings.Cut(im, "/"); strings.Contains(first, ".") {
		return im // a module without a short name: never allowed
	}
	return ""
}
