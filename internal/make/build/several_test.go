package build

import (
	"context"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/processors"
)

const several = `
-- assets/a.s --
text a
part x 1
shadow read other.bin
shadow text dark
-- assets/above.s --
use a.s
-- assets/list.s --
list a.s
-- assets/other.bin --
other
-- kiln.toml --
[project]
name = "test"

[[rules]]
match = "a.s"
processors = ["script", "shadow"]
settings = { shadow.say = "boo" }
`

// TestSeveral gives an asset to two processors: each is a job of its own, and whoever asks for the asset's products gets both's.
func TestSeveral(t *testing.T) {
	t.Parallel()
	p := newProject(t, several)
	p.age()
	p.wants("a.s/script a.s/shadow above.s list.s other.bin")
	want := func(file, content string) {
		t.Helper()
		if got := p.read("build/pc/" + file); got != content {
			t.Errorf("%s is %q, not %q", file, got, content)
		}
	}
	want("a.s.shadow.sh", "other\n\ndark\n")
	want("above.s.txt", "a\nother\n\ndark\n1")
	var uuid string
	if a, err := p.open().Look(context.Background(), []string{"a.s"}, nil); err != nil {
		t.Fatal(err)
	} else {
		uuid = a.Assets[0].UUID
	}
	want("list.s.txt", " of a.s is a.s.txt, "+uuid+"\nshadow of a.s is a.s.shadow.sh, "+uuid+"\nx of a.s is a.s.x.txt, "+uuid+"\n")
	p.nothing()

	steps := []struct {
		name  string
		do    func()
		ran   string
		short bool
	}{
		{"what one of them reads", func() { p.write("assets/other.bin", "OTHER") }, "a.s/shadow above.s other.bin", true},
		{"what both read, and both make the same", func() { p.write("assets/a.s", "text a\npart x 1\n\nshadow read other.bin\nshadow text dark\n") }, "a.s/script a.s/shadow", true},
		{"one makes another thing", func() { p.write("assets/a.s", "text a\npart x 1\nshadow text dark\n") }, "a.s/script a.s/shadow above.s", true},
		{"one fails", func() { p.write("assets/a.s", "text a\npart x 1\nshadow fail it\n") }, "a.s/script a.s/shadow above.s list.s", true},
		{"mended", func() { p.write("assets/a.s", "text a\npart x 1\nshadow text dark\n") }, "", true},
		{"one makes another product", func() { p.write("assets/a.s", "text a\npart x 1\npart z 1\nshadow text dark\n") }, "a.s/script a.s/shadow above.s list.s", true},
		{"a processor goes", func() { p.write("assets/rules.toml", "[[rules]]\nmatch = \"a.s\"\nprocessor = \"script\"\n") }, "above.s list.s", true},
		{"another order", func() {
			p.write("assets/rules.toml", "[[rules]]\nmatch = \"a.s\"\nprocessors = [\"shadow\", \"script\"]\nsettings.shadow.say = \"boo\"\n")
		}, "above.s list.s", false},
		{"another setting of one", func() {
			p.write("assets/rules.toml", "[[rules]]\nmatch = \"a.s\"\nprocessors = [\"shadow\", \"script\"]\nsettings.shadow.say = \"whisper\"\n")
		}, "a.s/shadow", true},
	}
	for _, s := range steps {
		s.do()
		b := p.build()
		if b.ran != s.ran || b.short != s.short {
			t.Errorf("%s: ran %q, few tasks: %v", s.name, b.ran, b.short)
		}
		p.nothing()
	}
}

