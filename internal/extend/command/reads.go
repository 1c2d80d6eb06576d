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

// view lays out what the program will see.
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

// traceable fails if the program is to be traced, and this system cannot do that.
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
		Err:  errors.Join(err, diag.ErrMoment), // on another machine the same files may do
	}
}

// isGiven reports whether a job works on a file that is not a source file.
func isGiven(job processor.Job) bool { return job.Asset().Made && job.Asset().Path != "" }

// takes refuses a job without a source.
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

// box is what the program may do.
func (p *proc) box(v *view) seal.Box {
	writable := v.scratch
	if p.run != nil {
		writable = v.dir // and not into what other programs of the job made, or the job itself
	}
	return seal.Box{
		Writable: []string{writable}, Network: p.config.Network, Trace: p.config.Reads == Traced,
		Skip: v.places(needsFolder, listsFolder, outFolder, homeFolder, tempFolder, depfile), Busy: p.busy(),
	}
}

// busy are folders in which Kiln itself may make something while the program runs.
func (p *proc) busy() (all []string) {
	for _, dir := range slices.Concat(p.config.Built, p.config.State) {
		all = append(all, filepath.Dir(dir))
	}
	return all
}

// record tells the job what a traced program looked at.
func (p *proc) record(r *reads, tools map[string]string, seen []seal.Access) error {
	if p.config.Reads != Traced {
		return nil
	}
	var all []seal.Access
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		all = append(all, loaders(tools[name])...)
	}
	cached := !slices.ContainsFunc(seen, func(a seal.Access) bool { // ldconfig reads all of the cache
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

// libraries records what the loader's cache says of each library that a program loaded or looked for, where the program read that. Of all
// else in the cache it saw nothing; other caches and lists of the system are recorded whole.
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

// rooted is a job of a project on disk, which tells where the source files lie that its answers are of. A program sees those, and no
// others: what is recorded is of what it read, whatever kiln.toml and the folders came to be meanwhile. The contract of a processor says
// nothing of that.
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

// whereOf finds source files as the job knows them; "" where it does not.
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

// reads turns paths that a program used into what a job records.
type reads struct {
	job     processor.Job
	v       *view
	roots   []string
	busy    []string          // folders in which Kiln itself may make something meanwhile
	built   []string          // folders of products, and files made of them
	state   []string          // and of what Kiln remembers
	program string            // for people
	name    string            // of the processor
	shipped []string          // names of files that are made of products
	real    map[string]string // folders, and where their links lead
	done    map[string]bool   // what was recorded: kind and name
	absent  map[string]bool   // names that are no source files of Kiln's
	entered map[string]bool   // source folders in which something was recorded
}

func (p *proc) newReads(job processor.Job, v *view) *reads {
	return &reads{
		job: job, v: v, roots: rootsOf(job), busy: p.busy(), built: slices.Concat(p.config.Built, p.config.Shipped), state: p.config.State,
		program: path.Base(p.config.Command[0]), name: p.config.Name, shipped: baseNames(p.config.Shipped),
		real: map[string]string{}, done: map[string]bool{}, absent: map[string]bool{}, entered: map[string]bool{},
	}
}

// see records accesses in their order, after the asset's own file. Then none of the files may have changed.
func (r *reads) see(all []seal.Access) error {
	if source := r.job.Asset().Path; source != "" && !r.v.placed[source] {
		own := lookAt(r.v.path(viewFolder+"/"+source), seal.Read)
		if own.State.Dir {
			own.Op = seal.List
		}
		all = append([]seal.Access{own}, all...)
	}
	var refused error // the first; what else was read may be what mends it
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
	for _, name := range folders { // that one is there is known by what was seen in it, or by its list
		if name != "." && !r.entered[name] {
			if err := r.glob(name); err != nil {
				return err
			}
		}
	}
	outdated := r.v.outdated() // after all is recorded: what is recorded is what the program saw
	for i := range all {
		if err := r.unchanged(&all[i], outdated); err != nil {
			return err
		}
	}
	return refused
}

// lookAt is an access as it would be now.
func lookAt(file string, op seal.Op) seal.Access {
	real, state := seal.Find(file)
	return seal.Access{Path: file, Real: real, Op: op, State: state}
}

// byChance says why products are refused.
const byChance = "what Kiln makes cannot be read by path, for whether it is there, and of which build, is left to chance"

// refuse fails if a program read what Kiln made, or asked for it: what it finds there depends on which jobs ran before it, and none of them
// waits for another. That the folder of its run is where it is, every program may see, and that something is missing in the folders above,
// where many look for their settings; and that there is a folder for products, as there always is: a list of the project's folder names it.
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

// instead says how a program gets the product that it read in the output folder, by its path from the folder above that.
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

// itself tells whether a program asked no more than whether there is such a folder of Kiln's own, or one that the run is in.
func (r *reads) itself(a *seal.Access) bool {
	_, above := cutFolder(a.Real, r.v.scratch)
	return a.Op == seal.Look && a.State.Dir && (above || slices.Contains(r.built, a.Real))
}

// shownBelow is a path for people, if it is one of these folders or in one.
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
			continue // the job would take it for the asset that has this UUID; what is there is recorded by its path
		}
		is, err := r.source(name, a)
		if err != nil {
			return nil, err
		}
		known = known || is
	}
	if !known && a.State.Exists && !a.State.Dir && !r.own(a.Real) {
		external = a.Real // Kiln ignores it, but the program does not
	}
	if external != "" {
		return folders, r.external(external, a)
	}
	return folders, nil
}

