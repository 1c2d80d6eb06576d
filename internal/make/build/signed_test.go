package build

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/sharing"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
)

// signedDesk is where a machine shares results, by a project file that counts only those signed by keys; without keys by one
// that counts all.
func signedDesk(t *testing.T, folder, server, secret string, keys ...string) *sharing.Place {
	t.Helper()
	says := project.Cache{Path: folder, Remote: server, Keys: keys}
	if len(keys) > 0 {
		says.Trust = "signed"
	}
	env := map[string]string{sharing.KeyVariable: secret, sharing.ModeVariable: "read-write"}
	p, err := sharing.Choose(says, t.TempDir(), func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// unstored counts the warnings that nothing is stored.
func (b *built) unstored() int {
	return strings.Count(b.warned, "nothing that is built here is stored")
}

// TestSharedSigned: in a folder, on a server and with both, results of machines without a trusted key change nothing for those that count
// only signed ones, whoever builds first and last.
func TestSharedSigned(t *testing.T) {
	keys := t.TempDir()
	trusted, err := sharing.NewKeys(filepath.Join(keys, "trusted.key"), "")
	if err != nil {
		t.Fatal(err)
	}
	other, err := sharing.NewKeys(filepath.Join(keys, "other.key"), "")
	if err != nil {
		t.Fatal(err)
	}
	server, err := reapitest.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	for name, at := range map[string][2]string{
		"folder": {t.TempDir(), ""}, "server": {"", server.Address}, "both": {t.TempDir(), server.Address},
	} {
		server.Wipe()
		desk := func(secret string, keys ...string) *fixture {
			p := newProject(t, sharedProject)
			p.unchecked = true
			p.place = signedDesk(t, at[0], at[1], secret, keys...)
			return p
		}
		both := []string{other.Key, trusted.Key}
		for _, d := range []struct {
			who    *fixture
			stored bool // what it builds
			barred int
		}{
			{desk(""), true, 0}, {desk("", both...), false, 1}, {desk(other.Secret, trusted.Key), false, 1}, {desk(other.Secret), true, 0},
		} {
			b := d.who.build()
			if b.unstored() != d.barred || d.who.place.Writes() != d.stored {
				t.Errorf("%s: %d warnings, %v", name, b.unstored(), b.warned)
			}
			d.who.write("assets/b.txt", "text other")
			if b := d.who.build(); b.unstored() != 0 {
				t.Errorf("%s: it is said twice", name)
			}
		}
		if b := desk("", both...).build(); b.FromCache != 0 {
			t.Errorf("%s: %d results without a signature counted", name, b.FromCache)
		}
		first := desk(trusted.Secret, both...)
		jobs := first.build().Jobs
		desk("").build()
		desk(other.Secret, other.Key).build()
		if b := desk("", both...).build(); b.FromCache != jobs || b.ran != "" {
			t.Errorf("%s: %d of %d signed results counted, ran %q", name, b.FromCache, jobs, b.ran)
		}
		if b := desk("", trusted.Key).build(); b.FromCache != jobs {
			t.Errorf("%s: with one key, %d of %d signed results counted", name, b.FromCache, jobs)
		}
		if b := desk("", other.Key).build(); b.FromCache != jobs {
			t.Errorf("%s: of the other key, %d of %d signed results counted", name, b.FromCache, jobs)
		}
	}
}

// TestSharedSignedPush: what came from a cache while unsigned results counted is not signed later.
func TestSharedSignedPush(t *testing.T) {
	key, err := sharing.NewKeys(filepath.Join(t.TempDir(), "k.key"), "")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	first, second := newProject(t, sharedProject), newProject(t, sharedProject)
	first.place = signedDesk(t, folder, "", "")
	jobs := first.build().Jobs
	second.place = signedDesk(t, folder, "", "")
	if b := second.build(); b.FromCache != jobs {
		t.Fatalf("%+v", b.Summary)
	}
	second.place = signedDesk(t, folder, "", key.Secret, key.Key)
	done, err := second.open().Push(t.Context(), nil)
	if err != nil || done.Results != 0 || done.Foreign < jobs {
		t.Errorf("%+v, %v", done, err)
	}
	first.place = second.place
	if done, err = first.open().Push(t.Context(), nil); err != nil || done.Results < jobs || done.Foreign != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}
