package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// TestMessages holds every message of this package to its text.
func TestMessages(t *testing.T) {
	for _, c := range []struct{ name, files, want string }{
		{"K0201 by a problem", "-- assets/a.s --\ntext fine\nfail this is wrong\n", `
assets/a.s:2:1: error[K0201]: this is wrong
    fail this is wrong
    ^^^^ write something else
`},
		{"K0201 by any error", "-- assets/a.s --\nerror a plain error\n", `
assets/a.s: error[K0201]: processor "script": a plain error
`},
		{"K0201 as a warning", "-- assets/a.s --\nwarn mind this\n", `
assets/a.s:1:1: warning[K0201]: mind this
    warn mind this
    ^^^^
`},
		{"K0202", "-- assets/a.s --\nuse b.s\n-- assets/b.s --\nuse c.s\n-- assets/c.s --\nerror of c\n", `
assets/c.s: error[K0201]: processor "script": of c
assets/a.s: error[K0202]: needs b.s, which failed
  the cause is c.s
assets/b.s: error[K0202]: needs c.s, which failed
`},
		{"K0203", "-- assets/a.s --\nuse b.s\n-- assets/b.s --\nuse c.s\n-- assets/c.s --\nuse a.s\n", `
assets/a.s: error[K0203]: needs itself: a.s -> b.s -> c.s -> a.s
  remove one of these dependencies
assets/b.s: error[K0203]: needs itself: a.s -> b.s -> c.s -> a.s
  remove one of these dependencies
assets/c.s: error[K0203]: needs itself: a.s -> b.s -> c.s -> a.s
  remove one of these dependencies
`},
		{"K0204", "-- assets/a.s --\ntext a\n-- assets/a.s.txt --\nb\n-- assets/fine.txt --\nfine\n", `
assets/a.s: error[K0204]: writes pc/a.s.txt, and so does assets/a.s.txt
  give one of them another id with a rule
assets/a.s.txt: error[K0204]: writes pc/a.s.txt, and so does assets/a.s
  give one of them another id with a rule
`},
		{"K0204 in case alone", "-- assets/a.s --\ntext a\n-- assets/A.s.txt --\nb\n", `
assets/A.s.txt: error[K0204]: writes pc/a.s.txt, and so does assets/a.s
  give one of them another id with a rule
assets/a.s: error[K0204]: writes pc/a.s.txt, and so does assets/A.s.txt
  give one of them another id with a rule
`},
		{"K0204 by a folder", "-- assets/a.s --\ntext a\n-- assets/x.txt --\nx\n-- assets/a.s.txt/b.txt --\nb\n", `
assets/a.s: error[K0204]: writes pc/a.s.txt, where assets/a.s.txt/b.txt needs a folder
  give one of them another id with a rule
assets/a.s.txt/b.txt: error[K0204]: needs the folder pc/a.s.txt, where assets/a.s writes a file
  give one of them another id with a rule
`},
		{"K0205", "-- assets/a.s --\npanic stations\n", `
assets/a.s: error[K0205]: processor "script" panicked: stations
  this is a mistake in the processor; report it to its authors, with this asset
  in build.(*script).line (script_test.go:0)
  in build.(*script).Process (script_test.go:0)
`},
		{"K0206", "-- assets/a.s --\nread ../secret\n", `
assets/a.s: error[K0206]: the job wants to read "../secret", which is not a path below the source roots
  use a path relative to the source roots, with forward slashes and without ".."
`},
		{"K0206 by a drive", "-- assets/a.s --\ntry C:/secret\n", `
assets/a.s: error[K0206]: the job wants to read "C:/secret", which is not a path below the source roots
  use a path relative to the source roots, with forward slashes and without ".."
`},
		{"K0207", "-- assets/a.s --\nread gone.txt\n", `
assets/a.s: error[K0207]: it needs "gone.txt", which does not exist
  put the file there, or correct what names it
`},
		{"K0208", "-- assets/a.s --\nuse soljer.txt\n-- assets/soldier.txt --\ns\n", `
assets/a.s: error[K0208]: there is no asset "soljer.txt"
  did you mean "soldier.txt"?
`},
		{"K0209", "-- assets/a.s --\ntwice x\n", `
assets/a.s: error[K0209]: processor "script" wrote product "x" twice
  each product of an asset needs a name of its own
`},
		{"K0102", "-- assets/a.txt --\nversion https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", `
assets/a.txt: error[K0102]: this is a Git LFS pointer, not the content
  run ` + "`git lfs pull`" + ` to fetch it
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, c.files)
			line := regexp.MustCompile(`_test\.go:\d+`)
			got := "\n" + line.ReplaceAllString(p.build().messages, "_test.go:0")
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			p.nothing()
			if again := "\n" + line.ReplaceAllString(p.build().messages, "_test.go:0"); again != got {
				t.Errorf("the next build says\n%s", again)
			}
		})
	}
}

// TestWrongRequests has patterns and platforms that mean nothing.
func TestWrongRequests(t *testing.T) {
	p := newProject(t, twoPlatforms)
	for _, c := range []struct {
		req  Request
		want string
	}{
		{Request{Patterns: []string{"a.text"}}, "error[K0213]: no asset matches \"a.text\"\n  did you mean \"a.txt\"?\n"},
		{Request{Patterns: []string{"textures/**"}}, "error[K0213]: no asset matches \"textures/**\"\n  `kiln ls` lists the assets\n"},
		{Request{Patterns: []string{"a["}}, "error[K0007]: pattern \"a[\" is not well formed\n  quote it, so that the shell leaves it alone; `kiln explain K0007` says more\n"},
		{Request{Platforms: []string{"pcc"}}, "error[K0011]: there is no platform \"pcc\"\n  did you mean \"pc\"?\n"},
		{Request{Platforms: []string{"switch"}}, "error[K0011]: there is no platform \"switch\"\n  the project has: pc, web\n"},
	} {
		_, err := p.try(context.Background(), c.req)
		var l diag.List
		if !errors.As(err, &l) {
			t.Errorf("got %v", err)
			continue
		}
		if got := l[0].String(); len(l) != 1 || got != c.want {
			t.Errorf("got %q, not %q", got, c.want)
		}
	}
	for _, pattern := range []string{"a.txt", "assets/a.txt", "*.txt", "**/a*"} {
		if b := p.buildWith(Request{Patterns: []string{pattern}}); b.Assets == 0 {
			t.Errorf("%s means nothing", pattern)
		}
	}
}

// TestStateMessages damages what Kiln remembers: one line each, and then nothing more is said of it.
func TestStateMessages(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(p *fixture)
		want   string
	}{
		{"snapshot", func(p *fixture) { p.write(".kiln/snapshot", "what is this?") }, ".kiln: warning[K0211]: the snapshot of files is not one; all files are compared\n"},
		{"snapshot cut off", func(p *fixture) { p.write(".kiln/snapshot", p.read(".kiln/snapshot")[:200]) }, ".kiln: warning[K0211]: the snapshot of files is damaged; all files are compared\n"},
		{"another snapshot", func(p *fixture) {
			s := []byte(p.read(".kiln/snapshot"))
			s[8] = 77
			p.write(".kiln/snapshot", string(s))
		}, ".kiln: warning[K0211]: the snapshot of files has version 77, not 5; all files are compared\n"},
		{"traces", func(p *fixture) { p.write(".kiln/traces", "what is this?"); p.remove("build/pc/a.txt") }, ".kiln: warning[K0211]: the trace log is not one; all jobs run again\n"},
		{"other traces", func(p *fixture) {
			s := []byte(p.read(".kiln/traces"))
			s[8] = 77
			p.write(".kiln/traces", string(s))
			p.remove("build/pc/a.txt")
		}, ".kiln: warning[K0211]: the trace log has version 77, not 3; all jobs run again\n"},
		{"traces cut off", func(p *fixture) { p.write(".kiln/traces", p.read(".kiln/traces")[:30]); p.remove("build/pc/a.txt") },
			".kiln: warning[K0211]: the trace log is damaged at byte 24; what follows was dropped\n"},
		{"database", func(p *fixture) {
			p.remove(".kiln/content.db-wal")
			p.write(".kiln/content.db", strings.Repeat("what is this?", 100))
			p.write("assets/a.txt", "A")
		}, ".kiln/content.db: warning[K0211]: it is not a SQLite file\n"},
		{"database that cannot be written", func(p *fixture) {
			p.remove(".kiln/content.db")
			p.mkdir(".kiln/content.db/folder")
			p.write("assets/a.txt", "A")
		}, ".kiln/content.db: warning[K0211]: the content database cannot be written: contentdb: open: sqlite: open \".kiln/content.db\": unable to open database file\n  products are not affected; the next build tries again\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "-- assets/a.txt --\na\n-- assets/b.s --\nuse a.txt\n")
			p.build()
			c.damage(p)
			p.unchecked = true
			if got := p.build().messages; got != c.want {
				t.Errorf("got %q, not %q", got, c.want)
			}
			p.unchecked = false
			if strings.Contains(c.name, "cannot") {
				p.remove(".kiln/content.db")
			}
			if b := p.wants(""); b.messages != "" {
				t.Errorf("still says %s", b.messages)
			}
		})
	}
}

// TestVerify finds what times do not show, and the next build mends it.
func TestVerify(t *testing.T) {
	const files = "-- assets/a.txt --\nalpha\n-- assets/b.s --\nuse a.txt\n"
	blob := func(p *fixture, text string) string {
		h := digest.Of([]byte(text)).String()
		return ".kiln/cas/" + h[:2] + "/" + h[2:]
	}
	// swap replaces content and leaves size, inode and times alone.
	swap := func(p *fixture, name, content string) {
		p.must(keepTimes(p.path(name), []byte(content)))
	}
	for _, c := range []struct {
		name, want, ran string
		damage          func(p *fixture)
	}{
		{"nothing", "", "", func(p *fixture) {}},
		{"K0212", "warning[K0212]: the stored blob is damaged\n  `kiln verify --fix` removes it, and the job that made it runs again\n", "", func(p *fixture) {
			p.remove("build/pc/b.s.txt") // or it would be the same file
			p.wants("")
			name := blob(p, "alpha\n")
			p.remove("build/pc/a.txt")
			p.write("build/pc/a.txt", "alpha\n") // a copy of its own
			p.wants("")
			p.remove(name)
			p.write(name, "ALPHA\n")
		}},
		{"K0220 changed", "build/pc/b.s.txt: warning[K0220]: the product was changed by somebody else\n  `kiln verify --fix` puts it back\n", "b.s",
			func(p *fixture) { swap(p, "build/pc/b.s.txt", "ALPHA\n") }},
		{"K0220 missing", "build/pc/b.s.txt: warning[K0220]: the product is missing\n  `kiln verify --fix` puts it back\n", "",
			func(p *fixture) { p.remove("build/pc/b.s.txt") }},
		{"K0221", "assets/a.txt: warning[K0221]: the content changed although size, times and inode did not\n" +
			"  `kiln verify --fix` builds what depends on it; a disk or a program that does this needs `kiln build --changed-by hash`\n", "",
			func(p *fixture) { // as it looks after such a change: no file system here lets one set back all times
				snap, _, err := state.ReadSnapshot(p.path(".kiln/snapshot"))
				p.must(err)
				i, _, _ := snap.Sources.Find("a.txt")
				snap.Sources.Files[i].Hash = digest.Of([]byte("what it was"))
				im, err := snap.Image()
				p.must(err)
				p.must(state.WriteSnapshot(p.path(".kiln/snapshot"), im))
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, files)
			p.write("assets/b.s", "use a.txt\ntext b")
			p.build()
			c.damage(p)
			v := p.verify(false)
			p.verify(true)
			var got string
			for _, m := range v.Messages {
				if m.Code != diag.BlobDamaged || c.name == "K0212" {
					got += m.String()
				}
			}
			if c.name == "K0212" {
				_, got, _ = strings.Cut(got, ": ")
			}
			if got != c.want {
				t.Errorf("got %q, not %q", got, c.want)
			}
			if v.Sources < 2 || v.Products != 2 || v.Blobs < 2 {
				t.Errorf("looked at %d sources, %d products, %d blobs", v.Sources, v.Products, v.Blobs)
			}
			p.wants(c.ran)
			p.nothing()
		})
	}
}

// TestBlobLost loses a product between the look at it and the use of it. The job that needs it fails, and is tried again.
func TestBlobLost(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\nalpha\n-- assets/b.s --\nlist a.txt\nhook lose\nuse a.txt\n")
	p.procs = testProcessors(&hooks{call: func(context.Context, string, processor.Job) error { return nil }})
	p.build()
	p.write("assets/b.s", "list a.txt\nhook lose\nuse a.txt\ntext more")
	p.procs = testProcessors(&hooks{call: func(context.Context, string, processor.Job) error {
		p.remove(".kiln/cas")
		p.mkdir(".kiln/cas/tmp")
		p.scribble("build/pc/a.txt")
		return nil
	}})
	p.unchecked = true
	b := p.build()
	want := `pc/a.txt: error[K0212]: the product was lost or damaged since it was made
  build again: the job that makes it runs then
`
	if !strings.HasPrefix(b.messages, want) && !strings.HasSuffix(b.messages, want) || b.Failed == 0 {
		t.Errorf("failed %d: %s", b.Failed, b.messages)
	}
	p.unchecked = false
	p.procs = testProcessors(&hooks{call: func(context.Context, string, processor.Job) error { return nil }})
	p.wants("a.txt b.s")
	p.nothing()
}

// TestBlobLostOnce loses a product in the same way, but once: it is made again in the same build, and nobody hears of it.
func TestBlobLostOnce(t *testing.T) {
	for name, lose := range map[string]func(p *fixture){
		"removed": func(p *fixture) { p.remove(".kiln/cas"); p.mkdir(".kiln/cas/tmp") },
		"damaged": func(p *fixture) {
			p.must(filepath.WalkDir(p.path(".kiln/cas"), func(path string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					err = errors.Join(os.Remove(path), os.WriteFile(path, []byte("ALPHA\n"), 0o666))
				}
				return err
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, "-- assets/a.txt --\nalpha\n-- assets/b.s --\nlist a.txt\nhook lose\nuse a.txt\n")
			p.procs = testProcessors(&hooks{call: func(context.Context, string, processor.Job) error { return nil }})
			p.build()
			p.write("assets/b.s", "list a.txt\nhook lose\nuse a.txt\ntext more")
			left := 1
			p.procs = testProcessors(&hooks{call: func(context.Context, string, processor.Job) error {
				if left--; left == 0 {
					lose(p)
					p.scribble("build/pc/a.txt")
				}
				return nil
			}})
			if b := p.build(); b.Failed != 0 || b.messages != "" || b.ran != "a.txt b.s" { // and is compared with a clean one
				t.Errorf("failed %d, ran %q: %s", b.Failed, b.ran, b.messages)
			}
			p.nothing()
		})
	}
}

// TestRulesChangeMeanwhile evaluates rules that are no longer those of the table of files, as when they are saved right after the scan.
func TestRulesChangeMeanwhile(t *testing.T) {
	p := newProject(t, "-- assets/a.txt --\na\n-- assets/rules.toml --\n[[rules]]\nmatch = \"a.txt\"\nprocessor = \"none\"\n")
	pr := p.open()
	o, _ := pr.ScanOptions()
	table, _, _, err := source.Scan(nil, source.Options{Roots: o.Roots, Workers: 1})
	p.must(err)
	if _, _, l := pr.Evaluate(table); l != nil {
		t.Fatal(l)
	}
	p.write("assets/rules.toml", "[[rules]]\nmatch = \"a.txt\"\nprocessor = \"copy\"\n")
	_, _, l := pr.Evaluate(table)
	if want := "assets/rules.toml: error[K0106]: the rules cannot be read: the file changed while it was read"; len(l) != 1 || l[0].Error() != want {
		t.Errorf("got %v", l)
	}
	p.remove("assets/rules.toml")
	_, _, l = pr.Evaluate(table)
	if len(l) != 1 || l[0].Code != diag.SourceUnreadable || l[0].Hint != "check its permissions, or close the program that holds it" {
		t.Errorf("got %v", l)
	}
}

// TestStateGone removes Kiln's state while a job runs, which then fails, as a program does whose folder is gone. That failure is not kept:
// the next build tries again.
func TestStateGone(t *testing.T) {
	p := newProject(t, "-- assets/a.s --\nhook gone\ntext fine\n")
	p.unchecked = true
	p.procs = testProcessors(&hooks{call: func(context.Context, string, processor.Job) error {
		p.rename(".kiln", "elsewhere")
		p.mkdir(".kiln")
		return errors.New("no folder to work in")
	}})
	r, err := p.open().Build(t.Context(), Request{Reporter: job.Silent{}})
	if err == nil && !r.Passing {
		t.Error("the failure would be kept")
	}
	p.procs = testProcessors(&hooks{call: func(context.Context, string, processor.Job) error { return nil }})
	p.unchecked = false
	if b := p.build(); b.Failed != 0 {
		t.Error(b.messages)
	}
	p.nothing()
}
