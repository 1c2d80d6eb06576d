// Package js_test runs kiln.mjs in node, and compares it with the other readers.
package js_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
	"github.com/zeebo/blake3"
	"golang.org/x/crypto/blake2b"

	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt/internal/judge"
)

// node returns the output of testdata/check.mjs.
func node(t *testing.T, args ...string) string {
	t.Helper()
	return script(t, "check.mjs", args...)
}

// script returns the output of a module of testdata.
func script(t *testing.T, name string, args ...string) string {
	t.Helper()
	for _, file := range []string{"kiln.mjs", "live.mjs", "signed.mjs", filepath.Join("testdata", name)} {
		if _, err := os.ReadFile(file); err != nil { // makes go test record what the result depends on
			t.Fatal(err)
		}
	}
	program, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	var out, said bytes.Buffer
	cmd := exec.Command(program, append([]string{filepath.Join("testdata", name)}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %.99q: %v\n%s", name, args, err, said.Bytes())
	}
	return out.String()
}

func TestHash(t *testing.T) {
	// Sizes around blocks of 64 and chunks of 1024 bytes, and trees that are full, unbalanced, or a single node.
	sizes := []int{0, 1, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 2048, 2049, 3072, 3073, 4096, 5000, 7168, 8192, 8193, 31744, 102400}
	dir := t.TempDir()
	var want strings.Builder
	args := []string{"hash"}
	for _, n := range sizes {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i*i>>3 + i)
		}
		name := filepath.Join(dir, fmt.Sprint(n))
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		sum := blake3.Sum256(b)
		args = append(args, name)
		want.WriteString(hex.EncodeToString(sum[:]) + "\n")
	}
	if got := node(t, args...); got != want.String() {
		t.Errorf("got\n%swant\n%s", got, want.String())
	}
}

func judged(t *testing.T, cases []judge.Case) {
	for _, wrong := range judge.CompareAll(cases, node(t, judge.Arguments(cases)...)) {
		t.Error(wrong)
	}
}

