package build

import (
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
)

// TestFarmKinds edits a project at random that has each kind of processor, and each way to name what jobs read, and has workers run its
// jobs. Workers are killed and lost, and the server is restarted and gone. Each build is compared with one from nothing without workers.
// Now and then the project is built without workers: if that is after a build with workers, there is nothing to do.
//
// -long 30m goes from project to project for so long, KILN_SEED says where to begin.
func TestFarmKinds(t *testing.T) {
	t.Parallel()
	rng := randomSource(t)
	all, n := &farmCounts{}, thorough.Of(8, 40)
	if *long > 0 {
		n = 40
	}
	for until := time.Now().Add(*long); ; {
		t.Run(fmt.Sprint(all.projects), func(t *testing.T) {
			k := newKinds(t, &random{rng: rng}, all)
			for i := 0; i < n && (i < 8 || *long == 0 || time.Now().Before(until)); i++ {
				if k.step(); t.Failed() {
					t.Fatalf("after:\n%s", strings.Join(k.r.log[max(0, len(k.r.log)-25):], "\n"))
				}
			}
			all.actions += int(k.f.Ran())
		})
		if t.Failed() || !time.Now().Before(until) {
			break
		}
		fmt.Fprintln(os.Stderr, all) // as it goes on for long
	}
	t.Log(all)
	if all.remote == 0 || all.kills.Load() == 0 {
		t.Error("no worker ran a job, or none was killed")
	}
}

// farmCounts are what TestFarmKinds did.
type farmCounts struct {
	projects, steps, remote, actions, comparisons, alone int
	kills                                                atomic.Int64
}

func (c *farmCounts) String() string {
	return fmt.Sprintf("%d projects, %d steps; %d comparisons with a build from nothing, %d builds without workers that had nothing to do; "+
		"%d jobs of %d actions of workers; %d workers killed",
		c.projects, c.steps, c.comparisons, c.alone, c.remote, c.actions, c.kills.Load())
}

// kindsProject is a project with each kind of processor.
type kindsProject struct {
	r     *random
	p     *fixture
	f     *reapitest.Farm
	all   *farmCounts
	kills atomic.Int64   // one of how many workers is killed; 0: none
	began atomic.Int64   // how many actions did
	tools map[string]int // versions
}

const kindsFile = `[project]
name = "kinds"
ignore = ["*.bak"]
# %[1]s
[platforms.pc]
textures = { family = "bc" }
[[rules]]
match = "{inc,more,art}/**"
processor = "none"
[[rules]]
match = "art/*.png"
processor = "texture"
[[rules]]
match = "ui/"
processor = "atlas"
settings = { container = "png", max_size = 64 }
[[rules]]
match = "pack/"
processor = "folder"
[[rules]]
match = "c/*.map"
processor = "module"
[[rules]]
match = "*.words"
import = ["lines", "star"]
processor = "count"
[[rules]]
match = "b*.given"
inputs = [%[2]s, "one.txt"]
needs = ["*.tile"]
[[processors]]
name = "lines"
command = ["tools/lines.sh", "{in}", "{out}"]
output = ".star"
[[processors]]
name = "count"
command = ["tools/cat.sh", "{in}", "{out}"]
output = ".count"
inputs = ["more/*.h"]
[[processors]]
name = "listed"
command = ["./tools/cat.sh", "{in}", "{out}"]
extensions = [".listed"]
output = ".out"
inputs = [%[2]s]
[[processors]]
name = "named"
command = ["tools/cat.sh", "{in}", "{out}", "one.txt", "inc/1.h"]
extensions = [".named"]
output = ".out"
inputs = ["one.txt", "inc/1.h"]
env = ["KILN_TEST_FARM_WORD"]
[[processors]]
name = "given"
command = ["tools/cat.sh", "{in}", "{out}", "../needs"]
extensions = [".given"]
output = ".out"
[[processors]]
name = "needy"
command = ["tools/cat.sh", "{in}", "{out}", "{needs}"]
extensions = [".needy"]
output = ".out"
needs = ["*.tile", "ui/", "1.listed"]
[[processors]]
name = "asked"
command = ["tools/asked.sh", "{in}", "{out}", "{assets:**/*.tile}", "{tool:tools/lines.sh}"]
extensions = [".asked"]
output = ".out"
inputs = ["one.txt"]
[[processors]]
name = "folder"
command = ["tools/cat.sh", "{in}", "{out}", "{in}"]
folder = true
output = ".out"
inputs = ["more/**"]
[[processors]]
name = "depfile"
command = ["tools/dep.sh", "{in}", "{out}", "{dep}"]
extensions = [".dep"]
output = ".out"
inputs = "depfile"
%[3]s
[[processors]]
script = "tools/star.star"
[[processors]]
script = "tools/tilemap.star"
[[processors]]
name = "module"
wasm = "tools/tilemap.wasm"
`

