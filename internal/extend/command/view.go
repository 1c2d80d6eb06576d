package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
//	needs/      products of other assets that the job needs by hand
//	assets/     lists of assets that the program is given
//	out/        what it makes
//	home/ tmp/  HOME and TMPDIR
//	depfile.d   the list of files that it read
//
// below frameFolder, a folder of its own in the job's scratch folder: see frame.
const (
	frameFolder = "run"

	viewFolder  = "in"
	needsFolder = "needs"
	listsFolder = "assets"
	outFolder   = "out"
	homeFolder  = "home"
	tempFolder  = "tmp"
	depfile     = "depfile.d"
	stdinFile   = "stdin" // its standard input, if there is any
)

// maxViewFiles is how many files an input view may have. Each job copies all of its own, so more of
// them usually means that a glob is too wide.
const maxViewFiles = 10_000

// fileTime is the modification time of everything in a view. Programs write it into archives; it is
// not 1970, because ZIP files cannot represent times before 1980.
var fileTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// view is the tree that a program sees. It is laid out by plain paths: no other process writes there yet, and using
// root takes three times as many system calls.
type view struct {
	scratch string            // the job's scratch folder, absolute; or dir, if that is on the shelf
	dir     string            // the frame, in scratch
	root    *os.Root          // of dir: the program may have created links, which must not lead out
	files   map[string]bool   // files in the view, by path
	placed  map[string]bool   // those that are not source files
	made    map[string]bool   // folders below dir, with forward slashes
	order   []string          // made, each after its parent
	links   map[string]string // links to source files, and their targets; nil if files are copied
	listed  []listed          // what the links were made from
	hidden  []string          // folders without links, and files that Kiln writes

	began int64 // before the links were created, in the time of files: see diskTime; only with links

	frames *frames
	shelf  string          // path for the frame afterwards; "" if there is none
	owner  string          // prefix of its name there
	like   fs.FileInfo     // an empty folder of the frame
	calm   map[string]calm // by folder

	sandbox *sandbox // for the frame, which stays on the shelf; nil if the frame is moved
	alone   bool     // no process of the sandbox runs or was left
}

// openView returns a view with only the folders that every run has.
func (p *proc) openView(job processor.Job) (*view, error) {
	v := &view{
		files: map[string]bool{}, made: map[string]bool{}, placed: map[string]bool{}, frames: p.frames, owner: p.config.Name, alone: true,
	}
	err := v.frame(job, &p.config)
	if err == nil && v.root == nil {
		v.root, err = os.OpenRoot(v.dir)
		err = moment(err)
	}
	if err != nil {
		if v.sandbox != nil {
			v.sandbox.end()
		}
		return nil, err
	}
	return v, nil
}

// lay lays out all files that the program sees. The Job records source files and products.
func (p *proc) lay(ctx context.Context, job processor.Job, v *view) error {
	if isGiven(job) {
		v.placed[job.Asset().Path] = true
	}
	if p.run != nil {
		for name := range placed(p.run) {
			v.placed[name] = true
		}
	}
	lay := p.links
	if p.config.Reads == Declared {
		lay = func(job processor.Job, v *view) error { return p.copies(ctx, job, v) }
	}
	if err := lay(job, v); err != nil {
		return err
	}
	if err := p.place(job, v); err != nil {
		return err
	}
	if err := v.needs(ctx, job); err != nil {
		return err
	}
	if err := v.lists(job, lists(p.args)); err != nil {
		return err
	}
	for _, folder := range slices.Backward(v.order) { // a folder's time changes with what is put in it
		inView := folder == viewFolder || strings.HasPrefix(folder, viewFolder+"/")
		if folder != listsFolder && !strings.HasPrefix(folder+"/", needsFolder+"/") && (!inView || p.config.Reads != Declared) {
			continue
		}
		if c, ok := v.calm[folder]; ok && c.state.Written == fileTime.UnixNano() {
			continue // and nothing was put into it since
		}
		if err := os.Chtimes(v.path(folder), fileTime, fileTime); err != nil {
			return moment(err)
		}
	}
	return nil
}

