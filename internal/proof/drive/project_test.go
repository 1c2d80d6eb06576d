//go:build linux

package drive

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
)

// bits of a project file
const (
	swapped  = 1 << iota // the roots in reverse order
	oneRoot              // only the first root
	mobile               // a second platform
	parcels              // two parcels, constants
	oneRule              // a rule that gives an id
	twoProcs             // assets with two processors
	broken               // the file is invalid
	hidden               // files are ignored
	images               // PNG files are textures instead of copies
	atlases              // ui/ is an atlas
	module               // a WebAssembly module, which each clean build compiles
	staged               // rules for a stage, which builds name or not
)

// projectFile returns a kiln.toml.
func projectFile(bits int) string {
	roots := `["one", "two"]`
	switch {
	case bits&oneRoot != 0:
		roots = `["one"]`
	case bits&swapped != 0:
		roots = `["two", "one"]`
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[project]\nname = \"drive\"\nroots = %s\n", roots)
	if bits&hidden != 0 {
		b.WriteString("ignore = [\"c.*\"]\n")
	}
	b.WriteString("[platforms.pc]\n")
	if bits&mobile != 0 {
		b.WriteString("[platforms.mobile]\n")
	}
	if bits&broken != 0 {
		b.WriteString("[nonsense\n")
	}
	b.WriteString(`
[[processors]]
script = "tools/acts.star"
[[processors]]
name = "joined"
command = ["tool", "join", "{out}", "{in}"]
extensions = [".joined"]
inputs = ["s/*.txt"]
output = ".out"
[[processors]]
name = "traced"
command = ["tool", "act", "{out}", "{in}"]
extensions = [".traced"]
inputs = "traced"
output = ".out"
[[processors]]
name = "shell"
command = ["tools/shell.sh", "{out}", "{in}"]
extensions = [".shell"]
inputs = "traced"
output = ".out"
`)
	if bits&module != 0 && guest != nil {
		b.WriteString("[[processors]]\nname = \"module\"\nwasm = \"tools/guest.wasm\"\n")
	}
	if bits&images == 0 {
		b.WriteString("[[rules]]\nmatch = \"**/*.png\"\nprocessor = \"copy\"\n")
	}
	if bits&atlases != 0 {
		b.WriteString("[[rules]]\nmatch = \"ui/\"\nprocessor = \"atlas\"\nsettings = { container = \"png\" }\n")
	}
	if bits&oneRule != 0 {
		b.WriteString("[[rules]]\nmatch = \"a.txt\"\nid = \"pinned\"\n[[rules]]\nmatch = \"s/b.acts\"\nuuid = \"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee\"\n")
	}
	if bits&twoProcs != 0 {
		b.WriteString("[[rules]]\nmatch = \"s/*.acts\"\nprocessors = [\"acts\", \"traced\"]\n[[rules]]\nmatch = \"s/*.nothing\"\nprocessor = \"copy\"\n")
	}
	if bits&staged != 0 {
		b.WriteString("[[rules]]\nmatch = \"*.acts\"\nstage = \"late\"\nprocessors = [\"acts\", \"copy\"]\n")
	}
	if bits&parcels != 0 {
		b.WriteString("[[parcels]]\nname = \"first\"\nassets = [\"s/**\", \"*.txt\"]\n[[parcels]]\nname = \"second\"\nassets = [\"**/*.acts\", \"**/*.team\", \"ui/\"]\n")
		b.WriteString("[[constants]]\nlanguage = \"go\"\n[[constants]]\nlanguage = \"lua\"\nfile = \"game/ids.lua\"\n")
	}
	return b.String()
}

const script = `
processor("acts", summary = "does what its asset says", extensions = [".acts"], products = {"text": (".out", "what it saw")})

def process(job):
    saw, refs = ["VERSION " + job.id + " on " + job.platform], []
    for n, line in enumerate(job.read_text().splitlines()):
        verb, _, arg = line.partition(" ")
        if verb in ("read", "twice") and job.exists(arg):
            saw.append(str(job.read(arg)))
            if verb == "twice":
                saw.append(str(job.read(arg)))
        elif verb == "exists":
            saw.append(str(job.exists(arg)))
        elif verb == "glob":
            saw.append(str(job.glob(arg)))
        elif verb == "use":
            for p in job.products(arg)[0]:
                saw.append(p.file + str(job.open(p)))
        elif verb == "ref":
            refs.append(job.reference(arg))
        elif verb == "more":
            job.write(arg, name = arg)
        elif verb == "warn":
            job.warn(arg, line = n + 1)
        elif verb == "fail":
            fail(arg, line = n + 1)
        else:
            saw.append(line)
    job.write("\n".join(saw), references = refs)
`

