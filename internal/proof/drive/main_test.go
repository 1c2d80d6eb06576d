//go:build linux

// Package drive tests the real command from outside, as a team uses it: files are edited, renamed, linked and removed
// at random, outputs and state are damaged, and watchers are killed. From time to time a build is compared with a clean
// build of a copy in another folder.
package drive

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kiln-pipeline/kiln"
	"github.com/kiln-pipeline/kiln/internal/proof/drive/acts"
)

// TestMain makes the test binary a team's own kiln, and the tool that its commands run.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kiln": func() { kiln.Main(kiln.With(acts.Actor{Name: "team", Extension: ".team"})) },
		"tool": tool,
	})
}

// guest is package acts as a WebAssembly module, or nil if Go is not installed.
var guest []byte

var makeGuest = sync.OnceFunc(func() {
	dir, err := os.MkdirTemp("", "kiln-drive")
	if err != nil {
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-o", file, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if cmd.Run() == nil {
		guest, _ = os.ReadFile(file)
	}
})

// tool is the program that commands run:
//
//	tool join OUT IN   writes all files of the folder s of its view and IN, one after the other
//	tool act OUT IN    executes the lines of IN: read PATH, stat PATH, list FOLDER, text TEXT, fail TEXT
func tool() {
	out, in := os.Args[2], os.Args[3]
	var saw strings.Builder
	text, err := os.ReadFile(in)
	exitOn(err)
	if os.Args[1] == "join" {
		saw.Write(text)
		for _, f := range files("s") {
			b, err := os.ReadFile(f)
			exitOn(err)
			fmt.Fprintf(&saw, "%s: %s", f, b)
		}
		exitOn(os.WriteFile(out, []byte(saw.String()), 0o666))
		return
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		verb, arg, _ := strings.Cut(line, " ")
		switch verb {
		case "read", "twice":
			b, err := os.ReadFile(arg)
			fmt.Fprintf(&saw, "%s %s %v\n", arg, b, plain(err))
		case "exists", "stat":
			info, err := os.Stat(arg)
			fmt.Fprintln(&saw, arg, err == nil && info.IsDir(), plain(err))
		case "list":
			entries, err := os.ReadDir(arg)
			fmt.Fprintln(&saw, arg, plain(err))
			for _, e := range entries {
				fmt.Fprintln(&saw, e.Name())
			}
		case "fail":
			fmt.Fprintln(os.Stderr, arg)
			os.Exit(1)
		default:
			fmt.Fprintln(&saw, line)
		}
	}
	exitOn(os.WriteFile(out, []byte(saw.String()), 0o666))
}

// plain returns the text of an error without its path.
func plain(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return fmt.Sprint(err)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