// TestSeveralClash has two processors of an asset want one product, or one file.
func TestSeveralClash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, code, says string }{
		{"main", "K0209", `processors "script" and "shadow" both make the main product`},
		{"part x 2", "K0209", `processors "script" and "shadow" both make product "x"`},
		{"file", "K0204", `processor "shadow" writes pc/a.s.txt, and so does processor "script"`},
	} {
		p := newProject(t, several)
		p.age()
		p.build()
		p.write("assets/a.s", "text a\npart x 1\nshadow "+tt.line+"\n")
		b := p.build()
		if !strings.Contains(b.messages, tt.code) || !strings.Contains(b.messages, tt.says) || b.Failed < 2 {
			t.Errorf("%s: %d failed\n%s", tt.line, b.Failed, b.messages)
		}
		if got := p.read("build/pc/a.s.txt"); got != "" {
			t.Errorf("%s: the file is there: %q", tt.line, got)
		}
		p.nothing()
		p.write("assets/a.s", "text a\npart x 1\nshadow text no more\n")
		if b := p.build(); b.Failed > 0 {
			t.Errorf("%s: mended, and yet\n%s", tt.line, b.messages)
		}
	}
}

// TestSeveralNeeds lets one of an asset's processors take what the other one makes, but not both each other's.
func TestSeveralNeeds(t *testing.T) {
	t.Parallel()
	p := newProject(t, several)
	p.write("assets/a.s", "text a\nshadow use a.s\n")
	p.age()
	if b := p.build(); b.Failed > 0 || p.read("build/pc/a.s.shadow.sh") != "a\n" {
		t.Fatalf("%s\n%q", b.messages, p.read("build/pc/a.s.shadow.sh"))
	}
	p.write("assets/a.s", "fail now\nshadow use a.s\n")
	if b := p.build(); b.Failed != 4 || !strings.Contains(b.messages, "needs a.s, which failed") {
		t.Errorf("%d failed:\n%s", b.Failed, b.messages)
	}
	p.write("assets/a.s", "use a.s\nshadow use a.s\n")
	if b := p.build(); b.Failed != 4 || !strings.Contains(b.messages, "needs itself: a.s\n") {
		t.Errorf("%d failed:\n%s", b.Failed, b.messages)
	}
}

// TestSeveralPlatforms builds platforms one by one with processors that come and go: the database keeps in step.
func TestSeveralPlatforms(t *testing.T) {
	t.Parallel()
	p := newProject(t, several)
	rules := p.read("kiln.toml")
	p.write("kiln.toml", rules+"[platforms.pc]\n[platforms.web]\n")
	p.age()
	p.build()
	p.write("kiln.toml", strings.Replace(rules, `["script", "shadow"]`, `["script"]`, 1)+"[platforms.pc]\n[platforms.web]\n")
	p.write("kiln.toml", strings.Replace(p.read("kiln.toml"), `settings = { shadow.say = "boo" }`, "", 1))
	if _, err := p.try(context.Background(), Request{Platforms: []string{"pc"}}); err != nil {
		t.Fatal(err)
	}
	p.build()
	p.nothing()
}

// TestSeveralPackers has an asset with two processors, one of which has images packed.
func TestSeveralPackers(t *testing.T) {
	t.Parallel()
	p := newProject(t, "-- assets/a.ask --\none 4 10\n-- assets/rules.toml --\n[[rules]]\nmatch = \"ui/\"\nprocessor = \"atlas\"\n"+
		"[[rules]]\nmatch = \"a.ask\"\nprocessors = [\"shadow\", \"asker\"]\n-- assets/ui/none.txt --\n-- assets/b.bin --\nx\n")
	p.procs = append(processors.All(), asker{}, &shadow{&script{version: 1}})
	p.age()
	if b := p.build(); b.Failed > 0 || p.read("build/pc/a.ask.txt") != "one true 4 4\n" {
		t.Fatalf("%s\n%q", b.messages, p.read("build/pc/a.ask.txt"))
	}
	p.nothing()
	p.write("assets/a.ask", "one 5 10\nshadow text dark night\n")
	if b := p.build(); b.Failed > 0 || p.read("build/pc/a.ask.txt") != "one true 5 5\n" || p.read("build/pc/a.ask.shadow.sh") != "dark night\n" {
		t.Errorf("%s\n%q", b.messages, p.read("build/pc/a.ask.txt"))
	}
	p.nothing()
}
