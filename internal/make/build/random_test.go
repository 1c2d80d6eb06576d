package build

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/processor"
)

var (
	steps = flag.Int("steps", 200, "how many edits and builds TestRandom does")
	long  = flag.Duration("long", 0, "do TestRandom over and over for so long")
)

// TestRandom edits a project at random and compares every build with a clean one, and every second build with nothing.
func TestRandom(t *testing.T) { t.Parallel(); randomly(t, false, nil) }

// TestRandomCalm is TestRandom with few changes from build to build, as people make them, so that most builds look at few tasks.
func TestRandomCalm(t *testing.T) {
	t.Parallel()
	randomly(t, true, []int{0, 1, 2, 4, 7, 8, 7, 8, 9, 10, 10, 11, 12, 11, 12, 13, 13, ignoring})
}

// TestRandomIgnore is TestRandomCalm of a project in which much that jobs read is harmless.
func TestRandomIgnore(t *testing.T) { t.Parallel(); randomly(t, true, []int{ignoring}) }

// TestRandomNumbers is TestRandomCalm of projects with parcels, in which many jobs ask for resource ids and these change often.
func TestRandomNumbers(t *testing.T) { t.Parallel(); randomly(t, true, numbering) }

// edits is how many steps a random test does.
func edits() int {
	if !thorough.Enabled() {
		return *steps / 5
	}
	return *steps
}

func randomly(t *testing.T, calm bool, projects []int) {
	rng, n, total := randomSource(t), edits(), 0
	for until := time.Now().Add(*long); ; {
		r := newRandom(t, rng)
		r.calm = calm
		if calm {
			r.numbering = slices.Equal(projects, numbering)
			r.project = pick(r, projects...)
			r.p.write("kiln.toml", projectFiles[r.project])
			if strings.Contains(projectFiles[r.project], "mod") {
				r.p.mkdir("mod")
			}
			for _, dir := range []string{"", "sub/", "sub/deep/", "other/"} { // a file of each kind, so that another one is nothing new
				for _, ext := range []string{"s", "txt", "bin"} {
					r.put("assets/"+dir+"keep."+ext, "text that stays")
				}
			}
			if r.project == ignoring {
				r.put("assets/keep.s", "try b.txt\ntry c.txt\ntry d.bin\ntry sub/a.txt\ntry sub/c.bin\ntry sub/deep/b.txt\ntry other/d.txt\n")
			}
		}
		for r.n = range n {
			r.step()
			if t.Failed() {
				t.Fatalf("after:\n%s", strings.Join(r.log[max(0, len(r.log)-25):], "\n"))
			}
		}
		total += r.p.builds
		t.Logf("%d of %d builds looked at few tasks; the others: %v", r.p.shorts, r.p.builds, r.p.because)
		t.Logf("after %d builds something was held by ignore", r.p.holding)
		enough := n / 4
		if strings.Contains(projectFiles[r.project], "parcels") {
			enough = n / 16 // jobs that begin and cease to fail in them take all tasks
		}
		if r.numbering {
			enough = n / 40 // and so do numbers that are changed by hand or that jobs asked for
		}
		if calm && r.p.shorts < enough {
			t.Error("too few builds looked at few tasks")
		}
		if len(projects) == 1 && r.p.holding < n/16 {
			t.Error("too few builds had something held by ignore")
		}
		if r.numbering && r.p.because[otherIDsBecause] < n/16 {
			t.Error("too few builds assigned resource ids that jobs asked for")
		}
		r.p.remove(".")
		if time.Now().After(until) {
			t.Logf("%d builds in all", total)
			return
		}
	}
}

// random is a project that is edited at random. It keeps the names of few files, so that edits meet each other.
type random struct {
	p       *fixture
	rng     *rand.Rand
	n       int
	log     []string
	past    map[string][]string // contents that a file had
	project int                 // which of the project files
	calm    bool
	damaged bool // the snapshot was, and no build has read all of it since

	numbering bool // much is about resource ids
}

func newRandom(t *testing.T, rng *rand.Rand) *random {
	r := &random{p: newProject(t, ""), rng: rng, past: map[string][]string{}}
	r.p.procs = append(r.p.procs, bundle{}, gather{r.p.procs[0].(*script)})
	r.p.workers = 1 + rng.IntN(4)
	r.p.write("ids.tmpl", constantsTemplate)
	for range 12 {
		r.edit()
	}
	return r
}

func pick[T any](r *random, of ...T) T { return of[r.rng.IntN(len(of))] }

// called is what an asset may be called by: mostly its name.
func (r *random) called() string {
	if r.rng.IntN(5) > 0 {
		return r.name()
	}
	return pick(r, processor.ByUUID(asset.UUID(r.name())), capitals(asset.UUID(r.name())), processor.ByUUID("11111111-2222-4333-8444-555555555555"), "pinned", "a", "sub", "declared", "grown",
		processor.ByUUID(asset.UUID("declared")))
}

// capitals names an asset by its UUID as some tools write it.
func capitals(uuid string) string { return "uuid:" + strings.ToUpper(uuid) }

func (r *random) name() string {
	return pick(r, "", "", "", "sub/", "sub/deep/", "other/") + pick(r, "a", "b", "c", "d", "e", "e", "d", composed) + pick(r, ".s", ".s", ".s", ".txt", ".bin")
}

