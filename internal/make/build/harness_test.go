package build

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/farm"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/sharing"
	"github.com/kiln-pipeline/kiln/internal/make/upkeep"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors/copy"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/kilnrt"
	"github.com/kiln-pipeline/kiln/processor"
)

// fixture is a project on disk that a test edits and builds. After each whole build its output, its messages and its content
// database are compared with those of a clean build in a fresh folder.
type fixture struct {
	testing.TB
	dir     string
	procs   []processor.Processor
	workers int
	stages  []string

	// litter are outputs that no build can know: those of assets that were removed together with all state.
	litter bool
	// checked builds are compared with a clean one.
	unchecked bool
	place     *sharing.Place // where results are shared; nil: nowhere
	farm      *farm.Place    // where jobs run besides; nil: nowhere

	builds, shorts int            // how many there were, and how many looked at few tasks
	holding        int            // builds after which something was held by ignore
	because        map[string]int // why the others did not
}

// A project of files in txtar form: paths relative to the project folder. Without a kiln.toml it gets the plainest one.
func newProject(t testing.TB, files string) *fixture {
	t.Helper()
	p := &fixture{TB: t, dir: t.TempDir(), procs: testProcessors(nil)}
	if !strings.Contains(files, "-- kiln.toml --") {
		p.write("kiln.toml", "[project]\nname = \"test\"\n")
	}
	if err := os.MkdirAll(p.path("assets"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse([]byte(files)).Files {
		p.write(f.Name, string(f.Data))
	}
	return p
}

func testProcessors(h *hooks) []processor.Processor {
	s := &script{version: 1, hooks: h}
	return []processor.Processor{s, &shadow{s}, seeder{}, copy.New()}
}

func (p *fixture) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p *fixture) write(name, content string) {
	p.Helper()
	p.must(os.MkdirAll(filepath.Dir(p.path(name)), 0o777))
	p.must(os.WriteFile(p.path(name), []byte(content), 0o666))
}

func (p *fixture) remove(name string)      { p.Helper(); p.must(os.RemoveAll(p.path(name))) }
func (p *fixture) rename(name, to string)  { p.Helper(); p.must(os.Rename(p.path(name), p.path(to))) }
func (p *fixture) read(name string) string { b, _ := os.ReadFile(p.path(name)); return string(b) }

// touch gives a file a time of its own, an older one for negative hours.
func (p *fixture) touch(name string, hours int) {
	p.Helper()
	at := time.Date(2026, 1, 1, hours, 0, 0, 0, time.UTC)
	p.must(os.Chtimes(p.path(name), at, at))
}

// scribble changes a product in place, through all hard links, as a careless tool does.
func (p *fixture) scribble(name string) {
	p.Helper()
	p.must(os.Chmod(p.path(name), 0o666))
	p.must(os.WriteFile(p.path(name), []byte("somebody else's "+p.read(name)), 0o666))
}

func (p *fixture) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// built is what came of a build.
type built struct {
	report.Summary
	ran      string // names of the jobs that ran, sorted, with a space between; those of platform pc without it
	messages string
	warned   string // that a cache or a farm could not be used
	stopped  bool
	passing  bool
	short    bool
	held     int // assets that are held by ignore
	list     diag.List
}

func (p *fixture) open() *Project {
	p.Helper()
	pr, err := Open(p.config())
	p.must(err)
	return pr
}

func (p *fixture) config() workspace.Config {
	return workspace.Config{
		Dir: p.dir, Version: "test", Processors: p.procs, Stages: p.stages,
		Cache:     func(project.Cache) (*sharing.Place, error) { return p.place, nil },
		Execution: func(project.Execution) (*farm.Place, error) { return p.farm, nil },
	}
}

// try builds without any comparison.
func (p *fixture) try(ctx context.Context, req Request) (built, error) {
	pr, err := Open(p.config())
	if err != nil {
		return built{}, err
	}
	if err := pr.Lock(ctx, true, func() {}); err != nil {
		return built{}, err
	}
	defer pr.Unlock()
	if req.Reporter == nil {
		req.Reporter = job.Silent{}
	}
	if req.Workers == 0 {
		req.Workers = p.workers
	}
	var told diag.List
	var mu sync.Mutex
	if req.Tell == nil {
		req.Tell = func(_ *report.JobReport, l diag.List) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, l...)
		}
	}
	r, err := pr.Build(ctx, req)
	if r != nil && err == nil && !r.Stopped {
		p.toldOf(told, r.Messages)
	}
	if r == nil {
		return built{}, err
	}
	warned := ""
	r.Messages = slices.DeleteFunc(r.Messages, func(m *diag.Message) bool { // what is built is the same
		if !slices.Contains([]diag.Code{diag.CacheFails, diag.CacheUnsigned, diag.FarmFails, diag.FarmOther}, m.Code) {
			return false
		}
		warned += m.Text + "\n"
		return true
	})
	b := built{warned: warned, Summary: r.Summary, stopped: r.Stopped, passing: r.Passing, short: r.Short, held: r.Held, list: r.Messages}
	if r.Short {
		p.shorts++
	} else if r.Summary.Because != "" {
		p.count(r.Summary.Because)
	}
	p.builds++
	if r.Held > 0 {
		p.holding++
	}
	var names []string
	for _, j := range r.Jobs {
		if j.State == engine.Ran || j.State == engine.WouldRun {
			name := j.Asset
			if j.Among != "" {
				name += "/" + j.Among
			}
			if j.Part != "" {
				name += "#" + j.Part
			}
			names = append(names, strings.TrimSuffix(name+"@"+j.Platform, "@pc"))
		}
	}
	slices.Sort(names)
	b.ran = strings.Join(names, " ")
	for _, m := range r.Messages {
		b.messages += m.String()
	}
	return b, err
}

