package sharing

import (
	"bytes"
	"fmt"
	"strings"

	"aead.dev/minisign"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// Environment variables for signing results: the file of a minisign secret key, and its password.
const (
	KeyVariable      = "KILN_CACHE_KEY"
	PasswordVariable = "KILN_KEY_PASSWORD"
)

// signer signs results.
type signer struct{ key minisign.PrivateKey }

// signing reads from project file and environment whose results count, and which key signs results of runs here.
func (p *Place) signing(says project.Cache, getenv func(string) string) error {
	if says.Trust == "signed" {
		p.Signed = true
	}
	for _, text := range says.Keys {
		var k minisign.PublicKey
		if err := k.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
			return says.Span.Errorf(diag.CacheWrong, "%q is not a public key of minisign", text).
				WithHint("it is the second line of the file that `minisign -G` writes")
		}
		p.trusted = append(p.trusted, k)
	}
	file := getenv(KeyVariable)
	if file == "" || !p.Writes() {
		return nil
	}
	text, err := disk.ReadFile(file)
	if err != nil {
		return diag.Errorf(diag.CacheWrong, diag.Pos{File: file}, "the key to sign results with cannot be read: %v", err)
	}
	s := &signer{}
	if text = bytes.TrimSpace(text); minisign.IsEncrypted(text) {
		s.key, err = minisign.DecryptKey(getenv(PasswordVariable), text)
	} else {
		err = s.key.UnmarshalText(text)
	}
	if err != nil {
		return diag.Errorf(diag.CacheWrong, diag.Pos{File: file},
			"it is not a secret key of minisign, or %s is not its password", PasswordVariable).
			WithHint("`minisign -G` makes a pair of keys")
	}
	p.signer = s
	return nil
}

// verify reports whether one of the trusted keys signed the text. Without trust = "signed" every result
// counts.
func (p *Place) verify(signed, signature []byte) bool {
	if !p.Signed {
		return true
	}
	for _, k := range p.trusted {
		if minisign.Verify(k, signed, signature) {
			return true
		}
	}
	return false
}

// sign signs a result; nil if there is no key.
func (p *Place) sign(signed []byte) []byte {
	if p.signer == nil {
		return nil
	}
	return minisign.SignWithComments(p.signer.key, signed, "result of a job", fmt.Sprintf("signature by the key %016X", p.signer.key.ID()))
}