// script writes a few lines of what a script can do.
func (r *random) script() string {
	var b strings.Builder
	if r.numbering && r.rng.IntN(2) == 0 {
		fmt.Fprintf(&b, "number %s\n", pick(r, "", "x", "y"))
	}
	for range 1 + r.rng.IntN(4) {
		n := r.name()
		switch r.rng.IntN(35) {
		case 32, 33:
			fmt.Fprintf(&b, "number %s\n", pick(r, "", "x", "y"))
		case 34:
			fmt.Fprintf(&b, "part %s 1\nnumber %[1]s\n", pick(r, "x", "y"))
		case 29:
			fmt.Fprintf(&b, "assets %s\n", pick(r, "**", "sub/**/*.txt", "*.s", "{sub,other}/*", "a.*", "pinned", "parcel:one", "parcel:two"))
		case 30, 31:
			fmt.Fprintf(&b, "perhaps %s %s %s\n", r.called(), pick(r, "-", "-", "pc", "web", "tv"), pick(r, "-", "-", "script", "shadow", "copy"))
		case 26:
			fmt.Fprintf(&b, "given %s\n", r.called())
		case 27:
			fmt.Fprintf(&b, "named %s %s\n", pick(r, "cape", "hat"), n)
		case 28:
			fmt.Fprintf(&b, "%s\n", r.program())
		case 20:
			fmt.Fprintf(&b, "more %s\n", pick(r, "x", "y"))
		case 21:
			fmt.Fprintf(&b, "refer %s %s\n", n, pick(r, "", "x", "y"))
		case 22, 23:
			fmt.Fprintf(&b, "request %s %s%s\n", pick(r, "one", "two"), pick(r, "", "", "", "+", "++"), n)
		case 24:
			fmt.Fprintf(&b, "adopt %s %s%s\n", pick(r, "x", "y"), pick(r, "", "", "+"), n)
		case 25:
			fmt.Fprintln(&b, pick(r, "seed 1", "seed 2", "bytes one setting|text of bytes", "bytes two read "+n, "bytes two request one "+n,
				"bytes one use "+n, "bytes one ask "+n, "bytes one fail it", "product "+n))
		case 0, 1:
			fmt.Fprintf(&b, "read %s\n", n)
		case 2:
			fmt.Fprintf(&b, "try %s\n", n)
		case 3:
			fmt.Fprintf(&b, "exists %s\n", n)
		case 4:
			fmt.Fprintf(&b, "glob %s\n", pick(r, "**", "sub/**/*.txt", "*.s", "{sub,other}/*"))
		case 5, 6, 7:
			fmt.Fprintf(&b, "use %s %s\n", n, r.called())
		case 8:
			fmt.Fprintf(&b, "use %s\n", r.called())
		case 9:
			fmt.Fprintf(&b, "list %s\n", r.called())
		case 10:
			fmt.Fprintf(&b, "%s %s\n", pick(r, "ref", "opt", "find", "try"), r.called())
		case 11:
			fmt.Fprintf(&b, "part %s %d\n", pick(r, "x", "y"), r.rng.IntN(3))
		case 12:
			fmt.Fprintf(&b, "warn %d\n", r.rng.IntN(3))
		case 13:
			fmt.Fprintln(&b, pick(r, "fail now", "panic stations", "error plain", "twice x", "scratch"))
		case 14:
			fmt.Fprintln(&b, pick(r, "setting", "platform"))
		case 15, 16:
			fmt.Fprintf(&b, "ask %s %s%s\n", r.name(), pick(r, "", "+", "++"), r.name())
		case 17:
			fmt.Fprintf(&b, "take %s%s\n", pick(r, "", "+"), r.name())
		case 18:
			fmt.Fprintf(&b, "shadow %s\n", r.shadow())
		default:
			fmt.Fprintf(&b, "text %d\n", r.rng.IntN(5))
		}
	}
	return b.String()
}

// program writes a line that has a program run.
func (r *random) program() string {
	what := pick(r, "cat "+r.name(), "cat "+r.name()+" "+r.name(), "ls "+pick(r, "sub", "other", "sub/deep", "."), "cat given", "fail "+r.name())
	return pick(r, "run ", "run ", "trace ") + what
}

// shadow writes a line of what the script's other processor does.
func (r *random) shadow() string {
	switch r.rng.IntN(9) {
	case 0:
		return "read " + r.name()
	case 8:
		return "number " + pick(r, "", "x", "z", "shadow")
	case 1:
		return "list " + r.name()
	case 2, 3:
		return pick(r, "use ", "request one ") + r.name()
	case 4:
		return fmt.Sprintf("part %s %d", pick(r, "x", "y", "z"), r.rng.IntN(3))
	case 5:
		return pick(r, "main", "file", "fail now", "setting", "warn it")
	case 6:
		return fmt.Sprintf("ask %s", r.name())
	}
	return fmt.Sprint("text ", r.rng.IntN(3))
}

func (r *random) content(name string) string {
	if old := r.past[name]; len(old) > 0 && r.rng.IntN(3) == 0 {
		return pick(r, old...)
	}
	c := fmt.Sprintf("content %d", r.rng.IntN(4))
	if r.rng.IntN(10) == 0 {
		c = "number " + pick(r, "", "x")
	}
	if strings.HasSuffix(name, ".s") {
		c = r.script()
	}
	r.past[name] = append(r.past[name], c)
	return c
}