// toldOf wants that no content is said to be lost while a build ran that had it in the end.
func (p *fixture) toldOf(told, said diag.List) {
	p.Helper()
	is := map[string]bool{}
	for _, m := range said {
		is[m.String()] = true
	}
	for _, m := range told {
		if !is[m.String()] && m.Code == diag.BlobDamaged {
			p.Errorf("told, and not in the report: %s", m)
		}
	}
}

// build builds everything and compares what came of it with a clean build.
func (p *fixture) build() built { p.Helper(); return p.buildWith(Request{}) }

func (p *fixture) buildWith(req Request) built {
	p.Helper()
	b, err := p.try(context.Background(), req)
	if err != nil {
		p.Fatalf("build: %v", err)
	}
	if len(req.Patterns)+len(req.Platforms) == 0 && !req.DryRun && req.OnError == results.Fail && !b.stopped && !p.unchecked {
		p.compareWithClean(b)
	}
	return b
}

// verify compares what was built with the disk, and with fix has the next build repair it.
func (p *fixture) verify(fix bool) *upkeep.Verified {
	p.Helper()
	pr := p.open()
	p.must(pr.Lock(context.Background(), false, nil))
	defer pr.Unlock()
	v, err := pr.Verify(context.Background(), fix)
	p.must(err)
	return v
}

// wants builds everything and tells if other jobs ran than those named.
func (p *fixture) wants(ran string) built {
	p.Helper()
	b := p.build()
	if b.ran != ran {
		p.Errorf("ran %q, not %q\n%s", b.ran, ran, b.messages)
	}
	jobs := map[string]bool{} // parts count as their jobs
	for _, name := range strings.Fields(ran) {
		job, part, _ := strings.Cut(name, "#")
		_, platform, _ := strings.Cut(part, "@")
		jobs[strings.TrimSuffix(job+"@"+platform, "@")] = true
	}
	if b.Built != len(jobs) {
		p.Errorf("built %d, but ran %q", b.Built, ran)
	}
	return b
}