// kindsTraced is the part of it that is for systems where programs can be traced.
const kindsTraced = `[[processors]]
name = "look"
command = ["tools/look", "{in}", "{out}"]
extensions = [".look"]
output = ".out"
inputs = "traced"
needs = ["*.tile"]
[[processors]]
script = "tools/run.star"
`

// kindsCat writes all that it sees: its asset, the files and folders below its working folder, and those that it is given; %d makes it
// another program.
const kindsCat = `#!/bin/sh
set -e
in=$1; out=$2; shift 2
{
	echo "cat %d $KILN_TEST_FARM_WORD"
	cat "$in" 2>/dev/null || :
	for f in $(find . "$@" 2>/dev/null | LC_ALL=C sort -u); do
		if [ -d "$f" ]; then echo "folder $f"; else echo "file $f"; cat "$f"; fi
	done
} > "$out"
`

const kindsLines = "#!/bin/sh\n# %d\nif ! [ -s \"$1\" ]; then echo no words; exit 1; fi\ntr -s ' ' '\\n' < \"$1\" > \"$2\"\n"

// kindsAsked has another tool of the project work on what it makes.
const kindsAsked = "#!/bin/sh\n# %d\nset -e\ncat \"$1\" \"$3\" one.txt > ../tmp/all\n\"$4\" ../tmp/all \"$2\"\n"

// kindsDep fails without a file that it reads: what is missing cannot be in a depfile.
const kindsDep = "#!/bin/sh\n# %d\ncat \"$1\" one.txt > \"$2\" && echo \"x: $1 one.txt\" > \"$3\"\n"

// kindsStar does what the lines of its asset say.
const kindsStar = `# %d
processor("star", extensions = [".star"], products = {"text": (".txt", "what it saw")})
def process(job):
    saw = ["version %d of " + job.id]
    for line in job.read_text().splitlines():
        verb, _, arg = line.partition(" ")
        if verb == "read" and job.exists(arg):
            saw.append(str(job.read(arg)))
        elif verb == "exists":
            saw.append(str(job.exists(arg)))
        elif verb == "glob":
            saw.append(str(job.glob(arg)))
        elif verb == "use":
            p = job.try_products(arg)
            saw.append(arg + ": " + ("none" if p == None else ", ".join([q.file + str(hash(str(job.open(q)))) for q in p])))
        elif verb == "assets":
            saw.append(str([a.id for a in job.assets(arg)]))
        elif verb == "run":
            r = job.run(["./tools/cat.sh", job.path or "given", "../out/x"], inputs = [arg], files = {} if job.path else {"given": "given"})
            saw.append(str(r.files["x"]))
        elif verb == "stdin":
            saw.append(str(job.run(["cat"], stdin = arg).stdout))
        elif verb == "texture" and job.exists(arg):
            made = job.request("texture", settings = {"mips": False}, path = arg)
            job.adopt(made[0], name = "t")
            saw.append(str(len(job.open(made[0]))))
        elif verb == "bytes":
            saw.append(str(job.open(job.request("star", data = "glob " + arg, ext = ".star")[0])))
        elif verb == "env":
            saw.append(str(job.run(["./tools/cat.sh", "none", "../out/x"], env = ["KILN_TEST_FARM_WORD"]).files["x"]))
        else:
            saw.append(line)
    job.write("\n".join(saw))
`

