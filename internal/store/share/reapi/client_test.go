package reapi

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/kiln-pipeline/kiln/internal/store/share"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
	"github.com/kiln-pipeline/kiln/internal/store/share/sharetest"
)

func start(t *testing.T, zstd bool, wants string) *reapitest.Server {
	t.Helper()
	s, err := reapitest.Start(wants)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	s.Zstd = zstd
	return s
}

func dial(t *testing.T, address string, as Credentials) *Client {
	t.Helper()
	c, err := Dial(address, as)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestClient(t *testing.T) {
	for _, zstd := range []bool{false, true} {
		var s *reapitest.Server
		err := sharetest.Test(sharetest.Subject{
			Empty: func() (share.Cache, error) {
				s = start(t, zstd, "")
				return Dial(s.Address+"/some/instance", Credentials{})
			},
			Again: func(share.Cache) (share.Cache, error) { return Dial(s.Address+"/some/instance", Credentials{}) },
			Spoil: func(_ share.Cache, b share.Blob, with []byte) error { s.Spoil(b.SHA256, with); return nil },
		})
		if err != nil {
			t.Errorf("zstd %t: %v", zstd, err)
		}
	}
}

// TestLies: whatever a server does, nothing wrong is taken, and nobody waits for longer than the deadline.
func TestLies(t *testing.T) {
	for _, zstd := range []bool{false, true} {
		for lie := reapitest.Honest; lie < reapitest.Lies; lie++ {
			t.Run(fmt.Sprint(zstd, int(lie)), func(t *testing.T) { t.Parallel(); lying(t, zstd, lie) })
		}
	}
}

func lying(t *testing.T, zstd bool, lie reapitest.Lie) {
	s := start(t, zstd, "")
	c := dial(t, s.Address, Credentials{})
	ctx := context.Background()
	key, value := sharetest.KeyOf("a"), (&share.Hint{}).Encode(sharetest.KeyOf("a"))
	var datas [][]byte
	var blobs []share.Blob
	for i, n := range []int{1000, 100_000, 3 << 20, 3<<20 + 1} {
		datas = append(datas, sharetest.Noise(uint8(i), n))
		blobs = append(blobs, sharetest.BlobOf(datas[i]))
		if err := c.Store(ctx, blobs[i], sharetest.Opener(datas[i])); err != nil {
			t.Fatal(err)
		}
	}
	other := (&share.Hint{}).Encode(sharetest.KeyOf("b"))
	if err := errors.Join(c.Put(ctx, key, value, blobs), c.Put(ctx, sharetest.KeyOf("b"), other, nil)); err != nil {
		t.Fatal(err)
	}
	c = dial(t, s.Address, Credentials{}) // which knows nothing of what the server can do
	c.timeout = 300 * time.Millisecond
	s.Tell(lie)
	right := 0
	for i, b := range blobs {
		var got bytes.Buffer
		if err := c.Fetch(ctx, b, &got); err == nil {
			if right++; !bytes.Equal(got.Bytes(), datas[i]) {
				t.Errorf("%d wrong bytes are fetched as a blob of %d", got.Len(), b.Size)
			}
		}
	}
	entry := false
	if got, err := c.Get(ctx, key); err == nil {
		_, err := share.DecodeHint(key, got)
		entry = err == nil
	}
	c.Missing(ctx, blobs)
	data := sharetest.Noise(99, 50_000)
	c.Store(ctx, sharetest.BlobOf(data), sharetest.Opener(data))
	c.Put(ctx, key, value, blobs)
	if lie == reapitest.Honest && (right != len(blobs) || !entry) {
		t.Errorf("an honest server gives %d blobs, and the entry: %t", right, entry)
	}
	if s.Told() == 0 && lie != reapitest.Honest {
		t.Error("there was no occasion for this lie: it is not tested")
	}
	s.Tell(reapitest.Honest)
	c = dial(t, s.Address, Credentials{})
	for i, b := range blobs {
		var got bytes.Buffer
		if err := c.Fetch(ctx, b, &got); err != nil || !bytes.Equal(got.Bytes(), datas[i]) {
			t.Errorf("afterwards a blob of %d is fetched as %d, %v", b.Size, got.Len(), err)
		}
	}
}

// TestGuardedLies: a server that fails is left alone after three calls.
func TestGuardedLies(t *testing.T) {
	s := start(t, false, "")
	health := &share.Health{}
	c := share.NewGuard(dial(t, s.Address, Credentials{}), health)
	s.Tell(reapitest.Refuses)
	for range 10 {
		c.Get(context.Background(), sharetest.KeyOf("x"))
	}
	if n := s.Calls(); n != 3 || health.Alone() == nil || c.Trouble() == nil {
		t.Errorf("%d calls, %v", n, c.Trouble())
	}
}

// TestCredentialsOfOthers: what a client shows is for the servers that the environment names, and for no other.
func TestCredentialsOfOthers(t *testing.T) {
	s := start(t, false, "Bearer secret")
	upper := strings.Replace(s.Address, "127.0.0.1", "LOCALHOST", 1)
	for _, c := range []struct {
		what, address string
		env           map[string]string
		refused       string
	}{
		{"named", s.Address, map[string]string{"KILN_CACHE_TOKEN": "secret", "KILN_CACHE_SERVER": s.Address}, ""},
		{"as the farm", s.Address, map[string]string{"KILN_CACHE_TOKEN": "secret", "KILN_EXECUTION": s.Address}, ""},
		{"another instance", s.Address + "/x", map[string]string{"KILN_CACHE_TOKEN": "secret", "KILN_CACHE_SERVER": s.Address}, ""},
		{"its port", "grpcs://h:443", map[string]string{"KILN_CACHE_TOKEN": "secret", "KILN_CACHE_SERVER": "grpcs://H"}, ""},
		{"nothing is shown", s.Address, map[string]string{"KILN_CACHE_CA": "ca.pem"}, ""},
		{"not named", s.Address, map[string]string{"KILN_CACHE_TOKEN": "secret"}, "KILN_CACHE_TOKEN"},
		{"a file", s.Address, map[string]string{"KILN_CACHE_TOKEN_FILE": "token"}, "KILN_CACHE_TOKEN_FILE"},
		{"a user", s.Address, map[string]string{"KILN_CACHE_USER": "ann", "KILN_CACHE_PASSWORD": "x"}, "KILN_CACHE_USER"},
		{"a certificate", "grpcs://h", map[string]string{"KILN_CACHE_CERT": "cert.pem", "KILN_CACHE_CERT_KEY": "key.pem"}, "KILN_CACHE_CERT"},
		{"another host", s.Address, map[string]string{"KILN_CACHE_TOKEN": "secret", "KILN_CACHE_SERVER": upper}, "KILN_CACHE_TOKEN"},
		{"another port", "grpcs://h:444", map[string]string{"KILN_CACHE_TOKEN": "secret", "KILN_CACHE_SERVER": "grpcs://h"}, "KILN_CACHE_TOKEN"},
		{"unencrypted", "grpc://h:443", map[string]string{"KILN_CACHE_TOKEN": "secret", "KILN_CACHE_SERVER": "grpcs://h"}, "KILN_CACHE_TOKEN"},
		{"off", s.Address, map[string]string{"KILN_CACHE_TOKEN": "secret", "KILN_CACHE_SERVER": "off"}, "KILN_CACHE_TOKEN"},
	} {
		cache, err := Dial(c.address, FromEnvironment(CacheVariable, func(name string) string { return c.env[name] }))
		if err == nil {
			cache.Close()
		}
		want := c.refused + " is only sent to a server that a variable names, and none names this one: set KILN_CACHE_SERVER=" + c.address
		if c.refused == "" && err != nil || c.refused != "" && !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestCredentials(t *testing.T) {
	ctx := context.Background()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for wants, as := range map[string]Credentials{
		"Basic bmFtZTpwYXNz": {User: "name", Password: "pass"}, "Bearer secret": {Token: "secret"}, "Bearer from-a-file": {TokenFile: file},
	} {
		s := start(t, false, wants)
		as.For = []string{s.Address}
		if _, err := dial(t, s.Address, as).Get(ctx, sharetest.KeyOf("x")); !share.IsMiss(err) {
			t.Errorf("%s: %v", wants, err)
		}
		if _, err := dial(t, s.Address, Credentials{}).Get(ctx, sharetest.KeyOf("x")); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: without them: %v", wants, err)
		}
	}
	for _, address := range []string{"grpc://cache.example.com:9092", "http://127.0.0.1:1", "127.0.0.1:9092", "grpc://", ""} {
		if _, err := Dial(address, Credentials{Token: "secret", For: []string{address}}); err == nil {
			t.Errorf("%q with a token is taken", address)
		}
	}
	for _, as := range []Credentials{{CA: "not there"}, {CA: file}, {Cert: file}, {Cert: file, Key: file}} {
		as.For = []string{"grpcs://127.0.0.1:1"}
		if _, err := Dial("grpcs://127.0.0.1:1", as); err == nil || strings.Contains(fmt.Sprint(err), "from-a-file") {
			t.Errorf("%+v: %v", as, err)
		}
	}
}

// TestTLS: a server with a certificate of one's own, which wants to see one of the client.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ca, server, client := authority(t, dir)
	cfg := &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca, MinVersion: tls.VersionTLS12}
	s, err := reapitest.Start("Bearer secret", grpc.Creds(credentials.NewTLS(cfg)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	plain := start(t, false, "")
	certain := func(change func(*x509.Certificate)) string { // a server with another certificate of this authority
		of := authorityOf(t, change)
		s, err := reapitest.Start("", grpc.Creds(credentials.NewServerTLSFromCert(&of)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: of.Certificate[0]})
		if err := os.WriteFile(filepath.Join(dir, "other.pem"), cert, 0o600); err != nil {
			t.Fatal(err)
		}
		return encrypted(s.Address)
	}
	address := encrypted(s.Address)
	good := Credentials{CA: dir + "/ca.pem", Cert: client, Key: dir + "/key.pem", Token: "secret"}
	try := func(what, address string, as Credentials, reason string) {
		t.Helper()
		as.For = []string{address}
		_, err := dial(t, address, as).Get(context.Background(), sharetest.KeyOf("x"))
		if share.IsMiss(err) != (reason == "") || !share.IsMiss(err) && !strings.Contains(Reason(err), reason) {
			t.Errorf("%s: %s", what, Reason(err))
		}
	}
	try("all", address, good, "")
	try("no token", address, Credentials{CA: good.CA, Cert: client, Key: good.Key}, "KILN_CACHE_TOKEN")
	try("no certificate", address, Credentials{CA: good.CA, Token: "secret"}, "KILN_CACHE_CERT and KILN_CACHE_CERT_KEY")
	try("an unknown authority", address, Credentials{Cert: client, Key: good.Key, Token: "secret"}, "KILN_CACHE_CA")
	try("no encryption there", encrypted(plain.Address), good, "grpc:// in place of grpcs://")
	try("encryption there", strings.Replace(address, "grpcs://", "grpc://", 1), Credentials{}, "grpcs:// in place of grpc://")
	other := Credentials{CA: dir + "/other.pem"}
	try("expired", certain(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), other, "clock")
	const name = "a name in its certificate"
	try("another host", certain(func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"cache.example.com"} }), other, name)
	try("another address", certain(func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)} }), other, name)
	stranger := t.TempDir()
	_, _, its := authority(t, stranger)
	try("a certificate of others", address, Credentials{CA: good.CA, Cert: its, Key: stranger + "/key.pem", Token: "secret"}, "KILN_CACHE_CERT")
}

