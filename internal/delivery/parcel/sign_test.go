package parcel

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/kiln-pipeline/kiln/kilnrt"
)

// testKey is a key that is the same in every run.
func testKey(t testing.TB, seed uint64) (*Key, kilnrt.PublicKey) {
	t.Helper()
	pub, priv, err := minisign.GenerateKey(bytes.NewReader(noise(seed, 64)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := priv.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	k, err := ReadKey(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	public, err := kilnrt.ParsePublicKey(pub.String())
	if err != nil {
		t.Fatal(err)
	}
	return k, public
}

// trusted opens a parcel by a key, and gives the error.
func trusted(path string, by kilnrt.PublicKey) error {
	p, err := kilnrt.OpenSigned(path, by)
	if err == nil {
		p.Close()
	}
	return err
}

// TestSign: who signs may be told from others, whatever is done to a parcel afterwards.
func TestSign(t *testing.T) {
	key, public := testKey(t, 1)
	_, other := testKey(t, 2)
	path := filepath.Join(t.TempDir(), "p")
	rs := some(rand.New(rand.NewPCG(7, 7)), 100)
	rs[5] = with(rs[5], noise(1, 5000))
	rs[5].Compress = false
	write := func(o Options) Report {
		t.Helper()
		rep, err := Update(path, rs, o)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, path, rs)
		return rep
	}
	expect := func(when string, want error) {
		t.Helper()
		if err := trusted(path, public); !errors.Is(err, want) {
			t.Errorf("%s: %v, not %v", when, err, want)
		}
	}
	write(Options{})
	expect("written without a key", kilnrt.ErrNotSigned)
	if rep := write(Options{Sign: key.Sign}); rep.How != Appended || rep.Written > 4096 {
		t.Errorf("signing alone: %+v", rep)
	}
	expect("signed", nil)
	if err := trusted(path, other); !errors.Is(err, kilnrt.ErrSignature) {
		t.Errorf("by another key: %v", err)
	}
	if rep := write(Options{Sign: key.Sign}); rep.How != Nothing {
		t.Errorf("signed again: %+v", rep)
	}
	write(Options{})
	expect("nothing has changed", nil)
	rs[5].Align = 4096
	if rep := write(Options{}); rep.How != Appended {
		t.Errorf("with another alignment: %+v", rep)
	}
	expect("only places have changed", nil)
	if err := Compact(path, nil); err != nil {
		t.Fatal(err)
	}
	expect("compacted", nil)
	rs[5] = with(rs[5], noise(2, 5000))
	write(Options{})
	expect("content has changed", kilnrt.ErrNotSigned)
	write(Options{Sign: key.Sign})
	rs[5].Name += "!"
	write(Options{Sign: key.Sign})
	expect("a name has changed, and it is signed again", nil)
	if err := Compact(path, nil); err != nil {
		t.Fatal(err)
	}
	clean := path + "clean"
	if err := Write(clean, rs, Options{Sign: key.Sign}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, path), read(t, clean)) {
		t.Error("compacted it is no clean pack")
	}
	rs = rs[:50]
	write(Options{})
	expect("resources are gone", kilnrt.ErrNotSigned)
}

// TestMinisign has Debian's minisign judge our signatures, and us judge its.
func TestMinisign(t *testing.T) {
	tool, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip("minisign is not installed: its signatures and Kiln's are not compared")
	}
	dir := t.TempDir()
	run := func(args ...string) error {
		cmd := exec.Command(tool, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		t.Logf("minisign %s: %s", strings.Join(args, " "), out)
		return err
	}
	if err := run("-G", "-W", "-p", "k.pub", "-s", "k.key"); err != nil {
		t.Fatal(err)
	}
	public, err := kilnrt.ParsePublicKey(string(read(t, filepath.Join(dir, "k.pub"))))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ReadKey(read(t, filepath.Join(dir, "k.key")), nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "p")
	if err := Write(path, some(rand.New(rand.NewPCG(7, 7)), 20), Options{Sign: key.Sign}); err != nil {
		t.Fatal(err)
	}
	p, err := kilnrt.OpenSigned(path, public)
	if err != nil {
		t.Fatal(err)
	}
	digest, signature := p.Digest(), p.Signature()
	put := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("digest", digest[:])
	put("digest.minisig", signature)
	if err := run("-V", "-m", "digest", "-p", "k.pub"); err != nil {
		t.Error(err)
	}
	p.Close()
	for _, how := range []string{"-H", "-l"} { // prehashed, and as it was before
		if err := run("-S", how, "-s", "k.key", "-m", "digest", "-t", "by hand"); err != nil {
			t.Fatal(err)
		}
		made := read(t, filepath.Join(dir, "digest.minisig"))
		if err := Sign(path, func([32]byte) ([]byte, error) { return made, nil }); err != nil {
			t.Fatal(err)
		}
		if err := trusted(path, public); err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
	digest[0]++
	put("digest", digest[:])
	if err := run("-V", "-m", "digest", "-p", "k.pub"); err == nil {
		t.Error("minisign takes anything")
	}
}

// TestReadKey: keys with a password, and what is no key.
func TestReadKey(t *testing.T) {
	// Made by minisign's rules with the password "p" and the least costs; minisign takes it, too.
	text := read(t, filepath.Join("testdata", "password.key"))
	if _, err := ReadKey(text, func() (string, error) { return "p", nil }); err != nil {
		t.Error(err)
	}
	if _, err := ReadKey(text, func() (string, error) { return "q", nil }); !errors.Is(err, ErrKey) {
		t.Error(err)
	}
	if _, err := ReadKey(text, func() (string, error) { return "", errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	for _, text := range []string{"", "untrusted comment: x\nRWQ=", "untrusted comment: x\n" + strings.Repeat("A", 212)} {
		if _, err := ReadKey([]byte(text), nil); !errors.Is(err, ErrKey) {
			t.Errorf("%q: %v", text, err)
		}
		if err := checkSignature([]byte(text + "x")); !errors.Is(err, ErrKey) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := checkSignature(make([]byte, kilnrt.MaxSignature+1)); !errors.Is(err, ErrKey) {
		t.Error(err)
	}
}

// FuzzSignature: no text makes who reads keys and signatures fall.
func FuzzSignature(f *testing.F) {
	key, _ := testKey(f, 1)
	text, err := key.Sign([32]byte{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	f.Add(rest)
	f.Fuzz(func(t *testing.T, text []byte) {
		if checkSignature(text) == nil && len(text) > kilnrt.MaxSignature {
			t.Error("it is too long")
		}
		kilnrt.ParsePublicKey(string(text))
		ReadKey(text, func() (string, error) { return "", ErrKey })
	})
}
