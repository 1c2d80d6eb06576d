package texture

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/role"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// use sets the use of the texture from the file's name, if the settings leave it open.
func (s *sources) use() error {
	if s.o.Use != "auto" {
		return nil
	}
	named, err := texture.Named(s.job, s.job.Asset().Path)
	s.guessed, s.o = &named, s.o.For(named)
	return err
}

// doubt warns about a picture that does not match its name, and that no model uses.
func (s *sources) doubt(plan *texture.Plan) error {
	if s.guessed == nil {
		return nil
	}
	why, use := plan.Doubt(*s.guessed)
	if why == "" {
		return nil
	}
	if used, err := s.modelled(); err != nil || used {
		return err
	}
	hint := fmt.Sprintf(`say what it is: use = "color", or use = %q if the name is right`, plan.Use)
	if use == role.Normal {
		hint = fmt.Sprintf(`say what it is: use = %q, or use = "color" if it only looks like one`, use)
	}
	s.job.Warn(processor.Problem{Code: string(diag.TextureGuess), Text: why, Hint: hint})
	return nil
}

// modelled reports whether a model uses the picture: its materials then say what it is for, and the model's own messages name what
// contradicts them. It reads models only for pictures in doubt, nearest first, because each that it reads makes the texture again when it
// changes.
func (s *sources) modelled() (bool, error) {
	asset := s.job.Asset()
	models, err := s.job.Glob("**/*.{gltf,glb,GLTF,GLB}")
	if err != nil || asset.Made {
		return false, err
	}
	slices.SortStableFunc(models, func(a, b string) int { return cmp.Compare(distance(asset.Path, a), distance(asset.Path, b)) })
	for _, m := range models {
		f, err := s.job.Open(m)
		if err != nil {
			return false, err
		}
		used := role.Uses(m, f, f.Size(), asset.Path, asset.UUID)
		f.Close()
		if err := s.ctx.Err(); err != nil || used {
			return used, err
		}
	}
	return false, nil
}

// distance is the number of steps from the folder of a file to that of another.
func distance(a, b string) int {
	x, y := strings.Split(path.Dir(a), "/"), strings.Split(path.Dir(b), "/")
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	return len(x) + len(y) - 2*same
}