func encrypted(address string) string { return strings.Replace(address, "grpc://", "grpcs://", 1) }

// authority makes a certificate authority, and certificates of a server and a client; it writes ca.pem, cert.pem and key.pem.
func authority(t *testing.T, dir string) (*x509.CertPool, tls.Certificate, string) {
	t.Helper()
	pair := authorityOf(t, func(*x509.Certificate) {})
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	for name, data := range map[string][]byte{"ca.pem": cert, "cert.pem": cert, "key.pem": private} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool, pair, filepath.Join(dir, "cert.pem")
}

// authorityOf makes a certificate that is its own authority, and may be changed before.
func authorityOf(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	change(made)
	der, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestGone: a server that is stopped in the middle costs an error, and one that was wiped a miss.
func TestGone(t *testing.T) {
	ctx := context.Background()
	s := start(t, false, "")
	c := dial(t, s.Address, Credentials{})
	data := sharetest.Noise(1, 1000)
	blob := sharetest.BlobOf(data)
	if err := c.Store(ctx, blob, sharetest.Opener(data)); err != nil {
		t.Fatal(err)
	}
	s.Wipe()
	if err := c.Fetch(ctx, blob, new(bytes.Buffer)); !share.IsMiss(err) {
		t.Error(err)
	}
	s.Stop()
	if err := c.Fetch(ctx, blob, new(bytes.Buffer)); err == nil || share.IsMiss(err) {
		t.Error(err)
	}
}
