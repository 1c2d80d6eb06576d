package asset

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
)

var update = flag.Bool("update", false, "write the golden parts of the test files")

type textureSettings struct {
	Mips    bool   `toml:"mips" doc:"Mip chain."`
	MaxSize int    `toml:"max_size" doc:"Largest side." min:"0" max:"16384"`
	Format  string `toml:"format" doc:"Format." values:"rgba8,bc7,r8"`
}

type atlasSettings struct {
	MaxSize int `toml:"max_size" doc:"Largest page."`
	Padding int `toml:"padding" doc:"Pixels."`
}

type audioSettings struct {
	Rate int `toml:"rate" doc:"Sample rate."`
}

func builtin() []processor.Info {
	return []processor.Info{
		{Name: "copy"},
		{Name: "texture", Extensions: []string{".png", ".jpg"}, Settings: &textureSettings{Mips: true, Format: "rgba8"}},
		{Name: "atlas", Folder: true, Extensions: []string{".png", ".ase"}, Settings: &atlasSettings{MaxSize: 2048}},
		{Name: "audio", Extensions: []string{".wav"}, Settings: &audioSettings{Rate: 44100}},
		{Name: "archive", Extensions: []string{".gz", ".tar.gz"}},
	}
}

// load makes an Input of a test file: kiln.toml, rules.toml files below assets/, "files" with a path a line.
func load(t testing.TB, a *txtar.Archive) Input {
	t.Helper()
	in := Input{Processors: builtin()}
	fail := func(l diag.List) {
		t.Helper()
		if l != nil {
			t.Fatal(l)
		}
	}
	for _, f := range a.Files {
		switch {
		case f.Name == project.File:
			p, l := project.Parse(f.Name, f.Data, project.Given{})
			fail(l)
			in.Project = p
			for _, c := range p.Processors {
				in.Custom = append(in.Custom, processor.Info{Name: c.Name, Extensions: c.Extensions})
			}
		case path.Base(f.Name) == project.RulesFile:
			base := strings.TrimPrefix(strings.TrimPrefix(path.Dir(f.Name), "assets"), "/")
			rules, l := project.ParseRules(f.Name, base, f.Data, project.Names{})
			fail(l)
			in.Rules = append(in.Rules, rules...)
		case f.Name == "files":
			in.Files = strings.Fields(string(f.Data))
			slices.Sort(in.Files)
		}
	}
	return in
}

// show writes all that Build made.
func show(tab *Table, l diag.List) string {
	var b strings.Builder
	for i := range tab.Assets {
		a := &tab.Assets[i]
		b.WriteString(a.ID)
		if a.Path != strings.TrimSuffix(a.ID, "/") {
			fmt.Fprintf(&b, " (%s)", a.Path)
		}
		if a.UUID != UUID(a.ID) {
			fmt.Fprintf(&b, " uuid %s", a.UUID)
		}
		for _, r := range a.Resolved {
			fmt.Fprintf(&b, " | %s: %s", r.Platform, r.Processor)
			for _, o := range r.Origins() {
				if !o.Span.IsZero() {
					fmt.Fprintf(&b, " %s=%s@%s:%d", o.Name, o.Value, path.Base(o.Span.File), o.Span.Line)
				}
			}
		}
		b.WriteByte('\n')
		if m := tab.Members(a); m != nil {
			fmt.Fprintf(&b, "  holds %s\n", strings.Join(m, " "))
		}
	}
	for _, m := range l {
		m.Write(&b, diag.Style{})
	}
	return b.String()
}

