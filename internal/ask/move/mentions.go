package move

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/mention"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

// Mention is a place in a source file, or in a file of rules, that names a moved file by its old path.
type Mention struct {
	File         string // relative to the project folder
	Line, Column int    // 0 in a file that is not text, which is not rewritten
	Old, New     string // as written in the file
	Rewritten    bool

	abs     string
	offset  int
	setting bool // in kiln.toml or rules.toml, as the whole of a string
}

// maxReferrer is the size limit for files that are searched.
const maxReferrer = 64 << 20

// mentions returns the places that name moved files. It searches the files of assets whose jobs read them in their last
// run. References by UUID need no change. Files that move together keep their relative paths.
func (m *mover) mentions(v *view.View) (all []Mention) {
	moves := map[string]string{} // old names to new names
	for i := range v.Assets {
		a := v.Assets[i].Asset
		if rest, ok := m.below(a.Path); ok {
			moves[a.Path] = m.to + rest
			if id, folder := strings.CutSuffix(a.ID, "/"); folder && id == a.Path {
				moves[a.ID] = m.to + rest + "/"
			}
		}
	}
	for i := range v.Assets {
		a := &v.Assets[i]
		if _, moved := m.below(a.Path); moved || a.Folder {
			continue
		}
		var names []string
		for k := range a.Jobs {
			for _, name := range looked(&a.Jobs[k]) {
				if _, ok := moves[name]; ok && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		if len(names) > 0 {
			all = append(all, m.mentionsIn(a.Path, names, moves)...)
		}
	}
	return all
}

// looked returns the files and assets that a job and its parts read in their last run.
func looked(j *view.JobView) (names []string) {
	if j.Last != nil {
		for _, o := range j.Last.Observations {
			switch o.Kind {
			case job.SawFile, job.SawExists, job.SawAsset:
				names = append(names, o.Subject)
			case engine.Outline, engine.Content:
				names = append(names, task.ParseSubject(o.Subject).Asset)
			}
		}
	}
	for i := range j.Parts {
		names = append(names, looked(&j.Parts[i])...)
	}
	return names
}

// mentionsIn returns the mentions in one source file.
func (m *mover) mentionsIn(file string, names []string, moves map[string]string) (all []Mention) {
	for _, r := range slices.Backward(m.p.Roots) {
		abs := filepath.Join(r.Dir(m.p.Dir), filepath.FromSlash(file))
		if _, err := os.Stat(abs); err != nil {
			continue
		}
		text, err := disk.ReadText(abs, maxReferrer)
		if err != nil {
			return nil
		}
		for _, at := range mention.Find(text, file, names...) {
			form := slices.Index(mention.Forms(file, at.Name), at.Written)
			all = append(all, Mention{
				File: r.Prefix() + file, Line: at.Line, Column: at.Column, Old: at.Written, New: mention.Forms(file, moves[at.Name])[form],
				abs: abs, offset: at.Offset,
			})
		}
		return all
	}
	return nil
}

// rewrite changes the files. It does not change files that are not text.
func (m *mover) rewrite(all []Mention) error {
	for i := 0; i < len(all); {
		n := i + 1
		for n < len(all) && all[n].abs == all[i].abs {
			n++
		}
		in := all[i:n]
		i = n
		if in[0].Line == 0 || in[0].abs == "" {
			continue
		}
		text, err := disk.ReadFile(in[0].abs)
		if err != nil {
			return err
		}
		for k := len(in) - 1; k >= 0; k-- {
			at := &in[k]
			if !strings.HasPrefix(string(text[min(at.offset, len(text)):]), at.Old) {
				continue // the file was changed in the meantime
			}
			text = slices.Concat(text[:at.offset], []byte(at.New), text[at.offset+len(at.Old):])
			at.Rewritten = true
		}
		if err := m.replace(in[0].abs, text); err != nil {
			return err
		}
	}
	return nil
}
