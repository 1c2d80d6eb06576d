package build

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/ask/setup"
	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/processor"
)

// TestCorpus builds real game content, that of the folder KILN_CORPUS names: all of it is built; no file of it
// is at fault.
func TestCorpus(t *testing.T) {
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS names no folder of game content to build")
	}
	thorough.Only(t, "the corpus is built whole")
	t.Parallel()
	p := &fixture{TB: t, dir: filepath.Join(t.TempDir(), "corpus"), procs: processors.All()}
	p.must(copyTree(corpus, p.dir))
	plan, err := setup.Look(p.dir)
	p.must(err)
	p.write("kiln.toml", string(plan.Text()))

	b := p.build0()
	if b.Assets < 1000 {
		t.Errorf("%d assets", b.Assets)
	}
	for _, m := range b.list {
		if m.Severity == diag.Error {
			t.Errorf("not expected: %s", m)
		}
	}
	if b.Failed != 0 {
		t.Errorf("failed %d", b.Failed)
	}
	p.modelURIs()
	if b := p.build0(); b.Built != 0 { // folders that were too young to be trusted are listed and noted once more
		t.Errorf("built again: %s", b.ran)
	}
	before := stamps(p.dir)
	if b := p.build0(); b.Built != 0 {
		t.Errorf("built again: %s", b.ran)
	}
	if d := cmp.Diff(before, stamps(p.dir)); d != "" {
		t.Errorf("a build of nothing wrote something:\n%s", d)
	}
}

// modelURIs looks for every file that a model names in the content database: the job of the model has looked at it.
func (p *fixture) modelURIs() {
	p.Helper()
	db, err := contentdb.OpenReadOnly(p.path(".kiln/content.db"))
	p.must(err)
	defer db.Close()
	res, err := db.RunSQL(context.Background(), "SELECT asset, subject FROM observations WHERE kind IN ('file', 'missing', 'products', 'asset')", 0)
	p.must(err)
	seen := map[string]bool{}
	for _, row := range res.Rows {
		seen[fmt.Sprint(row[0], " ", row[1])] = true
	}
	models, uris := 0, 0
	p.must(filepath.WalkDir(p.dir, func(file string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(p.dir, file)
		rel = filepath.ToSlash(rel)
		if rel == ".kiln" || rel == "build" {
			return fs.SkipDir
		}
		ext := strings.ToLower(path.Ext(rel))
		if err != nil || ext != ".gltf" && ext != ".glb" {
			return err
		}
		models++
		text, err := os.ReadFile(file)
		p.must(err)
		for _, uri := range urisOf(p, rel, text) {
			uris++
			at, err := processor.ResolveURI(rel, uri)
			if p.must(err); !seen[rel+" "+at] {
				p.Errorf("%s names %s, which is no observation", rel, at)
			}
		}
		return nil
	}))
	if models == 0 || uris == 0 {
		p.Errorf("%d models name %d files", models, uris)
	}
	p.Logf("%d models name %d files", models, uris)
}

// urisOf are the files that a model names, in buffers and images.
func urisOf(p *fixture, name string, data []byte) []string {
	if strings.HasSuffix(strings.ToLower(name), ".glb") {
		if len(data) < 20 {
			p.Errorf("%s is too short", name)
			return nil
		}
		data = data[20 : 20+binary.LittleEndian.Uint32(data[12:])]
	}
	var doc struct {
		Buffers, Images []struct{ URI string }
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		p.Errorf("%s: %v", name, err)
	}
	var uris []string
	for _, x := range append(doc.Buffers, doc.Images...) {
		if x.URI != "" && !strings.HasPrefix(x.URI, "data:") {
			uris = append(uris, x.URI)
		}
	}
	return uris
}