// nothing builds and tells if anything at all ran or was written.
func (p *fixture) nothing() {
	p.Helper()
	// A file that is too young to be trusted is hashed and noted once more, as long as it is: 2 s at most, while a build takes longer
	// now and then.
	for until := time.Now().Add(30 * time.Second); ; {
		before := stamps(p.dir)
		if b := p.build0(); b.Built != 0 {
			p.Errorf("built again: %s", b.ran)
			return
		}
		d := cmp.Diff(before, stamps(p.dir))
		if d == "" {
			return
		}
		if time.Now().After(until) {
			p.Errorf("a build of nothing wrote something:\n%s", d)
			return
		}
	}
}

// stamps are the times of all files and folders of a project, but for the lock and SQLite's shared memory.
func stamps(dir string) map[string]string {
	all := map[string]string{}
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, "content.db-shm") {
			return nil
		}
		if info, err := e.Info(); err == nil {
			rel, _ := filepath.Rel(dir, path)
			all[rel] = fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		return nil
	})
	return all
}

// outcome is what a build comes to.
type outcome struct {
	outputs  map[string]string
	messages []string
	summary  report.Summary
	database map[string][]string
}

// delivered is what the output folder holds, and the files that a build writes beside it, which are committed.
func (p *fixture) delivered() map[string]string {
	p.Helper()
	all := outputFiles(p.dir, p.open().Output)
	for _, file := range []string{ids.FileName, "game/ids.txt"} {
		if text := p.read(file); text != "" {
			all["../"+file] = text
		}
	}
	return all
}

// outcome of the build that was last, but for what differs between a clean build and another.
func (p *fixture) outcome(b built) *outcome {
	p.Helper()
	return &outcome{
		outputs: p.delivered(), messages: sortedMessages(b.list), database: p.database(),
		summary: report.Summary{Assets: b.Assets, Jobs: b.Jobs, Failed: b.Failed, AssetsFailed: b.AssetsFailed, Products: b.Products, Bytes: b.Bytes},
	}
}

// clean makes a copy of the sources elsewhere and builds it, unless the same was built before.
func (p *fixture) clean() *outcome {
	p.Helper()
	c := &fixture{TB: p.TB, dir: filepath.Join(p.TempDir(), "elsewhere"), procs: p.procs, workers: 2, stages: p.stages, unchecked: true}
	p.must(copyTree(p.dir, c.dir))
	defer os.RemoveAll(filepath.Dir(c.dir))
	key := digest.Build("stages").Str("names", strings.Join(p.stages, " ")).Hash("files", treeHash(c.dir)).Sum()
	for _, pr := range p.procs {
		info := pr.Info()
		key = digest.Build("clean").Hash("files", key).Str(info.Name, fmt.Sprint(info.Version)).Sum()
	}
	if o, ok := cleanBuilds.Load(key); ok && !p.hooked() {
		return o.(*outcome)
	}
	b, err := c.try(context.Background(), Request{Force: true}) // what is forced shares no run between platforms
	if err != nil {
		p.Fatalf("clean build: %v", err)
	}
	o := c.outcome(b)
	cleanBuilds.Store(key, o)
	return o
}

// hooked tells whether a test has its hand in what jobs do, so that the same sources need not give the same.
func (p *fixture) hooked() bool {
	return slices.ContainsFunc(p.procs, func(pr processor.Processor) bool {
		s, ok := pr.(*script)
		return ok && s.hooks != nil
	})
}

// cleanBuilds are the outcomes of all clean builds so far: most steps of a test come back to sources that were built before.
var cleanBuilds sync.Map

// plainKnights is the example's project file without compressed textures, which would take most of the time of hundreds of builds.
func plainKnights(t testing.TB) string {
	text, err := os.ReadFile("../../../examples/knights/kiln.toml")
	if err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`(?m)^textures *= *\{.*$`).ReplaceAllString(string(text), "")
	if len(plain) == len(text) {
		t.Fatal("the example compresses no textures any more")
	}
	return plain
}