func newKinds(t *testing.T, r *random, all *farmCounts) *kindsProject {
	p := newProject(t, "")
	r.p = p
	k := &kindsProject{r: r, p: p, all: all, tools: map[string]int{}}
	all.projects++
	k.f = p.farmed(2)
	k.f.Env = append(k.f.Env, workerKinds+"=1")
	p.procs = processors.All()
	p.farm.Timeout = 20 * time.Second
	k.f.Started(func(int64) bool {
		n := k.kills.Load()
		kill := n > 0 && k.began.Add(1)%n == 0
		if kill {
			all.kills.Add(1)
		}
		return kill
	})
	for _, name := range []string{"tilemap.star", "tilemap.wasm"} {
		data, err := os.ReadFile("../../../examples/own-processors/tools/" + name)
		p.must(err)
		p.write("tools/"+name, string(data))
	}
	tiles, err := os.ReadFile("../../../examples/own-processors/assets/tiles/forest.png")
	p.must(err)
	p.write("assets/tiles/forest.png", string(tiles))
	p.write("tools/look", lookScript)
	p.write("tools/run.star", runLook)
	for _, tool := range []string{"cat.sh", "lines.sh", "asked.sh", "dep.sh", "star.star"} {
		k.tool(tool)
	}
	p.must(chmodExecutable(p.path("tools/look")))
	k.config()
	for name, text := range map[string]string{
		"1.listed": "1\n", "2.listed": "2\n", "a.named": "a\n", "a.given": "a\n", "b.given": "b\n", "a.needy": "a\n", "a.asked": "a\n",
		"a.dep":   "a\n",
		"a.words": "glob inc/*.h\n", "pack/1.txt": "1\n", "pack/deep/2.txt": "2\n", "one.txt": "one\n", "inc/1.h": "1\n", "inc/deep/2.h": "2\n",
		"more/1.h": "1\n",
		"a.tile":   "tile\n", "a.look": "names .\nnames inc\nread one.txt\nneed a.tile\nask more\n", "a.run": "read d/b.txt\nnames inc\n",
		"1.star": "run inc/**\nuse a.tile\nassets *.tile\n", "2.star": "texture art/1.png\nbytes inc/**\nenv\nstdin words\n",
		"data.json": "{\"a\": 1}",
	} {
		p.write("assets/"+name, text)
	}
	for _, name := range []string{"art/1.png", "ui/1.png", "ui/2.png", "ui/deep/3.png"} {
		p.write("assets/"+name, k.picture())
	}
	k.model("model.gltf", k.picture())
	k.tileset()
	p.write("assets/c/1.map", "tiles/forest.json\nT~\n.,\n")
	p.write("assets/star/1.map", "tiles/forest.json\nT~\n.,\n")
	return k
}

func (k *kindsProject) picture() string {
	m := image.NewNRGBA(image.Rect(0, 0, 4, 4))
	for i := range m.Pix {
		m.Pix[i] = 255
	}
	m.SetNRGBA(k.r.rng.IntN(4), 1, color.NRGBA{uint8(k.r.rng.IntN(256)), 9, 9, 255})
	var b strings.Builder
	k.p.must(png.Encode(&b, m))
	return b.String()
}

func (k *kindsProject) model(name, picture string) {
	k.p.write("assets/"+name, kitModel(fmt.Sprint(k.r.rng.IntN(3)), []byte(picture)))
}

// tileset writes what maps read.
func (k *kindsProject) tileset() {
	letters := map[string]int{}
	for i, c := range ".,T~" {
		letters[string(c)] = (i + k.r.rng.IntN(3)) % 8
	}
	text, err := json.Marshal(map[string]any{"image": "tiles/forest.png", "tile": 16, "letters": letters})
	k.p.must(err)
	k.p.write("assets/tiles/forest.json", string(text))
}

