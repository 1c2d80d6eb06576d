// Package c_test compiles kiln.h as games do, with every installed compiler, and compares it with the other readers.
package c_test

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/zeebo/blake3"

	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt/internal/judge"
)

// strict are flags with which the header must compile in either language, without a warning.
var strict = []string{"-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-O1", "-g"}

// watched are flags for sanitizers.
var watched = []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}

// dialects are the compilers and languages that must accept the header.
var dialects = []struct{ compiler, language, std string }{
	{"gcc", "c", "c99"}, {"clang", "c", "c99"}, {"g++", "c++", "c++17"}, {"clang++", "c++", "c++17"}, {mingw, "c", "c99"},
}

// mingw compiles for Windows. If KILN_WINE is set, the programs run under Wine. On a busy machine Wine sometimes does
// not start a program, and reports nothing.
const mingw = "x86_64-w64-mingw32-gcc"

// programs are compiled once in a test run, because compiling takes most of the time.
var programs struct {
	sync.Mutex
	dir   string
	made  map[string]string
	links map[string]bool // by compiler and flags
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kiln-c-")
	if err != nil {
		panic(err)
	}
	programs.dir, programs.made, programs.links = dir, map[string]string{}, map[string]bool{}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// compiled returns testdata/<name>.c as a program.
func compiled(t testing.TB, name, compiler, language, std string, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("there is no %s", compiler)
	}
	if compiler == mingw {
		if _, err := exec.LookPath("wine"); err != nil || os.Getenv("KILN_WINE") == "" {
			t.Skip("there is no Wine, or KILN_WINE does not ask for it")
		}
	}
	for _, file := range []string{"kiln.h", "testdata/" + name + ".c", "testdata/check.c", "testdata/alone.h"} {
		if _, err := os.ReadFile(file); err != nil { // makes go test record what the result depends on
			t.Fatal(err)
		}
	}
	programs.Lock()
	defer programs.Unlock()
	key := name + "-" + compiler
	if out, ok := programs.made[key]; ok {
		return out
	}
	out := filepath.Join(programs.dir, key)
	args := append([]string{"-std=" + std}, flags...)
	args = append(args, "-I.", "-x", language, filepath.Join("testdata", name+".c"), "-o", out)
	if said, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, said)
	}
	programs.made[key] = out
	return out
}

// links reports whether a compiler can link programs with these flags: Debian's clang lacks the libraries of its
// sanitizers and its fuzzer.
func links(compiler string, flags ...string) bool {
	programs.Lock()
	defer programs.Unlock()
	key := compiler + " " + strings.Join(flags, " ")
	if does, known := programs.links[key]; known {
		return does
	}
	cmd := exec.Command(compiler, append(flags, "-x", "c", "-", "-o", filepath.Join(programs.dir, "links-"+compiler))...)
	cmd.Stdin = strings.NewReader("int main(void) { return 0; }\n")
	if slices.Contains(flags, "-fsanitize=fuzzer") {
		cmd.Stdin = strings.NewReader("int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { (void)p; (void)n; return 0; }\n")
	}
	programs.links[key] = cmd.Run() == nil
	return programs.links[key]
}

// everywhere runs a test with testdata/check.c, once for each compiler and language.
func everywhere(t *testing.T, test func(t *testing.T, program string)) {
	for _, d := range dialects {
		t.Run(d.compiler, func(t *testing.T) {
			flags := slices.Clone(strict)
			switch {
			case d.compiler == mingw:
				flags = append(flags, "-static")
			case links(d.compiler, watched...):
				flags = append(flags, watched...)
			}
			test(t, compiled(t, "check", d.compiler, d.language, d.std, flags...))
		})
	}
}

// run returns the output of a program. The test fails if a sanitizer reports an error.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	cmd := exec.Command(program, args...)
	if strings.HasSuffix(program, mingw) {
		return underWine(t, program+".exe", args)
	}
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", args[0], err, said.Bytes())
	}
	return out.String()
}

// underWine returns the output of a Windows program. The output is a file, because processes that Wine leaves running
// for some seconds would keep a pipe open.
func underWine(t *testing.T, program string, args []string) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("wine", append([]string{program}, args...)...)
	cmd.Env = append(os.Environ(), "WINEDEBUG=-all", "WINEARCH=win64", "WINEPREFIX="+filepath.Join(programs.dir, "wine"), "WINEDLLOVERRIDES=mscoree,mshtml=")
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	said, rerr := os.ReadFile(out.Name())
	if err != nil || rerr != nil {
		t.Fatalf("%s: %v\n%s", args[0], errors.Join(err, rerr), said)
	}
	if _, rest, ok := bytes.Cut(said, []byte("has been updated.\n")); ok { // on the first run
		said = rest
	}
	return strings.ReplaceAll(string(said), "\r\n", "\n")
}

