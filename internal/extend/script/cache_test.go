package script

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// large is a script that is worth keeping, and one of its modules.
func large(mark string) map[string]string {
	return map[string]string{
		"p.star":   "load(\"lib.star\", \"twice\")\n" + body("job.write(twice(\""+mark+"\") + job.settings_of)") + strings.Repeat("# a comment\n", 60),
		"lib.star": "def twice(x):\n    x += x\n    return x\n" + strings.Repeat("# a comment\n", 60),
	}
}

// keptIn are the files of a cache.
func keptIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		kept[f] = string(data)
	}
	return kept
}

// TestCache: compiled modules are kept, used, and made anew when their source changed or they are damaged, whichever byte it is.
func TestCache(t *testing.T) {
	dir, cacheDir := project(t, large("a")), filepath.Join(t.TempDir(), "scripts")
	got := func() string {
		t.Helper()
		s, err := Load(dir, "p.star", cacheDir)
		if err != nil {
			t.Fatal(written1(err))
		}
		// The place of a mistake is in the compiled code, too.
		r := processortest.Run(t, s, processortest.Case{Files: map[string][]byte{"a.p": nil}, Asset: "a.p"})
		return s.Fingerprint() + written1(r.Err)
	}
	fresh := got()
	if !strings.Contains(fresh, "p.star:4:") || !strings.Contains(fresh, "settings_of") {
		t.Fatal(fresh)
	}
	kept := keptIn(t, cacheDir)
	if len(kept) != 2 {
		t.Fatalf("%d files are kept", len(kept))
	}
	if got() != fresh {
		t.Error("from the cache it differs")
	}
	if !maps.Equal(keptIn(t, cacheDir), kept) {
		t.Error("the cache was written again")
	}
	c, source := cache{dir: cacheDir}, []byte(large("a")["p.star"])
	if c.get("p.star", source) == nil || c.get("lib.star", source) != nil {
		t.Error("a path stands for its own source, and for no other")
	}
	file := c.file("p.star")
	for i := range len(kept[file]) {
		damaged := []byte(kept[file])
		damaged[i] ^= 0x55
		if err := os.WriteFile(file, damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		if c.get("p.star", source) != nil {
			t.Fatalf("byte %d is damaged, and the code is taken", i)
		}
	}
	if got() != fresh {
		t.Error("damaged")
	}
	if err := os.Truncate(file, 20); err != nil {
		t.Fatal(err)
	}
	if got() != fresh {
		t.Error("cut off")
	}
	if !maps.Equal(keptIn(t, cacheDir), kept) {
		t.Error("the cache was not mended")
	}
	if err := os.WriteFile(filepath.Join(dir, "p.star"), []byte(large("b")["p.star"]), 0o666); err != nil {
		t.Fatal(err)
	}
	if got() == fresh || len(keptIn(t, cacheDir)) != 2 {
		t.Error("an edit")
	}
}

// TestCompiler: the constant says which compiled code is of which compiler.
func TestCompiler(t *testing.T) {
	l := newLoader(nil, "")
	b := digest.Build("compiler")
	for _, name := range slices.Sorted(maps.Keys(l.names)) {
		b.Str("name", name)
	}
	for _, c := range languageCases {
		file, err := options().Parse("p.star", body(c.lines), 0)
		if err != nil {
			t.Fatal(err)
		}
		rewrite(file)
		prog, err := starlark.FileProgram(file, l.names.Has)
		if err != nil {
			t.Fatal(err)
		}
		var code bytes.Buffer
		if err := prog.Write(&code); err != nil {
			t.Fatal(err)
		}
		b.Str("code", code.String())
	}
	if want := b.Sum().String()[:16]; want != compiler {
		t.Errorf("compiled code is no longer what it was: set compiler to %q", want)
	}
}
