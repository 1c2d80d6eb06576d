package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kiln-pipeline/kiln/processor"
)

// guestMain makes a module of steps_test.go.
const guestMain = `// Command conf is the processor of this package's tests in WebAssembly. %s
package main

import (
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/wasmguest"
)

type code struct{ Mark, Comment string }

var _ = wasmguest.Serve(guest{conf{code{Mark: %q}}})

func main() {}

type guest struct{ conf }

func (g guest) Info() processor.Info {
	in := g.conf.Info()
	in.Summary = %q
	return in
}
`

// guestFiles returns the sources of the module, relative to tools.
func guestFiles(t testing.TB, c code) map[string]string {
	t.Helper()
	return guestOf(t, "steps_test.go", fmt.Sprintf(guestMain, c.Comment, c.Mark, "conf "+c.Comment))
}

// guestOf returns the sources of a module made of a file of this package and a main.go.
func guestOf(t testing.TB, source, main string) map[string]string {
	t.Helper()
	steps, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	const kiln = "github.com/kiln-pipeline/kiln"
	return map[string]string{
		"tools/go.mod":        "module conformance\n\ngo 1.26.0\n\nrequire " + kiln + " v0.0.0\n\nreplace " + kiln + " => " + repository + "\n",
		"tools/conf/main.go":  main,
		"tools/conf/steps.go": strings.Replace(string(steps), "package conformance", "package main", 1),
	}
}

func needGo(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go tool to compile a module with")
	}
}

const wasmLimits = patience + "memory = \"64MiB\"\n"

// goGuestKind is a Go package that Kiln compiles to a module.
var goGuestKind = kind{
	name: "wasm of go",
	install: func(t testing.TB, c code) (map[string]string, string, []processor.Processor) {
		needGo(t)
		return guestFiles(t, c), "[[processors]]\nname = \"conf\"\nwasm = { go = \"tools/conf\" }\n" + wasmLimits, nil
	},
}

// moduleKind is a module in the project.
var moduleKind = kind{
	name: "wasm",
	install: func(t testing.TB, c code) (map[string]string, string, []processor.Processor) {
		needGo(t)
		return map[string]string{"tools/conf.wasm": module(t, c)}, "[[processors]]\nname = \"conf\"\nwasm = \"tools/conf.wasm\"\n" + wasmLimits, nil
	},
}

var modules sync.Map // modules by code

// module compiles the guest.
func module(t testing.TB, c code) string {
	t.Helper()
	if m, ok := modules.Load(c); ok {
		return m.(string)
	}
	dir := t.TempDir()
	for name, text := range guestFiles(t, c) {
		writeFile(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-w", "-o", "conf.wasm", "./conf")
	cmd.Dir = filepath.Join(dir, "tools")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	m, err := os.ReadFile(filepath.Join(cmd.Dir, "conf.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	modules.Store(c, string(m))
	return string(m)
}

// shareModules makes all projects of a run share their compiled modules. Otherwise each would take a second to compile
// its own.
func shareModules(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, ".kiln"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KILN_OUTSIDE", compiledModules)
	os.Symlink(compiledModules, filepath.Join(dir, ".kiln", "wasm")) // without links it only takes longer
}

// compiledModules is a folder made by TestMain.
var compiledModules string