func TestHash(t *testing.T) {
	// Sizes around blocks of 64 and chunks of 1024 bytes, and trees that are full, unbalanced, or a single node.
	sizes := []int{0, 1, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 2048, 2049, 3072, 3073, 4096, 5000, 7168, 8192, 8193, 31744, 102400}
	dir := t.TempDir()
	var files []string
	var want strings.Builder
	for _, n := range sizes {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i*i>>3 + i)
		}
		name := filepath.Join(dir, "input"+hex.EncodeToString([]byte{byte(n >> 16), byte(n >> 8), byte(n)}))
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		sum := blake3.Sum256(b)
		files = append(files, name)
		want.WriteString(hex.EncodeToString(sum[:]) + "\n")
	}
	everywhere(t, func(t *testing.T, program string) {
		if got := run(t, program, append([]string{"hash"}, files...)...); got != want.String() {
			t.Errorf("got\n%swant\n%s", got, want.String())
		}
	})
}

// judged tests the readers of all compilers with cases.
func judged(t *testing.T, cases []judge.Case) {
	everywhere(t, func(t *testing.T, program string) {
		for _, wrong := range judge.CompareAll(cases, run(t, program, judge.Arguments(cases)...)) {
			t.Error(wrong)
		}
	})
}

func TestConformance(t *testing.T) {
	cases, err := judge.Conformance(conformance, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	judged(t, cases)
}

var conformance = filepath.Join("..", "testdata", "conformance")

// TestFrames decompresses Zstandard frames of all kinds, and damaged ones. KILN_FUZZ_RUNS=100000 damages more of them.
func TestFrames(t *testing.T) {
	cases, err := judge.FrameCases(t.TempDir(), os.Getenv("KILN_FUZZ_RUNS"))
	if err != nil {
		t.Fatal(err)
	}
	judged(t, cases)
}

// TestLibrary uses the Zstandard library to decompress, as a game may. Its header need not be installed: check.c
// declares what it calls.
func TestLibrary(t *testing.T) {
	cases, err := judge.Conformance(conformance, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Versions of the library differ on invalid frames.
	cases = slices.DeleteFunc(cases, func(c judge.Case) bool { return strings.HasPrefix(filepath.Base(c.Parcel), "zstd") })
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("there is no gcc")
	}
	program := filepath.Join(t.TempDir(), "check")
	if said, err := exec.Command(gcc, "-std=c99", "-O2", "-DWITH_ZSTD", "-I.", filepath.Join("testdata", "check.c"), "-l:libzstd.so.1", "-o", program).CombinedOutput(); err != nil {
		t.Skipf("there is no libzstd.so.1: %s", said)
	}
	for _, wrong := range judge.CompareAll(cases, run(t, program, judge.Arguments(cases)...)) {
		t.Error(wrong)
	}
}

// TestFuzz runs clang's fuzzer for a short time on the conformance set.
func TestFuzz(t *testing.T) {
	seeds, err := filepath.Glob(filepath.Join(conformance, "*.parcel"))
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string][]byte{}
	for _, seed := range seeds {
		if inputs[filepath.Base(seed)], err = os.ReadFile(seed); err != nil {
			t.Fatal(err)
		}
	}
	fuzz(t, "fuzz", 20000, inputs)
}

// TestFuzzZstd runs it on frames, with and without a dictionary before them.
func TestFuzzZstd(t *testing.T) {
	sets, err := judge.FrameSets(false)
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string][]byte{}
	for s, set := range sets {
		for i, f := range set.Frames {
			n, dictionary := len(f.Content), set.Dictionary[:len(set.Dictionary)/8*8]
			if !f.Dictionary {
				dictionary = nil
			}
			if n < 1<<16 && len(dictionary) < 256*8 {
				inputs[fmt.Sprint(s, "-", i)] = slices.Concat([]byte{byte(n), byte(n >> 8), byte(len(dictionary) / 8)}, dictionary, f.Stored)
			}
		}
	}
	fuzz(t, "fuzz_zstd", 8000, inputs)
}

