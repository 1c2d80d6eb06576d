package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor"
)

// view lays out the files for the program.
func (p *proc) view(ctx context.Context, job processor.Job) (*view, error) {
	if err := p.traceable(); err != nil {
		return nil, err
	}
	v, err := p.openView(job)
	if err != nil {
		return nil, err
	}
	if err := p.lay(ctx, job, v); err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

// traceable fails if the program must be traced, and this system does not support it.
func (p *proc) traceable() error {
	if p.config.Reads != Traced {
		return nil
	}
	err := seal.Supported().Trace
	if err == nil {
		return nil
	}
	hint := fmt.Sprintf("give the processor %q a list of `inputs`, or \"depfile\"", p.config.Name)
	if p.run != nil {
		hint = fmt.Sprintf("have the processor %q name the inputs of the program instead", p.config.Name)
	}
	return &processor.Problem{
		Code: string(diag.CommandUntraced),
		Text: fmt.Sprintf("what %s reads cannot be seen: %v", path.Base(p.config.Command[0]), err),
		Hint: hint,
		Err:  errors.Join(err, diag.ErrMoment), // on another machine the same files may succeed
	}
}

// isGiven reports whether a job works on a file that is not a source file.
func isGiven(job processor.Job) bool { return job.Asset().Made && job.Asset().Path != "" }

// takes returns an error for a job without a source.
func (p *proc) takes(job processor.Job) error {
	if job.Asset().Path != "" {
		return nil
	}
	return &processor.Problem{
		Code: string(diag.CommandView),
		Text: fmt.Sprintf("processor %q runs a program, which needs a file to work on, and is asked for without one", p.config.Name),
		Hint: "ask for it with a file, a product or bytes",
	}
}

// box is the sandbox of the program.
func (p *proc) box(v *view) seal.Box {
	writable := v.scratch
	if p.run != nil {
		writable = v.dir // but not to the files of the job or of its other programs
	}
	return seal.Box{
		Writable: []string{writable}, Network: p.config.Network, Trace: p.config.Reads == Traced,
		Skip: v.places(needsFolder, listsFolder, outFolder, homeFolder, tempFolder, depfile), Busy: p.busy(),
	}
}

// busy are folders in which Kiln itself may create something while the program runs.
func (p *proc) busy() (all []string) {
	for _, dir := range slices.Concat(p.config.Built, p.config.State) {
		all = append(all, filepath.Dir(dir))
	}
	return all
}

// record records what a traced program accessed.
func (p *proc) record(r *reads, tools map[string]string, seen []seal.Access) error {
	if p.config.Reads != Traced {
		return nil
	}
	var all []seal.Access
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		all = append(all, loaders(tools[name])...)
	}
	cached := !slices.ContainsFunc(seen, func(a seal.Access) bool { // ldconfig reads the whole cache
		return a.Op == seal.Exec && filepath.Base(a.Path) == "ldconfig"
	})
	for _, a := range seen {
		if cached && a.Path == loaderCache && a.Op != seal.Exec {
			continue
		}
		all = append(all, a)
		if a.Op == seal.Exec && a.State.Exists {
			all = append(all, loaders(a.Path)...)
		}
	}
	if err := r.see(all); err != nil || !cached {
		return err
	}
	return r.libraries(seen)
}

