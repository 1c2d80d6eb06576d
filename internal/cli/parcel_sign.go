package cli

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

func (a *app) newParcelSignCommand() *cobra.Command {
	var signature string
	cmd := &cobra.Command{
		Use:   "sign KEY FILE...",
		Short: "Sign parcels with a secret key of minisign",
		Long: "Sign parcels with a secret key of minisign (`minisign -G` makes one). Its password is asked for, or taken from KILN_KEY_PASSWORD. " +
			"With --signature no key is needed: a signature that was made elsewhere, of the file that kiln parcel digest writes, is put in.",
		Example: "  kiln parcel sign minisign.key build/parcels/pc/level1.parcel\n  kiln parcel sign --signature level1.digest.minisig level1.parcel",
		Args: func(cmd *cobra.Command, args []string) error {
			if signature != "" {
				return exactly("FILE")(cmd, args)
			}
			if len(args) < 2 {
				return exactly("KEY", "FILE")(cmd, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if signature != "" {
				return insertSignature(signature, args[0])
			}
			return a.signParcels(args[0], args[1:])
		},
	}
	cmd.Flags().StringVar(&signature, "signature", "", "put in the signature in `FILE`")
	return cmd
}

func (a *app) newParcelDigestCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "digest FILE",
		Short: "Print the digest that is signed of a parcel",
		Long: "Print the digest of a parcel. With -o its 32 bytes are written to a file, which minisign can sign, and the parcel's signature beside it " +
			"under the name that minisign looks for, if it has one.",
		Example: "  kiln parcel digest level1.parcel -o level1.digest\n  minisign -Vm level1.digest -p minisign.pub",
		Args:    exactly("FILE"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.tellDigest(args[0], out) },
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the digest to `FILE`, a signature to FILE.minisig")
	return cmd
}

func (a *app) signParcels(keyPath string, paths []string) error {
	text, err := os.ReadFile(keyPath)
	if err != nil {
		return err
	}
	key, err := parcel.ReadKey(text, a.keyPassword)
	if err != nil {
		return wrongKey(keyPath, err)
	}
	for _, path := range paths {
		if err := parcel.Sign(path, key.Sign); err != nil {
			return damagedParcel(path, err)
		}
	}
	return nil
}

// keyPassword asks for the password of a secret key.
func (a *app) keyPassword() (string, error) {
	if word := a.getenv("KILN_KEY_PASSWORD"); word != "" {
		return word, nil
	}
	f, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return "", fmt.Errorf("%w: it has a password, and nobody is here to ask: set KILN_KEY_PASSWORD", parcel.ErrKey)
	}
	fmt.Fprint(a.errs, "Password of the key: ")
	word, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(a.errs)
	return string(word), err
}

func insertSignature(from, path string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	err = parcel.Sign(path, func([32]byte) ([]byte, error) { return text, nil })
	if errors.Is(err, parcel.ErrKey) {
		return wrongKey(from, err)
	}
	if err != nil {
		return damagedParcel(path, err)
	}
	return nil
}

func wrongKey(path string, err error) error {
	if !errors.Is(err, parcel.ErrKey) {
		return err
	}
	return diag.Errorf(diag.KeyWrong, diag.Pos{File: path}, "%v", err).WithHint("`minisign -G` makes a pair of keys, `minisign -S` a signature")
}

func (a *app) tellDigest(path, out string) error {
	return withParcel(path, func(p *kilnrt.Parcel) error {
		digest := p.Digest()
		if out == "" {
			_, err := fmt.Fprintln(a.out, hex.EncodeToString(digest[:]))
			return err
		}
		if err := os.WriteFile(out, digest[:], 0o644); err != nil {
			return err
		}
		if len(p.Signature()) == 0 {
			return nil
		}
		return os.WriteFile(out+".minisig", p.Signature(), 0o644)
	})
}

// publicKey reads a public key: a file, or the key itself. It returns nil for an empty text.
func publicKey(text string) (*kilnrt.PublicKey, error) {
	if text == "" {
		return nil, nil
	}
	k, err := kilnrt.ParsePublicKey(text)
	if err == nil {
		return &k, nil
	}
	file, err := os.ReadFile(text)
	if err != nil {
		return nil, err
	}
	if k, err = kilnrt.ParsePublicKey(string(file)); err != nil {
		return nil, wrongKey(text, fmt.Errorf("%w: it is not a public key of minisign", parcel.ErrKey))
	}
	return &k, nil
}

// signedBy checks a parcel's signature, if there is a key.
func signedBy(path string, p *kilnrt.Parcel, k *kilnrt.PublicKey) error {
	if k == nil {
		return nil
	}
	err := p.Trust(*k)
	switch {
	case errors.Is(err, kilnrt.ErrNotSigned):
		return diag.Errorf(diag.SignatureWrong, diag.Pos{File: path}, "the parcel is not signed").WithHint("`kiln parcel sign KEY %s` signs it; a change of what it holds takes its signature away", path)
	case errors.Is(err, kilnrt.ErrSignature):
		return diag.Errorf(diag.SignatureWrong, diag.Pos{File: path}, "the parcel is signed by another key, or its signature is of something else").WithHint("fetch it again from where you trust it, or see whether the public key is the right one")
	case err != nil:
		return damagedParcel(path, err)
	}
	return nil
}
