package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// TestFirstProcessor does what docs/first-processor.md says: each of its ways in a project of its own. A fenced block is
//
//   - console: commands, each with lines that it must print; `...` ends a line that goes on, or stands for lines
//   - diff: an edit of the file that is named last before the block
//   - any other: the content of that file
//
// ~/kiln is Kiln's repository.
func TestFirstProcessor(t *testing.T) {
	thorough.Only(t, "the guide has processors compiled in five ways")
	text, err := os.ReadFile("../../docs/first-processor.md")
	if err != nil {
		t.Fatal(err)
	}
	ways := strings.Split(string(text), "\n## ")
	if len(ways) != 6 {
		t.Fatalf("%d ways", len(ways)-1)
	}
	for _, way := range ways[1:] {
		title, _, _ := strings.Cut(way, "\n")
		t.Run(title, func(t *testing.T) {
			for _, tool := range map[string][]string{"A program": {"python3"}, "Go as WebAssembly": {"go"}, "C as WebAssembly": {"clang", "wasm-ld"}, "Go in a kiln of your own": {"go"}}[title] {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skipf("there is no %s", tool)
				}
			}
			g := &guide{t: t, dir: t.TempDir()}
			g.follow(ways[0])
			g.follow(way)
			if g.commands < 4 {
				t.Errorf("only %d commands were run", g.commands)
			}
		})
	}
}

// guide is somebody who does what a page says.
type guide struct {
	t        *testing.T
	dir      string
	tree     string // where files are that are not in dir, for edits of them; empty: nowhere
	silent   bool   // no commands are run
	commands int
}

var (
	fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
	named = regexp.MustCompile("`([\\w./-]+\\.\\w+)`")
)

func (g *guide) follow(text string) {
	g.t.Helper()
	last := 0
	for _, m := range fence.FindAllStringSubmatchIndex(text, -1) {
		before, lang, body := text[last:m[0]], text[m[2]:m[3]], text[m[4]:m[5]]
		last = m[1]
		if lang == "console" {
			if !g.silent {
				g.run(body)
			}
			continue
		}
		names := named.FindAllStringSubmatch(before, -1)
		if names == nil && lang == "diff" { // of the file before
			names = named.FindAllStringSubmatch(text[:m[0]], -1)
		}
		if names == nil {
			g.t.Fatalf("which file is this?\n%s", body)
		}
		file := filepath.Join(g.dir, filepath.FromSlash(names[len(names)-1][1]))
		if lang == "diff" {
			body = g.edited(file, body)
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			g.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(body), 0o666); err != nil {
			g.t.Fatal(err)
		}
	}
}

// edited is a file's content with a diff of one place.
func (g *guide) edited(file, diff string) string {
	g.t.Helper()
	text, err := os.ReadFile(file)
	if rel, _ := filepath.Rel(g.dir, file); err != nil && g.tree != "" {
		text, err = os.ReadFile(filepath.Join(g.tree, rel))
	}
	if err != nil {
		g.t.Fatal(err)
	}
	var from, to strings.Builder
	for line := range strings.Lines(diff) {
		if line[0] != '+' {
			from.WriteString(line[1:])
		}
		if line[0] != '-' {
			to.WriteString(line[1:])
		}
	}
	if strings.Count(string(text), from.String()) != 1 {
		g.t.Fatalf("%s does not have this once:\n%s", file, from.String())
	}
	return strings.Replace(string(text), from.String(), to.String(), 1)
}

// run runs the commands of a block and looks for what they should print.
func (g *guide) run(block string) {
	g.t.Helper()
	repository, err := filepath.Abs("../..")
	if err != nil {
		g.t.Fatal(err)
	}
	said := ""
	for line := range strings.Lines(block) {
		line = strings.TrimSuffix(line, "\n")
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			if want := strings.TrimSuffix(line, "..."); !strings.Contains("\n"+said, "\n"+want) {
				g.t.Errorf("not said: %q in\n%s", want, said)
			}
			continue
		}
		args := strings.Fields(strings.ReplaceAll(command, "~/kiln", repository))
		if strings.HasPrefix(args[0], "./") {
			args[0] = filepath.Join(g.dir, args[0])
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = g.dir
		cmd.Env = append(append(os.Environ(), goEnvironment()...), "NO_COLOR=1", "GORACE=atexit_sleep_ms=0", "PWD="+g.dir)
		out, err := cmd.CombinedOutput()
		if said = string(out); err != nil && !strings.Contains(said, ": error[") {
			g.t.Fatalf("%s: %v\n%s", command, err, said)
		}
		g.commands++
	}
}
