package sharing

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi"
)

// TestChoose: the environment comes before the project file, and that before what is noted for a user.
func TestChoose(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData", "USERPROFILE"} {
		t.Setenv(name, home)
	}
	abs := filepath.Join(dir, "abs")
	both := project.Cache{Path: abs, Remote: "grpc://h:1", MaxSize: 7}
	type want struct {
		folder, remote     string
		readOnly, writeFar bool
		nothing, wrong     bool
		noted              string
	}
	for name, c := range map[string]struct {
		says project.Cache
		env  string // KILN_CACHE, KILN_CACHE_MODE and KILN_CACHE_SERVER, with spaces between
		want want
	}{
		"nothing":               {want: want{nothing: true}},
		"off":                   {says: both, env: "off", want: want{nothing: true}},
		"by the file":           {says: both, want: want{folder: abs, remote: "grpc://h:1"}},
		"relative":              {says: project.Cache{Path: "c"}, want: want{folder: filepath.Join(dir, "c")}},
		"home":                  {says: project.Cache{Path: "~/c"}, want: want{folder: filepath.Join(home, "c")}},
		"folder by variable":    {says: both, env: home, want: want{folder: home, remote: "grpc://h:1"}},
		"a folder is read":      {says: project.Cache{Path: abs, Mode: "read"}, want: want{folder: abs, readOnly: true}},
		"both are read":         {says: both, env: " read", want: want{folder: abs, remote: "grpc://h:1"}},
		"both are written":      {says: both, env: " read-write", want: want{folder: abs, remote: "grpc://h:1", writeFar: true}},
		"a wrong mode":          {says: both, env: " write", want: want{wrong: true}},
		"another server":        {says: both, env: "  grpcs://s", want: want{folder: abs, remote: "grpcs://s"}},
		"a server alone":        {env: "  grpcs://s", want: want{remote: "grpcs://s"}},
		"no server":             {says: both, env: "  off", want: want{folder: abs}},
		"no server, and folder": {says: both, env: "off  grpcs://s", want: want{nothing: true}},
		"a wrong server":        {says: both, env: "  cache.example.com", want: want{wrong: true}},
		"a password in it":      {says: both, env: "  grpcs://me:secret@s", want: want{wrong: true}},
		"noted":                 {want: want{noted: abs, folder: abs}},
		"noted, beside another": {says: project.Cache{Remote: "grpc://h:1"}, want: want{noted: abs, remote: "grpc://h:1"}},
	} {
		if err := SetUserFolder(c.want.noted); err != nil {
			t.Fatal(err)
		}
		words := append(strings.Split(c.env, " "), "", "")
		env := map[string]string{FolderVariable: words[0], ModeVariable: words[1], reapi.CacheVariable: words[2]}
		p, err := Choose(c.says, dir, func(v string) string { return env[v] })
		if c.want.wrong || c.want.nothing {
			if p != nil || (err != nil) != c.want.wrong {
				t.Errorf("%s: %+v, %v", name, p, err)
			}
			continue
		}
		if err != nil || p == nil {
			t.Errorf("%s: %v, %v", name, p, err)
			continue
		}
		got := want{folder: p.Folder, remote: p.Remote, readOnly: p.ReadOnly, writeFar: p.WriteRemote, noted: c.want.noted}
		if got != c.want {
			t.Errorf("%s: %+v, not %+v", name, got, c.want)
		}
	}
}

// TestSigning: what is signed counts where its key does, and nothing else.
func TestSigning(t *testing.T) {
	public, secret, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plain, err := secret.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	choose := func(key, password string, keys ...string) (*Place, error) {
		env := map[string]string{KeyVariable: key, PasswordVariable: password, FolderVariable: dir}
		return Choose(project.Cache{Trust: "signed", Keys: keys}, dir, func(v string) string { return env[v] })
	}
	text := []byte("what is signed")
	keys := []string{file("plain", plain)}
	if thorough.Enabled() { // making a key of a password takes seconds, on purpose
		locked, err := minisign.EncryptKey("word", secret)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, file("locked", locked))
	}
	for _, key := range keys {
		p, err := choose(key, "word", other.String(), public.String())
		if err != nil {
			t.Fatal(err)
		}
		signature := p.sign(text)
		if !p.verify(text, signature) || p.verify([]byte("something else"), signature) || p.verify(text, nil) || p.verify(text, []byte("x")) {
			t.Errorf("%s: wrong", key)
		}
		if q, err := choose("", "", other.String()); err != nil || q.verify(text, signature) || q.sign(text) != nil {
			t.Errorf("another key counts, or signs: %v", err)
		}
	}
	for _, c := range [][3]string{
		{"", "", "no key"}, {file("none", []byte("x")), "", public.String()}, {filepath.Join(dir, "missing"), "", public.String()},
	} {
		var m *diag.Message
		if _, err := choose(c[0], c[1], c[2]); !errors.As(err, &m) || m.Code != diag.CacheWrong {
			t.Errorf("%q: %v", c, err)
		}
	}
}