func TestConformance(t *testing.T) {
	cases, err := judge.Conformance(filepath.Join("..", "testdata", "conformance"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	judged(t, cases)
}

// TestDamaged compares the judgements of randomly damaged parcels with those of the Go reader.
func TestDamaged(t *testing.T) {
	cases, err := judge.Damaged(t.TempDir(), 150, 2)
	if err != nil {
		t.Fatal(err)
	}
	judged(t, cases)
}

// TestFrames decompresses Zstandard frames of all kinds, and damaged ones. KILN_FUZZ_RUNS=100000 damages more of them.
func TestFrames(t *testing.T) {
	cases, err := judge.FrameCases(t.TempDir(), os.Getenv("KILN_FUZZ_RUNS"))
	if err != nil {
		t.Fatal(err)
	}
	judged(t, cases)
}

// TestFuzz randomly damages the conformance set. KILN_FUZZ_RUNS=1000000 does so more often.
func TestFuzz(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "conformance", "*.parcel"))
	if err != nil {
		t.Fatal(err)
	}
	runs := cmp.Or(os.Getenv("KILN_FUZZ_RUNS"), "5000")
	if got, want := node(t, append([]string{"fuzz", runs}, files...)...), "many of them could be opened\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestLoaders checks that a loader of the live client that throws or never ends does not block other resources, and that what a loader is given
// stays loaded.
func TestLoaders(t *testing.T) {
	const want = `the loader of never has not come to an end after 0.03 s; thrown; rejected; content of good
unloaded 1
never now; throws now; rejects now
in use: unloaded 0
released: unloaded 1
fetching slow has not come to an end after 0.03 s
content of slow
`
	if got := script(t, "live.mjs"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestSame loads a parcel where two resources are the same texture.
func TestSame(t *testing.T) {
	if got := node(t, "same", "../testdata/conformance/good-kinds.parcel"); got != "3 90000\n" {
		t.Errorf("got %q", got)
	}
}

func TestOrder(t *testing.T) {
	for _, c := range judge.Orders() {
		t.Run(c.Name, func(t *testing.T) {
			args, err := c.Arguments(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if got := node(t, args...); got != c.Want+"\n" {
				t.Errorf("got %q, want %q", got, c.Want)
			}
		})
	}
}

// TestTrust verifies parcels that are signed in both ways, by another key, or not at all, and one where a content was
// replaced by another one with a correct CRC.
func TestTrust(t *testing.T) {
	public, private, err := minisign.GenerateKey(bytes.NewReader(bytes.Repeat([]byte("not random"), 10)))
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := minisign.GenerateKey(bytes.NewReader(bytes.Repeat([]byte("another"), 10)))
	if err != nil {
		t.Fatal(err)
	}
	pub, _ := public.MarshalText()
	path := filepath.Join(t.TempDir(), "p")
	rs := []parcel.Resource{judge.Resource(1, "one", "data", "one", nil, nil), judge.Resource(2, "two", "data", "two", nil, nil)}
	expect := func(what, key, want string) {
		t.Helper()
		if got := node(t, "trust", path, key); got != want+"\n" {
			t.Errorf("%s: %q, not %q", what, got, want)
		}
	}
	for what, sign := range map[string]func(d [32]byte) ([]byte, error){
		"of the digest": func(d [32]byte) ([]byte, error) { return minisign.Sign(private, d[:]), nil },
		"of its hash": func(d [32]byte) ([]byte, error) {
			r := minisign.NewReader(bytes.NewReader(d[:]))
			_, err := io.Copy(io.Discard, r)
			return r.Sign(private), err
		},
	} {
		if err := parcel.Write(path, rs, parcel.Options{Sign: sign}); err != nil {
			t.Fatal(err)
		}
		expect(what, string(pub), "trusted, good,good")
		expect(what+", another key", other.String(), "signature")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	signature := bytes.Index(data, []byte("untrusted comment"))
	data[signature+100] ^= 4
	os.WriteFile(path, data, 0o644)
	expect("another signature", public.String(), "signature")
	data[signature+100] ^= 4
	record := bytes.Index(data, append([]byte{2, 0, 0, 0, 0, 0, 0, 0}, rs[1].UUID[:]...))
	copy(data[bytes.Index(data, []byte("two")):], "TWO")
	binary.LittleEndian.PutUint32(data[record+28:], crc32.ChecksumIEEE([]byte("TWO")))
	judge.Mend(data)
	os.WriteFile(path, data, 0o644)
	expect("another content", public.String(), "trusted, good,damaged")
	if err := parcel.Write(path, rs, parcel.Options{}); err != nil {
		t.Fatal(err)
	}
	expect("not signed", public.String(), "signature")
}

// TestBLAKE2b compares the hash with that of golang.org/x/crypto.
func TestBLAKE2b(t *testing.T) {
	var want strings.Builder
	args := []string{"blake2b"}
	for n := range 129 {
		b := bytes.Repeat([]byte{byte(3 * n)}, n)
		name := filepath.Join(t.TempDir(), "b")
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		sum := blake2b.Sum512(b)
		args = append(args, name)
		want.WriteString(hex.EncodeToString(sum[:]) + "\n")
	}
	if got := node(t, args...); got != want.String() {
		t.Errorf("got\n%swant\n%s", got, want.String())
	}
}

// TestURL opens a parcel from a server that supports ranges, and from one that always sends the whole file.
func TestURL(t *testing.T) {
	dir := t.TempDir()
	if _, err := judge.Write(dir); err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(dir))
	ranges := httptest.NewServer(files)
	defer ranges.Close()
	whole := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Range")
		files.ServeHTTP(w, r)
	}))
	defer whole.Close()
	// The requests are the header, sections, records, and then all contents at once, because they are close together.
	if got, want := node(t, "url", ranges.URL+"/many.parcel"), "150 resources, 3 requests to open, 1 to load; digest true; 149\n"; got != want {
		t.Errorf("with ranges: %q, not %q", got, want)
	}
	if got, want := node(t, "url", whole.URL+"/many.parcel"), "150 resources, 1 requests to open, -1 to load; digest true; 149\n"; got != want {
		t.Errorf("without: %q, not %q", got, want)
	}
}
