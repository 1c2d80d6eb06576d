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

// allowed lists, for every package, exactly the packages of Kiln and the modules that it imports outside its
// tests, those below internal without that; the standard library is free to all. A new line, or a new word in
// one, is a decision (a word that ends in /* is all rooms of a folder): ARCHITECTURE.md says what each room
// is for, RATIONALE.md why a module is taken.
var allowed = map[string]string{
	".": "base/diag base/secret content/project engine processors make/build make/explain make/report make/workspace running/session " +
		"store/contentdb cli processor",
	"bench":                                 "",
	"bench/atlases":                         "media/packing",
	"bench/sound":                           "kilnrt/sound media/codec/wav media/sound media/soundfile",
	"bench/parcels":                         "base/digest delivery/parcel kilnrt",
	"bench/latency":                         "kilnrt/live",
	"bench/farm":                            "",
	"bench/cache":                           "bytestream grpc store/share/reapi/reapitest",
	"bench/textures":                        "media/codec/astc media/codec/bcn media/codec/block media/codec/bptc media/codec/etc2 media/pixel",
	"cmd/kiln":                              ".",
	"examples/knights/gen":                  "",
	"examples/own-processors/draw":          "",
	"examples/own-processors/tools/kiln":    ". examples/own-processors/tools/tilemap",
	"examples/own-processors/tools/tilemap": "processor",
	"examples/own-processors/tools/tilemap/guest": "examples/own-processors/tools/tilemap processor/wasmguest",
	"kilnrt":                      "blake3 compress minisign",
	"kilnrt/internal/judge":       "base/digest delivery/parcel kilnrt compress",
	"kilnrt/live":                 "kilnrt blake3 websocket",
	"kilnrt/sound":                "",
	"processor":                   "",
	"processor/pack":              "media/codec/atlas processor",
	"processor/processortest":     "processor base/diag base/settings doublestar uuid",
	"processor/wasmguest":         "processor",
	"processor/wasmguest/example": "processor processor/wasmguest",

	"base/diag":        "x/text",
	"base/digest":      "blake3",
	"base/disk":        "x/sys",
	"base/fingerprint": "base/digest processor",
	"base/local":       "base/digest",
	"base/memory":      "x/sys",
	"base/secret":      "x/sys",
	"base/settings":    "base/diag processor",
	"base/thorough":    "x/sys",
	"base/varint":      "base/digest",

	"engine": "base/digest",

	"media/atlasview":            "media/codec/atlas media/pixel x/image",
	"media/codec/adpcm":          "",
	"media/codec/apng":           "media/codec/input",
	"media/codec/astc":           "media/codec/block x/sys",
	"media/codec/atlas":          "",
	"media/codec/bcn":            "media/codec/block x/sys",
	"media/codec/block":          "",
	"media/codec/bmfont":         "",
	"media/codec/bmp":            "media/codec/input",
	"media/codec/bptc":           "media/codec/block media/codec/input x/sys",
	"media/codec/dds":            "",
	"media/codec/dds/ddscheck":   "",
	"media/codec/document":       "media/codec/input go-toml yaml",
	"media/codec/etc2":           "media/codec/block x/sys",
	"media/codec/lanestest":      "",
	"media/codec/exr":            "media/codec/input",
	"media/codec/flac":           "",
	"media/codec/mp3":            "",
	"media/codec/ogg":            "",
	"media/codec/gltf":           "media/codec/document",
	"media/codec/gif":            "media/codec/input",
	"media/codec/hdr":            "media/codec/input",
	"media/codec/hdrpack":        "",
	"media/codec/input":          "",
	"media/codec/jpeg":           "media/codec/input",
	"media/codec/ktx2":           "compress",
	"media/codec/ktx2/ktx2check": "compress",
	"media/codec/png":            "compress x/sys",
	"media/codec/psd":            "media/codec/input",
	"media/codec/qoi":            "media/codec/input",
	"media/codec/tga":            "media/codec/input",
	"media/codec/tracker":        "",
	"media/codec/tiff":           "media/codec/input",
	"media/codec/webp":           "media/codec/input x/image",
	"media/codec/qoa":            "x/sys",
	"media/codec/wav":            "media/codec/adpcm x/sys",
	"media/header": "media/codec/atlas media/codec/dds media/codec/gltf media/codec/ktx2 media/codec/tracker media/soundfile " +
		"media/codec/document media/pixel x/image",
	"media/packing": "",
	"media/pixel": "media/codec/block media/codec/bmp media/codec/exr media/codec/gif media/codec/hdr media/codec/input media/codec/jpeg " +
		"media/codec/png media/codec/psd media/codec/qoi media/codec/tga media/codec/tiff media/codec/webp x/sys media/codec/apng",
	"media/placeholder": "media/codec/dds media/codec/ktx2",
	"media/preview":     "media/codec/atlas media/codec/document media/codec/wav media/pixel media/sound media/soundfile media/texture",
	"media/role":        "media/codec/gltf media/pixel processor",
	"media/schema":      "base/diag media/codec/document uuid",
	"media/sound":       "x/sys",
	"media/soundfile": "media/codec/flac media/codec/input media/codec/mp3 " +
		"media/codec/ogg media/codec/qoa media/codec/wav media/sound opus vorbis",
	"media/texture": "base/diag media/codec/astc media/codec/bcn media/codec/block media/codec/bptc media/codec/dds media/codec/etc2 " +
		"media/codec/hdrpack media/codec/ktx2 media/codec/png media/pixel media/role processor",
	"media/treemap": "base/diag",
	"media/whole":   "",

	"content/asset":   "base/diag base/digest base/settings content/project processor x/text doublestar uuid",
	"content/project": "base/diag base/disk base/settings media/codec/document processor doublestar uuid",
	"content/mention": "",
	"content/source":  "base/diag base/digest base/disk x/sys",

	"store/cas":         "base/digest base/disk content/source x/sys",
	"store/cas/castest": "base/digest store/cas",
	"store/contentdb":   "base/diag base/digest base/disk store/used processor zombiezen-sqlite",
	"store/state":       "base/digest base/disk engine content/source base/varint",
	"store/used":        "base/disk",

	"extend/command":              "base/diag base/digest base/disk extend/seal processor x/sys",
	"store/share":                 "base/digest engine base/varint",
	"store/share/folder":          "base/disk store/share x/sys",
	"store/share/reapi":           "store/share bytestream compress grpc longrunning protobuf remote-apis uuid",
	"store/share/reapi/reapitest": "bytestream compress genproto-rpc grpc longrunning protobuf remote-apis",
	"store/share/sharetest":       "base/digest store/share",

	"extend/gocode": "base/diag base/digest base/disk base/secret content/source processor",
	"extend/own":    "base/diag base/local base/settings content/project extend/gocode processor x/sys",
	"extend/script": "base/diag base/digest base/disk base/settings media/codec/document media/pixel processor processor/pack " +
		"starlark",
	"extend/seal": "x/sys",
	"extend/wasm": "base/diag base/digest base/disk extend/gocode processor wazero",

	"processors": "media/* media/codec/* processors/* processor", // the list of kinds
	"processors/atlas": "base/diag media/codec/atlas media/codec/bmfont media/codec/document media/codec/png media/packing media/pixel " +
		"media/texture processor doublestar",
	"processors/copy":    "processor",
	"processors/data":    "base/diag media/codec/document media/schema processor",
	"processors/gltf":    "base/diag media/codec/gltf media/pixel media/role media/texture processor",
	"processors/sound":   "base/diag media/codec/tracker media/codec/wav media/placeholder media/sound media/soundfile processor",
	"processors/sprite":  "media/codec/atlas processor",
	"processors/texture": "base/diag media/pixel media/role media/texture processor",

	"delivery/codegen":   "x/text",
	"delivery/ids":       "base/diag content/asset uuid",
	"delivery/loadorder": "base/diag base/digest processor doublestar",
	"delivery/manifest":  "base/digest uuid",
	"delivery/parcel":    "base/digest base/disk kilnrt x/sys compress minisign",
	"delivery/release":   "base/diag base/disk content/asset kilnrt uuid",
	"delivery/ship": "base/diag base/digest base/disk content/project content/source delivery/codegen delivery/ids delivery/loadorder " +
		"delivery/manifest delivery/parcel delivery/release kilnrt processor uuid",

	"make/task":    "base/digest",
	"make/written": "base/digest base/varint processor",
	"make/worker":  "base/disk base/settings extend/command make/job make/workspace make/written processor",
	"make/farm": "base/diag base/digest base/settings content/project engine make/job make/task make/written processor store/share " +
		"store/share/reapi",
	"make/explain": "base/digest engine make/job make/task content/asset content/project delivery/ids",
	"make/job": "base/diag base/digest base/disk base/fingerprint base/settings engine content/asset content/project content/source store/cas " +
		"store/state extend/command make/task processor doublestar uuid processors",
	"make/sharing": "base/diag base/digest base/disk engine content/project make/job make/task store/cas store/share store/share/folder " +
		"store/share/reapi minisign",
	"make/build": "base/diag base/digest base/disk engine content/asset content/source store/cas store/contentdb store/state " +
		"delivery/ship make/job make/workspace make/mirror make/notices make/outputs make/parcels make/plan make/report " +
		"make/results make/sharing make/upkeep make/view make/control make/previous make/farm make/references",
	"make/workspace": "base/diag base/digest base/disk base/fingerprint base/local base/memory content/asset content/project content/source " +
		"delivery/ids delivery/ship doublestar extend/command extend/gocode extend/own extend/script extend/wasm flock make/job processor " +
		"store/cas store/contentdb store/state make/sharing make/farm make/written processors",
	"make/mirror": "base/diag base/digest base/settings content/asset content/source delivery/ship engine make/explain make/job " +
		"make/notices make/parcels make/plan make/references make/results make/task store/contentdb store/state",
	"make/view": "base/diag base/digest content/asset content/source engine make/job make/results make/task store/state",
	"make/upkeep": "base/diag base/digest base/disk base/settings content/project content/source delivery/ship engine make/outputs make/parcels make/plan " +
		"make/results make/task make/view make/workspace store/cas store/contentdb store/state content/asset " +
		"content/mention make/notices",
	"make/results": "base/diag base/digest content/asset content/project content/source engine make/job make/task make/workspace processor " +
		"store/contentdb store/state uuid",
	"make/outputs": "base/diag base/digest base/disk content/asset content/project content/source delivery/ship engine make/job " +
		"make/results make/workspace store/cas store/state",
	"make/notices": "base/diag content/asset content/source delivery/ship make/workspace store/state processors make/references",
	"make/references": "base/diag base/digest base/disk content/asset content/mention engine make/job make/outputs make/plan make/results make/task " +
		"processor uuid",
	"make/parcels": "base/diag base/digest content/asset content/project content/source delivery/ids delivery/ship engine make/job make/notices make/outputs " +
		"make/plan make/references make/results make/workspace processor store/state uuid",
	"make/report": "base/diag base/digest delivery/ship make/references content/asset content/source processors engine make/job make/outputs make/plan make/results make/task " +
		"store/state make/notices",
	"make/plan": "base/diag content/asset content/project content/source delivery/ship engine make/job make/results " +
		"make/task make/workspace processor store/state processors",
	"make/control": "content/asset engine make/job make/report make/results make/task processor content/source",
	"make/previous": "base/diag base/digest content/source engine extend/command make/job make/outputs make/plan make/results make/workspace " +
		"store/state",

	"ask/codes":   "base/diag",
	"ask/formats": "base/diag ask/codes",
	"ask/manual":  "base/disk cobra pflag",
	"ask/doctor": "base/diag base/digest base/secret base/settings engine content/asset content/project content/source delivery/ship " +
		"extend/seal make/build make/explain make/job x/sys make/upkeep make/view media/whole processors",
	"ask/golden": "base/diag base/disk content/project extend/gocode make/build processor make/workspace",
	"ask/impact": "base/diag engine content/asset content/project content/source make/build make/explain make/job make/task " +
		"processor doublestar uuid make/view",
	"ask/move": "base/disk base/settings engine content/asset content/mention content/project make/build make/job make/task make/view " +
		"make/workspace",
	"ask/setup":    "base/diag base/disk content/project content/source processor media/pixel media/preview media/role media/soundfile processors",
	"ask/skeleton": "base/diag base/disk content/project extend/gocode processor/wasmguest",

	"running/dashboard": "base/diag base/digest engine media/codec/atlas media/pixel media/preview media/treemap store/cas store/contentdb " +
		"delivery/parcel delivery/release make/build make/view processors",
	"running/game":          "base/diag base/secret content/project",
	"running/live":          "base/diag base/digest store/used delivery/ids processor websocket",
	"running/live/livetest": "kilnrt/live",
	"running/relay":         "base/disk",
	"running/serve": "base/diag base/digest make/control content/source store/cas store/used delivery/ids delivery/ship running/dashboard " +
		"running/live running/session",
	"running/session": "base/diag base/digest base/disk engine content/source make/build running/watch make/workspace make/report " +
		"make/results make/view make/control",
	"running/watch": "base/diag base/disk x/sys fsnotify",

	"cli": "base/diag base/digest base/disk base/fingerprint base/secret base/settings engine media/atlasview media/codec/atlas " +
		"media/pixel media/texture media/treemap content/asset content/project content/source store/contentdb store/used " +
		"extend/own delivery/ids delivery/loadorder delivery/parcel delivery/release delivery/ship make/build " +
		"make/explain make/job make/task ask/doctor ask/golden ask/impact ask/move ask/setup ask/skeleton " +
		"running/dashboard running/game running/live running/relay running/serve running/session kilnrt processor x/sys x/term x/text " +
		"cobra pflag uuid make/control make/workspace make/report make/results make/upkeep make/view ask/codes ask/formats ask/manual " +
		"make/sharing processors make/farm make/worker make/written",

	"proof/drive/acts": "processor",

	"testbed": "store/share/reapi/reapitest",
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
	"longrunning":      "cloud.google.com/go/longrunning",
	"protobuf":         "google.golang.org/protobuf",
	"minisign":         "aead.dev/minisign",
	"opus":             "github.com/pion/opus",
	"bytestream":       "google.golang.org/genproto/googleapis/bytestream",
	"genproto-rpc":     "google.golang.org/genproto/googleapis/rpc",
	"grpc":             "google.golang.org/grpc",
	"remote-apis":      "github.com/bazelbuild/remote-apis",
	"pflag":            "github.com/spf13/pflag",
	"starlark":         "go.starlark.net",
	"uuid":             "github.com/google/uuid",
	"vorbis":           "github.com/jfreymuth/vorbis",
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
	imports := map[string]map[string]bool{}
	for pkg, found := range importsOf(t, "..") {
		imports[inHouse(pkg)] = map[string]bool{}
		for im := range found {
			imports[inHouse(pkg)][inHouse(im)] = true
		}
	}
	for pkg, found := range imports {
		want, ok := allowed[pkg]
		if !ok {
			t.Errorf("package %s is not in the list: give it a line, and a room in ARCHITECTURE.md", pkg)
			continue
		}
		may := strings.Fields(want)
		for _, im := range slices.Sorted(maps.Keys(found)) {
			if !slices.Contains(may, im) && !slices.Contains(may, path.Dir(im)+"/*") {
				t.Errorf("package %s imports %s, which its line does not allow", pkg, im)
			}
		}
		for _, im := range may {
			if folder, all := strings.CutSuffix(im, "/*"); all {
				found[im] = slices.ContainsFunc(slices.Collect(maps.Keys(found)), func(pkg string) bool { return path.Dir(pkg) == folder })
			}
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

// inHouse is a package as the list names it.
func inHouse(pkg string) string { return strings.TrimPrefix(pkg, "internal/") }

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
			part := slices.Contains([]string{"block", "input", "adpcm", "document"}, strings.TrimPrefix(im, "internal/media/codec/")) // of other codecs
			if strings.HasPrefix(pkg, "internal/media/codec/") && strings.HasPrefix(im, "internal/") && !part {
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
				if s, ok := lit.Type.(*ast.SelectorExpr); ok && fmt.Sprint(s.X, ".", s.Sel) == "workspace.Config" {
					found = append(found, rel)
				}
			}
			return true
		})
	})
	if want := []string{"internal/cli/cli.go"}; !slices.Equal(found, want) {
		t.Errorf("a workspace.Config is written in %v, and is to be in %v alone: cli.Config's Project makes one", found, want)
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
