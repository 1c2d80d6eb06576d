package kiln_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/kiln-pipeline/kiln"
)

func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLibrary(t *testing.T) {
	dir := project(t, map[string]string{
		"kiln.toml": "[project]\nname = \"test\"\n[platforms.pc]\n[platforms.mobile]\n", "assets/a.txt": "a", "assets/bad.json": "{",
	})
	p, err := kiln.Open(filepath.Join(dir, "assets"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Build(t.Context(), kiln.BuildOptions{Platforms: []string{"pc"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Assets != 2 || s.Built != 2 || s.Failed != 1 || s.Products != 1 || s.Bytes != 1 || s.Took <= 0 || len(s.Messages) != 1 {
		t.Errorf("%+v", s)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "build", "pc", "a.txt")); err != nil || string(data) != "a" {
		t.Errorf("%q, %v", data, err)
	}
	if s, err = p.Build(t.Context(), kiln.BuildOptions{Patterns: []string{"a.txt"}}); err != nil || s.Built != 0 || s.Reused != 2 { // on mobile it is what it is on pc
		t.Errorf("%+v, %v", s, err)
	}
	_, err = p.Build(t.Context(), kiln.BuildOptions{Patterns: []string{"b.txt"}})
	if l := kiln.Messages(err); len(l) != 1 || l[0].Code != "K0213" || l[0].Hint != `did you mean "a.txt"?` {
		t.Errorf("%v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Build(ctx, kiln.BuildOptions{Force: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	lock := flock.New(filepath.Join(dir, ".kiln", "lock"))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := p.Build(t.Context(), kiln.BuildOptions{NoWait: true}); !errors.Is(err, kiln.ErrBusy) {
		t.Errorf("busy: %v", err)
	}
}

// TestNeedsRebuild: what is out of date is listed with a reason, and nothing is written.
func TestNeedsRebuild(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"kiln.toml": "[project]\nname = \"test\"\n[platforms.pc]\n[platforms.mobile]\n", "assets/a.txt": "a", "assets/b.txt": "b"})
	p, err := kiln.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	stale, err := p.NeedsRebuild(t.Context(), kiln.BuildOptions{Platforms: []string{"pc"}})
	if err != nil || len(stale) != 2 || stale[0].Asset != "a.txt" || stale[1].Asset != "b.txt" || stale[0].Reason == "" || stale[0].Maybe {
		t.Errorf("%+v, %v", stale, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "build")); err == nil {
		t.Error("the question made an output folder")
	}
	if _, err := p.Query(t.Context(), "assets"); len(kiln.Messages(err)) != 1 || kiln.Messages(err)[0].Code != "K0217" {
		t.Errorf("a query before the first build: %v", err)
	}
	if _, err := p.Build(t.Context(), kiln.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	if stale, err := p.NeedsRebuild(t.Context(), kiln.BuildOptions{}); err != nil || len(stale) != 0 {
		t.Errorf("after a build: %+v, %v", stale, err)
	}
	if _, err := p.Query(t.Context(), "SELECT nothing FROM assets"); len(kiln.Messages(err)) != 1 || kiln.Messages(err)[0].Code != "K0216" {
		t.Errorf("a wrong query: %v", err)
	}
}

// TestWatch: mistakes in kiln.toml and failing assets are updates like others, and a function that uses the project holds nothing up.
func TestWatch(t *testing.T) {
	t.Parallel()
	const good = "[project]\nname = \"test\"\n"
	dir := project(t, map[string]string{"kiln.toml": good, "assets/a.txt": "a"})
	p, err := kiln.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) { // in one step
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.WriteFile(dir+"/new", []byte(text), 0o666), os.Rename(dir+"/new", file)); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	step := 0
	err = p.Watch(ctx, kiln.WatchOptions{}, func(u kiln.Update) {
		switch {
		case step == 0 && u.Err == nil:
			if _, err := p.Build(ctx, kiln.BuildOptions{}); err != nil {
				t.Errorf("a build in a watcher: %v", err)
			}
			put("assets/bad.json", "{")
			step++
		case step == 1 && u.Failed == 1:
			put("kiln.toml", good+"nmae = 1\n")
			step++
		case step == 2 && u.Err != nil:
			if l := kiln.Messages(u.Err); l[0].Code != "K0003" {
				t.Errorf("%v", u.Err)
			}
			put("kiln.toml", good)
			put("assets/bad.json", "{}")
			step++
		case step == 3 && u.Err == nil && u.Failed == 0 && u.Assets == 2:
			step++
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || step != 4 {
		t.Errorf("ended in step %d: %v", step, err)
	}
}

func TestOpenTellsMistakes(t *testing.T) {
	_, err := kiln.Open(project(t, map[string]string{"kiln.toml": "[project]\nname = \"test\"\nnmae = 1\n"}))
	if l := kiln.Messages(err); len(l) != 1 || l[0].Code != "K0003" || l[0].Pos.Line != 3 {
		t.Errorf("%v", err)
	}
	if _, err = kiln.Open(t.TempDir()); len(kiln.Messages(err)) != 1 {
		t.Errorf("%v", err)
	}
}

// TestGoroutines: one project may be used by several goroutines. They wait for each other, and those who do not want to are told.
func TestGoroutines(t *testing.T) {
	t.Parallel()
	files := map[string]string{"kiln.toml": "[project]\nname = \"test\"\n"}
	for i := range 20 {
		files[fmt.Sprintf("assets/%d.txt", i)] = fmt.Sprint(i)
	}
	p, err := kiln.Open(project(t, files))
	if err != nil {
		t.Fatal(err)
	}
	var built atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		for i := range 2 {
			wg.Go(func() {
				s, err := p.Build(context.Background(), kiln.BuildOptions{NoWait: g == 0 && i == 0})
				if built.Add(int64(s.Built)); err == nil && s.Jobs != 20 || err != nil && (g > 0 || !errors.Is(err, kiln.ErrBusy)) {
					t.Errorf("%+v, %v", s, err)
				}
			})
		}
	}
	wg.Wait()
	if built.Load() != 20 {
		t.Errorf("%d jobs ran, not 20", built.Load())
	}
}

// TestDocumentation: the code in docs/library.md is that of the examples above.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	flat := func(text []byte) string {
		return strings.ReplaceAll(strings.ReplaceAll(string(text), "\r", ""), "\t", "")
	}
	blocks := regexp.MustCompile("(?s)```go\r?\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 4 {
		t.Errorf("docs/library.md has %d blocks of code, not 4", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(flat(source), flat(b[1])) {
			t.Errorf("docs/library.md shows code that is not in example_test.go:\n%s", b[1])
		}
	}
}