func (r *random) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%d: ", r.n)+fmt.Sprintf(format, args...))
}

// put writes a file, whatever stands in its way: a folder of its name, or a file where it needs a folder.
func (r *random) put(name, content string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := os.Stat(r.p.path(dir)); err == nil && !info.IsDir() {
			r.p.remove(dir)
		}
	}
	if info, err := os.Stat(r.p.path(name)); err == nil && info.IsDir() {
		r.p.remove(name)
	}
	r.p.write(name, content)
}

// removeIf removes what is there; a file may stand where a folder above it was.
func (r *random) removeIf(name string) {
	if _, err := os.Lstat(r.p.path(name)); err == nil {
		r.p.remove(name)
	}
}

// overlay does something in the other root: files of the same names, and files where this one has folders, and the other way round.
func (r *random) overlay() {
	name := "mod/" + pick(r, r.name(), r.name(), r.name(), "sub", "other", "sub/deep", r.name()+"/in.bin", "sub/rules.toml")
	if r.calm { // a file in a folder's place has all builds look at all tasks as long as it is there
		name = "mod/" + r.name()
	}
	switch {
	case r.rng.IntN(3) == 0:
		r.note("remove %s", name)
		r.removeIf(name)
	case strings.HasSuffix(name, "rules.toml"):
		i := r.rng.IntN(len(ruleFiles))
		r.note("rules %d in %s", i, name)
		r.put(name, ruleFiles[i])
	default:
		r.note("write %s", name)
		r.put(name, fmt.Sprint("text ", r.rng.IntN(3)))
	}
}

// edit does something to a source file.
func (r *random) edit() {
	if _, err := os.Stat(r.p.path("mod")); err == nil && r.rng.IntN(4) == 0 {
		r.overlay()
		return
	}
	if !r.calm && r.rng.IntN(40) == 0 {
		name := "assets/" + pick(r, "sub", "other", "sub/deep")
		r.note("a file %s", name)
		r.put(name, "text")
		return
	}
	name := r.name()
	file := r.spelt("assets/" + name)
	info, err := os.Stat(r.p.path(file))
	there := err == nil && !info.IsDir()
	k := r.rng.IntN(10)
	if r.calm && k == 9 {
		k = 6
	}
	switch {
	case k < 6 || !there:
		c := r.content(name)
		r.note("write %s: %q", file, c)
		r.put(file, c)
		if r.rng.IntN(4) == 0 {
			r.p.touch(file, r.rng.IntN(3)) // few times, so that they come again
		}
	case k == 6:
		r.note("touch %s", file)
		r.p.touch(file, r.rng.IntN(3))
	case k == 7:
		r.note("remove %s", file)
		r.p.remove(file)
	case k == 8 && r.rng.IntN(2) == 0:
		r.respell(file)
	case k == 8:
		to := r.spelt("assets/" + r.name())
		if _, err := os.Stat(r.p.path(to)); err != nil {
			r.note("rename %s to %s", file, to)
			r.put(to, "")
			r.p.rename(file, to)
		}
	default:
		dir := pick(r, "assets/sub", "assets/other", "assets/sub/deep")
		r.note("remove %s", dir)
		r.removeIf(dir)
	}
}

// respell renames a file, or a folder above it, to a name that gives the same UUIDs.
func (r *random) respell(file string) {
	for range r.rng.IntN(3) {
		if dir := path.Dir(file); dir != "assets" {
			file = dir
		}
	}
	name := path.Base(file)
	to := path.Join(path.Dir(file), pick(r, strings.ToUpper(name[:1])+name[1:], strings.ToLower(name),
		strings.ReplaceAll(name, composed, decomposed), strings.ReplaceAll(name, decomposed, composed)))
	if _, err := os.Lstat(r.p.path(to)); err == nil || runtime.GOOS != "linux" {
		return // it is called so, or both are there
	}
	r.note("rename %s to %s", file, to)
	r.p.rename(file, to)
}

// composed and decomposed are two forms of a name in Unicode.
const composed, decomposed = "\u00fc", "u\u0308"

// spelt is a path as it is there, if it differs only in spelling, which would be an error. That is left to chance at times.
func (r *random) spelt(file string) string {
	if r.rng.IntN(50) == 0 {
		return file
	}
	at := ""
	for _, name := range strings.Split(file, "/") {
		some, _ := os.ReadDir(r.p.path(at))
		if i := slices.IndexFunc(some, func(e os.DirEntry) bool { return asset.Fold(e.Name()) == asset.Fold(name) }); i >= 0 {
			name = some[i].Name()
		}
		at = path.Join(at, name)
	}
	return at
}