// tool makes a tool another one.
func (k *kindsProject) tool(name string) {
	text := map[string]string{
		"cat.sh": kindsCat, "lines.sh": kindsLines, "asked.sh": kindsAsked, "dep.sh": kindsDep, "star.star": kindsStar,
	}[name]
	n := k.tools[name]
	text = strings.ReplaceAll(text, "%d", fmt.Sprint(n))
	k.tools[name] = (n + 1) % 4
	k.p.write("tools/"+name, text)
	k.p.must(chmodExecutable(k.p.path("tools/" + name)))
}

// config writes the project file. The value of the variable is in it, because clean builds are remembered by the content of files.
func (k *kindsProject) config() {
	word := pick(k.r, "", "word", "other word")
	k.p.must(os.Setenv("KILN_TEST_FARM_WORD", word))
	globs := pick(k.r, `"inc/**/*.h"`, `"inc/**/*.h"`, `"inc/*.h", "more/*.h"`, `"inc/**"`, `"nothing/*"`)
	traced := ""
	if seal.Supported().Trace == nil {
		traced = kindsTraced
	}
	k.p.write("kiln.toml", fmt.Sprintf(kindsFile, word, globs, traced))
	k.r.log = append(k.r.log, "project file with "+globs+" and "+word)
}

// step makes a few edits, disturbs workers or not, and builds.
func (k *kindsProject) step() {
	for range 1 + k.r.rng.IntN(3) {
		k.edit()
	}
	p := k.p
	place := p.farm
	k.kills.Store(int64(pick(k.r, 0, 0, 0, 2, 3)))
	how := pick(k.r, "workers", "workers", "workers", "workers", "workers", "workers that are lost",
		"a server that restarts", "no workers", "workers that are quick")
	k.r.log = append(k.r.log, fmt.Sprintf("build with %s, kill one of %d", how, k.kills.Load()))
	restarted := make(chan error, 1)
	restarted <- nil
	switch how {
	case "workers that are lost":
		k.f.Mute(true)
		p.farm.Timeout = 3 * time.Second
	case "a server that restarts":
		<-restarted
		go func() { restarted <- k.f.Restart() }()
	case "no workers":
		p.farm = nil
	case "workers that are quick":
		p.farm.Only = false
	}
	b := p.build()
	k.all.steps++
	k.all.comparisons++
	k.all.remote += b.Remote
	p.must(<-restarted)
	k.f.Mute(false)
	place.Timeout, place.Only = 20*time.Second, true
	if p.farm = nil; k.r.rng.IntN(3) == 0 && !b.passing && b.Failed == 0 {
		if b := p.build0(); b.Built > 0 {
			p.Errorf("after a build with workers, one without built %s", b.ran)
		}
		k.all.alone++
	}
	p.farm = place
}

// edit changes something that jobs read. What a program asked of a file by a link holds without the link, too: if links change, such jobs
// run again, or they would keep what a clean build does not see.
func (k *kindsProject) edit() {
	links := k.links()
	if k.change(); !maps.Equal(links, k.links()) {
		for _, name := range lookers {
			k.look(name)
		}
	}
}

