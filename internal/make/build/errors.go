package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// outputError says that something could not be done to an output: "written", "removed". The file is below the output folder.
func (s *session) outputError(file, done string, err error) *diag.Message {
	why, hint := fmt.Sprint(disk.Reason(err)), "check that the output folder can be written to and nothing stands in the way"
	switch {
	case disk.Full(err):
		hint = "make room on the disk, then build again; what was built is kept"
	case disk.InUse(err):
		hint = "another program may have it open: close it, and build again"
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.EISDIR):
		why, hint = "a folder stands in its place", "move it away, and build again"
	case errors.Is(err, syscall.ENOTDIR):
		why, hint = "a file stands where a folder should be", "move it away, and build again"
	case errors.Is(err, syscall.ENAMETOOLONG):
		hint = "give the source file a shorter name, or its asset a shorter id in a rule: match = \"...\" and id = \"...\""
	}
	return diag.Errorf(diag.OutputUnwritable, diag.Pos{File: s.p.Output + "/" + file}, "the output cannot be %s: %s", done, why).WithHint("%s", hint)
}

// ownFiles puts an error of the disk about one of Kiln's own files into words.
func (p *Project) ownFiles(err error) error {
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

// MayPass tells whether the disk, and not the project, stopped a build as a whole: to build again may help although nothing changes.
func MayPass(err error) bool {
	var l diag.List
	return !errors.As(err, &l) || slices.ContainsFunc(l, func(m *diag.Message) bool {
		return m.Code == diag.OutputUnwritable || m.Code == diag.StateGone
	})
}