// copyTree copies a project without state and output folders; links stay links.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		dst := filepath.Join(to, rel)
		switch {
		case rel == ".kiln" || rel == "build" || rel == "out":
			return fs.SkipDir
		case e.IsDir():
			return os.MkdirAll(dst, 0o777)
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, dst)
		case !e.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(dst, b, 0o666|info.Mode()&0o111)
	})
}

// treeHash is over the names of all files and folders below a folder and what is in them.
func treeHash(dir string) digest.Hash {
	sum := digest.Build("tree")
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || e.IsDir() {
			sum.Str("folder", rel)
			return err
		}
		content, _ := os.ReadFile(path)
		sum.Str("file", rel).Str("type", e.Type().String()).Hash("content", digest.Of(content))
		if e.Type()&fs.ModeSymlink != 0 {
			target, _ := os.Readlink(path)
			sum.Str("target", target)
		}
		return nil
	})
	return sum.Sum()
}

func (p *fixture) count(because string) {
	if p.because == nil {
		p.because = map[string]int{}
	}
	p.because[because]++
}

func (p *fixture) compareWithClean(b built) {
	p.Helper()
	got, want := p.outcome(b), p.clean()
	if p.ignores() {
		if excused := p.excused(b); len(excused) > 0 {
			got, want = got.withoutAssets(excused), want.withoutAssets(excused)
		}
	}
	got, want = got.withoutHeld(b.messages), want.withoutHeld(b.messages)
	damaged := func(s string) bool { // a clean build has no parcel to leave
		return strings.Contains(s, "the parcel was left as it is, and is damaged")
	}
	got.messages = slices.DeleteFunc(got.messages, damaged)
	if got.database["diagnostics"] = slices.DeleteFunc(got.database["diagnostics"], damaged); len(got.database["diagnostics"]) == 0 {
		delete(got.database, "diagnostics")
	}
	if p.litter {
		maps.DeleteFunc(got.outputs, func(f, _ string) bool { _, ok := want.outputs[f]; return !ok })
	}
	compare := func(what string, want, got any) {
		p.Helper()
		if d := cmp.Diff(want, got); d != "" {
			p.Errorf("the %s not that of a clean build (-clean +this):\n%s", what, d)
		}
	}
	if !b.passing {
		p.compareFailed(b)
	}
	compare("output is", want.outputs, got.outputs)
	compare("list of messages is", want.messages, got.messages)
	compare("summary is", want.summary, got.summary)
	compare("content database is", want.database, got.database)
}

// compareFailed compares how many assets and jobs failed by the summary, by the database, and by who looks at the project.
func (p *fixture) compareFailed(b built) {
	p.Helper()
	v, err := p.open().Look(context.Background(), nil, nil)
	p.must(err)
	var assets, jobs []string
	// Who looks at all jobs misses what was lost or damaged in .kiln; a build in which nothing differs does not.
	holds := !slices.ContainsFunc(v.Messages, func(m *diag.Message) bool { return m.Code == diag.StateDamaged })
	for i := range v.Assets {
		a := &v.Assets[i]
		for k := range a.Jobs {
			j := &a.Jobs[k]
			holds = holds && (j.State.Holds() || j.State == view.Failed)
			if j.State == view.Failed {
				jobs = append(jobs, fmt.Sprint(a.ID, " ", j.Platform, " ", j.Processor))
				if !slices.Contains(assets, a.ID) {
					assets = append(assets, a.ID)
				}
			}
		}
	}
	db, err := contentdb.OpenReadOnly(p.path(".kiln/content.db"))
	p.must(err)
	defer db.Close()
	of := func(sql string) (all []string) {
		res, err := db.RunSQL(context.Background(), sql, 0)
		p.must(err)
		for _, row := range res.Rows {
			all = append(all, fmt.Sprint(row...))
		}
		slices.Sort(all) // for SQL, capital letters are small ones
		return all
	}
	slices.Sort(assets)
	slices.Sort(jobs)
	compare := func(what string, failed int, view, database []string) {
		p.Helper()
		if d := cmp.Diff(view, database); d != "" && holds || len(database) != failed {
			p.Errorf("%d %s failed; of the database %q, others of the view (-view +database):\n%s", failed, what, database, d)
		}
	}
	compare("assets", b.AssetsFailed, assets, of("SELECT asset FROM assets WHERE state = 'failed'"))
	compare("jobs", b.Failed, jobs, of("SELECT asset || ' ' || platform || ' ' || processor AS job FROM jobs WHERE state = 'failed'"))
}

