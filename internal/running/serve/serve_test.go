package serve_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/running/dashboard"
	"github.com/kiln-pipeline/kiln/internal/running/live"
	"github.com/kiln-pipeline/kiln/internal/running/live/livetest"
	"github.com/kiln-pipeline/kiln/internal/running/serve"
	"github.com/kiln-pipeline/kiln/internal/running/session"
	client "github.com/kiln-pipeline/kiln/kilnrt/live"
	"github.com/kiln-pipeline/kiln/processor"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(watcherDir); dir != "" {
		fmt.Fprintln(os.Stderr, beWatcher(dir))
		os.Exit(1)
	}
	code := m.Run()
	livetest.Clean()
	os.Exit(code)
}

// write puts files below a folder, by name and content, each in one step: of one that is written where it lies, half may be built if the
// machine is busy elsewhere for a moment.
func write(t testing.TB, dir string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, filepath.FromSlash(files[i]))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		beside := filepath.Join(dir, ".saved")
		if err := errors.Join(os.WriteFile(beside, []byte(files[i+1]), 0o666), os.Rename(beside, path)); err != nil {
			t.Fatal(err)
		}
	}
}

// start serves a project until the test ends. Its processors are Kiln's if there are none of its own.
func start(t testing.TB, dir string, g live.Guard, own ...processor.Processor) *serve.Server {
	t.Helper()
	srv, stop := startAt(t, "127.0.0.1:0", dir, g, nil, own...)
	t.Cleanup(stop)
	return srv
}

// startAt serves a project at an address until stop is called. meanwhile, if not nil, is called when the project is open and nothing runs yet.
func startAt(t testing.TB, address, dir string, g live.Guard, meanwhile func(), own ...processor.Processor) (srv *serve.Server, stop func()) {
	t.Helper()
	if own == nil {
		own = processors.All()
	}
	s, err := session.Open(session.Config{Build: workspace.Config{Dir: dir, Version: "test", Processors: own}})
	if err != nil {
		t.Fatal(err)
	}
	srv, err = serve.Listen(serve.Config{Session: s, Listen: address, Guard: g})
	if err != nil {
		t.Fatal(err)
	}
	pages, unpage, err := srv.Dashboard(dashboard.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile()
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- srv.Run(ctx, pages) }()
	go func() { ended <- s.Run(ctx) }()
	return srv, func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		unpage()
		pages.Close()
	}
}

const project = `
[project]
name = "demo"
roots = ["assets"]
[platforms.pc]
`

// TestGames drives the clients of all languages against files that are edited.
func TestGames(t *testing.T) {
	for _, language := range livetest.Languages {
		t.Run(language, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "kiln.toml", project, "assets/a.txt", "A1", "assets/b.txt", "B1", "assets/c.json", `{"c": 1}`)
			srv := start(t, dir, live.Guard{})
			game := livetest.Start(t, language, srv.Address(), "a.txt", "b.txt", "c.json", "new/d.txt")
			game.Until(t, `a.txt=A1 b.txt=B1 c.json={"c":1} new/d.txt=?`)
			write(t, dir, "assets/b.txt", "B2")
			game.Until(t, `a.txt=A1 b.txt=B2 c.json={"c":1} new/d.txt=?`)
			write(t, dir, "assets/new/d.txt", "D1", "assets/c.json", `{"c": `) // half a file: the last good product stays
			game.Until(t, `a.txt=A1 b.txt=B2 c.json={"c":1} new/d.txt=D1`)
			write(t, dir, "assets/a.txt", "bad", "assets/c.json", `{"c": 2}`)
			game.Until(t, `a.txt=A1 b.txt=B2 c.json={"c":2} new/d.txt=D1`)
			if err := os.Remove(filepath.Join(dir, "assets", "b.txt")); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "assets/a.txt", "A3")
			if language == "c" { // it finds by name what is there
				game.Until(t, `a.txt=A3 b.txt=? c.json={"c":2} new/d.txt=D1`)
			} else {
				game.Until(t, `a.txt=A3 b.txt=B2 c.json={"c":2} new/d.txt=D1`)
			}
			for end := time.Now().Add(livetest.Patience); len(srv.Hub().Latencies()) == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("nothing was measured")
				}
			}
			if got := srv.Hub().Latencies(); got[0].Took <= 0 {
				t.Error(got)
			}
		})
	}
}

