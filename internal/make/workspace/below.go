package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// What Kiln writes because of what a repository says stays below the project folder. Each function here
// returns new bounds, which remember what they have checked: keep them for the work at hand, not from build to build.

// BelowProject are the bounds of files that the project file names.
func (p *Workspace) BelowProject() *disk.Bounds { return disk.NewBounds(p.Dir, p.Config.Outside) }

// BelowOutput are the bounds of the output folder: a link in it does not lead into other folders of the project.
func (p *Workspace) BelowOutput() *disk.Bounds {
	return disk.NewBounds(p.OutputDir(), p.Config.Outside)
}

// Bounds are those of a file that Kiln writes, by its path relative to the project folder.
func (p *Workspace) Bounds(file string) *disk.Bounds {
	if strings.HasPrefix(file, project.StateFolder+"/") {
		return disk.NewBounds(p.StatePlace(), p.Config.Outside)
	}
	if strings.HasPrefix(file, p.Output+"/") {
		return p.BelowOutput()
	}
	return p.BelowProject()
}

// checkState returns an error if Kiln's own folder is a link, or has one that leads out of it, and the user has not
// allowed that. Folders in it are checked by those who write there.
func (p *Workspace) checkState() error {
	in := p.Bounds(project.StateFolder + "/")
	if p.Config.State == "" {
		if err := in.Itself(); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(in.Root())
	if err != nil {
		return nil // it is missing, or whoever writes there reports it
	}
	for _, e := range entries {
		if e.Type()&(fs.ModeSymlink|fs.ModeIrregular) == 0 {
			continue
		}
		if err := in.File(filepath.Join(in.Root(), e.Name())); err != nil {
			return err
		}
	}
	if info, err := os.Lstat(in.Root()); err != nil || info.IsDir() {
		return nil
	}
	return ownState(entries)
}

// ownState returns an error if the folder into which a link `.kiln` leads has files, and not those of Kiln. The user
// has allowed a folder above it, and `kiln clean --all` empties it.
func ownState(entries []fs.DirEntry) error {
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "lock" }) {
		return nil
	}
	i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() != ".gitignore" })
	if i < 0 {
		return nil
	}
	return diag.List{foreign(project.StateFolder, entries[i].Name()).WithHint("let the link lead to an empty folder")}
}

func foreign(folder, first string) *diag.Message {
	return diag.Errorf(diag.FolderForeign, diag.Pos{File: folder}, "this folder is not empty, and Kiln did not make it: %s", first)
}

// CheckOutput returns an error if the output folder is a link that leads out of the project, and the user has not
// allowed that, or if it is in a folder of version control.
func (p *Workspace) CheckOutput() error {
	if p.Config.Output != "" {
		return nil // an audit builds beside the project
	}
	return p.BelowProject().Folder(p.OutputDir())
}

// Mark is the file in the output folder that says that Kiln made the folder, or that the user gave it to Kiln.
const Mark = ".made-by-kiln"

// markText is what it says.
const markText = "Kiln made this folder: it replaces what it finds here in the place of its products, and removes those that no asset makes.\n" +
	"See `kiln help build`. Without this file, Kiln asks before it writes here.\n"

// ClaimOutput is called before a build changes the output folder. A folder that Kiln made has a mark; one that is
// missing or empty gets it, and so does one with a product where the last build, of an earlier Kiln, put it: known
// reports whether there is one. In any other folder with files, Kiln writes nothing.
func (p *Workspace) ClaimOutput(known func() bool) error {
	foreign, marked, err := p.whoseOutput(known)
	if marked || err != nil {
		return err
	}
	if foreign != nil {
		return diag.List{foreign}
	}
	if _, link := disk.LinkError(p.MarkOutput()); link != nil {
		return p.OwnFiles(p.CheckOutput())
	}
	return nil // other errors: writing outputs will report them
}

// CheckClaim returns the error of ClaimOutput, and changes nothing.
func (p *Workspace) CheckClaim(known func() bool) error {
	foreign, _, err := p.whoseOutput(known)
	if foreign != nil {
		return diag.List{foreign}
	}
	return err
}

// whoseOutput reports whether the output folder has a mark, and returns a message if others made it.
func (p *Workspace) whoseOutput(known func() bool) (foreignFiles *diag.Message, marked bool, err error) {
	if p.Config.Output != "" {
		return nil, true, nil // an audit builds beside the project
	}
	if info, err := os.Lstat(filepath.Join(p.OutputDir(), Mark)); err == nil && info.Mode().IsRegular() {
		return nil, true, nil
	}
	entries, err := os.ReadDir(p.OutputDir())
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return nil, true, nil // a file is in its place, and writing outputs will report it
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, p.OwnFiles(err)
	}
	i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return !blank(e) })
	if i < 0 || known() {
		return nil, false, nil
	}
	return foreign(p.Output, entries[i].Name()).WithHint(
		"if Kiln may replace files in it, run `kiln build --adopt` once; otherwise name another `output` in kiln.toml"), false, nil
}

// blank reports whether a folder with no other entries counts as empty: it has what keeps an empty folder in version
// control, what a file manager leaves, or what Kiln itself wrote before a mark.
func blank(e fs.DirEntry) bool {
	switch e.Name() {
	case ".gitignore", ".gitattributes", ".gitkeep", ".keep", ".DS_Store", "Thumbs.db", "desktop.ini":
		return e.Type().IsRegular()
	}
	return strings.HasPrefix(e.Name(), disk.TempPrefix)
}

// MarkOutput writes the mark, and makes the folder. If it was missing or empty, git is to ignore it; a folder with
// files is left as it is, because a team may commit its products. The caller holds the lock.
func (p *Workspace) MarkOutput() error {
	dir := p.OutputDir()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := p.BelowProject().MkdirAll(dir); err != nil {
		return err
	}
	if len(entries) == 0 {
		if err := ignoreAll(dir); err != nil {
			return err
		}
	}
	return disk.Save(filepath.Join(dir, Mark), []byte(markText))
}
