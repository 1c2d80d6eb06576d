package project

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

var update = flag.Bool("update", false, "write the golden files")

func messages(l diag.List) string {
	var b strings.Builder
	for _, m := range l {
		m.Write(&b, diag.Style{})
	}
	return b.String()
}

// TestMessages compares all that is said about each broken file with the golden beside it.
func TestMessages(t *testing.T) {
	parse := map[string]func(string, []byte) diag.List{
		"errors": func(_ string, data []byte) diag.List { _, l := Parse(File, data, Given{}); return l },
		"rules": func(_ string, data []byte) diag.List {
			_, l := ParseRules("assets/ui/rules.toml", "ui", data, Names{})
			return l
		},
	}
	for folder, parse := range parse {
		files, _ := filepath.Glob("testdata/" + folder + "/*.toml")
		if len(files) == 0 {
			t.Fatalf("no files in testdata/%s", folder)
		}
		for _, file := range files {
			t.Run(folder+"/"+filepath.Base(file), func(t *testing.T) {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				l := parse(file, data)
				if l.Err() == nil {
					t.Error("nothing was refused")
				}
				golden(t, strings.TrimSuffix(file, ".toml")+".txt", messages(l))
			})
		}
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Error(d)
	}
}

const whole = `
[project]
name   = "knights"
roots  = ["assets", "../shared/art", "mods/"]
output = "out"
ignore = ["**/*.blend1"]

[platforms.mobile]
[platforms.pc.texture]
format = "bc7"

[build]
workers = 3
memory  = "1.5GiB"

[[rules]]
match     = "sprites/**/*.png"
processor = "texture"
settings  = { mips = false, deep.er = [1, 2.5] }

[[rules]]
match = "sprites/player.png"
id    = "player"
uuid  = "0F1D7C2E-91A4-4C7E-8B35-3C6F0A9D2E11"
platforms.mobile.settings = { max_size = 512 }
platforms.pc.processor = "copy"
[rules.settings]
mips = true

[[processors]]
name       = "tiles"
command    = ["tiles", "{in}", "{out}"]
extensions = [".map"]
output     = ".tmb"
outputs    = { index = ".idx" }
inputs     = ["tiles/*.png"]
timeout    = "90s"
memory     = "512MiB"
summary    = "Maps of tiles"
version    = 3
folder     = false
env        = ["TILES"]
settings   = { level = 3, scale = { type = "number", default = 1, doc = "Scale." }, names = ["a"] }

[[parcels]]
name   = "preload"
assets = ["sprites/ui/", "fonts/**"]

[run]
command = ["./game", "-w"]
cwd     = "../bin"
env     = { LEVEL = "2" }
`

func TestParse(t *testing.T) {
	p, l := Parse(File, []byte(whole), Given{})
	if l != nil {
		t.Fatal(messages(l))
	}
	check := func(what string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s:\n%s", what, d)
		}
	}
	at := func(s settings.Span) string { return fmt.Sprintf("%s %s", s.Pos, s.Source()) }
	check("name", p.Name, "knights")
	var roots []string
	for _, r := range p.Roots {
		roots = append(roots, r.Path)
	}
	check("roots", roots, []string{"assets", "../shared/art", "mods"})
	check("root", at(p.Roots[1].Span), `kiln.toml:4:21 "../shared/art"`)
	check("output", p.Output, "out")
	check("ignore", p.Ignore, []string{"**/*.blend1"})
	check("build", p.Build, Build{3, 3 << 29})
	check("platforms", []string{p.Platforms[0].Name, p.Platforms[1].Name}, []string{"mobile", "pc"})
	check("platform", at(p.Platforms[1].Processor("texture").Get("format").Value.Span), `kiln.toml:10:10 "bc7"`)
	if p.Platforms[0].Processor("texture") != nil {
		t.Error("mobile has settings")
	}

	a, b := p.Rules[0], p.Rules[1]
	check("rule", []string{a.Match, a.Processors[0].Name, b.Match, b.ID, b.UUID},
		[]string{"sprites/**/*.png", "texture", "sprites/player.png", "player", "0f1d7c2e-91a4-4c7e-8b35-3c6f0a9d2e11"})
	check("rule", at(a.Span), "kiln.toml:16:3 rules")
	check("match", at(a.MatchSpan), `kiln.toml:17:13 "sprites/**/*.png"`)
	check("processor", at(a.Processors[0].Span), `kiln.toml:18:13 "texture"`)
	check("mips", at(a.Settings.Get("mips").Span), `kiln.toml:19:15 mips`)
	deep := a.Settings.Get("deep").Table.Get("er")
	check("array", at(deep.Value.Span), `kiln.toml:19:39 [1, 2.5]`)
	check("element", []any{deep.Array[0].Int, deep.Array[1].Float}, []any{int64(1), 2.5})
	check("header", b.Settings.Get("mips").Bool, true)
	check("platforms of a rule", []string{b.Platforms[0].Name, b.Platforms[1].Name, b.Platforms[1].Processors[0].Name}, []string{"mobile", "pc", "copy"})
	check("its settings", b.Platforms[0].Settings.Get("max_size").Int, int64(512))

	c := p.Processors[0]
	check("command", c.Command, []string{"tiles", "{in}", "{out}"})
	check("custom", []any{c.Name, c.Extensions[0], c.Output, c.Outputs[0].Name, c.Outputs[0].Extension, c.Inputs[0].Text, c.Timeout, c.Memory, c.Env[0], c.Summary, c.Version, c.Folder},
		[]any{"tiles", ".map", ".tmb", "index", ".idx", "tiles/*.png", 90 * time.Second, int64(512 << 20), "TILES", "Maps of tiles", 3, false})
	check("settings", []any{c.Settings[0].Default, c.Settings[1].Default, c.Settings[1].Doc, c.Settings[2].Default}, []any{int64(3), 1.0, "Scale.", []any{"a"}})
	check("place", at(c.Place("outputs.index", -1)), `kiln.toml:35:24 ".idx"`)
	check("place of an element", at(c.Place("command", 1)), `kiln.toml:32:24 "{in}"`)
	check("place of what is not there", at(c.Place("outputs.nothing", -1)), `kiln.toml:35:14 { index = ".idx" }`)
	check("run", []any{p.Run.Command, p.Run.Dir, p.Run.Env, at(p.Run.Span)},
		[]any{[]string{"./game", "-w"}, "../bin", []EnvVariable{{"LEVEL", "2"}}, `kiln.toml:50:11 ["./game", "-w"]`})
	check("parcel", []any{p.Parcels[0].Name, p.Parcels[0].Assets[1].Text, at(p.Parcels[0].Assets[1].Span)}, []any{"preload", "fonts/**", `kiln.toml:47:26 "fonts/**"`})
}

