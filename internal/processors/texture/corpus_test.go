package texture

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// TestCorpus makes textures of all pictures of real games in the folder that KILN_CORPUS names, for PCs and for phones. It looks for
// crashes, for errors, and for products that cannot be read again; small sizes keep it quick.
func TestCorpus(t *testing.T) {
	dir := os.Getenv("KILN_CORPUS")
	if dir == "" {
		t.Skip("KILN_CORPUS names no folder with pictures of games: nothing was tried")
	}
	corpus := os.DirFS(dir)
	extensions := New().Info().Extensions
	made, formats := 0, map[string]int{}
	err := fs.WalkDir(corpus, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains(extensions, strings.ToLower(path.Ext(name))) {
			return err
		}
		data, err := fs.ReadFile(corpus, name)
		if err != nil {
			return err
		}
		for _, family := range []string{"bc", "etc2", "astc"} {
			r := processortest.Run(t, New(), processortest.Case{Files: map[string][]byte{name: data}, Asset: name,
				Settings: settings(func(o *texture.Options) { o.Family, o.Quality, o.MaxSize, o.MultipleOf = family, "fast", 64, 4 })})
			if r.Err != nil {
				t.Errorf("%s for %s: %v", name, family, r.Err)
				continue
			}
			for _, w := range r.Warnings {
				if family == "bc" {
					t.Logf("%s: %s", name, w.Text)
				}
			}
			f := opened(t, r)
			if _, err := f.Picture(f.Levels-1, 0, 0, 0); err != nil || max(f.Width, f.Height) > 64 {
				t.Errorf("%s for %s: %d x %d, %v", name, family, f.Width, f.Height, err)
			}
			formats[f.Format]++
			made++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if made < 300 {
		t.Errorf("only %d textures were made", made)
	}
	t.Log(made, "textures:", fmt.Sprint(formats))
}