const shell = `#!/bin/sh
# VERSION
{
	cat "$2"
	ls s s/t 2>/dev/null
	[ -e a.txt ] && echo a.txt is there
	cat s/b.txt 2>/dev/null
} > "$1"
exit 0
`

// op is one operation on a project: a verb and its arguments. A list of them can be printed, shortened and run again.
type op struct {
	verb    string
	a, b    string
	n, more int
}

func (o op) String() string {
	return fmt.Sprintf("{%q, %q, %q, %d, %d}", o.verb, o.a, o.b, o.n, o.more)
}

// maker makes random operations.
type maker struct {
	*rand.Rand
	bits int
}

func pick[T any](m *maker, of ...T) T { return of[m.IntN(len(of))] }

func (m *maker) dir() string {
	return pick(m, "one/", "one/", "two/") + pick(m, "", "s/", "s/", "s/t/", "ui/")
}

var extensions = []string{".txt", ".txt", ".acts", ".acts", ".team", ".joined", ".traced", ".traced", ".shell", ".mod", ".json", ".png", ".gltf"}

func (m *maker) base() string {
	return pick(m, "a", "a", "b", "c", "d", "u\u0308") + pick(m, extensions...)
}
func (m *maker) file() string { return m.dir() + m.base() }

// id returns the id of a random file: its path below its root.
func (m *maker) id() string {
	if m.IntN(16) == 0 {
		return pick(m, "pinned", "uuid:AAAAAAAA-BBBB-4CCC-8DDD-EEEEEEEEEEEE", "uuid:aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee", "ui/", "s")
	}
	return pick(m, "", "s/", "s/", "s/t/", "ui/") + pick(m, "a", "b") + pick(m, ".txt", ".txt", ".acts", ".traced", ".png", ".team")
}

func (m *maker) next() op {
	o := op{n: m.IntN(1 << 16), more: m.IntN(4)}
	switch k := m.IntN(100); {
	case k < 34:
		o.verb, o.a = pick(m, "write", "save", "save"), m.file()
	case k < 40:
		o.verb, o.a = "remove", m.file()
	case k < 42:
		o.verb, o.a = "remove", m.dir()
	case k < 45:
		o.verb, o.a, o.b = "move", m.file(), m.file()
	case k < 47:
		o.verb, o.a = "respell", pick(m, m.file(), strings.TrimSuffix(m.dir(), "/"))
	case k < 49:
		o.verb, o.a, o.b = "move", m.dir(), m.dir()+pick(m, "", "t/", "x/", "a.txt")
	case k < 52:
		o.verb, o.a, o.b = "link", m.file(), m.file()
	case k < 55:
		o.verb, o.a, o.b = "symlink", pick(m, m.file(), m.dir()), m.file()
	case k < 58:
		o.verb, o.a = "change", m.file() // same size and time
	case k < 64:
		o.verb = pick(m, "output edited", "output removed", "output touched", "output replaced")
	case k < 74:
		m.bits ^= pick(m, 1<<m.IntN(10), 1<<m.IntN(10), staged)
		if m.bits&broken != 0 && m.IntN(3) > 0 {
			m.bits &^= broken
		}
		o.verb, o.n = "project", m.bits
	case k < 77:
		o.verb, o.a = "rules", m.dir()
	case k < 79:
		o.verb, o.a = "ignore", m.dir()
	case k < 82:
		o.verb = "tool"
	case k < 84:
		o.verb, o.a = "state", pick(m, "", "snapshot", "traces", "content.db", "cas", "../build", "../build/pc", "../build/parcels", "../kiln.ids")
	case k < 86:
		o.verb = pick(m, "blob", "blob", "blob lost", "stage")
	case k < 88:
		o.verb, o.a = "kind", m.file() // a file becomes a folder
	case k < 90:
		o.verb = "kill"
	case k < 93:
		o.verb = "wait"
	case k < 95:
		o.verb = "ask"
	case k < 97:
		o.verb = "branch"
	case k < 99:
		o.verb, o.a = "flicker", m.file()
	default:
		o.verb = "build"
	}
	return o
}