// asKernel records a folder of the source roots, or that nothing is there, as the program sees it: with what Kiln ignores, and with folders
// that are empty. The folder may come to lie in any root. Of a file it records that no later root has one of its name, be it one that Kiln
// ignores, and what is in it if it is in a later root itself: it may be such a one, over a file that Kiln knows.
func (r *reads) asKernel(name string, a *seal.Access) error {
	from := 0
	if a.State.Exists && !a.State.Dir {
		_, from = r.root(a.Real)
		if from == 0 { // there it is what Kiln knows, or else recorded by its path
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

// source records what a program did with a source file; known is false if Kiln knows no such file.
func (r *reads) source(name string, a *seal.Access) (known bool, err error) {
	for dir := path.Dir(name); dir != "." && !r.entered[dir]; dir = path.Dir(dir) {
		r.entered[dir] = true
	}
	if a.Op == seal.List && a.State.Dir {
		return true, r.glob(name)
	}
	if !a.State.Exists && a.Op == seal.Look { // it may become a folder, of which the job knows no more than what is in it
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

// same fails if the program read another file by the name of a source file than the job knows by it: one that came to another root since
// Kiln looked.
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

// hidden records why a program did not find a file that Kiln knows: a later root has a file in place of a folder that it is in. Else the
// file went since Kiln looked, and what the program made of that holds no longer once it comes back.
func (r *reads) hidden(name string) error {
	if strings.HasPrefix(name, ".") || seal.StateOf(r.v.path(viewFolder+"/"+name)).Exists {
		return nil // it is in no view; or it is there, and the program did not ask for it by this name
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if is, err := r.job.Exists(dir); is || err != nil {
			return err
		}
	}
	return changedMeanwhile(name)
}

// glob records which files are in a source folder, and that it is not a file.
func (r *reads) glob(folder string) error {
	pattern := "**"
	if folder != "." {
		pattern = processor.QuoteGlob(folder) + "/**"
	}
	if !r.once("glob", pattern) {
		return nil
	}
	_, err := r.job.Glob(pattern)
	if err == nil && folder != "." && r.once("exists", folder) { // an empty one may become a file
		var known bool
		known, err = r.job.Exists(folder)
		r.absent[folder] = !known
	}
	return err
}

// external records what is not in the source roots by its absolute path; that it is missing, too.
func (r *reads) external(file string, a *seal.Access) error {
	if a.State.Dir && a.Op == seal.List {
		file += "/" // the names in it
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

// unchanged fails if a file is not as it was when the program saw it, or if the view is outdated where the program looked: what came to a
// source root since has no link. Of a folder that was not listed it counts that it is there: what is in it was recorded by name.
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

// names are the source files that a path means: as it is written, and where its links lead. external is the path that has to be
// recorded besides, if it means something else that is not the program's own.
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

// own tells whether a path is in the program's scratch folder.
func (r *reads) own(p string) bool {
	if _, ok := cutFolder(r.v.scratch, p); ok {
		return true
	}
	_, ok := cutFolder(r.folder(r.v.scratch), p)
	return ok
}

// root is the innermost source root that a path is in, and the path below it; -1 if there is none.
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

// overlaid tells whether a later root has a file of that name.
func (r *reads) overlaid(name string, root int) bool {
	for _, dir := range r.roots[root+1:] {
		if st, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && !st.IsDir() {
			return true
		}
	}
	return false
}

// folder is a folder with its links followed, as far as they lead anywhere. It remembers.
func (r *reads) folder(dir string) string {
	if real, ok := r.real[dir]; ok {
		return real
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		if real = dir; filepath.Dir(dir) != dir { // it is missing, but what it would lie in may be a link
			real = filepath.Join(r.folder(filepath.Dir(dir)), filepath.Base(dir))
		}
	}
	r.real[dir] = real
	return real
}
