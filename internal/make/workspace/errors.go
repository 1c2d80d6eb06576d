package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// OwnFiles turns a disk error about one of Kiln's own files into a message.
func (p *Workspace) OwnFiles(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	file := ""
	switch {
	case errors.As(err, &pe):
		file = pe.Path
	case errors.As(err, &le):
		file = le.New
	default:
		return err
	}
	if rel, rerr := filepath.Rel(p.Dir, file); rerr == nil {
		file = filepath.ToSlash(rel)
	}
	if m := project.LinkMessage(p.Dir, err); m != nil {
		return diag.List{m}
	}
	m := diag.Errorf(diag.OutputUnwritable, diag.Pos{File: file}, "this file of Kiln's own cannot be read or written: %v", disk.Reason(err))
	if disk.Full(err) {
		return diag.List{m.WithHint("make room on the disk, then build again; what was built is kept")}
	}
	if disk.InUse(err) {
		return diag.List{m.WithHint("another program may have it open: close it, and build again")}
	}
	if errors.Is(err, disk.ErrNotAFile) {
		return diag.List{m.WithHint("delete it: Kiln makes a new one")}
	}
	return diag.List{m.WithHint("check the permissions; the folder .kiln may be deleted: Kiln makes a new one")}
}

// MayPass reports whether the disk, and not the project, stopped a build as a whole, so that another
// build may succeed although nothing changes.
func MayPass(err error) bool {
	var l diag.List
	return !errors.As(err, &l) || slices.ContainsFunc(l, func(m *diag.Message) bool {
		return m.Code == diag.OutputUnwritable || m.Code == diag.StateGone
	})
}
