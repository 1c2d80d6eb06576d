package serve_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/running/live"
	"github.com/kiln-pipeline/kiln/internal/running/live/livetest"
	"github.com/kiln-pipeline/kiln/internal/running/serve"
	"github.com/kiln-pipeline/kiln/internal/running/session"
	client "github.com/kiln-pipeline/kiln/kilnrt/live"
)

// TestUsedSooner: what a game used is built before the rest the next time, in the order of its use.
func TestUsedSooner(t *testing.T) {
	dir := t.TempDir()
	files := []string{"kiln.toml", project}
	for i := range 8 {
		files = append(files, fmt.Sprintf("assets/%d.txt", i), "x")
	}
	write(t, dir, files...)
	srv := start(t, dir, live.Guard{})
	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	lib, err := client.Connect(ctx, client.Options{Address: srv.Address()})
	if err != nil {
		t.Fatal(err)
	}
	lib.Register("", func(l *client.Loading) (any, error) { return nil, nil })
	for _, name := range []string{"6.txt", "3.txt", "6.txt"} {
		if _, err := lib.LoadName(name); err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(dir, ".kiln")
	for len(serve.Used(state, []string{"pc"})) < 2 {
		if lib.Poll(); ctx.Err() != nil {
			t.Fatal("what the game used was not noted")
		}
	}
	lib.Close()

	// The same project somewhere else, where nothing was built.
	other := t.TempDir()
	write(t, other, files...)
	if err := os.CopyFS(filepath.Join(other, ".kiln", "used"), os.DirFS(filepath.Join(state, "used"))); err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(session.Config{Build: workspace.Config{Dir: other, Version: "test", Processors: processors.All()}, Workers: 1,
		Sooner: func() []control.Asset { return serve.Used(filepath.Join(other, ".kiln"), []string{"pc", "none"}) }})
	if err != nil {
		t.Fatal(err)
	}
	var ran []string
	over, stop := context.WithCancel(ctx)
	s.Follow(func(e session.Event) {
		switch e := e.(type) {
		case session.JobFinished:
			ran = append(ran, strings.TrimSuffix(e.Job, ".txt [pc]"))
		case session.Ended:
			stop()
		}
	})
	s.Run(over)
	if got := strings.Join(ran, " "); got != "6 3 0 1 2 4 5 7" {
		t.Errorf("built %s", got)
	}
}
