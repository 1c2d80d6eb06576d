package reapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Credentials are what a client shows to a server, and what it wants to see of it. They come from the environment or from files, never from
// the project file, and are only for a server that the environment names as well: a project file is written by others. The zero value shows
// nothing.
type Credentials struct {
	For      []string // addresses of the servers that they are for
	Variable string   // that names such a server, for messages

	User, Password string
	Token          string
	TokenFile      string // read for each call, because tokens of a CI are renewed
	CA             string // file of certificates that are trusted in addition to the system's
	Cert, Key      string // files of the client's certificate and its key
}

// Variables that name a server: the cache, and the one whose workers run jobs.
const (
	CacheVariable = "KILN_CACHE_SERVER"
	FarmVariable  = "KILN_EXECUTION"
)

// FromEnvironment reads credentials. variable is the one that names the server that they are read for.
func FromEnvironment(variable string, getenv func(string) string) Credentials {
	return Credentials{
		For: []string{getenv(CacheVariable), getenv(FarmVariable)}, Variable: variable,
		User: getenv("KILN_CACHE_USER"), Password: getenv("KILN_CACHE_PASSWORD"),
		Token: getenv("KILN_CACHE_TOKEN"), TokenFile: getenv("KILN_CACHE_TOKEN_FILE"),
		CA: getenv("KILN_CACHE_CA"), Cert: getenv("KILN_CACHE_CERT"), Key: getenv("KILN_CACHE_CERT_KEY"),
	}
}

// sends reports whether there is something secret to send.
func (c *Credentials) sends() bool { return c.User != "" || c.Token != "" || c.TokenFile != "" }

// Shown is the variable of what is shown to a server; "" if nothing is.
func (c *Credentials) Shown() string {
	switch {
	case c.Token != "":
		return "KILN_CACHE_TOKEN"
	case c.TokenFile != "":
		return "KILN_CACHE_TOKEN_FILE"
	case c.User != "":
		return "KILN_CACHE_USER"
	case c.Cert != "":
		return "KILN_CACHE_CERT"
	}
	return ""
}

// permit is an error if the server at an address would be shown what is for another one. u is the address taken apart.
func (c *Credentials) permit(address string, u *url.URL) error {
	for _, named := range c.For {
		if n, err := parse(named); err == nil && n.Scheme == u.Scheme && strings.EqualFold(n.Host, u.Host) {
			return nil
		}
	}
	if secret := c.Shown(); secret != "" {
		return fmt.Errorf("%s is only sent to a server that a variable names, and none names this one: set %s=%s if it is yours, or unset %s",
			secret, c.Variable, address, secret)
	}
	return nil
}

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
