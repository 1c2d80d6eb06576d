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
	".":                                     "internal/make/build internal/cli internal/base/diag internal/processors internal/content/project processor",
	"bench":                                 "",
	"bench/atlases":                         "internal/media/packing",
	"bench/parcels":                         "internal/base/digest internal/delivery/parcel kilnrt",
	"bench/latency":                         "kilnrt/live",
	"bench/textures":                        "internal/media/codec/astc internal/media/codec/bcn internal/media/codec/block internal/media/codec/bptc internal/media/codec/etc2 internal/media/pixel",
	"cmd/kiln":                              ".",
	"examples/knights/gen":                  "",
	"examples/own-processors/draw":          "",
	"examples/own-processors/tools/kiln":    ". examples/own-processors/tools/tilemap",
	"examples/own-processors/tools/tilemap": "processor",
	"examples/own-processors/tools/tilemap/guest": "examples/own-processors/tools/tilemap processor/wasmguest",

	"kilnrt":                "blake3 compress minisign",
	"kilnrt/internal/judge": "compress internal/base/digest internal/delivery/parcel kilnrt",
	"kilnrt/live":           "blake3 kilnrt websocket",

	"processor":               "",
	"processor/pack":          "internal/media/codec/atlas processor",
	"processor/processortest": "processor doublestar",

	"processor/wasmguest":         "processor",
	"processor/wasmguest/example": "processor processor/wasmguest",

	"internal/base/digest":      "blake3",
	"internal/base/fingerprint": "internal/base/digest processor",
	"internal/base/diag":        "",
	"internal/base/disk":        "x/sys",
	"internal/base/settings":    "internal/base/diag processor",
	"internal/content/project":  "internal/media/codec/document internal/base/diag internal/base/disk internal/base/settings processor doublestar go-toml uuid",
	"internal/content/source":   "internal/base/diag internal/base/digest internal/base/disk x/sys",
	"internal/content/asset":    "internal/base/diag internal/base/digest internal/content/project internal/base/settings processor doublestar uuid x/text",
	"internal/engine":           "internal/base/digest",
	"internal/store/cas":        "internal/base/digest internal/base/disk internal/content/source x/sys",
	"internal/store/state":      "internal/base/digest internal/base/disk internal/engine internal/content/source",
	"internal/store/contentdb":  "internal/base/diag internal/base/digest internal/base/disk internal/store/used processor zombiezen-sqlite",
	"internal/store/used":       "internal/base/disk",
	"internal/make/build": "internal/content/asset internal/store/cas internal/extend/command internal/store/contentdb internal/base/diag internal/base/digest internal/base/disk internal/engine internal/base/fingerprint " +
		"internal/delivery/ids internal/media/placeholder internal/content/project internal/extend/script internal/base/settings internal/delivery/ship internal/content/source internal/store/state internal/extend/wasm processor doublestar flock uuid x/sys",
	"internal/running/session": "internal/make/build internal/base/diag internal/base/digest internal/engine internal/content/source internal/running/watch",
	"internal/running/relay":   "internal/base/disk",
	"internal/running/watch":   "internal/base/diag internal/base/disk fsnotify x/sys",
	"internal/extend/command":  "internal/base/diag internal/base/digest internal/base/disk internal/extend/seal processor doublestar x/sys",

	"internal/media/codec/astc":           "internal/media/codec/block",
	"internal/media/atlasview":            "internal/media/codec/atlas internal/media/pixel x/image",
	"internal/media/codec/atlas":          "",
	"internal/media/codec/bcn":            "internal/media/codec/block",
	"internal/media/codec/block":          "",
	"internal/media/codec/bmp":            "",
	"internal/media/codec/bmfont":         "",
	"internal/media/codec/bptc":           "internal/media/codec/block",
	"internal/media/codec/dds":            "",
	"internal/media/codec/dds/ddscheck":   "",
	"internal/media/codec/document":       "go-toml yaml",
	"internal/media/codec/etc2":           "internal/media/codec/block",
	"internal/media/codec/exr":            "",
	"internal/media/codec/gltf":           "",
	"internal/media/codec/hdr":            "",
	"internal/media/codec/hdrpack":        "",
	"internal/media/codec/ktx2":           "compress",
	"internal/media/codec/ktx2/ktx2check": "compress",
	"internal/media/codec/psd":            "",
	"internal/media/codec/qoi":            "",
	"internal/media/codec/tga":            "",
	"internal/media/codec/tiff":           "",
	"internal/media/packing":              "",
	"internal/media/pixel":                "internal/media/codec/block internal/media/codec/bmp internal/media/codec/exr internal/media/codec/hdr internal/media/codec/psd internal/media/codec/qoi internal/media/codec/tga internal/media/codec/tiff x/image",
	"internal/media/texture": "internal/media/codec/astc internal/media/codec/bcn internal/media/codec/block internal/media/codec/bptc internal/media/codec/dds internal/media/codec/etc2 " +
		"internal/media/codec/hdrpack internal/media/codec/ktx2 internal/base/diag internal/media/pixel processor",

	"internal/media/schema": "internal/media/codec/document internal/base/diag",

	"internal/processors": "internal/processors/atlas internal/processors/copy internal/processors/data internal/processors/gltf " +
		"internal/processors/texture processor",
	"internal/processors/atlas":   "internal/media/codec/atlas internal/media/codec/bmfont internal/media/codec/document internal/base/diag internal/media/packing internal/media/pixel internal/media/texture processor doublestar",
	"internal/processors/copy":    "processor",
	"internal/processors/data":    "internal/media/codec/document internal/base/diag internal/media/schema processor",
	"internal/processors/gltf":    "internal/media/codec/gltf internal/base/diag internal/media/pixel internal/media/texture processor",
	"internal/processors/texture": "internal/base/diag internal/media/pixel internal/media/texture processor",

	"internal/running/live":          "internal/base/diag internal/base/digest internal/delivery/ids internal/store/used processor websocket",
	"internal/base/thorough":         "",
	"internal/proof/drive/acts":      "processor",
	"internal/running/live/livetest": "kilnrt/live",
	"internal/running/serve":         "internal/store/cas internal/running/dashboard internal/base/diag internal/base/digest internal/delivery/ids internal/running/live internal/running/session internal/delivery/ship internal/content/source internal/store/used",
	"internal/delivery/parcel":       "compress internal/base/digest internal/base/disk kilnrt minisign x/sys",
	"internal/extend/seal":           "x/sys",
	"internal/extend/script":         "internal/media/codec/document internal/base/diag internal/base/digest internal/base/disk internal/media/pixel internal/base/settings processor processor/pack starlark",
	"internal/extend/wasm":           "internal/base/diag internal/base/digest internal/base/disk internal/extend/gocode processor wazero",
	"internal/ask/golden":            "internal/make/build internal/base/diag internal/base/disk internal/extend/gocode internal/content/project processor",
	"internal/ask/skeleton":          "internal/base/diag internal/base/disk internal/extend/gocode internal/content/project processor/wasmguest",
	"internal/ask/setup":             "internal/media/codec/document internal/base/diag internal/base/disk internal/media/pixel internal/content/project internal/media/texture",
	"internal/extend/gocode":         "internal/base/diag internal/base/digest internal/base/disk internal/content/source processor",
	"internal/extend/own":            "internal/base/diag internal/extend/gocode internal/content/project internal/base/settings processor x/sys",
	"internal/ask/doctor":            "internal/content/asset internal/make/build internal/base/diag internal/engine internal/content/project internal/extend/seal internal/content/source x/sys",
	"internal/media/header":          "internal/media/codec/atlas internal/media/codec/dds internal/media/codec/gltf internal/media/codec/ktx2",
	"internal/ask/impact":            "internal/content/asset internal/make/build internal/base/diag internal/engine internal/content/project internal/content/source processor doublestar uuid",
	"internal/delivery/codegen":      "x/text",
	"internal/delivery/ids":          "internal/content/asset internal/base/diag uuid",
	"internal/delivery/loadorder":    "internal/base/diag internal/base/digest doublestar",
	"internal/delivery/manifest":     "internal/base/digest uuid",
	"internal/media/placeholder":     "",
	"internal/delivery/release":      "internal/content/asset internal/base/diag internal/base/disk kilnrt uuid",
	"internal/delivery/ship":         "internal/delivery/codegen internal/base/diag internal/base/digest internal/base/disk internal/delivery/ids internal/delivery/loadorder internal/delivery/manifest internal/delivery/parcel internal/content/project internal/delivery/release kilnrt processor uuid",

	"internal/media/preview":     "internal/media/codec/atlas internal/media/codec/document internal/media/pixel internal/media/texture",
	"internal/running/dashboard": "internal/make/build internal/store/cas internal/media/codec/atlas internal/store/contentdb internal/base/diag internal/base/digest internal/base/disk internal/delivery/parcel internal/media/pixel internal/media/preview internal/delivery/release internal/media/treemap",

	"internal/ask/move":      "internal/make/build internal/base/disk internal/content/project internal/base/settings",
	"internal/media/treemap": "",
	"internal/cli":           "internal/content/asset internal/media/atlasview internal/make/build internal/media/codec/atlas internal/store/contentdb internal/running/dashboard internal/base/diag internal/base/digest internal/base/disk internal/ask/doctor internal/engine internal/base/fingerprint internal/ask/golden internal/media/header internal/delivery/ids internal/ask/impact internal/running/live internal/delivery/loadorder internal/ask/move internal/extend/own internal/delivery/parcel internal/media/pixel internal/content/project internal/running/relay internal/delivery/release internal/running/serve internal/running/session internal/base/settings internal/ask/setup internal/delivery/ship internal/ask/skeleton internal/content/source internal/media/texture internal/media/treemap internal/store/used kilnrt processor cobra pflag uuid x/sys x/term x/text",
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

