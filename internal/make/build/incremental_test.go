package build

import (
	"fmt"
	"testing"
)

// The project of the table below: every kind of look at the world.
const everything = `
-- kiln.toml --
[project]
name = "test"
[platforms.pc]
-- assets/a.txt --
alpha
-- assets/b.txt --
beta
-- assets/same1.txt --
same
-- assets/same2.txt --
same
-- assets/join.s --
read a.txt
read b.txt
-- assets/maybe.s --
try sub/extra.txt
-- assets/exists.s --
exists sub/extra.txt
-- assets/glob.s --
glob **/*.txt
-- assets/parts.s --
text main
part one 1
part two 2
-- assets/use.s --
use parts.s
use a.txt
-- assets/list.s --
list parts.s a.txt
-- assets/refs.s --
ref a.txt
ref nothing.txt
-- assets/say.s --
setting
`

const allOfIt = "a.txt b.txt exists.s glob.s join.s list.s maybe.s parts.s refs.s same1.txt same2.txt say.s use.s"

func TestIncremental(t *testing.T) {
	steps := []struct {
		name string
		do   func(p *fixture)
		ran  string // after do
		back string // after undo; "-" if there is no undo
		undo func(p *fixture)
	}{
		{name: "nothing"},
		{name: "touch", do: func(p *fixture) { p.touch("assets/a.txt", 5) }},
		{name: "edit a file that others read", do: func(p *fixture) { p.write("assets/a.txt", "ALPHA") }, ran: "a.txt join.s use.s"},
		{name: "an older content with an older time",
			do:   func(p *fixture) { p.write("assets/a.txt", "older"); p.touch("assets/a.txt", -1000) },
			ran:  "a.txt join.s use.s",
			undo: func(p *fixture) { p.write("assets/a.txt", "alpha\n") }},
		{name: "same size and same time",
			do: func(p *fixture) {
				p.touch("assets/a.txt", 1)
				p.build()
				p.write("assets/a.txt", "ALPHA\n")
				p.touch("assets/a.txt", 1)
			},
			ran: "a.txt join.s use.s"},
		{name: "add a file that was looked for", do: func(p *fixture) { p.write("assets/sub/extra.txt", "extra") },
			ran: "exists.s glob.s maybe.s sub/extra.txt", undo: func(p *fixture) { p.remove("assets/sub") }},
		{name: "remove a file that is read", do: func(p *fixture) { p.remove("assets/a.txt") },
			ran: "glob.s join.s list.s refs.s use.s", undo: func(p *fixture) { p.write("assets/a.txt", "alpha\n") }},
		{name: "rename a file", do: func(p *fixture) { p.rename("assets/b.txt", "assets/c.txt") },
			ran: "c.txt glob.s join.s", undo: func(p *fixture) { p.rename("assets/c.txt", "assets/b.txt") }},
		{name: "rename a folder", do: func(p *fixture) { p.write("assets/x/y/z.txt", "z"); p.build(); p.rename("assets/x", "assets/w") },
			ran: "glob.s w/y/z.txt", undo: func(p *fixture) { p.remove("assets/w") }},
		{name: "rename in case alone", do: func(p *fixture) { p.rename("assets/b.txt", "assets/B.txt") },
			ran: "B.txt glob.s join.s", undo: func(p *fixture) { p.rename("assets/B.txt", "assets/b.txt") }},
		{name: "content of a product that is listed only", do: func(p *fixture) { p.write("assets/parts.s", "text Main\npart one 1\npart two 2") },
			ran: "parts.s use.s"},
		{name: "early cutoff", do: func(p *fixture) { p.write("assets/parts.s", "text main\n\npart one 1\npart two 2") }, ran: "parts.s"},
		{name: "one product less", do: func(p *fixture) { p.write("assets/parts.s", "text main\npart two 2") }, ran: "list.s parts.s use.s"},
		{name: "swap equal contents", do: func(p *fixture) { p.write("assets/same1.txt", "other") }, ran: "same1.txt"},
		{name: "a dependency fails", do: func(p *fixture) { p.write("assets/parts.s", "part one 1\nfail on purpose") }, ran: "list.s parts.s use.s"},
		{name: "another way to fail", do: func(p *fixture) { p.write("assets/parts.s", "panic stations") }, ran: "list.s parts.s use.s"},
		{name: "delete a product", do: func(p *fixture) { p.remove("build/pc/a.txt") }},
		{name: "delete a named product", do: func(p *fixture) { p.remove("build/pc/parts.s.one.txt") }},
		{name: "delete a folder of products", do: func(p *fixture) { p.remove("build/pc") }},
		{name: "delete all products", do: func(p *fixture) { p.remove("build") }},
		{name: "delete the content database", do: func(p *fixture) { p.remove(".kiln/content.db") }},
		{name: "damage the content database", do: func(p *fixture) { p.write(".kiln/content.db", "no database"); p.remove("build/pc/a.txt") }},
		{name: "delete the snapshot", do: func(p *fixture) { p.remove(".kiln/snapshot") }},
		{name: "damage the snapshot", do: func(p *fixture) { p.write(".kiln/snapshot", p.read(".kiln/snapshot")[:100]) }},
		{name: "empty the snapshot", do: func(p *fixture) { p.write(".kiln/snapshot", "") }},
		{name: "delete snapshot and products", do: func(p *fixture) { p.remove(".kiln/snapshot"); p.remove("build") }},
		{name: "delete traces, and nothing else", do: func(p *fixture) { p.remove(".kiln/traces") }, ran: allOfIt},
		{name: "delete traces", do: func(p *fixture) { p.remove(".kiln/traces"); p.remove("build/pc/a.txt") }, ran: allOfIt},
		{name: "damage traces", do: func(p *fixture) { p.write(".kiln/traces", "no traces"); p.remove("build/pc/a.txt") }, ran: allOfIt},
		{name: "delete all state", do: func(p *fixture) { p.remove(".kiln") }, ran: allOfIt},
		{name: "delete the blobs", do: func(p *fixture) { p.remove(".kiln/cas") }},
		{name: "delete the blobs and a product", do: func(p *fixture) { p.remove(".kiln/cas"); p.remove("build/pc/a.txt") }, ran: "a.txt"},
		{name: "delete the blobs and edit who uses them", do: func(p *fixture) { p.remove(".kiln/cas"); p.write("assets/use.s", "text more\nuse parts.s") }, ran: "use.s"},
		{name: "edit a product", do: func(p *fixture) { p.scribble("build/pc/same1.txt") }, ran: "same1.txt same2.txt"},
		{name: "product replaced by a file", do: func(p *fixture) { p.remove("build/pc/a.txt"); p.write("build/pc/a.txt", "mine") }},
		{name: "product replaced by a link", do: func(p *fixture) { p.remove("build/pc/a.txt"); p.link("build/pc/a.txt", p.path("assets/b.txt")) }},
		{name: "settings and back", do: func(p *fixture) {
			p.write("assets/rules.toml", "[[rules]]\nmatch = \"say.s\"\nsettings = { say = \"bye\" }\n")
		},
			ran: "say.s", undo: func(p *fixture) { p.remove("assets/rules.toml") }},
		{name: "edit rules", do: func(p *fixture) {
			p.write("assets/rules.toml", "[[rules]]\nmatch = \"say.s\"\nsettings = { say = \"bye\" }\n")
			p.build()
			p.write("assets/rules.toml", "[[rules]]\nmatch = \"say.s\"\nsettings = { say = \"adieu\" }\n")
		}, ran: "say.s", undo: func(p *fixture) { p.remove("assets/rules.toml") }},
		{name: "another processor", do: func(p *fixture) {
			p.write("assets/rules.toml", "[[rules]]\nmatch = \"parts.s\"\nprocessor = \"copy\"\n")
		},
			ran: "list.s parts.s use.s", undo: func(p *fixture) { p.remove("assets/rules.toml") }},
		{name: "no processor", do: func(p *fixture) { p.write("assets/rules.toml", "[[rules]]\nmatch = \"a.txt\"\nprocessor = \"none\"\n") },
			ran: "list.s refs.s use.s", undo: func(p *fixture) { p.remove("assets/rules.toml") }},
		{name: "another id", do: func(p *fixture) { p.write("assets/rules.toml", "[[rules]]\nmatch = \"a.txt\"\nid = \"first\"\n") },
			ran: "first list.s refs.s use.s", undo: func(p *fixture) { p.remove("assets/rules.toml") }},
		{name: "another UUID", do: func(p *fixture) {
			p.write("assets/rules.toml", "[[rules]]\nmatch = \"a.txt\"\nuuid = \"11111111-2222-4333-8444-555555555555\"\n")
		}, ran: "a.txt list.s refs.s use.s", undo: func(p *fixture) { p.remove("assets/rules.toml") }},
		{name: "ignore a file", do: func(p *fixture) { p.write("assets/.kilnignore", "a.txt\n") },
			ran: "glob.s join.s list.s refs.s use.s", undo: func(p *fixture) { p.remove("assets/.kilnignore") }},
		{name: "ignore another file", do: func(p *fixture) {
			p.write("assets/.kilnignore", "a.txt\n")
			p.build()
			p.write("assets/.kilnignore", "same1.txt\n")
		}, ran: "glob.s", undo: func(p *fixture) { p.remove("assets/.kilnignore") }},
		{name: "ignore in the project file", do: func(p *fixture) { p.write("kiln.toml", "[project]\nname = \"test\"\nignore = [\"same*\"]\n") },
			ran: "glob.s", undo: func(p *fixture) { p.write("kiln.toml", "[project]\nname = \"test\"\n") }},
		{name: "a platform more", do: func(p *fixture) {
			p.write("kiln.toml", "[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web.script]\nsay = \"web\"\n")
		}, ran: "exists.s@web glob.s@web join.s@web list.s@web maybe.s@web parts.s@web refs.s@web say.s@web use.s@web",
			undo: func(p *fixture) { p.write("kiln.toml", "[project]\nname = \"test\"\n[platforms.pc]\n") }},
		{name: "another output folder", do: func(p *fixture) { p.write("kiln.toml", "[project]\nname = \"test\"\noutput = \"out\"\n") },
			undo: func(p *fixture) { p.write("kiln.toml", "[project]\nname = \"test\"\n[platforms.pc]\n") }},
		{name: "an output folder of old", do: func(p *fixture) {
			p.write("kiln.toml", "[project]\nname = \"test\"\noutput = \"out\"\n")
			p.build()
			p.remove("assets/a.txt")
			p.build()
			p.write("kiln.toml", "[project]\nname = \"test\"\n[platforms.pc]\n")
		}},
		{name: "folders of outputs gone before what was in them", do: func(p *fixture) {
			p.write("assets/x/y/z.txt", "z")
			p.build()
			p.remove("build/pc/x/y")
			p.remove("assets/x")
		}},
		{name: "a processor's version", do: func(p *fixture) { p.procs[0] = &script{version: 2} },
			ran:  "exists.s glob.s join.s list.s maybe.s parts.s refs.s say.s use.s",
			undo: func(p *fixture) { p.procs[0] = &script{version: 1} }},
		{name: "another root on top", do: func(p *fixture) {
			p.write("kiln.toml", "[project]\nname = \"test\"\nroots = [\"assets\", \"mod\"]\n")
			p.write("mod/a.txt", "modded")
		}, ran: "a.txt join.s use.s", undo: func(p *fixture) { p.write("kiln.toml", "[project]\nname = \"test\"\n[platforms.pc]\n") }},
	}
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, everything)
			p.wants(allOfIt)
			if s.do != nil {
				s.do(p)
			}
			p.wants(s.ran)
			p.nothing()
			if s.undo != nil {
				s.undo(p)
				p.wants(s.back)
				p.nothing()
			}
		})
	}
}

// TestFolderRenamed renames a folder of so many files that the content database is written anew.
func TestFolderRenamed(t *testing.T) {
	p := newProject(t, "-- assets/keep.txt --\nkept\n-- assets/list.s --\nlist keep.txt\nglob */1*.bin\n")
	const files = 520
	for i := range files {
		p.write(fmt.Sprintf("assets/old/%d.bin", i), fmt.Sprint("content ", i%10))
	}
	p.build0()
	p.rename("assets/old", "assets/new")
	if b := p.build(); b.Built != files+1 {
		t.Errorf("built %d", b.Built)
	}
}
