//go:build amd64 || arm64

package command

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// waitForClock waits until files that are made get a later time: what is as young as a run counts as changed by it.
func waitForClock(t *testing.T, written int64) {
	t.Helper()
	for now, err := int64(0), error(nil); now <= written; {
		if now, err = diskTime(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
}

// onRoots is a processor that runs the helper in source roots on disk, and a case with the same files: each root
// is a list of name and content; a content that begins with "->" is a link.
func onRoots(t *testing.T, reads Reads, roots []map[string]string, args ...string) (onDisk, processortest.Case) {
	t.Helper()
	if err := seal.Supported().Trace; err != nil {
		t.Skip(err)
	}
	c := onDisk{Config: helperConfig(args...)}
	c.Reads = reads
	one := helperCase(t)
	one.Files = map[string][]byte{}
	var written int64
	for _, files := range roots {
		dir := t.TempDir()
		c.Roots = append(c.Roots, dir)
		for name, data := range files {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			to, link := strings.CutPrefix(data, "->")
			if link {
				if err := os.Symlink(to, file); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(filepath.Base(name), "ignored") {
				one.Files[name] = []byte(data)
			}
			written = max(written, seal.StateOf(file).Moved)
		}
	}
	waitForClock(t, written)
	return c, one
}

// ofSources leaves out what was seen of the system and the helper itself, and puts words for folders that differ in each run.
func ofSources(seen []string, roots []string) []string {
	helper, _ := os.Executable()
	var all []string
	for _, s := range seen {
		if isEnv(s) || s == "tool "+helper || strings.HasPrefix(s, "tool /") && !strings.Contains(s, os.TempDir()) {
			continue
		}
		for i, root := range roots {
			s = strings.ReplaceAll(s, root, "ROOT"+string(rune('1'+i)))
		}
		all = append(all, s)
	}
	return all
}

func TestTraced(t *testing.T) {
	one := []map[string]string{{
		"a/water.txt": "deep", "a/fire.txt": "hot", "b/c.txt": "c", "b/link.txt": "->../a/fire.txt", "b/d/ignored.txt": "i", "link": "->b", "sp [1]/x.txt": "x",
	}}
	two := []map[string]string{
		{"a/water.txt": "old", "a/fire.txt": "hot", "b/c.txt": "c", "flat.txt": "1"},
		{"a/water.txt": "deep", "d.txt": "d"},
	}
	over := []map[string]string{{"a/water.txt": "deep", "b/c/d.txt": "d"}, {"b/c": "c"}}
	outside := filepath.Join(t.TempDir(), "font.ttf")
	if err := os.WriteFile(outside, []byte("font"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		roots []map[string]string
		args  []string
		want  []string
		data  string
	}{
		{"one file", one, []string{"cat", "{out}", "{in}"}, []string{"file a/water.txt"}, "deep"},
		{"more", one, []string{"cat", "{out}", "{in}", "{root}/b/c.txt"}, []string{"file a/water.txt", "file b/c.txt"}, "deepc"},
		{"missing", one, []string{"cat", "{out}", "{in}", "none.txt", "none/x.txt"}, []string{"file a/water.txt", "tool ROOT1/none.txt", "exists none.txt: false", "tool ROOT1/none/x.txt", "exists none/x.txt: false"}, "deep"},
		{"dots", one, []string{"cat", "{out}", "{in}", "b/../a/fire.txt", "a/.././b/c.txt"}, []string{
			"file a/water.txt", "tool ROOT1/b", "file a/fire.txt", "tool ROOT1/a", "file b/c.txt"}, "deephotc"},
		{"a link", one, []string{"cat", "{out}", "{in}", "b/link.txt"}, []string{"file a/water.txt", "missing b/link.txt", "file a/fire.txt"}, "deephot"},
		{"a linked folder", one, []string{"cat", "{out}", "{in}", "link/c.txt"}, []string{"file a/water.txt", "missing link/c.txt", "file b/c.txt"}, "deepc"},
		{"ignored", one, []string{"cat", "{out}", "{in}", "b/d/ignored.txt"}, []string{"file a/water.txt", "missing b/d/ignored.txt", "tool ROOT1/b/d/ignored.txt"}, "deepi"},
		{"outside", one, []string{"cat", "{out}", "{in}", outside, outside + "2"}, []string{"file a/water.txt", "tool " + outside, "tool " + outside + "2"}, "deepfont"},
		{"names", one, []string{"cat", "{out}", "{in}", "sp [1]/x.txt"}, []string{"file a/water.txt", "file sp [1]/x.txt"}, "deepx"},
		{"list", one, []string{"list", "{out}", "{in}", "sp [1]"}, []string{"file a/water.txt", "tool ROOT1/sp [1]/", `glob sp \[1\]/**`, "exists sp [1]: false"}, "x.txt\n"},
		{"ask", one, []string{"ask", "{out}", "{in}", "b/c.txt", "none", "b"}, []string{
			"file a/water.txt", "exists b/c.txt: true", "tool ROOT1/none", "glob none/**", "exists none: false", "tool ROOT1/b"}, "yes no yes "},
		{"ask for a folder", one, []string{"ask", "{out}", "{in}", "b"}, []string{"file a/water.txt", "tool ROOT1/b", "glob b/**", "exists b: false"}, "yes "},
		{"its own", one, []string{"cat", "{out}", "{in}", "../out", "../tmp/x"}, []string{"file a/water.txt"}, "deep"},
		{"later root first", two, []string{"cat", "{out}", "{in}", "a/fire.txt", "flat.txt", "d.txt", "b/c.txt"}, []string{
			"tool ROOT2/a/water.txt", "file a/water.txt", "tool ROOT2/a/fire.txt", "file a/fire.txt", "tool ROOT2/flat.txt", "file flat.txt", "tool ROOT2/d.txt", "file d.txt", "tool ROOT2/b/c.txt", "file b/c.txt"}, "deephot1dc"},
		{"a file over a folder", over, []string{"cat", "{out}", "{in}", "b/c/d.txt"}, []string{"tool ROOT2/a/water.txt", "file a/water.txt", "tool ROOT2/b/c/d.txt", "file b/c/d.txt"}, "deepd"},
		{"a folder over a file", []map[string]string{over[1], over[0]}, []string{"cat", "{out}", "{in}", "b/c"}, []string{"tool ROOT2/a/water.txt", "file a/water.txt", "tool ROOT1/b/c/", "tool ROOT2/b/c/", "glob b/c/**", "exists b/c: true"}, "deep"},
		{"in a child", one, []string{"child", "cat", "{out}", "{in}", "b/c.txt"}, []string{"file a/water.txt", "file b/c.txt"}, "deepc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, one := onRoots(t, Traced, c.roots, c.args...)
			r := processortest.Run(t, config.new(t), one)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if d := cmp.Diff(append([]string{"tool helper"}, c.want...), ofSources(r.Observations, config.Roots)); d != "" {
				t.Error(d)
			}
			if got := string(r.Products[""].Data); got != c.data {
				t.Errorf("%q, want %q", got, c.data)
			}
		})
	}
}

// TestReadsBuilt: products and what Kiln remembers are refused, however a program comes to them.
func TestReadsBuilt(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"build/pc/b.bin": "product", ".kiln/cas/00": "blob", "shared.txt": "shared", "src/ids.h": "ids"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	root := []map[string]string{{"a/water.txt": "deep", "b/built.txt": "->" + dir + "/build/pc/b.bin", "b/pc": "->" + dir + "/build/pc", "b/all": "->" + dir}}
	for _, c := range []struct {
		reads Reads
		args  []string
		want  string // what the message names; "" if the run is a good one
	}{
		{Traced, []string{"cat", "{out}", "{in}", dir + "/build/pc/b.bin"}, "build/pc/b.bin"},
		{Traced, []string{"cat", "{out}", "{in}", dir + "/shared.txt/../build/none.bin", dir + "/build/none.bin"}, "build/none.bin"},
		{Traced, []string{"cat", "{out}", "{in}", "b/built.txt"}, "build/pc/b.bin"},
		{Traced, []string{"cat", "{out}", "{in}", "b/pc/none"}, "build/pc/none"},
		{Traced, []string{"cat", "{out}", "{in}", "b/all/build/../build/pc/b.bin"}, "build/pc/b.bin"},
		{Traced, []string{"ask", "{out}", "{in}", dir + "/build/pc/b.bin"}, "build/pc/b.bin"},
		{Traced, []string{"ask", "{out}", "{in}", dir + "/build"}, ""},
		{Traced, []string{"list", "{out}", "{in}", dir + "/build/pc"}, "build/pc"},
		{Traced, []string{"relative", "{out}", "{in}", dir, "build/pc/b.bin"}, "build"}, // it opens one folder after the other
		{Traced, []string{"inside", "{out}", "{in}", dir, "build/pc/b.bin"}, "build/pc/b.bin"},
		{Traced, []string{"inside", "{out}", "{in}", "b/all", "build/pc/b.bin"}, "build/pc/b.bin"},
		{Traced, []string{"through", "{out}", "{in}", dir + "/build", "pc/b.bin"}, "build/pc/b.bin"},
		{Traced, []string{"child", "cat", "{out}", "{in}", dir + "/build/pc/b.bin"}, "build/pc/b.bin"},
		{Traced, []string{"cat", "{out}", "{in}", dir + "/.kiln/cas/00"}, ".kiln/cas/00"},
		{Traced, []string{"ask", "{out}", "{in}", dir + "/.kiln/cas"}, ".kiln/cas"},
		{Traced, []string{"list", "{out}", "{in}", dir + "/.kiln"}, ".kiln"},
		{Traced, []string{"list", "{out}", "{in}", dir}, ""},
		{Traced, []string{"ask", "{out}", "{in}", dir, dir + "/.kiln/package.json", dir + "/builds"}, ""},
		{Traced, []string{"cat", "{out}", "{in}", dir + "/shared.txt"}, ""},
		{Depfile, []string{"dep", "{out}", "{dep}", "x: " + dir + "/build/pc/b.bin", "{in}"}, "build/pc/b.bin"},
		{Depfile, []string{"dep", "{out}", "{dep}", "x: b/built.txt", "{in}"}, "build/pc/b.bin"},
		{Depfile, []string{"dep", "{out}", "{dep}", "x: " + dir + "/.kiln/cas/00", "{in}"}, ".kiln/cas/00"},
		{Depfile, []string{"dep", "{out}", "{dep}", "x: " + dir + "/shared.txt", "{in}"}, ""},
		{Declared, []string{"dep", "{out}", "{dep}", "x: " + dir + "/build/pc/b.bin", "{in}"}, "build/pc/b.bin"},
		{Traced, []string{"cat", "{out}", "{in}", dir + "/kiln.ids"}, "kiln.ids"}, // it is not there yet
		{Traced, []string{"ask", "{out}", "{in}", dir + "/src/ids.h"}, "ids.h"},
		{Traced, []string{"cat", "{out}", "{in}", "b/all/src/ids.h"}, "ids.h"},
		{Depfile, []string{"dep", "{out}", "{dep}", "x: " + dir + "/src/ids.h", "{in}"}, "ids.h"},
	} {
		config, one := onRoots(t, c.reads, root, c.args...)
		config.Built, config.State = []string{dir + "/build"}, []string{dir + "/.kiln"}
		config.Shipped = []string{dir + "/kiln.ids", dir + "/src/ids.h"}
		r := processortest.Run(t, config.new(t), one)
		if c.want == "" {
			if r.Err != nil {
				t.Errorf("%s %q: %v", c.reads, c.args, r.Err)
			}
			continue
		}
		p := only(t, r.Err, diag.CommandReadsBuilt)
		if !strings.Contains(p.Text, "helper read "+c.want+": ") || errors.Is(p, diag.ErrMoment) {
			t.Errorf("%s %q: %+v", c.reads, c.args, p)
		}
		if !slices.Contains(r.Observations, "file a/water.txt") {
			t.Errorf("%s %q: an edit of the asset would not be seen: %q", c.reads, c.args, r.Observations)
		}
	}
}

// TestViewHidesKilnsOwn: a view of a project that is a source root itself does not have products in it.
func TestViewHidesKilnsOwn(t *testing.T) {
	for _, built := range []string{"build", "out/built/here"} {
		c, one := onRoots(t, Traced, []map[string]string{{"a/water.txt": "deep", built + "/ignored.bin": "b", "out/x.txt": "x"}}, "frame", "{in}", "{out}", "-")
		c.Built = []string{filepath.Join(c.Roots[0], built)}
		r := processortest.Run(t, c.new(t), one)
		if got := shape(r.Products[""].Data); r.Err != nil || !strings.Contains(got, "in/a ") || !strings.Contains(got, "in/out") || strings.Contains(got, filepath.Base(built)) {
			t.Errorf("%v\n%s", r.Err, got)
		}
	}
}

// TestToolThatIsBuilt: neither is a program of a command one that Kiln builds.
func TestToolThatIsBuilt(t *testing.T) {
	c, one := onRoots(t, Declared, []map[string]string{{"a/water.txt": "deep"}}, "cat", "{out}", "{in}")
	c.Built = []string{filepath.Dir(one.Tools["helper"])}
	only(t, processortest.Run(t, c.new(t), one).Err, diag.CommandReadsBuilt)
}

// TestLinksOfItsOwn: what a program reads through links that it makes, and removes again, is known.
func TestLinksOfItsOwn(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "font.ttf")
	if err := os.WriteFile(outside, []byte("font"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, one := onRoots(t, Traced, []map[string]string{{"a/water.txt": "deep", "b/c.txt": "c"}}, "")
	for file, want := range map[string]string{outside: "tool " + outside, filepath.Join(c.Roots[0], "b/c.txt"): "file b/c.txt"} {
		c.Command = []string{"helper", "through", "{out}", "{in}", filepath.Dir(file), filepath.Base(file)}
		r := processortest.Run(t, c.new(t), one)
		if r.Err != nil || !slices.Contains(r.Observations, want) {
			t.Errorf("%v, %q has no %q", r.Err, r.Observations, want)
		}
	}
}

// What a run that fails looked at may be what mends it.
func TestTracedFailureIsRecorded(t *testing.T) {
	c, one := onRoots(t, Traced, []map[string]string{{"a/water.txt": "deep"}}, "need", "{out}", "{in}", "lib/common.txt")
	r := processortest.Run(t, c.new(t), one)
	only(t, r.Err, diag.CommandFailed)
	if !slices.Contains(r.Observations, "exists lib/common.txt: false") {
		t.Errorf("%q", r.Observations)
	}
}

// A file that went after Kiln had looked, and before the program did, may come back as it was.
func TestTracedFileThatWent(t *testing.T) {
	c, one := onRoots(t, Traced, []map[string]string{{"a/water.txt": "deep"}}, "cat", "{out}", "{in}", "b.txt")
	one.Files["b.txt"] = []byte("b")
	p := only(t, processortest.Run(t, c.new(t), one).Err, diag.CommandChanged)
	if !errors.Is(p, diag.ErrMoment) || !strings.Contains(p.Text, "b.txt") {
		t.Errorf("%+v", p)
	}
}

func TestTracedDynamicLoader(t *testing.T) {
	cat := "/bin/cat"
	if loader(cat) == "" {
		t.Skip("no dynamically linked cat")
	}
	c, one := onRoots(t, Traced, []map[string]string{{"a/water.txt": "deep"}}, "")
	c.Command = []string{"sh", "-c", "cat \"$1\" >\"$0\"", "{out}", "{in}"}
	one.Tools["sh"] = "/bin/sh"
	r := processortest.Run(t, c.new(t), one)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if string(r.Products[""].Data) != "deep" {
		t.Errorf("%q", r.Products[""].Data)
	}
	for _, want := range []string{"tool sh", "tool " + loader("/bin/sh"), "file a/water.txt"} {
		if !slices.Contains(r.Observations, want) {
			t.Errorf("no %q in %q", want, r.Observations)
		}
	}
	for _, part := range []string{"/cat", "libc.so"} {
		if !slices.ContainsFunc(r.Observations, func(s string) bool { return strings.Contains(s, part) }) {
			t.Errorf("no %s in %q", part, r.Observations)
		}
	}
}

func TestSourceThatChangesMeanwhile(t *testing.T) {
	for _, reads := range []Reads{Traced, Depfile} {
		c, one := onRoots(t, reads, []map[string]string{{"a/water.txt": "deep", "b.txt": "b"}}, "")
		c.Command = []string{"helper", "race", "{out}", "{in}", "b.txt", "{dep}"}
		address, next := listener(t)
		c.Command = append(c.Command, address)
		done := make(chan error, 1)
		go func() { done <- processortest.Run(t, c.new(t), one).Err }()
		program := next() // it has read b.txt
		if err := os.WriteFile(filepath.Join(c.Roots[0], "b.txt"), []byte("changed"), 0o600); err != nil {
			t.Fatal(err)
		}
		program.Close()
		p := only(t, <-done, diag.CommandChanged)
		if !errors.Is(p, diag.ErrMoment) || !strings.Contains(p.Text, "b.txt") {
			t.Errorf("%s: %+v", reads, p)
		}
	}
}

// TestListThatChangesMeanwhile: a file that comes into a folder and goes again while a program lists it is one that the program may have
// seen. What Kiln makes beside its own folders meanwhile is none.
func TestListThatChangesMeanwhile(t *testing.T) {
	for _, c := range []struct {
		in      string // the folder that is listed
		name    string
		changes bool
	}{{"b", "x~", true}, {"b", "d/x~", false}, {"", "x~", false}} {
		config, one := onRoots(t, Traced, []map[string]string{{"a/water.txt": "deep", "b/d/c.txt": "c"}}, "")
		dir := config.Roots[0]
		config.Built = []string{dir + "/build"}
		address, next := listener(t)
		config.Command = []string{"helper", "race", "{out}", "{in}", filepath.Join(dir, c.in), "../tmp/none", address}
		done := make(chan error, 1)
		go func() { done <- processortest.Run(t, config.new(t), one).Err }()
		program := next() // it has listed the folder
		for _, err := range []error{os.WriteFile(filepath.Join(dir, c.in, c.name), nil, 0o600), os.Remove(filepath.Join(dir, c.in, c.name))} {
			if err != nil {
				t.Error(err)
			}
		}
		program.Close()
		err := <-done
		if c.changes {
			only(t, err, diag.CommandChanged)
		} else if err != nil {
			t.Errorf("%s in %s: %v", c.name, c.in, err)
		}
	}
}

// TestViewThatChangesMeanwhile: the view has no link to what came into a source root since the program's run began, so what is recorded of
// the root must not be taken for what the program saw.
func TestViewThatChangesMeanwhile(t *testing.T) {
	for _, c := range []struct {
		reads, comes string
		changes      bool
	}{
		{".", "0/new.txt", true}, {".", "1/new.txt", true}, {".", "0/both/new.txt", false}, {"both", "0/both/new.txt", true}, {"both", "1/both/new.txt", true},
		{"new.txt", "0/new.txt", true}, {"new/x.txt", "1/new/x.txt", true}, {"both/a.txt", "1/both/a.txt", true}, {"both/a.txt", "0/new.txt", false},
		{"both/a.txt", "1/both/new.txt", false}, {"new.txt", "1/other.txt", false}, {".", "0/.hidden", false}, {".", "0/ids.h", false},
	} {
		config, one := onRoots(t, Traced, []map[string]string{{"a/water.txt": "deep", "both/a.txt": "a"}, {"both/b.txt": "b"}}, "")
		config.Shipped = []string{filepath.Join(config.Roots[0], "ids.h")}
		address, next := listener(t)
		config.Command = []string{"helper", "race", "{out}", "{in}", c.reads, "../tmp/none", address}
		done := make(chan error, 1)
		go func() { done <- processortest.Run(t, config.new(t), one).Err }()
		program := next() // it has looked
		root, name, _ := strings.Cut(c.comes, "/")
		file := filepath.Join(config.Roots[int(root[0]-'0')], name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte("new"), 0o600)); err != nil {
			t.Error(err)
		}
		program.Close()
		err := <-done
		if c.changes {
			if p := only(t, err, diag.CommandChanged); !errors.Is(p, diag.ErrMoment) {
				t.Errorf("%+v: %+v", c, p)
			}
		} else if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestDepfileIsRecorded(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "stdio.h")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, one := onRoots(t, Depfile, []map[string]string{{"a/water.txt": "deep", "lib/b.txt": "b"}}, "dep", "{out}", "{dep}", "x: a/water.txt lib/b.txt a/../lib/b.txt lib/none.txt "+outside, "{in}")
	r := processortest.Run(t, c.new(t), one)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	want := []string{"tool helper", "file a/water.txt", "file lib/b.txt", "tool ROOT1/lib/none.txt", "exists lib/none.txt: false", "tool " + outside}
	if d := cmp.Diff(want, ofSources(r.Observations, c.Roots)); d != "" {
		t.Error(d)
	}
}

// TestFailedDepfile: of a program that failed, what it read is not known to the end. Its asset is, and the failure does not last.
func TestFailedDepfile(t *testing.T) {
	for _, command := range [][]string{
		{"fail", "{out}", "{dep}", "{in}"},              // ends with 1
		{"dep", "{out}", "{dep}", "no depfile", "{in}"}, // ends well, and the depfile is none
	} {
		c, one := onRoots(t, Depfile, []map[string]string{{"a/water.txt": "deep"}}, command...)
		r := processortest.Run(t, c.new(t), one)
		if !errors.Is(r.Err, diag.ErrMoment) {
			t.Errorf("%v: it would be kept: %v", command, r.Err)
		}
		if d := cmp.Diff([]string{"tool helper", "file a/water.txt"}, ofSources(r.Observations, c.Roots)); d != "" {
			t.Errorf("%v: %s", command, d)
		}
	}
}

// TestHostile: what a program does elsewhere than in its scratch folder fails, and it is told.
func TestHostile(t *testing.T) {
	if s := seal.Supported(); s.Writes < 3 || !s.Network {
		t.Skipf("%+v", s)
	}
	address, _ := listener(t)
	for _, reads := range []Reads{Declared, Traced} {
		for _, args := range [][]string{
			{"overwrite", "ROOT/a/water.txt"}, {"overwrite", "ROOT/new.txt"}, {"remove", "ROOT/a/water.txt"}, {"remove", "ROOT/a"}, {"overwrite", "/tmp/kiln-hostile"}, {"connect", address},
		} {
			c, one := onRoots(t, reads, []map[string]string{{"a/water.txt": "deep"}}, "")
			c.Network = false
			c.Command = append([]string{"helper"}, args...)
			for i := range c.Command {
				c.Command[i] = strings.ReplaceAll(c.Command[i], "ROOT", c.Roots[0])
			}
			c.Command = append(c.Command, "{out}", "{in}")
			p := only(t, processortest.Run(t, c.new(t), one).Err, diag.CommandFailed)
			if !strings.Contains(p.Text, "permission denied") {
				t.Errorf("%v: %s", args, p.Text)
			}
			if data, err := os.ReadFile(filepath.Join(c.Roots[0], "a/water.txt")); err != nil || string(data) != "deep" {
				t.Errorf("%v: %q, %v", args, data, err)
			}
		}
	}
}

func TestTracedOpensTenThousandFiles(t *testing.T) {
	c, one := onRoots(t, Traced, []map[string]string{{"a/water.txt": "deep"}}, "many", "{out}", "{in}", "10000")
	r := processortest.Run(t, c.new(t), one)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	n := 0
	for _, s := range r.Observations {
		if strings.HasPrefix(s, "exists many/") {
			n++
		}
	}
	if n != 10_000 {
		t.Errorf("%d files recorded", n)
	}
}

func TestLoader(t *testing.T) {
	dir := t.TempDir()
	file := func(name, data string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(data), 0o700); err != nil {
			t.Fatal(err)
		}
		return p
	}
	sh := file("sh", "#! "+file("inner", "#!/none/x -u\n")+" -e\necho\n")
	var got []string
	for _, a := range loaders(sh) {
		got = append(got, a.Path)
	}
	if want := []string{dir + "/inner", "/none/x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, data := range []string{"", "#!", "#!\n", "\x7fELF", "\x7fELF\x02\x01" + strings.Repeat("\xff", 100), "\x7fELF\x02\x01" + strings.Repeat("\x00", 58)} {
		if got := loaders(file("bad", data)); got != nil {
			t.Errorf("%q: %v", data, got)
		}
	}
}

func FuzzELFLoader(f *testing.F) {
	if data, err := os.ReadFile("/bin/sh"); err == nil {
		f.Add(data[:min(len(data), maxHeader)])
	}
	f.Add([]byte("\x7fELF\x02\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s := elfLoader(data); len(s) > len(data) {
			t.Errorf("%d bytes of %d", len(s), len(data))
		}
	})
}

// TestFrameOfLinks: links stay in a frame, but for those of files that came or went, and but for what a program made of them.
func TestFrameOfLinks(t *testing.T) {
	if seal.Supported().Writes == 0 {
		t.Skip("without landlock each run has a frame of its own")
	}
	two := []map[string]string{{"a/water.txt": "nothing", "b/c.txt": "c"}, {"a/fire.txt": "hot"}}
	c, one := onRoots(t, Traced, two, "frame", "{in}", "{out}", "-")
	p := lasting(t, c.Config)
	job := shelving{inRoots{Processor: p, roots: c.Roots}, filepath.Join(t.TempDir(), "shelf")}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(c.Roots[0], name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const merged = "in/a folder\nin/a/fire.txt file\nin/a/water.txt file\n"
	for i, step := range []struct {
		do   func()
		want string // in the view
		kept int    // frames afterwards
	}{
		{func() {}, merged + "in/b file\n", 1},
		{func() {}, merged + "in/b file\n", 1},
		{func() { put("d.txt", "d"); os.RemoveAll(filepath.Join(c.Roots[0], "b")) }, merged + "in/d.txt file\n", 1},
		{func() { os.RemoveAll(filepath.Join(c.Roots[1], "a")) }, "in/a file\nin/d.txt file\n", 1},
		{func() { put("a/water.txt", "relink"); one.Files["a/water.txt"] = []byte("relink") }, "", 0}, // it fails: what it looked at is not what it was

		{func() { put("a/water.txt", "nothing"); one.Files["a/water.txt"] = []byte("nothing") }, "in/a file\nin/d.txt file\n", 1},
	} {
		step.do()
		r := processortest.Run(t, job, one)
		want := ". folder\nhome folder\nin folder\n" + step.want + "out folder\ntmp folder\n"
		if got := shape(r.Products[""].Data); (r.Err != nil) != (step.want == "") || r.Err == nil && got != want || len(p.frames.kept()) != step.kept {
			t.Errorf("step %d: %v, %d frames\n%s", i, r.Err, len(p.frames.kept()), got)
		}
	}
}

// TestOtherRoot: a file comes to a later root after Kiln looked. A traced program has the one that the job knows in its view, and it is
// that one which is recorded.
func TestOtherRoot(t *testing.T) {
	for name, args := range map[string][]string{string(Traced): {"cat", "{out}", "{in}", "b.txt"}, string(Depfile): {"dep", "{out}", "{dep}", "x: a/water.txt b.txt", "{in}"}} {
		c, one := onRoots(t, Reads(name), []map[string]string{{"a/water.txt": "deep", "b.txt": "b"}, {"c.txt": ""}}, args...)
		before := inRoots{Processor: mustNew(t, c.Config), roots: c.Roots}
		if err := processortest.Run(t, before, one).Err; err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		before.where = c.Roots[:1]
		if err := os.WriteFile(filepath.Join(c.Roots[1], "b.txt"), []byte("B"), 0o600); err != nil {
			t.Fatal(err)
		}
		waitForClock(t, seal.StateOf(filepath.Join(c.Roots[1], "b.txt")).Moved)
		if r := processortest.Run(t, before, one); r.Err != nil || name == string(Traced) && string(r.Products[""].Data) != "deepb" {
			t.Errorf("%s: %v, %q", name, r.Err, r.Products[""].Data)
		}
	}
}