// content returns the content of a file for its name and a number.
func content(file string, n int) []byte {
	m := &maker{Rand: rand.New(rand.NewPCG(uint64(n), 99))}
	switch path.Ext(file) {
	case ".acts", ".team", ".mod", ".traced":
		if n%11 == 0 {
			return nil
		}
		var b strings.Builder
		for range 1 + m.IntN(3) {
			verb := pick(m, "read", "read", "twice", "exists", "glob", "use", "use", "ref", "more", "warn", "fail", "text", "list", "stat", "text")
			arg := m.id()
			switch verb {
			case "glob":
				arg = pick(m, "**", "s/**", "*.txt", "s/*", "{ui,s}/*.png")
			case "list":
				arg = pick(m, ".", "s", "s/t", "ui")
			case "more", "warn", "fail", "text":
				arg = pick(m, "x", "y")
				if verb == "fail" && m.IntN(5) > 0 {
					verb = "text"
				}
			}
			fmt.Fprintln(&b, verb, arg)
		}
		return []byte(b.String())
	case ".json":
		return []byte(pick(m, `{"a": 1}`, `{"a": 2}`, `{"a": 3}`, `{"b": [1, 2]}`, `{"a": 1}`, `{"a": }`))
	case ".png":
		if n%13 == 0 {
			return []byte("not a picture")
		}
		img := image.NewNRGBA(image.Rect(0, 0, 4, 4))
		img.Set(n%4, 1, color.NRGBA{uint8(n), 9, 9, 255})
		var b strings.Builder
		png.Encode(&b, img)
		return []byte(b.String())
	case ".gltf":
		return []byte(`{"asset": {"version": "2.0"}, "images": [{"uri": "` + pick(m, "a.png", "a.png", "b.png") + `"}], "textures": [{"source": 0}], ` +
			`"materials": [{"` + pick(m, `normalTexture": {"index": 0}`, `pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}`) + `}]}`)
	}
	if n%17 == 0 {
		return nil
	}
	return fmt.Appendf(nil, "content %d\n", n%6)
}

// project is a folder that operations change.
type project struct{ dir string }

func (p project) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p project) begin(bits int) error {
	err := errors.Join(os.MkdirAll(p.path("one/s"), 0o777), os.MkdirAll(p.path("two/s"), 0o777), os.MkdirAll(p.path("tools"), 0o777),
		os.WriteFile(p.path("kiln.toml"), []byte(projectFile(bits)), 0o666), p.tools(0))
	if guest != nil {
		err = errors.Join(err, os.WriteFile(p.path("tools/guest.wasm"), guest, 0o666))
	}
	return err
}

func (p project) tools(n int) error {
	return errors.Join(
		save(p.path("tools/acts.star"), []byte(strings.ReplaceAll(script, "VERSION", fmt.Sprint(n%2))), 0o666),
		save(p.path("tools/shell.sh"), []byte(strings.ReplaceAll(shell, "VERSION", fmt.Sprint(n/2%2))), 0o777))
}

// save replaces a file in one step.
func save(file string, content []byte, mode fs.FileMode) error {
	if err := os.WriteFile(file+"~", content, mode); err != nil {
		return err
	}
	return os.Rename(file+"~", file)
}

