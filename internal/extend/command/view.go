package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/processor"
)

// The folders and files of one run, below the job's scratch folder:
//
//	in/         the input view, where the program runs
//	out/        what it makes
//	home/ tmp/  HOME and TMPDIR
//	depfile.d   what it says it read
//
// below frameFolder, which is by itself in the job's scratch folder: see frame.
const (
	frameFolder = "run"

	viewFolder = "in"
	outFolder  = "out"
	homeFolder = "home"
	tempFolder = "tmp"
	depfile    = "depfile.d"
)

// maxViewFiles is how many files an input view may have. Each job copies all of its own, so
// more of them is a glob that is too wide and not a program that needs so much.
const maxViewFiles = 10_000

// fileTime is the modification time of everything in a view. Programs write it into archives;
// it is not 1970, because a ZIP file knows nothing before 1980.
var fileTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// view is the tree a program sees. It is laid out by plain paths: nobody else writes there yet, and going through root takes three
// times as many system calls.
type view struct {
	scratch string   // the job's scratch folder, absolute; or dir, if that is on the shelf
	dir     string   // the frame's, in it
	root    *os.Root // of dir: the program may have put a link anywhere, and it must not lead out
	files   map[string]bool
	made    map[string]bool   // folders below dir, with forward slashes
	order   []string          // made, each after the one it lies in
	links   map[string]string // to source files, and where they lead; nil if these are copied
	listed  []listed          // what the links were laid out of
	hidden  []string          // folders that no link leads to, and files that Kiln writes

	began int64 // before the links were laid out, in the time of files: see diskTime; of links alone

	frames *frames
	shelf  string          // where the frame goes afterwards; "" if nowhere
	owner  string          // begins its name there
	like   fs.FileInfo     // an empty folder of the frame
	calm   map[string]calm // by folder

	seat  *seat // in a box around the frame, which stays on the shelf; nil if the frame is moved
	alone bool  // nothing runs on that seat, or was left behind
}

// openView is a view with the folders that every run has, and nothing else.
func (p *proc) openView(job processor.Job) (*view, error) {
	v := &view{files: map[string]bool{}, made: map[string]bool{}, frames: &p.frames, owner: p.config.Name, alone: true}
	err := v.frame(job, &p.config)
	if err == nil && v.root == nil {
		v.root, err = os.OpenRoot(v.dir)
		err = moment(err)
	}
	if err != nil {
		if v.seat != nil {
			v.seat.end()
		}
		return nil, err
	}
	return v, nil
}

