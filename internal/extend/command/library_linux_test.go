package command

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// real are the files with their links followed, sorted, without those that are missing.
func real(files []seal.Access) (all []string) {
	for _, a := range files {
		if file, err := filepath.EvalSymlinks(a.Path); err == nil {
			all = append(all, file)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestLibrariesAsLdd: what the dynamic loader itself says.
func TestLibrariesAsLdd(t *testing.T) {
	ldd, err := exec.LookPath("ldd")
	if err != nil {
		t.Skip("there is no ldd")
	}
	tried := 0
	for _, name := range []string{"cp", "ls", "bash", "python3", "perl", "git", "ffmpeg", "ffprobe", "glslc", "openssl", "curl", "gdb", "ninja", "node", "gcc", "java",
		"chromium", "blender", "inkscape", "magick", "wine", "qemu-system-x86_64", "vim", "emacs", "perf"} {
		program, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if program, err = filepath.EvalSymlinks(program); err != nil { // ldd takes the folder of a link for $ORIGIN, and the kernel does not
			t.Error(err)
			continue
		}
		cmd := exec.Command(ldd, program)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"} // no LD_LIBRARY_PATH
		said, err := cmd.Output()
		if err != nil {
			continue // linked with nothing
		}
		var want []seal.Access
		for word := range strings.FieldsSeq(string(said)) {
			if strings.HasPrefix(word, "/") {
				want = append(want, seal.Access{Path: word})
			}
		}
		tried++
		var l linked
		got, all := real(l.files(program, "")), real(want)
		for _, file := range all {
			if !slices.Contains(got, file) {
				t.Errorf("%s: %s was not found", name, file)
			}
		}
		for _, file := range got { // for better processors than this one there may be others
			if !slices.Contains(all, file) && !strings.Contains(file, "/glibc-hwcaps/") && !slices.ContainsFunc(all, func(s string) bool {
				return strings.Contains(s, "/glibc-hwcaps/") && filepath.Base(s) == filepath.Base(file)
			}) {
				t.Errorf("%s: %s was found, and ldd does not", name, file)
			}
		}
	}
	if tried < 2 {
		t.Skip("no programs to try")
	}
}

// TestLibrariesOfItsOwn: a program that brings its libraries, the second of which only the first needs.
func TestLibrariesOfItsOwn(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("there is no gcc")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(at("lib"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"two.c": "int two(void) { return 2; }", "one.c": "int two(void); int one(void) { return two(); }",
		"main.c": "#include <stdio.h>\nint one(void); int main(int n, char **a) { FILE *f = fopen(a[1], \"w\"); fprintf(f, \"%d\", one()); return fclose(f); }",
	} {
		if err := os.WriteFile(at(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	gcc := func(args ...string) {
		t.Helper()
		cmd := exec.Command("gcc", args...)
		cmd.Dir = dir
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("gcc does not do: %s", said)
		}
	}
	gcc("-shared", "-fPIC", "-o", "lib/libtwo.so", "two.c")
	for _, path := range []string{"-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"} { // DT_RUNPATH, DT_RPATH
		gcc("-shared", "-fPIC", path, "-Wl,-rpath,$ORIGIN", "-o", "lib/libone.so", "one.c", "-Llib", "-ltwo")
		gcc(path, "-Wl,-rpath,$ORIGIN/none:$ORIGIN/lib", "-o", "tool", "main.c", "-Llib", "-lone", "-Wl,-rpath-link,lib")
		c, one := helperConfig(), helperCase(t)
		c.Command = []string{"tool", "{out}", "{in}"}
		one.Tools["tool"] = at("tool")
		p := mustNew(t, c)
		r := processortest.Run(t, p, one)
		if r.Err != nil || string(r.Products[""].Data) != "2" {
			t.Fatal(r.Err)
		}
		for _, want := range []string{"tool", at("none/libone.so"), at("lib/libone.so"), at("lib/libtwo.so")} {
			if !slices.Contains(r.Observations, "tool "+want) {
				t.Errorf("%s: no %s in %q", path, want, r.Observations)
			}
		}
	}
	// Where it looked in vain there is one now.
	var l linked
	before := real(l.files(at("tool"), ""))
	if err := os.MkdirAll(at("none"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(at("lib/libone.so"), at("none/libone.so")); err != nil {
		t.Fatal(err)
	}
	after := real(l.files(at("tool"), ""))
	if slices.Contains(before, at("none/libone.so")) || !slices.Contains(after, at("none/libone.so")) {
		t.Errorf("%q, then %q", before, after)
	}
	gcc("-o", "bare", "main.c", "-Llib", "-lone", "-Wl,-rpath-link,lib")
	for path, want := range map[string]bool{"": false, "/none:" + at("lib"): true} {
		if got := real(l.files(at("bare"), path)); slices.Contains(got, at("lib/libone.so")) != want {
			t.Errorf("LD_LIBRARY_PATH=%s: %q", path, got)
		}
	}
}

// loaderCacheOf writes a cache as ldconfig does.
func loaderCacheOf(pairs ...string) []byte {
	var strs, entries []byte
	start := 48 + 24*len(pairs)/2
	put := func(s string) uint32 {
		at := start + len(strs)
		strs = append(append(strs, s...), 0)
		return uint32(at)
	}
	for i := 0; i < len(pairs); i += 2 {
		entries = binary.NativeEndian.AppendUint32(entries, 0x303)
		entries = binary.NativeEndian.AppendUint32(entries, put(pairs[i]))
		entries = binary.NativeEndian.AppendUint32(entries, put(pairs[i+1]))
		entries = append(entries, make([]byte, 12)...)
	}
	b := []byte("glibc-ld.so.cache1.1")
	b = binary.NativeEndian.AppendUint32(b, uint32(len(pairs)/2))
	b = binary.NativeEndian.AppendUint32(b, uint32(len(strs)))
	return slices.Concat(b, make([]byte, 20), entries, strs)
}

// TestLoaderCacheIsReadByName: what others installed runs no job again, and a library that is taken in place of the one before does. What a
// program asks of all of the cache, it depends on.
func TestLoaderCacheIsReadByName(t *testing.T) {
	if _, err := os.Stat(loaderCache); err != nil {
		t.Skip(err)
	}
	for _, reads := range []Reads{Declared, Depfile, Traced} {
		c, one := onRoots(t, reads, []map[string]string{{"a/water.txt": "deep"}}, "")
		c.Command = []string{"cp", "{in}", "{out}"}
		if reads == Depfile {
			c.Command = []string{"sh", "-c", "cp $0 $1; echo x: >$2", "{in}", "{out}", "{dep}"}
		}
		one.Tools["cp"], one.Tools["sh"] = "/bin/cp", "/bin/sh"
		r := processortest.Run(t, c.new(t), one)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if !slices.Contains(r.Observations, "tool "+loaderCache+":libc.so.6") || slices.Contains(r.Observations, "tool "+loaderCache) {
			t.Errorf("%q: %q", reads, r.Observations)
		}
	}
	ldconfig, err := exec.LookPath("/sbin/ldconfig")
	if err != nil {
		t.Skip(err)
	}
	c, one := onRoots(t, Traced, []map[string]string{{"a/water.txt": "deep"}}, "")
	c.Command = []string{"sh", "-c", ldconfig + " -p >$1", "{in}", "{out}"}
	one.Tools["sh"] = "/bin/sh"
	if r := processortest.Run(t, c.new(t), one); r.Err != nil || !slices.Contains(r.Observations, "tool "+loaderCache) {
		t.Errorf("%v, %q", r.Err, r.Observations)
	}
}

func TestCachedPaths(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ld.so.cache")
	for _, step := range []struct{ cache, want []string }{
		{[]string{"liba.so", "/lib/liba.so"}, []string{"/lib/liba.so"}},
		{[]string{"liba.so", "/lib/liba.so", "libz.so", "/lib/libz.so"}, []string{"/lib/liba.so"}},
		{[]string{"liba.so", "/usr/local/lib/liba.so", "liba.so", "/lib/liba.so"}, []string{"/usr/local/lib/liba.so", "/lib/liba.so"}},
		{nil, nil},
	} {
		if err := os.WriteFile(file+".new", loaderCacheOf(step.cache...), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
		if got := CachedPaths(file, "liba.so"); !slices.Equal(got, step.want) {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
	for path, ok := range map[string]bool{file + ":liba.so": true, file: false, "ld.so.cache:x": false, "/x/other.cache:x": false} {
		if _, _, is := CachedLibrary(path); is != ok {
			t.Errorf("%s: %v", path, is)
		}
	}
}

func TestLoaderCache(t *testing.T) {
	b := loaderCacheOf("liba.so.1", "/fast/liba.so.1", "liba.so.1", "/lib/liba.so.1", "libb.so", "/lib/libb.so", "libc.so", "relative")
	for _, data := range [][]byte{b, append([]byte("ld.so-1.7.0\x00 an older one   "), b...)} {
		got := parseLoaderCache(data)
		if !slices.Equal(got["liba.so.1"], []string{"/fast/liba.so.1", "/lib/liba.so.1"}) || !slices.Equal(got["libb.so"], []string{"/lib/libb.so"}) || len(got) != 2 {
			t.Errorf("%q", got)
		}
	}
	for n := range len(b) { // cut short
		parseLoaderCache(b[:n])
	}
}

func FuzzLoaderCache(f *testing.F) {
	f.Add(loaderCacheOf("liba.so", "/lib/liba.so"))
	f.Add([]byte("glibc-ld.so.cache1.1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, paths := range parseLoaderCache(data) {
			for _, p := range paths {
				if name == "" || !filepath.IsAbs(p) {
					t.Errorf("%q: %q", name, p)
				}
			}
		}
	})
}