var projectFiles = []string{
	"[project]\nname = \"test\"\n",
	"[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web.script]\nsay = \"web\"\n",
	"[project]\nname = \"test\"\n[[rules]]\nmatch = \"**/*.s\"\nprocessors = [\"script\", \"shadow\"]\n",
	"[project]\nname = \"test\"\nignore = [\"*.bin\"]\n",
	"[project]\nname = \"test\"\nroots = [\"assets\", \"mod\"]\n",
	"[project]\nname = \"test\"\noutput = \"out\"\n",
	"[project]\nname = \"test\"\n[[rules]]\nmatch = \"**/*.bin\"\nprocessor = \"script\"\n",
	"[project]\nname = \"test\"\n[[rules]]\nmatch = \"nothing.*\"\nprocessor = \"none\"\n" +
		"[[parcels]]\nname = \"one\"\nassets = [\"sub/**\", \"*.txt\"]\n" +
		"[[parcels]]\nname = \"two\"\nassets = [\"other\", \"b.txt\", \"sub/a.s\"]\ncompression = \"none\"\n",
	"[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web.script]\nsay = \"web\"\n[[rules]]\nmatch = \"a.*\"\nfollow = true\n" +
		"[[parcels]]\nname = \"one\"\nassets = [\"**/a.*\", \"keep.s\"]\n" +
		"[[parcels]]\nname = \"two\"\nassets = [\"**/*.bin\"]\nplatforms = [\"web\"]\n",
	"[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web.script]\nsay = \"web\"\n" + declared +
		"[[rules]]\nmatch = \"**/*.s#cape\"\nsettings = { say = \"ruled\" }\n[[rules]]\nmatch = \"a.s#*\"\nplatforms.web.settings = { say = \"woven\" }\n",
	"[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web]\n[platforms.tv.seed]\nsay = \"tv\"\n" +
		"[[rules]]\nmatch = \"**/d.s\"\nplatforms.web.settings.say = \"web\"\n" +
		"[[rules]]\nmatch = \"**/b.s\"\nplatforms.web.processors = [\"shadow\", \"script\"]\n" +
		"platforms.tv.processors = [\"script\", \"shadow\"]\n" +
		"[[rules]]\nmatch = \"*.s#cape\"\nplatforms.tv.settings = { say = \"cape\" }\n" + declared,
	"[project]\nname = \"test\"\n[[rules]]\nmatch = \"**/*.txt\"\nprocessor = \"gather\"\n" +
		"inputs = [\"sub/**/*.txt\", \"a.s\", \"other/*\"]\nneeds = [\"**/*.bin\", \"b.s\"]\n",
	"[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web.script]\nsay = \"web\"\n" +
		"[[rules]]\nmatch = \"sub/**/*.s\"\ninputs = [\"*.bin\", \"e.txt\"]\n" +
		"needs = [\"other\", \"sub/deep/*.txt\", \"pinned\", \"uuid:11111111-2222-4333-8444-555555555555\"]\n" +
		"[[rules]]\nmatch = \"*.bin\"\nimport = \"script\"\nprocessor = \"gather\"\nneeds = [\"**/c.*\"]\nplatforms.web.processor = \"copy\"\n",
	"[project]\nname = \"test\"\n[vars]\nSAY = \"vars\"\nDIR = \"sub\"\n" +
		"[groups]\ndeep = [\"${DIR}\", \"!sub/deep/*.txt\", \"!pinned\"]\nmost = [\"@deep\", \"*.s\", \"other\", \"!other/c.*\"]\n" +
		"[[rules]]\nmatch = [\"*.s\", \"sub\"]\nstage = \"late\"\nsettings = { say = \"late\" }\n[[assets]]\nid = \"late\"\nprocessor = \"seed\"\nstage = \"late\"\n" +
		"[[rules]]\nmatch = [\"@most\", \"!**/*.{txt,bin}\", \"!**/e.s\"]\nsettings = { say = \"${SAY}\" }\nmeta = { say = \"${SAY}\" }\n" +
		"[[rules]]\nmatch = \"**/*.txt\"\nprocessor = \"gather\"\ninputs = [\"@deep\", \"a.*\", \"!a.txt\"]\nneeds = [\"@most\", \"!**/*.{s,txt}\", \"!b.bin\"]\n" +
		"[[parcels]]\nname = \"one\"\nassets = [\"@most\", \"!**/a.*\"]\n[[parcels]]\nname = \"two\"\nassets = [\"**\", \"!*.s\"]\n",
	"[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web.script]\nsay = \"web\"\n" +
		"[[rules]]\nmatch = [\"a.*\", \"sub\"]\nstage = \"late\"\nsettings = { say = \"late\" }\n[[rules]]\nmatch = \"*.s\"\nstage = \"later\"\nprocessors = [\"script\", \"shadow\"]\n" +
		"[[assets]]\nid = \"late\"\nprocessor = \"seed\"\nstage = \"late\"\n[[assets]]\nid = \"later\"\nsource = \"b.s\"\nstage = \"later\"\n" + withConstants,
	"[project]\nname = \"test\"\nroots = [\"assets\", { path = \"${MOD}\", name = \"engine\" }]\n[vars]\nMOD = \"mod\"\n" +
		"[[rules]]\nmatch = [\"sub/**\", \"!**/b.*\"]\nneeds = [\"*.bin\", \"!a.bin\"]\n",
	"[project]\nname = \"test\"\n[platforms.pc]\n[platforms.web.script]\nsay = \"web\"\n" +
		"[[rules]]\nmatch = \"**/*.s\"\nignore = [\"**/*.{txt,bin}\", \"sub/**\", \"!sub/b.*\"]\n" +
		"[[rules]]\nmatch = \"*.bin\"\nimport = \"script\"\nprocessor = \"gather\"\nignore = [\"**\"]\n",
}

