package dashboard

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

// project is the example, copied.
type project struct {
	t    *testing.T
	dir  string
	feed *Feed
}

// built is the example after a build. It is built once: under the race detector its textures take long.
var built struct {
	once sync.Once
	dir  string
}

func TestMain(m *testing.M) {
	status := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(status)
}

// newProject is the example as the first build left it.
func newProject(t *testing.T) *project {
	t.Helper()
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "kiln-dashboard-")
		if err != nil {
			t.Fatal(err)
		}
		built.dir = dir
		p := &project{t: t, dir: dir, feed: NewFeed(2)}
		for _, part := range []string{"assets", "game"} {
			p.copy(part, "../../../examples/knights/"+part)
		}
		toml, err := os.ReadFile("../../../examples/knights/kiln.toml")
		if err != nil {
			t.Fatal(err)
		}
		p.write("kiln.toml", string(toml))
		p.build()
	})
	p := &project{t: t, dir: t.TempDir(), feed: NewFeed(2)}
	p.copy(".", built.dir)
	return p
}

// copy copies a folder.
func (p *project) copy(to, from string) {
	p.t.Helper()
	if err := os.CopyFS(filepath.Join(p.dir, to), os.DirFS(from)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) write(file, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) open() (*build.Project, error) {
	return build.Open(workspace.Config{Dir: p.dir, Version: "test", Processors: processors.All()})
}

// build builds, and tells the feed.
func (p *project) build(cause ...string) {
	p.t.Helper()
	p.buildAs(build.Request{}, cause...)
}

func (p *project) buildAs(r build.Request, cause ...string) {
	p.t.Helper()
	opened, err := p.open()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := opened.Lock(p.t.Context(), true, nil); err != nil {
		p.t.Fatal(err)
	}
	defer opened.Unlock()
	p.feed.Begin(1, cause)
	r.Reporter = p.feed
	if _, err := opened.Build(context.Background(), r); err != nil {
		p.t.Fatal(err)
	}
	p.feed.End(nil)
}

// config is that of a dashboard of the project.
func (p *project) config() Config {
	return Config{
		Dir: p.dir, Database: filepath.Join(p.dir, ".kiln", "content.db"), Blobs: cas.OpenReadOnly(filepath.Join(p.dir, ".kiln", "cas")),
		Feed: p.feed, Project: p.open,
	}
}

// serve serves a dashboard until the test ends.
func serve(t *testing.T, cfg Config) *httptest.Server {
	t.Helper()
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(*slow)
		d.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections() // streams of events
		s.Close()
		d.Close()
	})
	return s
}

// get is the body of an answer, which must have this status.
func get(t *testing.T, s *httptest.Server, path string, status int) (string, http.Header) {
	t.Helper()
	res, err := s.Client().Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != status {
		t.Fatalf("GET %s: %s\n%.400s", path, res.Status, body)
	}
	return string(body), res.Header
}

// has checks that a page says something.
func has(t *testing.T, page string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(page, w) {
			t.Errorf("the page does not say %q", w)
		}
	}
}
