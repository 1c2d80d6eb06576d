package kiln_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

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
	if s, err = p.Build(t.Context(), kiln.BuildOptions{Patterns: []string{"a.txt"}}); err != nil || s.Built != 1 || s.Reused != 1 {
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
