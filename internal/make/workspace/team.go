package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// teamPath is a file with the names of the team's processors of the last build, one a line. It does not exist if there
// were none.
func (p *Workspace) teamPath() string { return filepath.Join(p.StatePlace(), "team") }

// KnowTeam compares the team's processors with those of the last build, and records the current ones. A kiln without
// any is refused, because it would replace their products by others.
func (p *Workspace) KnowTeam(dryRun bool) (diag.List, error) {
	old, err := disk.ReadFile(p.teamPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var gone []string
	for name := range strings.Lines(string(old)) {
		if name = strings.TrimSpace(name); name != "" && p.Procs[name] == nil {
			gone = append(gone, `"`+name+`"`)
		}
	}
	var l diag.List
	if gone != nil {
		what := "the processor " + gone[0]
		if len(gone) > 1 {
			what = "the processors " + strings.Join(gone, ", ")
		}
		m := diag.Warningf(diag.ProcessorsGone, diag.Pos{File: project.File}, "the last build had %s of a team's own kiln, which this kiln has not", what)
		if len(p.TeamInfos) == 0 {
			m.Severity = diag.Error
			m.Hint = `run that kiln, or name its package for all: kiln = "tools/kiln" below [project]; if its products are not wanted any more: kiln clean --all`
			return nil, diag.List{m}
		}
		l = append(l, m)
	}
	names := make([]string, len(p.TeamInfos))
	for i := range p.TeamInfos {
		names[i] = p.TeamInfos[i].Name
	}
	slices.Sort(names)
	now := strings.Join(append(names, ""), "\n")
	switch {
	case dryRun || now == string(old):
	case len(names) == 0:
		err = RemoveAll(p.teamPath())
	default:
		temp := p.teamPath() + ".tmp"
		if err = os.WriteFile(temp, []byte(now), 0o666); err == nil {
			err = os.Rename(temp, p.teamPath())
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return l, err
}