// outputs are all files and folders below the output folder with their content. Those who only look at names see folders, too.
func outputFiles(dir, output string) map[string]string {
	all := map[string]string{}
	root := filepath.Join(dir, output)
	filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root || path == filepath.Join(root, ".gitignore") || path == filepath.Join(root, workspace.Mark) { // which no job makes
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		if e.IsDir() {
			all[rel] = "folder"
			return nil
		}
		switch filepath.Base(rel) {
		case ship.ListName:
			maps.Copy(all, listed(path, rel))
			return nil
		}
		if strings.HasSuffix(rel, ".parcel") {
			all[rel] = parcelText(path)
			return nil
		}
		b, err := os.ReadFile(path)
		info, _ := e.Info()
		all[rel] = fmt.Sprint(info.Mode(), " ", string(bytes.ToValidUTF8(b, []byte("?"))))
		if err != nil {
			all[rel] = err.Error()
		}
		return nil
	})
	return all
}

// listed is a list of parcels, without their sizes: one that was changed in place is larger than a new one.
func listed(path, rel string) map[string]string {
	l, err := ship.ReadList(path)
	if err != nil {
		return map[string]string{rel: err.Error()}
	}
	all := map[string]string{rel: l.Platform}
	for _, e := range l.Parcels {
		all[strings.TrimSuffix(rel, ship.ListName)+e.File+" in the list"] = fmt.Sprint(e.Name, e.Needs, e.Resources, e.Digest)
	}
	return all
}

// parcelText is all that a parcel holds.
func parcelText(path string) string {
	p, err := kilnrt.Open(path)
	if err != nil {
		return err.Error()
	}
	defer p.Close()
	if err := parcel.Verify(p); err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%x %q %x\n", p.Digest(), p.Dictionary(), p.Header().Order)
	for i := range p.Len() {
		r, err := p.At(i)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, "%d %x %d %s %s %d %d %d of %d:", r.ID, r.UUID, r.SubID, r.Name(), r.Type(), r.Codec, r.Align, r.Required, r.Required+r.Optional)
		for k := range r.Required + r.Optional {
			fmt.Fprint(&b, " ", r.Need(k))
		}
		content, err := r.Bytes()
		fmt.Fprintf(&b, " %q %v\n", content, err)
	}
	return b.String()
}

// withoutHeld leaves out the parcels that could not be packed: where there was one, it stays. The outcome itself, which other tests may
// have as well (see cleanBuilds), is not changed.
func (o *outcome) withoutHeld(messages string) *outcome {
	less := *o
	less.outputs, less.database = maps.Clone(o.outputs), maps.Clone(o.database)
	for _, m := range regexp.MustCompile(`parcel (\S+) \[(.+?)\] was (not packed|left as it is)`).FindAllStringSubmatch(messages, -1) {
		for _, platform := range strings.Split(m[2], ", ") {
			less.without(m[1], platform)
		}
		maps.DeleteFunc(less.outputs, func(f, _ string) bool { return strings.HasPrefix(f, "gen") }) // what failed may have required more before
	}
	return &less
}