// inputs are the globs of the files for the program.
func (p *proc) inputs(job processor.Job) (globs []string) {
	if j, ok := job.(byHand); ok {
		globs = j.Inputs()
	}
	if p.run != nil {
		globs = slices.Concat(globs, p.run.Inputs)
	}
	return globs
}

// byHand is a job with dependencies by hand. It is not part of the contract of processors.
type byHand interface {
	Inputs() []string // globs
	Needs() ([]processor.Product, error)
}

// copies lays out the asset's file and the declared inputs.
func (p *proc) copies(ctx context.Context, job processor.Job, v *view) error {
	asset, inputs := job.Asset(), p.inputs(job)
	var paths []string
	switch {
	case !asset.Folder && asset.Path != "" && !v.placed[asset.Path]:
		paths = []string{asset.Path}
	case asset.Folder && p.run == nil:
		inputs = append([]string{processor.QuoteGlob(asset.Path) + "/**"}, inputs...)
	}
	for _, glob := range inputs {
		found, err := job.Glob(glob)
		if err != nil {
			return err
		}
		paths = append(paths, found...)
	}
	paths = slices.DeleteFunc(paths, func(name string) bool { return v.placed[name] })
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if len(paths) > maxViewFiles {
		return &processor.Problem{
			Code: string(diag.CommandView),
			Text: fmt.Sprintf("`inputs` matches %d files, more than the %d that one run may be given", len(paths), maxViewFiles),
			Hint: "make the globs narrower: every one of these files is copied for every run",
		}
	}
	if err := v.clear(asset, paths); err != nil {
		return err
	}
	for _, name := range paths {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := nameable(name); err != nil {
			return err
		}
		in, err := job.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(v.put(viewFolder, name, in), in.Close()); err != nil {
			return err
		}
		v.files[name] = true
	}
	return nil
}

// place puts the job's source into the view, if it is not a source file, and the files that a job passes to a program.
func (p *proc) place(job processor.Job, v *view) error {
	if isGiven(job) && (p.run == nil || !placed(p.run)[job.Asset().Path]) {
		in, err := job.Source()
		if err != nil {
			return err
		}
		if err := errors.Join(v.put(viewFolder, job.Asset().Path, in), in.Close()); err != nil {
			return err
		}
		v.files[job.Asset().Path] = true
	}
	if p.run == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.run.Files)) {
		if err := v.put(viewFolder, name, bytes.NewReader(p.run.Files[name])); err != nil {
			return err
		}
		v.files[name] = true
	}
	return p.placeScratch(job, v)
}

// placeScratch puts files of the job's scratch folder into the view.
func (p *proc) placeScratch(job processor.Job, v *view) error {
	if len(p.run.Scratch) == 0 {
		return nil
	}
	dir, err := job.Scratch()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.run.Scratch)) {
		in, err := os.Open(filepath.Join(dir, filepath.FromSlash(p.run.Scratch[name])))
		if err != nil {
			return moment(err)
		}
		if err := errors.Join(v.put(viewFolder, name, in), in.Close()); err != nil {
			return err
		}
		v.files[name] = true
	}
	return nil
}

// needs lays out the products that the job needs by hand, each under its file name.
func (v *view) needs(ctx context.Context, job processor.Job) error {
	var all []processor.Product
	if j, ok := job.(byHand); ok {
		var err error
		if all, err = j.Needs(); err != nil {
			return err
		}
	}
	wanted := map[string]bool{}
	for _, p := range all {
		for at := path.Dir(path.Join(needsFolder, p.File)); at != "."; at = path.Dir(at) {
			wanted[at] = true
		}
	}
	if err := v.prune(needsFolder, wanted); err != nil {
		return err
	}
	for _, p := range all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		in, err := job.OpenProduct(p)
		if err != nil {
			return err
		}
		if err := errors.Join(v.put(needsFolder, p.File, in), in.Close()); err != nil {
			return err
		}
	}
	return nil
}

// listedAsset is an asset with one of its processors, a line of a list.
type listedAsset struct {
	ID        string          `json:"id"`
	UUID      string          `json:"uuid"`
	Path      string          `json:"path"`
	Folder    bool            `json:"folder"`
	Processor string          `json:"processor"`
	Type      string          `json:"type"`
	Settings  json.RawMessage `json:"settings"`
	Meta      json.RawMessage `json:"meta"`
}