// newView lays out the asset's file and the declared inputs. All of them are recorded by the Job.
func (p *proc) newView(ctx context.Context, job processor.Job, inputs []string) (*view, error) {
	v, err := p.openView(job)
	if err != nil {
		return nil, err
	}
	if err := v.fill(ctx, job, inputs); err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

func (v *view) fill(ctx context.Context, job processor.Job, inputs []string) error {
	asset := job.Asset()
	paths := []string{asset.Path}
	if asset.Folder {
		paths = nil
		inputs = append([]string{processor.QuoteGlob(asset.Path) + "/**"}, inputs...)
	}
	for _, glob := range inputs {
		found, err := job.Glob(glob)
		if err != nil {
			return err
		}
		paths = append(paths, found...)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if len(paths) > maxViewFiles {
		return &processor.Problem{
			Code: string(diag.CommandView),
			Text: fmt.Sprintf("`inputs` matches %d files, more than the %d that one run may be given", len(paths), maxViewFiles),
			Hint: "make the globs narrower: every one of these files is copied for every run",
		}
	}
	if err := v.lay(asset, paths); err != nil {
		return err
	}
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := v.add(job, p); err != nil {
			return err
		}
	}
	for _, folder := range slices.Backward(v.order) { // a folder's time changes with what is put in it
		if folder != viewFolder && !strings.HasPrefix(folder, viewFolder+"/") {
			continue
		}
		if c, ok := v.calm[folder]; ok && c.state.Written == fileTime.UnixNano() {
			continue // and nothing was put in it since
		}
		if err := os.Chtimes(v.path(folder), fileTime, fileTime); err != nil {
			return moment(err)
		}
	}
	return nil
}

// lay makes the folders of the files, and of an asset that is one: it may have no files.
func (v *view) lay(asset processor.Asset, paths []string) error {
	wanted := map[string]bool{}
	want := func(folder string) {
		for at := path.Join(viewFolder, folder); at != viewFolder && !wanted[at]; at = path.Dir(at) {
			wanted[at] = true
		}
	}
	for _, p := range paths {
		want(path.Dir(p))
	}
	if asset.Folder {
		want(asset.Path)
	}
	if err := v.prune(wanted); err != nil {
		return err
	}
	if asset.Folder {
		return v.mkdir(path.Join(viewFolder, asset.Path))
	}
	return nil
}

// moment marks an error of this machine's disk: another try may go well.
func moment(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w (%w)", err, ErrMoment)
}

// add copies one source file to its place in the view.
func (v *view) add(job processor.Job, source string) error {
	if _, err := filepath.Localize(source); err != nil || !fs.ValidPath(source) {
		return &processor.Problem{
			Code: string(diag.CommandView), Path: source,
			Text: "this system cannot have a file of that name",
			Hint: "rename it",
		}
	}
	in, err := job.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	at := path.Join(viewFolder, source)
	if err := v.mkdir(path.Dir(at)); err != nil {
		return err
	}
	name := v.path(at)
	delete(v.calm, path.Dir(at))
	out, err := disk.Create(name, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &processor.Problem{
			Code: string(diag.CommandView), Path: source,
			Text: "another input's name differs only in case, and this file system takes them for one", Err: err,
			Hint: "rename one of the two",
		}
	}
	if err != nil {
		return moment(err)
	}
	_, err = io.Copy(struct{ io.Writer }{out}, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return moment(err)
	}
	v.files[source] = true
	return moment(os.Chtimes(name, fileTime, fileTime))
}

// mkdir makes a folder below the scratch folder and the ones it lies in.
func (v *view) mkdir(folder string) error {
	if folder == "." || v.made[folder] {
		return nil
	}
	if err := v.mkdir(path.Dir(folder)); err != nil {
		return err
	}
	v.made[folder] = true
	v.order = append(v.order, folder)
	delete(v.calm, path.Dir(folder))
	return moment(os.Mkdir(v.path(folder), 0o755))
}

// places are paths with their links followed, as a watcher wants them.
func (v *view) places(names ...string) (all []string) {
	dir := v.dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for _, name := range names {
		all = append(all, filepath.Join(dir, name))
	}
	return all
}

// path is a file or folder of the run as an absolute path.
func (v *view) path(name string) string { return filepath.Join(v.dir, filepath.FromSlash(name)) }

// relative turns a path as the program gives it, relative to the view or absolute, into the
// path of a source file in the view; ok is false if it is none.
func (v *view) relative(p string) (source string, ok bool) {
	if filepath.IsAbs(p) {
		rel, ok := below(v.path(viewFolder), p)
		return rel, ok && v.files[rel]
	}
	p = path.Clean(filepath.ToSlash(p))
	return p, v.files[p]
}

// below is the part of an absolute path that follows a folder, with forward slashes. Both
// are tried as they are and with their links followed, for a program may report either.
func below(folder, p string) (string, bool) {
	if rel, ok := cutFolder(folder, p); ok {
		return rel, true
	}
	realFolder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", false
	}
	if rel, ok := cutFolder(realFolder, p); ok {
		return rel, true
	}
	realPath, err := filepath.EvalSymlinks(p)
	if err != nil {
		return "", false
	}
	return cutFolder(realFolder, realPath)
}

func cutFolder(folder, p string) (string, bool) {
	if filepath.Separator == '/' && filepath.IsAbs(folder) && filepath.IsAbs(p) { // a traced program asks for hundreds
		rest, ok := strings.CutPrefix(filepath.Clean(p), strings.TrimSuffix(filepath.Clean(folder), "/"))
		if !ok || rest != "" && rest[0] != '/' {
			return "", false
		}
		return cmp.Or(strings.TrimPrefix(rest, "/"), "."), true
	}
	rel, err := filepath.Rel(folder, p)
	rel = filepath.ToSlash(rel)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return rel, true
}

// open opens what the program wrote; only a regular file will do. The error is fs.ErrNotExist
// if there is nothing, and *notAFile if there is something else.
func (v *view) open(name string) (*os.File, error) {
	name = filepath.FromSlash(name)
	before, err := v.regular(name)
	if err != nil {
		return nil, err
	}
	f, err := v.root.Open(name)
	if err != nil {
		return nil, moment(err)
	}
	// What lies there now may be another file, if a process of the program still runs.
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		return nil, errors.Join(&notAFile{"a file that still changes"}, err, f.Close())
	}
	return f, nil
}

// regular looks at a file, and fails as open does.
func (v *view) regular(name string) (fs.FileInfo, error) {
	info, err := v.root.Lstat(filepath.FromSlash(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, moment(err)
	case !info.Mode().IsRegular():
		return nil, &notAFile{kind(info.Mode())}
	}
	return info, nil
}

// notAFile says what lies where a file should.
type notAFile struct{ kind string }

func (e *notAFile) Error() string { return "it is " + e.kind }

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m.IsDir():
		return "a folder"
	}
	return "neither a file nor a folder"
}