// numbering are those of them with parcels.
var numbering = []int{7, 8, 13, 14}

// ignoring is the last of them.
var ignoring = len(projectFiles) - 1

// declared are assets by themselves: of a source file that comes and goes, with the name of one, and without any.
const declared = "[[assets]]\nid = \"declared\"\nsource = \"a.s\"\nsettings = { say = \"declared\" }\n" +
	"[[assets]]\nid = \"grown\"\nprocessor = \"seed\"\nsettings = { say = \"grown\" }\n" +
	"[[assets]]\nid = \"chained\"\nimport = \"seed\"\nprocessor = \"script\"\n" +
	"[[rules]]\nmatch = \"grown\"\nfollow = true\n"

var ruleFiles = []string{
	"[[rules]]\nmatch = \"*.s\"\nsettings = { say = \"bye\" }\n",
	"[[rules]]\nmatch = \"a.*\"\nprocessor = \"copy\"\n",
	"[[rules]]\nmatch = \"*.txt\"\nprocessor = \"none\"\n",
	"[[rules]]\nmatch = \"b.s\"\nid = \"pinned\"\n",
	"[[rules]]\nmatch = \"b.s\"\nuuid = \"11111111-2222-4333-8444-555555555555\"\n",
	"[[rules]]\nmatch = \"c.txt\"\nid = \"sub\"\n",
	"[[rules]]\nmatch = \"b.txt\"\nid = \"a.s\"\n[[rules]]\nmatch = \"d.s\"\nid = \"other/d.s\"\n",
	"[[rules]]\nmatch = \"*/\"\nprocessor = \"bundle\"\n",
	"[[rules]]\nmatch = \"deep/\"\nprocessor = \"bundle\"\nid = \"pinned\"\n",
	"[[rules]]\nmatch = \"c.txt\"\nid = \"a.s.txt\"\n",
	"[[rules]]\nmatch = \"*.s\"\nprocessors = [\"script\", \"shadow\"]\nsettings = { say = \"both\", shadow.say = \"boo\" }\n",
	"[[rules]]\nmatch = \"*.s\"\nprocessors = [\"shadow\", \"script\"]\n",
	"[[rules]]\nmatch = \"*.txt\"\nprocessor = \"gather\"\ninputs = [\"*.bin\", \"deep/**\"]\nneeds = [\"a.*\", \"deep\"]\n",
	"[[rules]]\nmatch = \"*\"\nneeds = [\"b.txt\", \"c.s\"]\n[[rules]]\nmatch = \"b.*\"\ninputs = [\"*\"]\nneeds = []\n",
	"[[rules]]\nmatch = \"a.s\"\nprocessors = [\"shadow\", \"copy\"]\n[[rules]]\nmatch = \"*.txt\"\nprocessors = [\"copy\", \"shadow\"]\n",
	declared,
	"[[assets]]\nid = \"declared\"\nsource = \"b.txt\"\n[[assets]]\nid = \"other/e.txt\"\nsource = \"c.txt\"\n",
	"[[rules]]\nmatch = \"*.s#cape\"\nsettings = { say = \"capes\" }\n",
	"[[rules]]\nmatch = \"{a,b}.s#{hat,cape}\"\nprocessor = \"script\"\nsettings = { say = \"hats\" }\n",
	"[[rules]]\nmatch = \"a.s#hat\"\nsettings = { sai = \"wrong\" }\n",
	"[[rules]]\nmatch = [\"*.s\", \"deep/*\", \"!b.s\"]\nmeta = { status = \"final\" }\nneeds = [\"*.bin\", \"!a.bin\"]\n",
	"[[rules]]\nmatch = [\"*.s\", \"deep/*.txt\"]\nid = \"{parent}/{stem}.{ext}\"\n",
	"[[rules]]\nmatch = \"*\"\nmeta = { status = \"draft\", tags = [\"a\", \"b\"] }\n",
	"[[rules]]\nmatch = \"*.s\"\nignore = [\"a.*\", \"deep/**\", \"env:*\"]\n",
}

// rules does something to what is a rule.
func (r *random) rules() {
	switch r.rng.IntN(5) {
	case 0:
		if r.damaged { // a build that reads all of the snapshot finds it; until then, nobody may know of parcels that the new project has no more
			if _, err := r.p.try(context.Background(), Request{Compact: true}); err != nil {
				return
			}
			r.damaged = false
		}
		before := r.outputDir()
		r.project = r.rng.IntN(len(projectFiles))
		if r.outputDir() != before {
			r.p.remove(before) // or else what is in it would be nobody's once all state is lost
		}
		r.note("project file %d", r.project)
		r.p.mkdir("mod")
		r.p.write("kiln.toml", projectFiles[r.project])
	case 1:
		r.note("a mod")
		r.overlay()
	case 2:
		dir := pick(r, "assets/", "assets/sub/")
		r.note("no rules in %s", dir)
		r.removeIf(dir + "rules.toml")
		r.removeIf(dir + ".kilnignore")
	case 3:
		text := pick(r, "a.*\n", "sub/\n", "*.txt\n!b.txt\n", "")
		r.note("ignore %q", text)
		r.put("assets/.kilnignore", text)
	default:
		dir, i := pick(r, "assets/", "assets/", "assets/sub/"), r.rng.IntN(len(ruleFiles))
		r.note("rules %d in %s", i, dir)
		r.put(dir+"rules.toml", ruleFiles[i])
	}
}