// listFile is the list of the pattern with a number.
func listFile(i int) string { return fmt.Sprintf("%s/%d.jsonl", listsFolder, i+1) }

// lists lays out the lists of the assets that patterns match, each a file.
func (v *view) lists(job processor.Job, patterns []string) error {
	if err := v.prune(listsFolder, map[string]bool{listsFolder: len(patterns) > 0}); err != nil {
		return err
	}
	for i, pattern := range patterns {
		found, err := job.Assets(pattern)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		for _, a := range found {
			line := listedAsset{a.ID, a.UUID, a.Path, a.Folder, a.Processor, a.Type, json.RawMessage(a.Settings), json.RawMessage(a.Meta)}
			if err := enc.Encode(line); err != nil {
				return err
			}
		}
		if err := v.put(".", listFile(i), &b); err != nil {
			return err
		}
	}
	return nil
}

// clear makes the folders of the files, and of an asset that is one: it may have no files. Those that another run left go.
func (v *view) clear(asset processor.Asset, paths []string) error {
	wanted := map[string]bool{}
	want := func(folder string) {
		for at := path.Join(viewFolder, folder); at != viewFolder && !wanted[at]; at = path.Dir(at) {
			wanted[at] = true
		}
	}
	for _, p := range paths {
		want(path.Dir(p))
	}
	for p := range v.placed {
		want(path.Dir(p))
	}
	if asset.Folder {
		want(asset.Path)
	}
	if err := v.prune(viewFolder, wanted); err != nil {
		return err
	}
	if asset.Folder {
		return v.mkdir(path.Join(viewFolder, asset.Path))
	}
	return nil
}

// moment marks an error of this machine's disk: another try may succeed.
func moment(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w (%w)", err, diag.ErrMoment)
}

// nameable returns an error for names of files that this system does not allow.
func nameable(file string) error {
	if _, err := filepath.Localize(file); err == nil && fs.ValidPath(file) {
		return nil
	}
	return &processor.Problem{
		Code: string(diag.CommandView), Path: file,
		Text: "this system cannot have a file of that name",
		Hint: "rename it",
	}
}

// put writes a file in a folder of the run.
func (v *view) put(folder, file string, from io.Reader) error {
	if err := nameable(file); err != nil {
		return err
	}
	at := path.Join(folder, file)
	if err := v.mkdir(path.Dir(at)); err != nil {
		return err
	}
	name := v.path(at)
	delete(v.calm, path.Dir(at))
	out, err := disk.Create(name, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &processor.Problem{
			Code: string(diag.CommandView), Path: file,
			Text: "another input's name differs only in case, and this file system takes them for one", Err: err,
			Hint: "rename one of the two",
		}
	}
	if err != nil {
		return moment(err)
	}
	_, err = io.Copy(struct{ io.Writer }{out}, from)
	if err = errors.Join(err, out.Close()); err != nil {
		return moment(err)
	}
	return moment(os.Chtimes(name, fileTime, fileTime))
}

// mkdir creates a folder below the scratch folder, and its parents.
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

// places are paths with their links resolved, as a trace needs them.
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

// relative converts a path from the program, relative to the view or absolute, to the path of a
// source file in the view; ok is false if it is not one.
func (v *view) relative(p string) (source string, ok bool) {
	if filepath.IsAbs(p) {
		rel, ok := below(v.path(viewFolder), p)
		return rel, ok && v.files[rel]
	}
	p = path.Clean(filepath.ToSlash(p))
	return p, v.files[p]
}

// below is the part of an absolute path after a folder, with forward slashes. Both are tried
// unchanged and with their links resolved, because a program may report either.
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
	if filepath.Separator == '/' && filepath.IsAbs(folder) && filepath.IsAbs(p) { // a traced program accesses hundreds of files
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

// open opens an output of the program; it must be a regular file. The error is fs.ErrNotExist if
// there is nothing, and *notAFile if there is something else.
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
	// It may be another file by now, if a process of the program still runs.
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		return nil, errors.Join(&notAFile{"a file that still changes"}, err, f.Close())
	}
	return f, nil
}

// regular returns the stat of a file, and fails as open does.
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

// notAFile means that something else is at the path of a file.
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
