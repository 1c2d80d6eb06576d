package project

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// LinkMessage is the message for an error about a link that leads out of the project in a folder, or nil.
func LinkMessage(dir string, err error) *diag.Message {
	path, link := disk.LinkError(err)
	if link == nil {
		return nil
	}
	if rel, err := filepath.Rel(dir, path); err == nil {
		path = filepath.ToSlash(rel)
	}
	m := diag.Errorf(diag.LinkLeaves, diag.Pos{File: path}, "%v", link)
	switch {
	case link.Control && link.To == "":
		return m.WithHint("take another name")
	case link.Control || link.Loop:
		return m.WithHint("replace the link by a folder")
	}
	const hint = "replace it by a file or folder of the project; if you made it yourself, as for another disk, allow it: KILN_OUTSIDE=%s"
	return m.WithHint(hint, link.To)
}

// controlled reports whether a path has the name of a folder of version control in it.
func controlled(p string) bool {
	return slices.ContainsFunc(strings.Split(p, "/"), disk.VersionControl)
}