func TestDefaults(t *testing.T) {
	p, l := Parse(File, []byte("[project]\nname = \"a\"\n"), Given{})
	if l != nil {
		t.Fatal(l)
	}
	if len(p.Roots) != 1 || p.Roots[0].Path != "assets" || p.Output != "build" || len(p.Platforms) != 1 || p.Platforms[0].Name != "pc" {
		t.Errorf("got %+v", p)
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a", "a", true}, {"a", "A", true}, {"a", "a/b", true}, {"a", "ab", false}, {".", "a", true}, {"..", "a", true}, {"../..", "../a", true},
		{"../a", "a", false}, {"../a", "..", true}, {".", "..", true}, {"../a", "../b", false}, {".", "../a", false}, {".kiln", ".kiln/x", true}, {"../..", "..", true},
	} {
		if overlap(c.a, c.b) != c.want || overlap(c.b, c.a) != c.want {
			t.Errorf("%q and %q: not %v", c.a, c.b, c.want)
		}
	}
}

// TestRootHoldsOutput: all of the project folder may be the source root, and a folder with the output in it.
func TestRootHoldsOutput(t *testing.T) {
	for _, roots := range []string{`["."]`, `["assets"]`, `[".."]`} {
		p, l := Parse(File, []byte("[project]\nname = \"a\"\nroots = "+roots+"\noutput = \"assets/build\"\n"), Given{})
		if len(l) > 0 || len(p.Roots) != 1 {
			t.Errorf("roots %s: %s", roots, messages(l))
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		`"2GB"`: 2e9, `"512MiB"`: 512 << 20, `"1 KB"`: 1000, `"1kB"`: 1000, `"7B"`: 7, `12`: 12,
		`"2"`: 0, `"GB"`: 0, `"-1GB"`: 0, `"NaNGB"`: 0, `"1e99GB"`: 0, `"infB"`: 0, `0`: 0, `-3`: 0, `1.5`: 0,
	} {
		p, l := Parse(File, []byte("[project]\nname = \"a\"\n[build]\nmemory = "+text), Given{})
		if p.Build.Memory != want || (l == nil) != (want > 0) {
			t.Errorf("%s is %d, messages %v", text, p.Build.Memory, l)
		}
	}
}

func TestBadPattern(t *testing.T) {
	for _, c := range []struct{ glob, at, what string }{
		{"**/*.png", "", ""}, {"a/{b,c}/[a-z]?.png", "", ""}, {`a\*b`, "", ""}, {"ui/", "", ""}, {"sprites/*/", "", ""}, {"./", "", ""}, {"..a", "", ""},
		{"[", "[", "opens a bracket that is not closed"}, {"a/[]b", "[", "opens a bracket that is not closed"}, {"a]b", "", ""},
		{"é/{a", "{", "opens a brace that is not closed"}, {"a}b", "}", "closes a brace that was not opened"},
		{"{a,{b}", "{", "opens a brace that is not closed"}, {`a\`, `\`, "has a backslash"}, {`a\b`, `\`, "has a backslash"},
		{"./a", ".", "has a part ."}, {"a/../b", "..", "has a part .."}, {"a//b", "/", "has two slashes in a row"}, {"/a", "/", "begins with a slash"},
		{strings.Repeat("{a,b}", 9), "{", "has more than 8 braces"}, {strings.Repeat("{a,b}", 8), "", ""},
		{"//", "/", "begins with a slash"}, {strings.Repeat("a", 1025), "", "is longer than 1024 bytes"},
	} {
		at, n, what, hint := badPattern(c.glob)
		if got := string([]rune(c.glob[at:])[:n]); got != c.at || what != c.what || what != "" && hint == "" {
			t.Errorf("%.30q: %q %q %q", c.glob, got, what, hint)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "assets", "ui")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	var m *diag.Message
	if _, err := Find(deep); !errors.As(err, &m) || m.Code != diag.ProjectMissing || !strings.Contains(m.Hint, "kiln init") {
		t.Errorf("got %v", err)
	}
	if p, l := Load(deep, Given{}); p != nil || len(l) != 1 || l[0].Code != diag.ProjectMissing {
		t.Errorf("got %v, %v", p, l)
	}
	if err := os.Mkdir(filepath.Join(dir, File), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(deep); !errors.As(err, &m) || m.File != filepath.Join(dir, File) || m.Text != "this is a folder, not a file" {
		t.Errorf("got %v", err)
	}
	for _, to := range []string{"nowhere", File} { // the second is the link itself
		if os.Symlink(to, filepath.Join(deep, File)) != nil {
			continue
		}
		if _, err := Find(deep); !errors.As(err, &m) || m.File != filepath.Join(deep, File) || m.Text != "this symbolic link leads to nothing" {
			t.Errorf("%s: got %v", to, err)
		}
		if err := os.Remove(filepath.Join(deep, File)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, File)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, File), []byte("[project]\nname = \"a\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := Find(deep)
	if err != nil || found != dir {
		t.Errorf("got %q, %v", found, err)
	}
	p, l := Load(found, Given{})
	if l != nil || p.Dir != dir || p.Name != "a" {
		t.Errorf("got %+v, %v", p, l)
	}
}

func TestLimits(t *testing.T) {
	head := "[project]\nname = \"a\"\n"
	for name, text := range map[string]string{
		"size":          head + "#" + strings.Repeat("x", maxSize),
		"dotted keys":   head + "[[rules]]\nmatch = \"a\"\nsettings." + strings.Repeat("a.", 1000) + "a = 1\n",
		"headers":       head + "[platforms" + strings.Repeat(".a", 1000) + "]\n",
		"arrays":        head + "[[rules]]\nmatch = \"a\"\nsettings.x = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n",
		"inline tables": head + "[[rules]]\nmatch = \"a\"\nsettings.x = " + strings.Repeat("{a=", 5000) + "1" + strings.Repeat("}", 5000) + "\n",
		"mistakes":      head + strings.Repeat("[[rules]]\n", 5000),
	} {
		_, l := Parse(File, []byte(text), Given{})
		if l.Err() == nil || len(l) > diag.MostMessages+1 {
			t.Errorf("%s: %d messages", name, len(l))
		}
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.toml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(whole))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, l := Parse(File, data, Given{})
		rules, rl := ParseRules("a/rules.toml", "a", data, Names{})
		for _, m := range append(l, rl...) {
			if m.Code == "" || m.Text == "" || m.String() == "" {
				t.Errorf("an empty message: %+v", m)
			}
		}
		if p == nil && l.Err() == nil || p != nil && len(p.Platforms) == 0 {
			t.Error("no project, and nothing said")
		}
		for _, r := range rules {
			for _, info := range infos() {
				v, _ := settings.Resolve(info, []settings.Layer{{Table: r.Settings}})
				settings.Canonical(v)
				settings.Origins(v, []settings.Layer{{Table: r.Settings}})
			}
			if at, n, what, _ := badPattern(r.Match); what != "" {
				t.Errorf("rule with a bad glob %q: %s at %d, %d", r.Match, what, at, n)
			}
		}
		data = bytes.TrimPrefix(data, []byte("\uFEFF"))
		var any map[string]any
		if err := toml.Unmarshal(data, &any); err != nil && l.Err() == nil {
			t.Errorf("the library refuses what is taken here: %v", err)
		} else if err == nil && len(data) <= maxSize {
			for _, m := range l {
				// What is only too deep here is TOML all the same.
				if m.Code == diag.ProjectSyntax && !strings.Contains(m.Text, "inside each other") && !strings.Contains(m.Text, "too many") {
					t.Errorf("the library takes what is refused here: %v", m)
				}
			}
		}
	})
}
