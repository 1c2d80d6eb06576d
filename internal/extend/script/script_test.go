package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// project writes files into a folder.
func project(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// load loads one script.
func load(t testing.TB, text string) *Script {
	t.Helper()
	s, err := Load(project(t, map[string]string{"tools/p.star": text}), "tools/p.star", "")
	if err != nil {
		t.Fatal(written1(err))
	}
	return s
}

// written1 is an error as people see it.
func written1(err error) string {
	var b strings.Builder
	for _, m := range diag.Messages(err, diag.Internal) {
		m.Write(&b, diag.Style{})
	}
	return b.String()
}

// body is a script whose process has these lines.
func body(lines string) string {
	return "processor(\"p\", extensions = [\".p\"])\ndef process(job):\n    " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n    ") + "\n"
}

// text runs lines that write a product, and gives it.
func text(t *testing.T, lines string, files map[string][]byte) (string, processortest.Result) {
	t.Helper()
	if files == nil {
		files = map[string][]byte{}
	}
	if files["a.p"] == nil {
		files["a.p"] = []byte("source")
	}
	r := processortest.Run(t, load(t, body(lines)), processortest.Case{Files: files, Asset: "a.p"})
	if r.Err != nil {
		return written1(r.Err), r
	}
	return string(r.Products[""].Data), r
}

var languageCases = []struct{ lines, want string }{
	{`job.write("a" + "b" * 3)`, "abbb"},
	{"x = [1]\ny = x\nx += [2]\njob.write(str(y))", "[1, 2]"},
	{"x = {\"a\": [1]}\nx[\"a\"] += (2, 3)\nx[\"a\"][-1] *= 7\njob.write(str(x))", `{"a": [1, 2, 21]}`},
	{"n = []\ndef f():\n    n.append(1)\n    return 0\nx = [5]\nx[f()] += 2\njob.write(str(x) + str(n))", "[7][1]"},
	{"x = 1\nx <<= 4\nx |= 1\nx %= 10\njob.write(\"%d %s\" % (x, x * 2))", "7 14"},
	{"def f(*a, **k):\n    return (a, k)\njob.write(str(f(1, b = 4, *[2, 3], **{\"c\": 5})))", `((1, 2, 3), {"b": 4, "c": 5})`},
	{"f = lambda *a: len(a) * 2\njob.write(str(f(1, 2)))", "4"},
	{"job.write(\",\".join([\"a\", \"b\"]).upper().replace(\"A\", \"xy\"))", "xy,B"},
	{"a, b = 1, 2\na, b = b, a\nl = [0, 0]\nl[0], l[1] = a, b\njob.write(str(l[::-1]) + str((1, 2, 3)[1:]))", "[1, 2](2, 3)"},
	{"d = {(x, y): x * y for x in range(2) for y in range(2) if x + y > 0}\njob.write(str(d.items()))", "[((0, 1), 0), ((1, 0), 0), ((1, 1), 1)]"},
	{"i = 0\nwhile i < 5:\n    i += 1\njob.write(\"{} {x}\".format(i, x = 2) + \"%s\" % getattr(\"a b\", \"split\")())", "5 2[\"a\", \"b\"]"},
	{"s = set([1]) | set([2])\ns |= set([3])\njob.write(str(sorted(s)) + str(struct(a = 1).a) + str(math.floor(2.5)))", "[1, 2, 3]12"},
	{"job.write(\" \".join([job.id, job.path, job.uuid, job.platform, str(job.folder)]))", "a.p a.p <a.p> pc False"},
	{"job.write(json.encode({\"b\": [1, 2.5, None, True], \"a\": \"ä\"}))", `{"a":"ä","b":[1,2.5,null,true]}`},
	{"job.write(str(json.decode(\"[1, {\\\"k\\\": 2e3}]\")) + str(toml.decode(\"a = 1\")) + str(csv.decode(\"a,b\\n1,x\\n\")))", `[1, {"k": 2000.0}]{"a": 1}[{"a": 1, "b": "x"}]`},
	{"x = xml.decode(\"<m w='3'>\\n <t id='1'>hi</t><t/></m>\")\njob.write(str([x.tag, x.attrs[\"w\"], x.find(\"t\").text, len(x.all(\"t\")), x.find(\"t\").line, x.find(\"t\").column, x.find(\"n\")]))", `["m", "3", "hi", 2, 2, 2, None]`},
	{"r = job.random(\"a\")\nq = job.random(\"a\")\njob.write(str([r.int(1, 6) for _ in range(9)] == [q.int(1, 6) for _ in range(9)]) + str(sorted(r.shuffled([3, 1, 2]))))", "True[1, 2, 3]"},
	{"job.write(resolve(\"maps/a.map\", \"../x.png\"))", "x.png"},
}

func TestLanguage(t *testing.T) {
	for _, c := range languageCases {
		if got, _ := text(t, c.lines, nil); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.lines, got, c.want)
		}
	}
}

// symlink makes a link to a file out of the folder, where the system lets us.
func symlink(t *testing.T, dir, name string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.star")
	if err := os.WriteFile(out, []byte("x = 1"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(out, filepath.Join(dir, name)); err != nil {
		t.Skip("this system makes no links")
	}
}