func (r *random) outputDir() string {
	if strings.Contains(projectFiles[r.project], "out") {
		return "out"
	}
	return "build"
}

// numbers does something to kiln.ids, as a user does by hand or by a merge.
func (r *random) numbers() {
	lines := strings.SplitAfter(strings.TrimSuffix(r.p.read(ids.FileName), "\n"), "\n")
	if len(lines) < 3 {
		return
	}
	i, k := 1+r.rng.IntN(len(lines)-1), 1+r.rng.IntN(len(lines)-1)
	a, b := strings.Split(lines[i], "\t"), strings.Split(lines[k], "\t")
	switch how := r.rng.IntN(5); {
	case how == 0:
		r.note("a line of kiln.ids lost: %q", lines[i])
		lines[i] = ""
	case how == 1 && len(a) > 1:
		r.note("another number: %q", lines[i])
		a[1] = fmt.Sprint(1000+r.n, strings.TrimLeft(a[1], "0123456789")) // of two equal ones no build makes parcels, and old ones stay
		lines[i] = strings.Join(a, "\t")
	case how == 2 && len(a) > 2 && len(b) > 2:
		r.note("numbers exchanged: %q, %q", lines[i], lines[k])
		a[1], b[1] = b[1], a[1]
		lines[i], lines[k] = strings.Join(a, "\t"), strings.Join(b, "\t")
	case how == 3:
		r.note("kiln.ids lost")
		r.p.remove(ids.FileName)
		return
	default:
		r.note("kiln.ids lost, and what is kept of it")
		r.p.remove(ids.FileName)
		r.p.remove(".kiln/ids")
		return
	}
	r.p.write(ids.FileName, strings.Join(lines, ""))
}

// kept are the lines of a lost kiln.ids as the build before left it, by what they are about; nil: it is not lost.
func (r *random) kept() map[string]string {
	if r.p.read(ids.FileName) != "" || !strings.Contains(projectFiles[r.project], "parcels") {
		return nil
	}
	return numbersIn(r.p.read(".kiln/ids"))
}

// still compares the numbers of resources that there still are with those of a lost kiln.ids. What is kept for the next loss is the file.
func (r *random) still(kept map[string]string) {
	text := r.p.read(ids.FileName)
	if strings.Contains(projectFiles[r.project], "parcels") && r.p.read(".kiln/ids") != text {
		r.p.Errorf("kiln.ids is\n%s\nand what is kept is\n%s", text, r.p.read(".kiln/ids"))
	}
	now := numbersIn(text)
	for name, number := range kept {
		if n, ok := now[name]; ok && n != number {
			r.p.Errorf("%s has number %s, and had %s before kiln.ids was lost", name, n, number)
		}
	}
	if len(kept) > 0 {
		r.note("%d numbers kept", len(kept))
	}
}

// numbersIn are the numbers of a kiln.ids, by the rest of its lines.
func numbersIn(text string) map[string]string {
	all := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if f := strings.SplitN(line, "\t", 3); len(f) > 1 && line[0] != '#' {
			all[f[0]+"\t"+strings.Join(f[2:], "\t")] = f[1]
		}
	}
	return all
}

// output does something to the output tree.
func (r *random) output() {
	dir := r.outputDir()
	all := outputFiles(r.p.dir, dir)
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasSuffix(name, " in the list") })
	files := slices.Sorted(maps.Keys(all))
	if len(files) == 0 {
		return
	}
	f := pick(r, files...)
	name := dir + "/" + f
	switch k := r.rng.IntN(5); {
	case k == 0 || all[f] == "folder":
		r.note("remove %s", name)
		r.p.remove(name)
	case k < 3:
		r.note("edit %s", name)
		r.p.scribble(name)
	case k == 3:
		r.note("replace %s", name)
		r.p.remove(name)
		r.p.write(name, "mine")
	default:
		r.note("make %s a folder", name)
		r.p.remove(name)
		r.p.mkdir(name)
		r.accept()
		r.p.build0()
		for at := name; at != dir && os.Remove(r.p.path(at)) == nil; {
			at = path.Dir(at) // Kiln does not remove the folders above one that is not its own
		}
	}
}

