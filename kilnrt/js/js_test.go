// Package js_test runs kiln.mjs in node, and holds it to the other readers.
package js_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/kiln-pipeline/kiln/kilnrt/internal/judge"
)

// node gives what testdata/check.mjs writes.
func node(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	var out, said bytes.Buffer
	cmd := exec.Command(program, append([]string{filepath.Join("testdata", "check.mjs")}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", args[0], err, said.Bytes())
	}
	return out.String()
}

func TestHash(t *testing.T) {
	// Sizes around blocks of 64 and chunks of 1024 bytes, and trees that are full, lopsided and of one.
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

// TestConformance has what is compressed decompressed by a table of contents: node has no Zstandard before 22.15.
func TestConformance(t *testing.T) {
	cases, err := judge.Conformance(filepath.Join("..", "testdata", "conformance"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(t.TempDir(), "unpacked.json")
	if err := judge.Unpacked(cases, table); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UNPACKED", table)
	judged(t, cases)
}

// TestDamaged compares the judgements on parcels that are damaged by chance with those of the Go reader.
func TestDamaged(t *testing.T) {
	cases, err := judge.Damaged(t.TempDir(), 150, 2)
	if err != nil {
		t.Fatal(err)
	}
	judged(t, cases)
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

// TestURL opens a parcel from a server that knows ranges, and from one that sends the whole file whatever it is asked.
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
	// Header, sections, records; then all contents at once, for they lie close together.
	if got, want := node(t, "url", ranges.URL+"/many.parcel"), "150 resources, 3 requests to open, 1 to load; digest true; 149\n"; got != want {
		t.Errorf("with ranges: %q, not %q", got, want)
	}
	if got, want := node(t, "url", whole.URL+"/many.parcel"), "150 resources, 1 requests to open, -1 to load; digest true; 149\n"; got != want {
		t.Errorf("without: %q, not %q", got, want)
	}
}