// do executes an operation. It does nothing if what the operation needs does not exist.
func (p project) do(o op) {
	a, b := p.spelt(o.a), p.spelt(o.b)
	switch o.verb {
	case "write", "save":
		os.MkdirAll(filepath.Dir(a), 0o777)
		if o.verb == "save" {
			save(a, content(o.a, o.n), 0o666)
			return
		}
		os.WriteFile(a, content(o.a, o.n), 0o666)
	case "remove":
		os.RemoveAll(a)
	case "move":
		os.MkdirAll(filepath.Dir(b), 0o777)
		os.Rename(a, b)
	case "link":
		os.MkdirAll(filepath.Dir(b), 0o777)
		os.Link(a, b)
	case "symlink":
		os.MkdirAll(filepath.Dir(b), 0o777)
		if rel, err := filepath.Rel(filepath.Dir(b), a); err == nil {
			os.Symlink(rel, b)
		}
	case "change":
		changeKeepingTime(a)
	case "project":
		save(p.path("kiln.toml"), []byte(projectFile(o.n)), 0o666)
	case "rules":
		text := ""
		if o.more > 0 {
			text = fmt.Sprintf("[[rules]]\nmatch = \"%s\"\n%s\n", []string{"", "*.txt", "**/a.*", "b.acts"}[o.more],
				[]string{"processor = \"none\"", "processor = \"copy\"", "platforms.pc.processor = \"none\"", "procesor = 1"}[o.n%4])
		}
		save(filepath.Join(a, "rules.toml"), []byte(text), 0o666)
	case "ignore":
		save(filepath.Join(a, ".kilnignore"), []byte([]string{"", "a.*\n", "t/\n", "*.txt\n!b.txt\n"}[o.more]), 0o666)
	case "tool":
		p.tools(o.n)
	case "state":
		os.RemoveAll(p.path(path.Join(".kiln", o.a)))
	case "kind":
		os.Remove(a)
		os.MkdirAll(a, 0o777)
		save(filepath.Join(a, "a.txt"), []byte("inside\n"), 0o666)
	case "branch":
		m := &maker{Rand: rand.New(rand.NewPCG(uint64(o.n%8), 5))}
		for range 40 {
			f := m.file()
			p.do(op{verb: "save", a: f, n: m.IntN(1 << 16)})
		}
	case "wait":
		time.Sleep(time.Duration(o.n%80) * time.Millisecond)
	case "blob lost":
		if all := files(p.path(".kiln/cas")); len(all) > 0 {
			os.Remove(all[o.n%len(all)])
		}
	case "respell":
		p.respell(o)
	case "blob":
		if all := files(p.path(".kiln/cas")); len(all) > 0 {
			changeKeepingTime(all[o.n%len(all)])
		}
	default:
		if what, ok := strings.CutPrefix(o.verb, "output "); ok {
			p.output(what, o)
		}
	}
}

// spelt is where a file is, by a name that may be spelt otherwise there: two spellings side by side are an error, which few builds are for.
func (p project) spelt(name string) string {
	at := p.dir
	for _, part := range strings.Split(name, "/") {
		some, _ := os.ReadDir(at)
		if i := slices.IndexFunc(some, func(e fs.DirEntry) bool { return asset.Fold(e.Name()) == asset.Fold(part) }); i >= 0 {
			part = some[i].Name()
		}
		at = filepath.Join(at, part)
	}
	return at
}

// respell renames a file or a folder to a name that means the same.
func (p project) respell(o op) {
	from := p.spelt(o.a)
	name := filepath.Base(from)
	composed := strings.ReplaceAll(name, "u\u0308", "\u00fc")
	forms := []string{strings.ToUpper(name), strings.ToLower(name), strings.ToUpper(name[:1]) + name[1:], composed}
	if to := filepath.Join(filepath.Dir(from), forms[o.more]); len(o.a) > len("one") && !there(to) {
		os.Rename(from, to)
	}
}

func there(file string) bool { _, err := os.Lstat(file); return err == nil }

// output changes a product.
func (p project) output(what string, o op) {
	all := files(p.path("build"))
	if len(all) == 0 {
		return
	}
	f := all[o.n%len(all)]
	switch what {
	case "edited": // in place: through all its hard links
		os.Chmod(f, 0o666)
		if h, err := os.OpenFile(f, os.O_WRONLY|os.O_APPEND, 0); err == nil {
			h.WriteString("somebody else's")
			h.Close()
		}
	case "removed":
		os.Remove(f)
	case "touched":
		os.Chtimes(f, time.Time{}, time.Unix(int64(o.n), 0))
	case "replaced":
		save(f, []byte("somebody else's"), 0o666)
	}
}

// changeKeepingTime changes a byte in place and restores the time, as a copy that keeps times can do.
func changeKeepingTime(file string) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return
	}
	b, err := os.ReadFile(file)
	if err != nil || len(b) == 0 {
		return
	}
	b[len(b)-1] ^= 1
	os.Chmod(file, 0o666)
	os.WriteFile(file, b, 0o666)
	os.Chtimes(file, time.Time{}, info.ModTime())
	os.Chmod(file, info.Mode())
}

// files returns all regular files in a folder, sorted.
func files(dir string) []string {
	var all []string
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != ".gitignore" && e.Name() != ".made-by-kiln" { // Kiln writes one into its own folders once
			all = append(all, path)
		}
		return nil
	})
	slices.Sort(all)
	return all
}