// state loses some of what Kiln remembers.
func (r *random) state() {
	switch r.rng.IntN(12) {
	case 8, 9, 10:
		if all := r.p.blobs(); len(all) > 0 {
			f := pick(r, all...)
			how := r.rng.IntN(4)
			r.note("blob %s spoilt or lost, %d", f, how)
			[]func(*fixture, string){(*fixture).spoil, (*fixture).spoilAlone, (*fixture).remove, func(p *fixture, f string) { p.remove(".kiln/cas.noted"); p.remove(f) }}[how](r.p, f)
		}
	case 11:
		if some, _ := os.ReadDir(r.p.path(".kiln/cas")); len(some) > 0 {
			r.lose("cas/" + pick(r, some...).Name())
		}
	case 0:
		r.lose("snapshot")
	case 1:
		r.lose("traces")
	case 2:
		r.lose("content.db")
	case 3:
		r.lose("cas")
	case 4:
		r.note("traces cut off")
		if t := r.p.read(".kiln/traces"); t != "" {
			r.p.write(".kiln/traces", t[:r.rng.IntN(len(t))])
		}
	case 5:
		r.note("snapshot damaged")
		if s := []byte(r.p.read(".kiln/snapshot")); len(s) > 0 {
			s[r.rng.IntN(len(s))] ^= 1 << r.rng.IntN(8)
			r.p.write(".kiln/snapshot", string(s))
			r.damaged = true
		}
	case 6:
		r.note("all state lost")
		r.p.remove(".kiln")
	default:
		r.note("a temporary output left, as if killed")
		r.p.mkdir(".kiln")
		r.p.write(".kiln/underway", "")
		r.p.write(r.outputDir()+"/pc/.kiln-1-1", "left")
	}
}

func (r *random) lose(file string) {
	r.note("%s lost", file)
	r.p.remove(".kiln/" + file)
}

