package reapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Credentials are a client's credentials and what it requires of a server. They come from the environment or from
// files, never from the project file. The zero value has none.
type Credentials struct {
	User, Password string
	Token          string
	TokenFile      string // read for each call, because tokens of a CI are renewed
	CA             string // file of certificates that are trusted in addition to the system's
	Cert, Key      string // files of the client's certificate and its key
}

// FromEnvironment reads credentials from environment variables.
func FromEnvironment(getenv func(string) string) Credentials {
	return Credentials{
		User: getenv("KILN_CACHE_USER"), Password: getenv("KILN_CACHE_PASSWORD"),
		Token: getenv("KILN_CACHE_TOKEN"), TokenFile: getenv("KILN_CACHE_TOKEN_FILE"),
		CA: getenv("KILN_CACHE_CA"), Cert: getenv("KILN_CACHE_CERT"), Key: getenv("KILN_CACHE_CERT_KEY"),
	}
}

// sends reports whether there is something secret to send.
func (c *Credentials) sends() bool { return c.User != "" || c.Token != "" || c.TokenFile != "" }

func (c *Credentials) tls() (*tls.Config, error) {
	cfg := tlsConfig()
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("KILN_CACHE_CA: %w", err)
		}
		if cfg.RootCAs, err = x509.SystemCertPool(); err != nil {
			cfg.RootCAs = x509.NewCertPool()
		}
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("KILN_CACHE_CA: there is no certificate in %s", c.CA)
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, errors.New("KILN_CACHE_CERT and KILN_CACHE_CERT_KEY go together")
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("KILN_CACHE_CERT: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// header adds an Authorization header to each call.
type header struct{ as Credentials }

func (h *header) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	c := &h.as
	token := c.Token
	if c.TokenFile != "" {
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("KILN_CACHE_TOKEN_FILE: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	if token != "" {
		return map[string]string{"authorization": "Bearer " + token}, nil
	}
	return map[string]string{"authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))}, nil
}

// RequireTransportSecurity is false because Dial checks it: without TLS, credentials are only sent to this
// machine.
func (h *header) RequireTransportSecurity() bool { return false }
