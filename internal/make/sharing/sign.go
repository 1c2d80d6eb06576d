package sharing

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aead.dev/minisign"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/store/share"
)

// With trust = "signed", only results with a trusted signature are read, and only such are stored: a machine without a trusted key
// stores nothing. Each key has entries of its own (see share.Key.SignedBy), so those of projects that trust everybody, or other keys,
// are beside them.

// Environment variables for signing results: the file of a minisign secret key, and its password.
const (
	KeyVariable      = "KILN_CACHE_KEY"
	PasswordVariable = "KILN_KEY_PASSWORD"
)

// signer signs results.
type signer struct {
	key    minisign.PrivateKey
	public string
}

// signing reads from project file and environment whose results count, and which key signs results of runs here.
func (p *Place) signing(says project.Cache, getenv func(string) string) error {
	p.Signed = says.Trust == "signed"
	for _, text := range says.Keys {
		var k minisign.PublicKey
		if err := k.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
			return says.Span.Errorf(diag.CacheWrong, "%q is not a public key of minisign", text).
				WithHint("it is the second line of the .pub file that `kiln cache key new FILE` writes")
		}
		p.trusted = append(p.trusted, k)
	}
	file := getenv(KeyVariable)
	if !p.mayWrite() {
		return nil
	}
	if file == "" {
		if p.Signed {
			p.barred = KeyVariable + " names no key"
		}
		return nil
	}
	s, err := readSigner(file, getenv(PasswordVariable))
	if err != nil || !p.Signed {
		return err
	}
	if !slices.ContainsFunc(p.trusted, func(k minisign.PublicKey) bool { return k.String() == s.public }) {
		p.barred = fmt.Sprintf("the file that %s names is the secret key of %s, which `keys` does not list", KeyVariable, s.public)
		return nil
	}
	p.signer = s
	return nil
}

func readSigner(file, password string) (*signer, error) {
	text, err := disk.ReadFile(file)
	if err != nil {
		return nil, diag.Errorf(diag.CacheWrong, diag.Pos{File: file}, "the key to sign results with cannot be read: %v", err)
	}
	s := &signer{}
	if text = bytes.TrimSpace(text); minisign.IsEncrypted(text) {
		s.key, err = minisign.DecryptKey(password, text)
	} else {
		err = s.key.UnmarshalText(text)
	}
	if err != nil {
		return nil, diag.Errorf(diag.CacheWrong, diag.Pos{File: file},
			"it is not a secret key of minisign, or %s is not its password", PasswordVariable).
			WithHint("`kiln cache key new FILE` makes a pair of keys")
	}
	s.public = s.key.Public().(minisign.PublicKey).String()
	return s, nil
}

// Trust describes whose results count, for display; "" if everybody's.
func (p *Place) Trust() string {
	if !p.Signed {
		return ""
	}
	keys := "1 key"
	if n := len(p.trusted); n != 1 {
		keys = fmt.Sprintf("one of %d keys", n)
	}
	text := "trust signed: results count that are signed by " + keys + "; this machine "
	switch {
	case p.signer != nil:
		return text + "signs what it stores with " + p.Signer()
	case p.barred != "":
		return text + "stores nothing: " + p.barred
	}
	return text + "only reads"
}

// Signer is the number of the key that results are signed with, as minisign shows it; "" if they are not.
func (p *Place) Signer() string {
	if p.signer == nil {
		return ""
	}
	return fmt.Sprintf("%016X", p.signer.key.ID())
}

// Keys is the number of trusted keys.
func (p *Place) Keys() int { return len(p.trusted) }

// MayPush is an error if results may not be stored anywhere. p may be nil.
func (p *Place) MayPush() error {
	switch {
	case p == nil || !p.mayWrite():
		return diag.Errorf(diag.CacheWrong, diag.Pos{}, "there is no cache that this project's results may be written to").
			WithHint("`kiln cache on` begins a folder; a server needs mode = \"read-write\" or %s=read-write", ModeVariable)
	case p.barred != "":
		return diag.Errorf(diag.CacheWrong, diag.Pos{}, "this machine may not store results: kiln.toml has trust = \"signed\", and %s", p.barred).
			WithHint("%s=FILE names the secret key of one of the `keys`; `kiln cache key new FILE` makes one", KeyVariable)
	}
	return nil
}

// keysOf returns the keys of the entries in which a result may be.
func (p *Place) keysOf(result share.Key) []share.Key {
	if !p.Signed {
		return []share.Key{result}
	}
	keys := make([]share.Key, len(p.trusted))
	for i := range p.trusted {
		keys[i] = result.SignedBy(p.trusted[i].String())
	}
	return keys
}

// ownKey is the key of the entry in which this machine stores a result.
func (p *Place) ownKey(result share.Key) share.Key {
	switch {
	case p.signer != nil:
		return result.SignedBy(p.signer.public)
	case p.Signed:
		return result.SignedBy(p.trusted[0].String()) // nothing is stored: for display
	}
	return result
}

// verify reports whether one of the trusted keys signed the text. Without trust = "signed" every result
// counts.
func (p *Place) verify(signed, signature []byte) bool {
	return !p.Signed || slices.ContainsFunc(p.trusted, func(k minisign.PublicKey) bool { return minisign.Verify(k, signed, signature) })
}

// intact reports whether a value is a result that counts.
func (p *Place) intact(key share.Key, value []byte) bool { return share.Intact(key, value, p.verify) }

// sign signs a result; nil if there is no key.
func (p *Place) sign(signed []byte) []byte {
	if p.signer == nil {
		return nil
	}
	return minisign.SignWithComments(p.signer.key, signed, "result of a job", "signature by the key "+p.Signer())
}

// Pair are the files of a new pair of keys.
type Pair struct{ Secret, Public, Key string }

// NewKeys makes a pair of keys as minisign does: the secret one in a file, with a password unless that is "", and the public one beside it.
// It replaces no file.
func NewKeys(file, password string) (*Pair, error) {
	public, secret, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	pair := &Pair{file, strings.TrimSuffix(file, ".key") + ".pub", public.String()}
	text, err := secret.MarshalText()
	if password != "" {
		text, err = minisign.EncryptKey(password, secret)
	}
	if err != nil {
		return nil, err
	}
	shown, err := public.MarshalText()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name string
		text []byte
		mode fs.FileMode
	}{{pair.Secret, text, 0o600}, {pair.Public, shown, 0o666}} {
		if err := create(f.name, append(bytes.TrimSpace(f.text), '\n'), f.mode); err != nil {
			if f.name == pair.Public {
				os.Remove(pair.Secret)
			}
			return nil, err
		}
	}
	return pair, nil
}

// create writes a file that does not exist.
func create(name string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return diag.Errorf(diag.KeyExists, diag.Pos{File: name}, "the file is there already, and keys are not replaced").
			WithHint("write to another file; a key that is lost has to be removed from `keys` in kiln.toml")
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