// part builds not everything.
func (r *random) part() {
	req := Request{Patterns: []string{pick(r, "**/*.s", "sub", "*", "a.s")}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch r.rng.IntN(5) {
	case 0:
		req = Request{Platforms: []string{"pc"}}
	case 1:
		req = Request{FailFast: true}
	case 2:
		req = Request{OnError: results.LastGood}
	case 4:
		if strings.Contains(projectFiles[r.project], "late") && r.rng.IntN(2) == 0 {
			was := r.p.stages
			req.Patterns, r.p.stages = nil, []string{"late"}
			defer func() { r.p.stages = was }()
		} else if strings.Contains(projectFiles[r.project], "parcels") {
			req.Patterns = []string{"parcel:one", "!a.s"}[:1+r.rng.IntN(2)]
		}
	case 3:
		c := &cancelling{cancel: cancel}
		c.left.Store(r.rng.Int64N(5))
		req = Request{Reporter: c}
	}
	b, err := r.p.try(ctx, req)
	r.note("build of a part %v %v %v: ran %s, %v", req.Patterns, req.Platforms, req.FailFast, b.ran, err)
}

// meddle builds while files change under the eyes of the jobs, and change back.
func (r *random) meddle() {
	var mu sync.Mutex // on r, and:
	was := map[string]string{}
	meddle := func() {
		mu.Lock()
		defer mu.Unlock()
		file := "assets/" + r.name()
		old, err := os.ReadFile(r.p.path(file))
		before, changed := was[file]
		switch {
		case err != nil || r.rng.IntN(3) == 0:
		case changed:
			r.p.write(file, before)
			delete(was, file)
		default:
			was[file] = string(old)
			r.p.write(file, r.content(file))
		}
	}
	s := r.p.procs[0].(*script)
	s.meddle.Store(&meddle)
	b, err := r.p.try(context.Background(), Request{})
	s.meddle.Store(nil)
	for file, before := range was {
		r.p.write(file, before)
	}
	r.note("files changed while it was built: ran %s, %v", b.ran, err)
}

// cancelling stops a build after some jobs.
type cancelling struct {
	job.Silent
	left   atomic.Int64
	cancel context.CancelFunc
}

func (c *cancelling) JobFinished(string, bool, time.Duration) {
	if c.left.Add(-1) <= 0 {
		c.cancel()
	}
}

// forget loses all state together with some source files. What is left of these in the output is found by verify.
func (r *random) forget() {
	for range 1 + r.rng.IntN(3) {
		r.edit()
	}
	r.note("all state lost")
	r.p.remove(".kiln")
	r.accept()
	r.p.build0()
	pr := r.p.open()
	r.p.must(pr.Lock(context.Background(), false, nil))
	v, err := pr.Verify(context.Background(), true)
	r.p.must(err)
	r.p.must(pr.Unlock())
	for _, m := range v.Messages {
		r.note("verified: %v", m)
	}
}

func (r *random) step() {
	// A product that stays where it is although its asset and all state are gone is nobody's until verify finds it: else, state is lost on
	// its own.
	if r.rng.IntN(25) == 0 {
		r.forget()
	} else if r.calm && r.rng.IntN(12) > 0 {
		for range 1 + r.rng.IntN(2) {
			r.edit()
		}
	} else if r.rng.IntN(6) == 0 {
		r.state()
	} else if r.calm {
		r.part()
	} else {
		for range 1 + r.rng.IntN(3) {
			switch r.rng.IntN(10) {
			case 0:
				r.rules()
			case 1, 2:
				r.output()
			default:
				r.edit()
			}
		}
		if r.rng.IntN(5) == 0 {
			r.part()
		}
	}
	if r.rng.IntN(8) == 0 {
		r.meddle()
	}
	if r.rng.IntN(15) == 0 || r.numbering && r.rng.IntN(5) == 0 {
		r.numbers()
	}
	if !strings.Contains(projectFiles[r.project], "later") {
		r.p.stages = nil
	} else if _, err := os.Stat(r.p.path(".kiln")); err == nil {
		// Without any state, the products of a stage that is left out are nobody's until verify finds them: stages stay.
		r.p.stages = pick(r, nil, nil, []string{"late"}, []string{"later"}, []string{"late", "later"})
	}
	r.accept()
	if r.rng.IntN(4) == 0 {
		r.order()
	}
	kept, before := r.kept(), r.p.read(ids.FileName)
	b := r.p.build()
	r.still(kept)
	r.ends(before, b)
	r.note("built %s; %d held by ignore", b.ran, b.held)
	if b0 := r.p.build0(); b0.Built != 0 || b0.HeldByIgnore != b.held {
		r.p.Errorf("built again: %s; %d held by ignore", b0.ran, b0.HeldByIgnore)
	}
	if b.held > 0 && r.rng.IntN(2) == 0 {
		r.note("--strict")
		if b := r.p.buildWith(Request{Strict: true}); b.held > 0 {
			r.p.Errorf("%d held by ignore after --strict", b.held)
		}
	}
}

// ends compares what the end of a build wrote with what is to be said of it without Kiln: lines of kiln.ids keep their numbers, a constant
// is there for each line, --locked accepts what is there, and verify finds nothing.
func (r *random) ends(before string, b built) {
	text := r.p.read(ids.FileName)
	if was, err := ids.Parse(ids.FileName, []byte(before), false); err == nil && len(was.Conflicts()) == 0 {
		now, err := ids.Parse(ids.FileName, []byte(text), false)
		r.p.must(err)
		number := map[string]uint32{}
		for _, e := range was.Entries {
			number[e.Identity()+" "+e.Product] = e.ID
		}
		for _, e := range now.Entries {
			if n, ok := number[e.Identity()+" "+e.Product]; ok && n != e.ID {
				r.p.Errorf("%s had number %d, and has %d", e.Name, n, e.ID)
			}
		}
		if constants := r.p.read("game/ids.txt"); strings.Contains(projectFiles[r.project], "constants") && !strings.Contains(b.messages, "error[K01") {
			want := "test\n"
			for _, e := range now.Entries {
				want += fmt.Sprintln(e.ID, e.Asset, e.Product)
			}
			if len(now.Entries) == 0 {
				want = ""
			}
			if constants != want {
				r.p.Errorf("constants, with kiln.ids first:\n%s", cmp.Diff(want, constants))
			}
		}
	}
	if r.rng.IntN(8) == 0 {
		l, err := r.p.try(context.Background(), Request{Locked: true})
		r.p.must(err)
		if now := r.p.read(ids.FileName); now != text || strings.Contains(l.messages, string(diag.IDsChange)) {
			r.p.Errorf("--locked after a build: %s\n%s", l.messages, cmp.Diff(text, now))
		}
		r.p.build0() // as the builds to come
	}
	if r.rng.IntN(8) == 0 {
		for _, m := range r.p.verify(false).Messages {
			if m.Code == diag.ShippedWrong {
				r.p.Errorf("verify after a build: %v", m)
			}
		}
	}
}

// order compares the order of the jobs that a build would run with what it is said to run.
func (r *random) order() {
	would := func(ordered bool) map[string]report.JobReport {
		b, err := r.p.open().Build(context.Background(), Request{DryRun: true, Order: ordered})
		r.p.must(err)
		jobs := map[string]report.JobReport{}
		for _, j := range b.Jobs {
			if ordered {
				r.placed(jobs, j)
			}
			if !j.Request && (j.State == engine.WouldRun || j.State == engine.Undecided) {
				name := place(j)
				if jobs[name].State != engine.WouldRun {
					jobs[name] = j
				}
			}
		}
		return jobs
	}
	plain, ordered := would(false), would(true)
	for name, j := range plain {
		if ordered[name].State != j.State {
			r.p.Errorf("%s: %v, and in order %v", name, j.State, ordered[name].State)
		}
	}
	if len(plain) != len(ordered) {
		r.p.Errorf("%d jobs would run, and in order %d", len(plain), len(ordered))
	}
}

func place(j report.JobReport) string {
	return task.FullName(task.Name(j.Asset, j.Among, ""), j.Platform)
}

// placed checks the place of a job after those before it.
func (r *random) placed(before map[string]report.JobReport, j report.JobReport) {
	depth := 0
	for _, other := range j.Place.After {
		o, ok := before[place(other)]
		if !ok {
			r.p.Errorf("%s comes before %s", place(j), place(other))
			return
		}
		depth = max(depth, o.Place.Depth+1)
	}
	if j.Place.Depth != depth && !j.Place.Cycle {
		r.p.Errorf("%s has depth %d, not %d", place(j), j.Place.Depth, depth)
	}
	if j.State != engine.Undecided || depth > 0 || j.Place.Cycle || j.Why.Observation.Kind == job.SawListed { // what a parcel holds
		return
	}
	if s := task.ParseSubject(j.Why.Observation.Subject); s.Part == "" && !task.IsRequest(s.Asset) {
		r.p.Errorf("%s waits for none, and for %s", place(j), s)
	}
}

// accept takes away rules that are refused: they are by a clean build too.
func (r *random) accept() {
	pr, err := Open(r.p.config())
	if err == nil {
		_, err = pr.Look(context.Background(), nil, nil)
	}
	if err != nil {
		r.note("refused: %v", err)
		for _, dir := range []string{"assets/", "assets/sub/", "mod/sub/"} {
			r.removeIf(dir + "rules.toml")
		}
	}
}