// libraries records the entries of the loader's cache for each library that a program loaded or looked for, if the program read the cache.
// The program did not use other entries; other caches and lists of the system are recorded completely.
func (r *reads) libraries(seen []seal.Access) error {
	if !slices.ContainsFunc(seen, func(a seal.Access) bool { return a.Path == loaderCache }) {
		return nil
	}
	for _, a := range seen {
		if name := inCache(a.Path); name != "" {
			if err := r.external(name, &seal.Access{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// rooted is a job of a project on disk, which reports where the source files of its answers are. A program sees only those, so the record
// is about what it read, even if kiln.toml or folders have changed meanwhile. It is not part of the contract of processors.
type rooted interface {
	Roots() []string            // absolute; a later one overlays an earlier one
	Where(source string) string // the file; "" if there is none
}

func rootsOf(job processor.Job) []string {
	if j, ok := job.(rooted); ok {
		return j.Roots()
	}
	return nil
}

// whereOf returns a function that finds source files as the job knows them; "" if the job does not know one.
func whereOf(job processor.Job) func(source string) string {
	if j, ok := job.(rooted); ok {
		return j.Where
	}
	return func(string) string { return "" }
}

func baseNames(files []string) (names []string) {
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	return names
}

// reads converts paths that a program used into what a job records.
type reads struct {
	job     processor.Job
	v       *view
	roots   []string
	busy    []string          // folders in which Kiln itself may create something meanwhile
	built   []string          // folders of products, and of files made from them
	state   []string          // folders of Kiln's state
	program string            // for display
	name    string            // of the processor
	shipped []string          // names of files made from products
	real    map[string]string // folders, and where their links lead
	done    map[string]bool   // what was recorded: kind and name
	absent  map[string]bool   // names that are not source files of Kiln's
	entered map[string]bool   // source folders in which something was recorded
}

func (p *proc) newReads(job processor.Job, v *view) *reads {
	return &reads{
		job: job, v: v, roots: rootsOf(job), busy: p.busy(), built: slices.Concat(p.config.Built, p.config.Shipped), state: p.config.State,
		program: path.Base(p.config.Command[0]), name: p.config.Name, shipped: baseNames(p.config.Shipped),
		real: map[string]string{}, done: map[string]bool{}, absent: map[string]bool{}, entered: map[string]bool{},
	}
}

// see records accesses in order, after the asset's own file. It fails if one of the files has changed since.
func (r *reads) see(all []seal.Access) error {
	if source := r.job.Asset().Path; source != "" && !r.v.placed[source] {
		own := lookAt(r.v.path(viewFolder+"/"+source), seal.Read)
		if own.State.Dir {
			own.Op = seal.List
		}
		all = append([]seal.Access{own}, all...)
	}
	var refused error // the first error; the other accesses are recorded too, because a change of one of these files may fix it
	all = slices.DeleteFunc(all, func(a seal.Access) bool {
		err := r.refuse(&a)
		refused = cmp.Or(refused, err)
		return err != nil
	})
	var folders []string
	for i := range all {
		asked, err := r.one(&all[i])
		if err != nil {
			return err
		}
		folders = append(folders, asked...)
	}
	for _, name := range folders { // its existence follows from what was read in it, or from its listing
		if name != "." && !r.entered[name] {
			if err := r.glob(name); err != nil {
				return err
			}
		}
	}
	outdated := r.v.outdated() // after everything is recorded: the record is what the program saw
	for i := range all {
		if err := r.unchanged(&all[i], outdated); err != nil {
			return err
		}
	}
	return refused
}

// lookAt is the current state as an access.
func lookAt(file string, op seal.Op) seal.Access {
	real, state := seal.Find(file)
	return seal.Access{Path: file, Real: real, Op: op, State: state}
}

// byChance is the reason why products are refused.
const byChance = "what Kiln makes cannot be read by path, for whether it is there, and of which build, is left to chance"

// refuse fails if a program read what Kiln made, or asked for it: the answer depends on which jobs ran before, and none of them waits for
// another. Allowed are: that the folder of its run exists, that files are missing in its parents, where many programs look for settings,
// and that there is a folder for products, because a listing of the project's folder names it.
func (r *reads) refuse(a *seal.Access) error {
	bad := func(shown, why, hint string) error {
		return &processor.Problem{
			Code: string(diag.CommandReadsBuilt), Text: fmt.Sprintf("%s read %s: %s", r.program, shown, why), Hint: hint,
		}
	}
	for _, at := range []string{a.Path, a.Real} {
		if r.own(at) || r.itself(a) {
			continue
		}
		if shown, is := shownBelow(r.state, at); is {
			if a.State.Exists {
				return bad(shown, "what Kiln remembers cannot be read by path, for it is another in each build", "have it do without")
			}
			continue
		}
		if shown, is := shownBelow(r.built, at); is {
			return bad(shown, byChance, r.instead(shown))
		}
	}
	return nil
}

// instead describes how a program gets the product that it read in the output folder.
func (r *reads) instead(shown string) string {
	_, file, _ := strings.Cut(shown, "/")
	platform, file, _ := strings.Cut(file, "/")
	if platform == r.job.Platform() {
		for name := file; name != "" && name != "."; name = strings.TrimSuffix(name, path.Ext(name)) {
			if a, err := r.job.Find(name); err == nil {
				return fmt.Sprintf("write `needs = [%q]` in its rule, or in the table of the processor %q, and have it read {needs}/%s",
					a.ID, r.name, file)
			}
			if path.Ext(name) == "" {
				break
			}
		}
	}
	if slices.Contains(r.shipped, shown) {
		return "have it do without: this is written when the jobs are done"
	}
	return "write `needs = [\"ASSET\"]` in its rule, and have it read that asset's products below {needs}; or have it read the source file"
}

// itself reports whether a program only asked whether a folder of Kiln's, or a parent of the run's folder, exists.
func (r *reads) itself(a *seal.Access) bool {
	_, above := cutFolder(a.Real, r.v.scratch)
	return a.Op == seal.Look && a.State.Dir && (above || slices.Contains(r.built, a.Real))
}

// shownBelow is a path for display, if it is one of these folders or in one.
func shownBelow(folders []string, p string) (string, bool) {
	for _, dir := range folders {
		if rest, ok := cutFolder(dir, p); ok {
			return path.Join(filepath.Base(dir), rest), true
		}
	}
	return "", false
}

// one records an access; folders are source folders that the program only asked about.
func (r *reads) one(a *seal.Access) (folders []string, err error) {
	if r.itself(a) {
		return nil, nil
	}
	if _, is := shownBelow(r.state, a.Real); is && !r.own(a.Real) {
		return nil, r.external(a.Path, a) // it is missing: see refuse
	}
	names, external := r.names(a)
	known := len(names) == 0
	for _, name := range names {
		if err := r.asKernel(name, a); err != nil {
			return nil, err
		}
		if a.Op == seal.Look && a.State.Dir {
			folders = append(folders, name)
			continue
		}
		if _, is := processor.UUIDOf(name); is {
			continue // the job would take it for the asset with this UUID, so it is recorded by its path
		}
		is, err := r.source(name, a)
		if err != nil {
			return nil, err
		}
		known = known || is
	}
	if !known && a.State.Exists && !a.State.Dir && !r.own(a.Real) {
		external = a.Real // Kiln ignores it, but the program does not
		if err := r.hiding(names, a); err != nil {
			return nil, err
		}
	}
	if external != "" {
		return folders, r.external(external, a)
	}
	return folders, nil
}

// hiding records what earlier roots have in place of a file that Kiln does not know: a view has a folder of theirs, and not the file.
func (r *reads) hiding(names []string, a *seal.Access) error {
	_, root := r.root(a.Real)
	for _, dir := range r.roots[:max(root, 0)] {
		for _, name := range names {
			if err := r.external(filepath.Join(dir, filepath.FromSlash(name)), a); err != nil {
				return err
			}
		}
	}
	return nil
}

// asKernel records a folder of the source roots, or that nothing is there, as the program sees it: including ignored files and empty
// folders. The folder may appear in any root. For a file it records that no later root has one of its name, even an ignored one, and its
// content if it is in a later root: then it may be an ignored one that hides a file which Kiln knows.
func (r *reads) asKernel(name string, a *seal.Access) error {
	from := 0
	if a.State.Exists && !a.State.Dir {
		_, from = r.root(a.Real)
		if from == 0 { // in the first root it is the file that Kiln knows, or else recorded by its path
			from++
		}
	}
	for _, root := range r.roots[max(from, 0):] {
		at := filepath.Join(root, filepath.FromSlash(name))
		if name == "." && a.Op == seal.Look {
			continue
		}
		if err := r.external(at, a); err != nil {
			return err
		}
	}
	return nil
}

// source records what a program did with a source file; known is false if Kiln does not know such a file.
func (r *reads) source(name string, a *seal.Access) (known bool, err error) {
	for dir := path.Dir(name); dir != "." && !r.entered[dir]; dir = path.Dir(dir) {
		r.entered[dir] = true
	}
	if a.Op == seal.List && a.State.Dir {
		return true, r.glob(name)
	}
	if !a.State.Exists && a.Op == seal.Look { // it may become a folder, of which the job only knows the content
		if err := r.glob(name); err != nil {
			return false, err
		}
	}
	r.v.files[name] = true
	if !a.State.Exists || a.Op == seal.Look {
		if r.once("exists", name) {
			known, err := r.job.Exists(name)
			if r.absent[name] = !known; err != nil {
				return known, err
			}
		}
		if !a.State.Exists && !r.absent[name] {
			return true, r.hidden(name)
		}
		return !r.absent[name], nil
	}
	if r.once("file", name) {
		f, err := r.job.Open(name)
		if r.absent[name] = errors.Is(err, fs.ErrNotExist); r.absent[name] {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if err := f.Close(); err != nil {
			return true, err
		}
		return true, r.same(name, a)
	}
	return !r.absent[name], nil
}

// same fails if the program read another file of this name than the job knows: one that appeared in another root since the scan.
func (r *reads) same(name string, a *seal.Access) error {
	j, ok := r.job.(rooted)
	if !ok {
		return nil
	}
	if own := seal.StateOf(j.Where(name)); own.Device != a.State.Device || own.Inode != a.State.Inode {
		return changedMeanwhile(name)
	}
	return nil
}

// hidden records why a program did not find a file that Kiln knows: a later root has a file in place of one of its
// folders. Otherwise the file was removed since the scan, and the program's result is not valid once it is back.
func (r *reads) hidden(name string) error {
	if strings.HasPrefix(name, ".") || seal.StateOf(r.v.path(viewFolder+"/"+name)).Exists {
		return nil // it is not in the view; or it exists, and the program did not ask for it by this name
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if is, err := r.job.Exists(dir); is || err != nil {
			return err
		}
	}
	return changedMeanwhile(name)
}

// glob records which files are in a source folder, and that the folder is not a file.
func (r *reads) glob(folder string) error {
	pattern := "**"
	if folder != "." {
		pattern = processor.QuoteGlob(folder) + "/**"
	}
	if !r.once("glob", pattern) {
		return nil
	}
	_, err := r.job.Glob(pattern)
	if err == nil && folder != "." && r.once("exists", folder) { // an empty folder may become a file
		var known bool
		known, err = r.job.Exists(folder)
		r.absent[folder] = !known
	}
	return err
}

// external records what is not in the source roots by its absolute path, also if it is missing.
func (r *reads) external(file string, a *seal.Access) error {
	if a.State.Dir && a.Op == seal.List {
		file += "/" // its names
	}
	if !r.once("tool", file) {
		return nil
	}
	if _, err := r.job.Tool(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (r *reads) once(kind, name string) bool {
	key := kind + " " + name
	first := !r.done[key]
	r.done[key] = true
	return first
}

// unchanged fails if a file has changed since the program saw it, or if the view is outdated at this path: what was added to a source root
// since has no link. For a folder that was not listed only its existence counts, because its entries were recorded by name.
func (r *reads) unchanged(a *seal.Access, outdated []string) error {
	for _, changed := range outdated {
		names, _ := r.names(a)
		for _, name := range names {
			if _, in := cutFolder(changed, name); in || a.Op == seal.List && path.Dir(changed) == name {
				return changedMeanwhile(changed)
			}
		}
	}
	now := seal.StateOf(a.Path)
	if now == a.State || a.State.SameFolder(now) && (a.Op != seal.List || slices.Contains(r.busy, a.Real)) || r.own(a.Real) {
		return nil
	}
	shown := a.Path
	if names, _ := r.names(a); len(names) > 0 {
		shown = names[0]
	}
	return changedMeanwhile(shown)
}

func changedMeanwhile(file string) error {
	return &processor.Problem{
		Code: string(diag.CommandChanged),
		Text: fmt.Sprintf("%s changed while the program ran that read it", file),
		Hint: "build again when whatever writes it is done",
		Err:  diag.ErrMoment,
	}
}

// names returns the source files that a path means: as it is written, and where its links lead. external is a path that
// must be recorded too, if it means something else that is not the program's own.
func (r *reads) names(a *seal.Access) (names []string, external string) {
	p, to := a.Path, a.Real
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if name, ok := cutFolder(r.v.path(viewFolder), p); ok {
		if r.v.placed[name] {
			return nil, "" // the job knows it
		}
		add(name)
	}
	for _, at := range []string{p, to} {
		if r.own(at) {
			continue
		}
		name, root := r.root(at)
		switch {
		case root < 0:
		case r.overlaid(name, root): // the job would open another root's file by that name
			external = at
		default:
			add(name)
		}
	}
	if len(names) == 0 && external == "" && !r.own(to) {
		external = p
	}
	return names, external
}

// own reports whether a path is in the program's scratch folder.
func (r *reads) own(p string) bool {
	if _, ok := cutFolder(r.v.scratch, p); ok {
		return true
	}
	_, ok := cutFolder(r.folder(r.v.scratch), p)
	return ok
}

// root is the innermost source root of a path, and the path below it; -1 if there is none.
func (r *reads) root(p string) (name string, root int) {
	root = -1
	for i, dir := range r.roots {
		for _, dir := range []string{dir, r.folder(dir)} {
			if rest, ok := cutFolder(dir, p); ok && (root < 0 || len(rest) < len(name)) {
				name, root = rest, i
			}
		}
	}
	return name, root
}

// overlaid reports whether a later root has a file of that name.
func (r *reads) overlaid(name string, root int) bool {
	for _, dir := range r.roots[root+1:] {
		if st, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && !st.IsDir() {
			return true
		}
	}
	return false
}

// folder returns a folder with its links resolved, as far as they lead anywhere. It caches results.
func (r *reads) folder(dir string) string {
	if real, ok := r.real[dir]; ok {
		return real
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		if real = dir; filepath.Dir(dir) != dir { // it is missing, but its parent may be a link
			real = filepath.Join(r.folder(filepath.Dir(dir)), filepath.Base(dir))
		}
	}
	r.real[dir] = real
	return real
}