// TestBuild runs the files in testdata: sources first, what comes of them in the part "want".
func TestBuild(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		t.Fatal("no files in testdata")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := show(Build(load(t, a)))
			at := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
			if *update {
				if at < 0 {
					a.Files, at = append(a.Files, txtar.File{Name: "want"}), len(a.Files)
				}
				a.Files[at].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if at < 0 {
				t.Fatal("no part want")
			}
			if d := cmp.Diff(string(a.Files[at].Data), got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNamespace(t *testing.T) {
	if want := uuid.NewSHA1(uuid.NameSpaceDNS, []byte("kiln-pipeline")); Namespace != want {
		t.Errorf("the namespace is %v, not %v", Namespace, want)
	}
	// Fixed for good: games keep these.
	for _, id := range []string{"", "a.png", strings.Repeat("x/", 200)} {
		if got, want := UUID(id), uuid.NewSHA1(Namespace, []byte(id)).String(); got != want {
			t.Errorf("%q: got %s, want %s", id, got, want)
		}
	}
	if got, want := UUID("sprites/tank.png"), "99c12a91-57d9-5420-9207-3cc986bfe503"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFold(t *testing.T) {
	const composed, decomposed = "\u00e9", "e\u0301"
	for _, c := range []struct{ a, b string }{
		{"Sprites/Tank.PNG", "sprites/tank.png"},
		{"caf" + decomposed + ".png", "caf" + composed + ".png"},
		{"CAFE\u0301.png", "caf" + composed + ".png"},
		{"I\u0307.png", "\u0130.png"}, // the capital I with a dot lowers to two characters
	} {
		if Fold(c.a) != Fold(c.b) || UUID(c.a) != UUID(c.b) {
			t.Errorf("%q and %q are not the same: %q, %q", c.a, c.b, Fold(c.a), Fold(c.b))
		}
		if again := Fold(Fold(c.a)); again != Fold(c.a) {
			t.Errorf("%q folds further, to %q", Fold(c.a), again)
		}
	}
	if Fold("a.png") == Fold("b.png") {
		t.Error("different ids fold to the same")
	}
}

func TestLookup(t *testing.T) {
	a, err := txtar.ParseFile("testdata/folders.txtar")
	if err != nil {
		t.Fatal(err)
	}
	tab, _ := Build(load(t, a))
	for i := range tab.Assets {
		a := &tab.Assets[i]
		if tab.ByID(a.ID) != a || tab.ByPath(a.Path) != a || tab.Owner(a.Path) != a {
			t.Errorf("%s is not found", a.ID)
		}
		for _, m := range tab.Members(a) {
			if tab.Owner(m) != a || tab.ByPath(m) != nil {
				t.Errorf("%s does not belong to %s alone", m, a.ID)
			}
		}
	}
	if tab.ByID("nothing") != nil || tab.ByPath("nothing") != nil || tab.Owner("nothing") != nil {
		t.Error("found what is not there")
	}
	ui := tab.ByID("ui/")
	if r := ui.On("pc"); len(r) != 1 || r[0].Platform != "pc" || len(ui.On("moon")) != 0 || !ui.ForJob().Folder {
		t.Errorf("got %+v", r)
	}
}

// TestMatcher holds the short cuts to what doublestar says.
func TestMatcher(t *testing.T) {
	paths := []string{"a.png", "a/b.png", "a/b/c.png", "a/b/.png", "a/bb/c.pngx", "[x]/a.png", "x/a.png", "a", "ab/a.png", "a/b/d", "b.wav", "a/é.png", ".png"}
	globs := []string{"**", "**/*.png", "*.png", "a/**", "a/**/*.png", "a/*.png", "a/b*/c.*", "a*", "**/c.png", "**/b/*", "{a,b}*", "a/[b]/*", "?.png", "a/**/c.png", "**.png", `\[x\]/*`, "a/b/**/*", "*/*.png", "**/*b/**", "**/[a-c].png", "**/{a,c}.png", "a/**/?.png", "**/**", "a/**/{b,b/c}.png", "**/*.{png,wav}", "**/b", "**/*.p[n]g"}
	for _, base := range []string{"", "a", "[x]"} {
		for _, glob := range globs {
			r := project.Rule{Match: glob, Base: base}
			m, s := newMatcher(glob, base), newSet([]project.Rule{r}, false)
			for _, p := range paths {
				want := m.slow(p)
				if got := m.match(p, path.Base(p)); got != want {
					t.Errorf("%q in %q on %q: %v", glob, base, p, got)
				}
				if got := len(s.match(nil, p, parent(p))) == 1; got != want {
					t.Errorf("%q in %q on %q: the set says %v", glob, base, p, got)
				}
			}
		}
	}
}

// FuzzBuild gives any project file that can be read a few files to make assets of.
func FuzzBuild(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, x := range a.Files {
			if strings.HasSuffix(x.Name, ".toml") {
				f.Add(x.Data)
			}
		}
	}
	paths := []string{"a.png", "b.wav", "sprites/player.png", "sprites/ui/a.png", "sprites/ui/inner/b.PNG", "ui/x.ase", "x"}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, l := project.Parse(project.File, data, project.Given{})
		if p == nil || l.Err() != nil {
			return
		}
		rules, _ := project.ParseRules("assets/sprites/rules.toml", "sprites", data, project.Names{})
		in := Input{Files: paths, Project: p, Rules: rules, Processors: builtin()}
		tab, diags := Build(in)
		if got, want := show(Build(in)), show(tab, diags); got != want {
			t.Errorf("two builds differ:\n%s\n%s", got, want)
		}
		for _, path := range paths {
			a := tab.Owner(path)
			if a != nil && a.Path != path && !slices.Contains(tab.Members(a), path) {
				t.Errorf("%s owns %s and does not hold it", a.ID, path)
			}
		}
		for i := range tab.Assets {
			if a := &tab.Assets[i]; len(a.Resolved) == 0 || a.ID == "" || a.UUID == "" {
				t.Errorf("not an asset: %+v", a)
			}
		}
	})
}

// many is a large project: files in folders of 200 and 20 rules.
func many(files int) Input {
	var rules strings.Builder
	rules.WriteString("[project]\nname = \"many\"\n[platforms.pc]\n[platforms.mobile.texture]\nmax_size = 512\n")
	for i := range 20 {
		match := []string{"**/*.png", fmt.Sprintf("f%d/**/*.png", i), fmt.Sprintf("f%d/*/*_n.png", i), "**/*_[a-c].png", fmt.Sprintf("f%d/d%d/n%d.png", 3*i/4, 3*i*5, 3*i*1000)}[i%5]
		fmt.Fprintf(&rules, "[[rules]]\nmatch = %q\nsettings = { max_size = %d }\n", match, i)
	}
	p, l := project.Parse(project.File, []byte(rules.String()), project.Given{})
	if l != nil {
		panic(l)
	}
	in := Input{Project: p, Processors: builtin()}
	for i := range files {
		in.Files = append(in.Files, fmt.Sprintf("f%d/d%d/n%d%s.png", i/5000, i/200, i, []string{"", "_n", "_a"}[i%3]))
	}
	slices.Sort(in.Files)
	return in
}

func BenchmarkBuild100k(b *testing.B) {
	in := many(100_000)
	for b.Loop() {
		tab, l := Build(in)
		if len(tab.Assets) != 100_000 || l.Err() != nil {
			b.Fatal(len(tab.Assets), l)
		}
	}
}

// Files that collide concern no one but themselves: the rest of the project is built.
func TestCollides(t *testing.T) {
	p, diags := project.Parse("kiln.toml", []byte("[project]\nname = \"x\"\n"), project.Given{})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	table, diags := Build(Input{Files: []string{"A.txt", "a.txt", "b.txt"}, Project: p, Processors: []processor.Info{{Name: "copy"}}})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	for id, want := range map[string]string{"A.txt": "a.txt", "a.txt": "A.txt", "b.txt": ""} {
		if got := table.ByID(id).Collides; got != want {
			t.Errorf("%s collides with %q, want %q", id, got, want)
		}
	}
}

// TestRanks: of processors that claim an extension the project's own has it, then a team's, then the built-in one. Two of one rank clash,
// and the first has it.
func TestRanks(t *testing.T) {
	p, diags := project.Parse("kiln.toml", []byte("[project]\nname = \"x\"\n[[processors]]\nname = \"own\"\ncommand = [\"own\"]\n"+
		"extensions = [\".a\"]\n"),
		project.Given{})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	info := func(name string, extensions ...string) processor.Info {
		return processor.Info{Name: name, Extensions: extensions}
	}
	in := Input{
		Files: []string{"x.a", "x.b", "x.c", "x.d", "x.e"}, Project: p,
		Processors: []processor.Info{info("builtin", ".a", ".b", ".c", ".d"), info("copy")},
		Team:       []processor.Info{info("first", ".a", ".b", ".c"), info("second", ".c", ".a"), {Name: "folders", Folder: true, Extensions: []string{".b"}}},
		Custom:     []processor.Info{info("own", ".a")},
	}
	table, diags := Build(in)
	for path, want := range map[string]string{"x.a": "own", "x.b": "first", "x.c": "first", "x.d": "builtin", "x.e": "copy"} {
		if got := table.ByPath(path).Processor; got != want {
			t.Errorf("%s goes to %s, not %s", path, got, want)
		}
	}
	if len(diags) != 1 || diags[0].Code != diag.ExtensionClash || diags[0].File != "kiln.toml" {
		t.Errorf("got %v", diags)
	}
	if got := Clashes(in.ranks()...); len(got) != 1 || got[0] != (Clash{".c", "first", "second"}) {
		t.Errorf("got %v", got)
	}
	in.Files = in.Files[:2]
	if _, diags := Build(in); len(diags) != 0 {
		t.Errorf("no such file, and yet %v", diags)
	}
}

// TestFind finds assets by all their names.
func TestFind(t *testing.T) {
	a, err := txtar.ParseFile("testdata/folders.txtar")
	if err != nil {
		t.Fatal(err)
	}
	tab, _ := Build(load(t, a))
	for i := range tab.Assets {
		a := &tab.Assets[i]
		for _, name := range []string{a.ID, a.Path, processor.ByUUID(a.UUID), "uuid:" + strings.ToUpper(a.UUID)} {
			if got := tab.Find(name); got != a {
				t.Errorf("%q is %v, not %s", name, got, a.ID)
			}
		}
	}
	for _, name := range []string{"", "nothing", "uuid:", "uuid:00000000-0000-4000-8000-000000000000", tab.Assets[0].UUID} {
		if tab.Find(name) != nil {
			t.Errorf("%q is found", name)
		}
	}
}

// TestFindDeclared: a Finder finds assets that entries declare as Build makes them, and by their ids alone.
func TestFindDeclared(t *testing.T) {
	a, err := txtar.ParseFile("testdata/declared.txtar")
	if err != nil {
		t.Fatal(err)
	}
	in := load(t, a)
	tab, _ := Build(in)
	f := NewFinder(in, func(path string) bool { return slices.Contains(in.Files, path) })
	declared := 0
	for i := range tab.Assets {
		want := &tab.Assets[i]
		if got := f.Find(want.ID); got == nil || got.UUID != want.UUID || got.Path != want.Path || got.Declared != want.Declared ||
			got.Follows != want.Follows || len(got.Resolved) != len(want.Resolved) || !slices.EqualFunc(got.Resolved, want.Resolved, sameResolved) {
			t.Errorf("%s is %+v, not %+v", want.ID, got, want)
		}
		if !want.Declared {
			continue
		}
		declared++
		for _, path := range []string{want.Path, want.Path + "/"} {
			if got := tab.Find(path); got != nil && got.Declared {
				t.Errorf("%q means %s", path, got.ID)
			}
		}
		if want.MeantBy("ui/sheet.png") || want.Renamed() || !want.MeantBy(want.ID) {
			t.Errorf("%s is meant by its path", want.ID)
		}
	}
	if declared != 5 {
		t.Errorf("%d are declared", declared)
	}
	if f.Kind("ui/sheet.png") == f.Kind("ui/other.png") {
		t.Error("the source of assets is as another file")
	}
}

func sameResolved(a, b Resolved) bool {
	return a.Platform == b.Platform && a.Processor == b.Processor && string(a.Canonical) == string(b.Canonical)
}