// fuzz runs clang's fuzzer for a short time on a target, testdata/<name>.c; KILN_FUZZ=60s runs it longer. Inputs have
// at most size bytes. Without clang, a program compiled by gcc reads the inputs, and damages each randomly.
func fuzz(t *testing.T, name string, size int, inputs map[string][]byte) {
	effort := "-runs=5000"
	if d, err := time.ParseDuration(os.Getenv("KILN_FUZZ")); err == nil {
		effort = fmt.Sprintf("-max_total_time=%d", int(d.Seconds()))
	}
	corpus := t.TempDir()
	var files []string
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		files = append(files, filepath.Join(corpus, name))
		if err := os.WriteFile(filepath.Join(corpus, name), inputs[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := slices.Concat(strict, watched)
	if !links("clang", append(slices.Clone(watched), "-fsanitize=fuzzer")...) { // with the simple fuzzer of alone.h
		if name != "fuzz_live" && os.Getenv("KILN_FUZZ_RUNS") == "" { // TestDamaged and TestFrames do almost the same
			t.Skip("there is no clang with its fuzzer; KILN_FUZZ_RUNS=1000 does it with gcc")
		}
		program := compiled(t, name, "gcc", "c", "c99", append(flags, "-DALONE")...)
		run(t, program, append([]string{cmp.Or(os.Getenv("KILN_FUZZ_RUNS"), "10"), fmt.Sprint(size)}, files...)...)
		return
	}
	program := compiled(t, name, "clang", "c", "c99", append(flags, "-fsanitize=fuzzer")...)
	run(t, program, "-seed=1", fmt.Sprint("-max_len=", size), "-timeout=100", "-artifact_prefix="+t.TempDir()+"/", effort, corpus)
}

// TestDamaged compares the judgements of randomly damaged parcels with those of the Go reader.
func TestDamaged(t *testing.T) {
	cases, err := judge.Damaged(t.TempDir(), 60, 1)
	if err != nil {
		t.Fatal(err)
	}
	judged(t, cases)
}

// TestFacts reads the sample with a resource of each kind: seven resources, one of them compressed, and the types data,
// level, model, sound, texture.
func TestFacts(t *testing.T) {
	dir := t.TempDir()
	if _, err := judge.Write(dir); err != nil {
		t.Fatal(err)
	}
	want := "digest right, texture is type 4, nothing is -1, 6 viewed, 6 aligned, 6 verified\n"
	everywhere(t, func(t *testing.T, program string) {
		if got := run(t, program, "facts", filepath.Join(dir, "all.parcel")); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestTrust verifies with the Ed25519 of the standard library what kiln_trust asks to verify.
func TestTrust(t *testing.T) {
	public, private, err := minisign.GenerateKey(bytes.NewReader(bytes.Repeat([]byte("not random"), 10)))
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := minisign.GenerateKey(bytes.NewReader(bytes.Repeat([]byte("another"), 10)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "p")
	rs := []parcel.Resource{judge.Resource(1, "one", "data", "one", nil, nil)}
	const trusted, refused = "all is well", "the parcel is not signed by this key"
	for what, sign := range map[string]func(d [32]byte) ([]byte, error){
		"of the digest": func(d [32]byte) ([]byte, error) { return minisign.Sign(private, d[:]), nil },
		"of its hash": func(d [32]byte) ([]byte, error) {
			r := minisign.NewReader(bytes.NewReader(d[:]))
			_, err := io.Copy(io.Discard, r)
			return r.Sign(private), err
		},
		"none": nil,
	} {
		if err := parcel.Write(path, rs, parcel.Options{Sign: sign}); err != nil {
			t.Fatal(err)
		}
		everywhere(t, func(t *testing.T, program string) {
			if got := run(t, program, "trust", path, other.String()); got != refused+"\n" {
				t.Errorf("%s, by another key: %q", what, got)
			}
			lines := strings.Split(run(t, program, "trust", path, public.String()), "\n")
			if sign == nil {
				if lines[0] != refused {
					t.Errorf("not signed: %q", lines)
				}
				return
			}
			if len(lines) != 4 || lines[2] != trusted {
				t.Fatalf("%s: %q", what, lines)
			}
			for _, line := range lines[:2] {
				if !rightSignature(line) {
					t.Errorf("%s: %s", what, line)
				}
			}
		})
	}
}

// rightSignature verifies a line of signature, message and key.
func rightSignature(line string) bool {
	var parts [3][]byte
	for i, text := range strings.Fields(line) {
		parts[i], _ = hex.DecodeString(text)
	}
	return len(parts[2]) == ed25519.PublicKeySize && ed25519.Verify(parts[2], parts[1], parts[0])
}

// TestSame uses a parcel where two resources are the same texture.
func TestSame(t *testing.T) {
	everywhere(t, func(t *testing.T, program string) {
		if got := run(t, program, "same", "../testdata/conformance/good-kinds.parcel"); got != "3 90000\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestOrder(t *testing.T) {
	for _, c := range judge.Orders() {
		t.Run(c.Name, func(t *testing.T) {
			args, err := c.Arguments(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			everywhere(t, func(t *testing.T, program string) {
				if got := run(t, program, args...); got != c.Want+"\n" {
					t.Errorf("got %q, want %q", got, c.Want)
				}
			})
		})
	}
}