// without leaves out a parcel. What was made by splitting before stays with it, even if it would not be made now.
func (o *outcome) without(parcel, platform string) {
	maps.DeleteFunc(o.outputs, func(f, _ string) bool {
		f = strings.TrimSuffix(f, " in the list")
		return f == "parcels/"+platform+"/"+parcel+".parcel" || strings.HasPrefix(f, "parcels/"+platform+"/"+parcel+"+")
	})
	for _, table := range []string{"parcels", "in parcels"} {
		o.database[table] = slices.DeleteFunc(slices.Clone(o.database[table]), func(row string) bool {
			return strings.HasPrefix(row, parcel+platform) || strings.HasPrefix(row, parcel+"+")
		})
		if len(o.database[table]) == 0 {
			delete(o.database, table)
		}
	}
}

func sortedMessages(l diag.List) []string {
	var all []string
	for _, m := range l {
		// What only a project with a past has, and what only a build that packs tells.
		other := []diag.Code{diag.StateDamaged, diag.OrderGone, diag.IDsLost, diag.IDsRenamed, diag.ParcelPlaceholders, diag.ConstantsLeft}
		if !slices.Contains(other, m.Code) {
			all = append(all, m.String())
		}
	}
	slices.Sort(all)
	return all
}

// database is all that the content database says, but for times and build numbers.
func (p *fixture) database() map[string][]string {
	p.Helper()
	db, err := contentdb.OpenReadOnly(p.path(".kiln/content.db"))
	p.must(err)
	defer db.Close()
	all := map[string][]string{}
	for name, sql := range map[string]string{
		"files": `SELECT path, root, present, size, CASE WHEN path IN (SELECT subject FROM observations WHERE kind = 'file') THEN hash END
			FROM files WHERE present OR path IN (SELECT subject FROM observations)`,
		"assets":       "SELECT asset, uuid, path, folder, processor, state = 'failed', products, bytes FROM assets",
		"meta":         "SELECT asset, key, value FROM asset_metas",
		"jobs":         "SELECT asset, platform, processor, state = 'failed', key, fingerprint, settings FROM jobs",
		"observations": "SELECT asset, platform, processor, seq, group_no, kind, subject, hash FROM observations",
		"products":     "SELECT * FROM products",
		"needs":        "SELECT * FROM job_dependencies",
		"references":   "SELECT * FROM product_dependencies",
		"parcels":      "SELECT parcel, platform, file, hash, products FROM parcels",
		"in parcels":   "SELECT * FROM parcel_products",
		"diagnostics":  "SELECT asset, platform, processor, severity, code, file, line, column, text, hint, notes, cause FROM diagnostics WHERE code NOT IN ('K0211', 'K0279', 'K1614')",
	} {
		res, err := db.RunSQL(context.Background(), sql, 0)
		p.must(err)
		for _, row := range res.Rows {
			all[name] = append(all[name], fmt.Sprint(row...))
		}
		slices.Sort(all[name])
	}
	return all
}

func requireLinux(t testing.TB, why string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip(why + ": only tried on Linux")
	}
}

func (p *fixture) link(name, target string) { p.Helper(); p.must(os.Symlink(target, p.path(name))) }

func (p *fixture) mkdir(name string) { p.Helper(); p.must(os.MkdirAll(p.path(name), 0o777)) }

func chmodExecutable(path string) error { return os.Chmod(path, 0o777) }

// build0 builds everything, and compares with nothing.
func (p *fixture) build0() built {
	p.Helper()
	b, err := p.try(context.Background(), Request{})
	p.must(err)
	return b
}

// keepTimes changes a file's content in place and puts its modification time back.
func keepTimes(path string, content []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	os.Chmod(path, 0o666)
	if err := os.WriteFile(path, content, 0o666); err != nil {
		return err
	}
	return os.Chtimes(path, info.ModTime(), info.ModTime())
}