func (k *kindsProject) change() {
	r, p := k.r, k.p
	put := func(name, text string) { r.writeOver("assets/"+name, text) }
	listed := func() string {
		return pick(r, "inc/", "inc/", "inc/deep/", "more/", "pack/", "pack/deep/") + pick(r, "1.h", "2.h", "3.h", "1.txt", "x.bak")
	}
	text := func() string { return fmt.Sprint("text ", r.rng.IntN(4), "\n") }
	switch r.rng.IntN(20) {
	case 0, 1:
		tool := pick(r, "cat.sh", "cat.sh", "lines.sh", "asked.sh", "dep.sh", "star.star")
		r.log = append(r.log, "edit of tools/"+tool)
		k.tool(tool)
	case 2, 3:
		put(pick(r, "1.listed", "2.listed", "a.named", "a.given", "b.given", "a.needy", "a.asked", "a.dep", "data.json"), text())
	case 4, 5, 6, 7:
		put(listed(), text())
	case 8, 9:
		name := "assets/" + listed()
		r.log = append(r.log, "remove "+name)
		r.clear(name)
	case 10:
		if r.rng.IntN(3) == 0 {
			name, to := pick(r, "inc/3.h", "inc/link", "more/2.h", "pack/link"), pick(r, "1.h", "deep", "../one.txt")
			r.log = append(r.log, "link "+name+" to "+to)
			r.clear("assets/" + name)
			p.mkdir("assets/" + name[:strings.IndexByte(name, '/')])
			p.link("assets/"+name, to)
			return
		}
		r.log = append(r.log, "a folder or none")
		name := "assets/" + pick(r, "inc/deep", "inc/empty", "more", "pack/deep", "pack/empty", "more/1.h")
		if r.clear(name); r.rng.IntN(2) == 0 {
			p.mkdir(name)
		}
	case 11:
		put(pick(r, "a.tile", "b.tile", "c.tile"), text())
	case 12:
		name := "assets/" + pick(r, "b.tile", "c.tile", "1.listed", "one.txt", "inc", "ui/2.png")
		r.log = append(r.log, "remove "+name)
		p.remove(name)
	case 13:
		put(pick(r, "art/1.png", "ui/1.png", "ui/2.png", "ui/deep/3.png", "ui/4.png"), k.picture())
	case 14:
		r.log = append(r.log, "model")
		k.model("model.gltf", k.picture())
	case 15:
		r.log = append(r.log, "tileset, maps")
		k.tileset()
		m := "tiles/forest.json\n" + pick(r, "T~\n.,\n", "TT\n", "..\n~~\n")
		put(pick(r, "c/1.map", "star/1.map", "star/2.map"), m)
	case 16:
		k.config()
	case 17, 18:
		k.lines()
	case 19:
		gone := pick(r, ".kiln", "build", "one")
		if r.log = append(r.log, "remove "+gone); gone == "one" {
			put("one.txt", text())
			return
		}
		p.remove(gone)
		if gone == ".kiln" {
			p.remove("build")
		}
	}
}

// lines writes what scripts, or programs that are traced, do.
func (k *kindsProject) lines() {
	r := k.r
	var b strings.Builder
	if r.rng.IntN(2) == 0 {
		for range 1 + r.rng.IntN(3) {
			fmt.Fprintln(&b, pick(r, "read inc/1.h", "read more/1.h", "exists inc/deep/3.h", "glob inc/**", "glob **/*.h", "use 1.listed",
				"use a.tile", "use ui/", "use none", "assets **/*.tile", "run inc/**", "run more/*.h", "run nothing/*", "stdin words",
				"texture art/1.png", "texture ui/1.png", "bytes inc/*", "env", "word"))
		}
		r.writeOver("assets/"+pick(r, "1.star", "2.star", "a.words", "b.words"), b.String())
		return
	}
	k.look(pick(r, lookers...))
}

// lookers are the files of programs that are traced.
var lookers = []string{"a.look", "b.look", "pack/c.look", "a.run"}

// look writes what such a program does.
func (k *kindsProject) look(name string) {
	r := k.r
	var b strings.Builder
	for range 1 + r.rng.IntN(3) {
		fmt.Fprintln(&b, pick(r, "names .", "names inc", "names inc/empty", "names more", "read inc/1.h", "read one.txt", "ask more", "ask inc/deep",
			"ask inc/3.h", "go inc/empty", "need a.tile", "need b.tile", "real assets", "real .", "link assets/inc"))
	}
	r.writeOver("assets/"+name, b.String())
}

// links are the links below the sources, and where they lead.
func (k *kindsProject) links() map[string]string {
	all := map[string]string{}
	k.p.must(filepath.WalkDir(k.p.path("assets"), func(path string, _ fs.DirEntry, err error) error {
		if to, lerr := os.Readlink(path); lerr == nil {
			all[path] = to
		}
		return err
	}))
	return all
}
