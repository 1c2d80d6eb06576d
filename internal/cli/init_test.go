package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/cli"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// TestInitCorpus has `kiln init` write a project file for real content, which must then build without a failure, and
// a second time without a job.
func TestInitCorpus(t *testing.T) {
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS names no folder of real game content")
	}
	thorough.Only(t, "the corpus is built whole")
	dir := filepath.Join(t.TempDir(), "corpus")
	if err := os.CopyFS(dir, os.DirFS(corpus)); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (last map[string]any, all string) {
		t.Helper()
		var out, errs bytes.Buffer
		st := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}
		code := cli.Main(context.Background(), append(args, "-C", dir, "--json"), st, cli.Config{Processors: processors.All(), Version: cli.Version{Number: "test"}})
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); code != 0 || err != nil {
			t.Fatalf("kiln %s: exit code %d, %v\n%s%s", strings.Join(args, " "), code, err, out.String(), errs.String())
		}
		return last, out.String()
	}
	if found, text := run("init"); found["rules"] == 0.0 {
		t.Errorf("no rule was found to be needed: %s", text)
	}
	first, text := run("build")
	if first["failed"] != 0.0 || first["built"] != first["jobs"] || first["assets"].(float64) < 1000 {
		t.Errorf("got %v\n%s", first, text)
	}
	if second, _ := run("build"); second["built"] != 0.0 || second["reused"] != first["jobs"] {
		t.Errorf("the second build gave %v", second)
	}
	if found, text := run("doctor"); found["errors"] != 0.0 {
		t.Errorf("the doctor found %v\n%s", found, text)
	}
}