func TestBlobs(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "kiln.toml", project, "assets/a.txt", "0123456789")
	srv := start(t, dir, live.Guard{})
	livetest.Start(t, "go", srv.Address(), "a.txt").Until(t, "a.txt=0123456789")
	url := srv.Address() + "/live/v1/blob/" + digest.Of([]byte("0123456789")).String()
	tag := `"` + digest.Of([]byte("0123456789")).String() + `"`
	for _, c := range []struct {
		url, header, value string
		code               int
		body               string
	}{
		{url, "", "", 200, "0123456789"},
		{url, "Range", "bytes=2-4", 206, "234"},
		{url, "If-None-Match", tag, 304, ""},
		{srv.Address() + "/live/v1/blob/" + strings.Repeat("ab", 32), "", "", 404, ""},
		{srv.Address() + "/live/v1/blob/..%2f..%2fkiln.toml", "", "", 400, ""},
		{url, "Origin", "https://evil.example", 403, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			req.Header.Set(c.header, c.value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.code || c.body != "" && string(body) != c.body {
			t.Errorf("%s %s: %d %q, %v", c.header, c.value, resp.StatusCode, body, err)
		}
		if c.code < 300 && (resp.Header.Get("ETag") != tag || !strings.Contains(resp.Header.Get("Cache-Control"), "immutable")) {
			t.Error(resp.Header)
		}
	}
}

func TestListen(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "kiln.toml", project, "assets/a.txt", "A")
	s, err := session.Open(session.Config{Build: workspace.Config{Dir: dir, Version: "test", Processors: processors.All()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := serve.Listen(serve.Config{Session: s, Listen: "0.0.0.0:0"}); !errors.Is(err, serve.ErrNoToken) {
		t.Error("it listens to everybody:", err)
	}
	first, err := serve.Listen(serve.Config{Session: s, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := serve.Listen(serve.Config{Session: s, Listen: strings.TrimPrefix(first.Address(), "http://")}); err == nil {
		t.Error("two listen on one address")
	}
	everywhere, err := serve.Listen(serve.Config{Session: s, Listen: "0.0.0.0:0", Guard: live.Guard{Token: "t"}})
	if err != nil {
		t.Fatal(err)
	}
	if at := everywhere.Addresses(); !strings.HasPrefix(at[0], "http://127.0.0.1:") || strings.Contains(strings.Join(at, " "), "0.0.0.0") {
		t.Error(at)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, srv := range []*serve.Server{first, everywhere} {
		if err := srv.Run(ctx, nil); err != nil {
			t.Error(err)
		}
	}
}

// TestEdits is about order, not speed: twenty edits of one file, each waited for.
func TestEdits(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "kiln.toml", project, "assets/a.txt", "A")
	srv := start(t, dir, live.Guard{})
	game := livetest.Start(t, "go", srv.Address(), "a.txt")
	game.Until(t, "a.txt=A")
	began := time.Now()
	for i := range 20 {
		write(t, dir, "assets/a.txt", fmt.Sprint(i))
		game.Until(t, fmt.Sprintf("a.txt=%d", i))
	}
	t.Logf("%v an edit", time.Since(began)/20)
}

// patient is a processor that goes on after a draft when the game has it.
type patient struct {
	processor.Processor
	has <-chan struct{}
}

func (p patient) Process(ctx context.Context, job processor.Job) error {
	return p.Processor.Process(ctx, patientJob{job, ctx, p.has})
}

type patientJob struct {
	processor.Job
	ctx context.Context
	has <-chan struct{}
}

func (j patientJob) Draft(out processor.Output, data []byte) error {
	err := j.Job.Draft(out, data)
	select {
	case <-j.has:
	case <-j.ctx.Done():
	}
	return err
}

// TestDraft has a game see the quick version of a texture before the final one, and the last good one again if there is no final one.
func TestDraft(t *testing.T) {
	dir := t.TempDir()
	rules := "[platforms.pc.texture]\nfamily = \"bc\"\n[[rules]]\nmatch = \"*.png\"\nsettings = { quality = \"draft-then-final\" }\n"
	write(t, dir, "kiln.toml", project+rules, "assets/t.png", photo(t, 1))
	own, has := processors.All(), make(chan struct{})
	for i, p := range own {
		if p.Info().Name == "texture" {
			own[i] = patient{p, has}
		}
	}
	srv := start(t, dir, live.Guard{}, own...)
	var seen []digest.Hash
	l, err := client.Connect(t.Context(), client.Options{Address: srv.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Register("", func(in *client.Loading) (any, error) {
		seen = append(seen, in.Resource.Hash)
		return in.Resource.Bytes()
	})
	h, err := l.LoadName("t.png")
	if err != nil {
		t.Fatal(err)
	}
	product := filepath.Join(dir, "build", "pc", "t.png.ktx2")
	// until has the game go on until it has what is in place, and gives how many versions it had on the way.
	until := func() int {
		n := len(seen)
		for end := time.Now().Add(livetest.Patience); ; time.Sleep(time.Millisecond) {
			l.Poll()
			if len(seen) > n && has != nil { // the draft
				close(has)
				has = nil
			}
			b, err := os.ReadFile(product)
			if err == nil && len(seen) > n && digest.Of(h.Value().([]byte)) == digest.Of(b) && seen[len(seen)-1] != seen[n-1] {
				return len(seen) - n
			}
			if time.Now().After(end) {
				t.Fatal("the game never had what was built")
			}
		}
	}
	write(t, dir, "assets/t.png", photo(t, 2))
	if n := until(); n != 2 {
		t.Errorf("%d versions, not a draft and the final one", n)
	}

	// A clean build gives the same bytes, and knows nothing of drafts.
	clean := t.TempDir()
	write(t, clean, "kiln.toml", project+rules, "assets/t.png", photo(t, 2))
	p, err := build.Open(workspace.Config{Dir: clean, Version: "test", Processors: processors.All()})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Build(t.Context(), build.Request{Reporter: build.Silent{}}); err != nil || r.Failed() {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(clean, "build", "pc", "t.png.ktx2"))
	if err != nil || digest.Of(want) != digest.Of(h.Value().([]byte)) {
		t.Error("the final one is another than that of a clean build:", err)
	}
}

// photo is a PNG with some of everything, so that no two encoders come to the same.
func photo(t *testing.T, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 0))
	img := image.NewNRGBA(image.Rect(0, 0, 256, 256))
	for i := range 256 * 256 {
		x, y := i%256, i/256
		img.SetNRGBA(x, y, color.NRGBA{uint8(x*y/255) ^ uint8(seed*50), uint8(y) + uint8(random.IntN(40)), uint8(x+y) / 2, 255})
	}
	var b strings.Builder
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// slow is a processor that takes until somebody lets it go on.
type slow chan struct{}

func (slow) Info() processor.Info {
	return processor.Info{Name: "slow", Version: 1, Summary: "test", Extensions: []string{".slow"}, Products: []processor.ProductType{{Type: "data", Extension: ".txt"}}}
}

func (s slow) Process(ctx context.Context, job processor.Job) error {
	select {
	case <-s:
	case <-ctx.Done():
		return ctx.Err()
	}
	return job.Write(processor.Output{Type: "data", Extension: ".txt"}, []byte("slow"))
}

// refers is a processor whose product requires the asset that the source names.
type refers struct{}

func (refers) Info() processor.Info {
	return processor.Info{Name: "refers", Version: 1, Summary: "test", Extensions: []string{".ref"}, Products: []processor.ProductType{{Type: "data", Extension: ".txt"}}}
}

func (refers) Process(_ context.Context, job processor.Job) error {
	name, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	r, err := job.Reference(string(name), "", true)
	if err != nil {
		return err
	}
	return job.Write(processor.Output{Type: "data", Extension: ".txt", References: []processor.Reference{r}}, name)
}

// TestGameInFirstBuild: a game connects while the first build is under way, and gets what it asks for, by name and by the number in
// kiln.ids, once that is built.
func TestGameInFirstBuild(t *testing.T) {
	dir, gate := t.TempDir(), make(slow)
	numbers := ids.File{Entries: []ids.Entry{{Name: ids.Name{Asset: "b.txt"}, ID: 7}, {Name: ids.Name{Asset: "z.slow"}, ID: 8}}}
	write(t, dir, "kiln.toml", project+"[build]\nworkers = 2\n", "kiln.ids", string(numbers.Format()), "assets/a.txt", "A", "assets/b.txt", "B", "assets/z.slow", "",
		"assets/one.ref", "two.ref", "assets/two.ref", "z.slow")
	srv := start(t, dir, live.Guard{}, append(processors.All(), gate, refers{})...)
	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	lib, err := client.Connect(ctx, client.Options{Address: srv.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	lib.Register("", func(l *client.Loading) (any, error) {
		data, err := l.Resource.Bytes()
		return string(data), err
	})
	load := func(want string, by func() (*client.Handle, error)) {
		t.Helper()
		h, err := by()
		if err != nil || h.Value() != want {
			t.Fatalf("%q: %v, %v", want, h, err)
		}
	}
	load("A", func() (*client.Handle, error) { return lib.LoadName("a.txt") })
	load("B", func() (*client.Handle, error) { return lib.Load(7) })
	loaded := make(chan error)
	go func() {
		_, err := lib.LoadName("one.ref") // needs two.ref, and that the slow one
		loaded <- err
	}()
	load("B", func() (*client.Handle, error) { return lib.LoadName("b.txt") })
	if _, err := lib.FindName("two.ref"); err == nil {
		t.Error("there is a resource without what it needs")
	}
	close(gate)
	if err := <-loaded; err != nil {
		t.Error(err)
	}
	load("slow", func() (*client.Handle, error) { return lib.Load(8) })
	if _, err := lib.Load(9); err == nil {
		t.Error("a resource has a number that nobody gave")
	}
}