// wings are the folders below internal, from the ground up. A room, which is a package in one of them, imports rooms of its own wing and of
// those on the floors below.
var wings = [][]string{
	{"base"},
	{"engine", "media"},
	{"content"},
	{"store", "extend", "processors", "delivery"},
	{"make"},
	{"ask", "running"},
	{"cli"},
	{"proof"},
}

// TestWings holds imports to one direction: down.
func TestWings(t *testing.T) {
	floor := map[string]int{}
	for i, names := range wings {
		for _, name := range names {
			floor[name] = i
		}
	}
	wing := func(pkg string) string {
		rest, ok := strings.CutPrefix(pkg, "internal/")
		if !ok {
			return ""
		}
		name, _, _ := strings.Cut(rest, "/")
		return name
	}
	for pkg, found := range importsOf(t, "..") {
		from := wing(pkg)
		if _, ok := floor[from]; from != "" && !ok {
			t.Errorf("package %s is in no wing", pkg)
		}
		for im := range found {
			if to := wing(im); from != "" && to != "" && to != from && floor[to] >= floor[from] {
				t.Errorf("%s imports %s, which is not on a floor below", pkg, im)
			}
		}
	}
}

// TestOneWay says in rules what the list says in detail: what must never be.
func TestOneWay(t *testing.T) {
	for pkg, found := range importsOf(t, "..") {
		for im := range found {
			if strings.HasPrefix(pkg, "internal/processors/") && (strings.HasPrefix(im, "internal/processors") || im == "internal/make/build") {
				t.Errorf("%s imports %s: a processor knows no sibling and no builder", pkg, im)
			}
			if strings.HasPrefix(pkg, "internal/media/codec/") && strings.HasPrefix(im, "internal/") && im != "internal/media/codec/block" {
				t.Errorf("%s imports %s: a codec is bytes to struct and back", pkg, im)
			}
			if pkg == "processor" || pkg == "internal/base/digest" && strings.HasPrefix(im, "internal/") {
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
