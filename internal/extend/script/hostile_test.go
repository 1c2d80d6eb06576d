package script

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// TestHostile: whatever a script does, its job fails with a message and the program goes on.
func TestHostile(t *testing.T) {
	thorough.Only(t, "each script runs up to its limits")
	double := func(first, op string) string { return "x = " + first + "\nfor i in range(100):\n    " + op }
	for name, c := range map[string]struct{ lines, want string }{
		"endless while":        {"while True:\n    pass", "steps"},
		"endless for":          {"for a in range(16000000):\n    for b in range(16000000):\n        pass", "steps"},
		"recursion":            {"def f():\n    f()\nf()", "recursively"},
		"mutual recursion":     {"def f(g):\n    g(g)\nf(f)", "recursively"},
		"recursion by sorted":  {"def f(x):\n    return sorted([1, 2], key = f)\nf(1)", "recursively"},
		"repeat a string":      {`"a" * 1000000000`, "larger than"},
		"repeat with a huge":   {`"a" * (1 << 60)`, "larger than"},
		"repeat from the left": {`(1 << 400) * "a"`, "larger than"},
		"repeat bytes":         {`b"a" * 1000000000`, "larger than"},
		"repeat a list":        {`[0] * 1000000000`, "larger than"},
		"repeat a tuple":       {`(0, 1) * 1000000000`, "larger than"},
		"repeat in place":      {"x = [1]\nx *= 1000000000", "larger than"},
		"repeat an element":    {"x = [\"a\"]\nx[0] *= 1000000000", "larger than"},
		"repeat in a dict":     {"x = {1: \"a\"}\nx[1] *= 1000000000", "larger than"},
		"double a string":      {double(`"ab"`, "x = x + x"), "larger than"},
		"double in place":      {double(`"ab"`, "x += x"), "larger than"},
		"double a list":        {double("[1]", "x += x"), "larger than"},
		"double by extend":     {double("[1]", "x.extend(x)"), "larger than"},
		"double by getattr":    {double("[1]", `getattr(x, "extend")(list(x))`), "larger than"},
		"double a tuple":       {double("(1,)", "x = x + x"), "larger than"},
		"double bytes":         {double(`b"ab"`, "x = x + x"), "larger than"},
		"double by join":       {double(`"ab"`, `x = x.join([x, x])`), "larger than"},
		"double by replace":    {double(`"ab"`, `x = x.replace("a", "ab" * 1000)`+"\n    x = x.replace(\"b\", \"ab\" * 1000)"), "larger than"},
		"double by format":     {double(`"ab"`, `x = "{0}{0}".format(x)`), "larger than"},
		"double by percent":    {double(`"ab"`, `x = "%s%s" % (x, x)`), "larger than"},
		"double by items":      {"x = \"a\" * 200000000\ny = x.split(\"a\")", "larger than"},
		"giant power":          {double("3", "x = x * x"), "bits"},
		"giant shift":          {"x = 1\nfor i in range(1000):\n    x = x << 500", "bits"},
		"giant shift at once":  {"x = 1 << 100000000", "shift count too large"},
		"giant number read":    {`int("9" * 1000000)`, "digits"},
		"range of all":         {"list(range(1 << 60))", ""},
		"long range":           {"all(range(1, 1 << 30))", "range"},
		"long zip":             {"x = range(16000000)\nzip(x, x, x, x, x, x, x, x)", "larger than"},
		"spread":               {"def f(*a):\n    pass\nf(*range(16000000))", "arguments"},
		"deep list as text":    {"x = []\nfor i in range(1000000):\n    x = [x]\nstr(x)", "deeper"},
		"deep list in a fail":  {"x = []\nfor i in range(1000000):\n    x = [x]\nprint(x)", "deeper"},
		"deep list in a %":     {"x = []\nfor i in range(1000000):\n    x = [x]\n\"%s\" % [x]", "deeper"},
		"deep json":            {"x = []\nfor i in range(400):\n    x = [x]\njson.encode(x)", "deeper"},
		"wide json":            {"x = \"a\" * 1000\nfor i in range(40):\n    x = [x, x]\njson.encode(x)", "larger than"},
		"wide text":            {"x = \"a\"\nfor i in range(40):\n    x = [x, x]\nrepr(x)", "larger than"},
		"deep tuple":           {"x = ()\nfor i in range(100000):\n    x = (x,)\n{x: 1}", "deeper"},
		"wide tuple":           {"x = (1, 2)\nfor i in range(60):\n    x = (x, x)\n{x: 1}", "others within"},
		"deep tuple by args":   {"def f(*a):\n    return a\nx = ()\nfor i in range(100000):\n    x = f(x)", "deeper"},
		"deep tuple by lambda": {"f = lambda *a: a\nx = ()\nfor i in range(100000):\n    x = f(x)", "deeper"},
		"deep tuple by items":  {"x = ()\nfor i in range(100000):\n    x = {1: x}.items()[0]", "deeper"},
		"deep tuple by zip":    {"x = ()\nfor i in range(100000):\n    x = zip([x])[0]", "deeper"},
		"deep tuple by enum":   {"x = ()\nfor i in range(100000):\n    x = enumerate([x])[0]", "deeper"},
		"deep tuple by list":   {"x = ()\nfor i in range(100000):\n    x = tuple([x])", "deeper"},
		"text in a tuple":      {"x = (\"a\" * 1000000,) * 1000\n{}[x]", "text"},
		"list in itself":       {"x = []\nx.append(x)\nstr(x)", "deeper"},
		"huge image":           {"image.new(16384, 16384)", "larger than"},
		"image without end":    {"image.new(1 << 20, 1)", "sides"},
		"negative image":       {"image.new(-1, -1)", "sides"},
		"many images":          {"x = [image.new(4096, 4096) for i in range(1000)]", "memory"},
		"many strings":         {"x = [\"a\" * 10000000 + str(i) for i in range(1000)]", "memory"},
		"many lists":           {"x = []\nwhile True:\n    x.append([x, x, x, x])", ""},
		"crop out of it":       {"image.new(4, 4).crop(2, 2, 1 << 30, 1 << 30)", "not within"},
		"get out of it":        {"image.new(4, 4).get(4, 0)", "not within"},
		"blit far off":         {"image.new(4, 4).blit(image.new(2, 2), 1 << 30, -(1 << 30))\nfail(\"fine\")", "fine"},
		"pixels of no size":    {"image.of(4, 4, b\"\")", "16 pixels"[:0] + "take 64"},
		"a wild table":         {"image.new(2, 2).map(r = lambda v: v * 2)", "0 to 255"},
		"a writer of all":      {"w = writer()\nwhile True:\n    w.bytes(b\"a\" * 10000000)", "larger than|of memory"}, // whichever is noticed first
		"a wild alignment":     {"writer().align(1 << 40)", ""},
		"a wild patch":         {"w = writer()\nw.u8(1)\nw.patch_u32(-1, 0)", "not within"},
		"a wild str":           {"writer().str(\"a\", size = 1 << 40)", ""},
		"too much for u8":      {"writer().u8(256)", "from 0 to 255"},
		"read out of it":       {`job.read("../secret")`, ""},
		"read what is not":     {`job.read("nowhere")`, "does not exist"},
		"a wild glob":          {`job.glob("[")`, ""},
		"write twice":          {"job.write(\"a\")\njob.write(\"b\")", ""},
		"write a list":         {"job.write([1])", "want bytes"},
		"a job kept":           {"job.nothing", "no .nothing"},
		"bad xml":              {`xml.decode("<a>" * 100000)`, "deeper"},
		"bad json":             {`json.decode("[" * 100000)`, "deep"},
		"bad csv":              {`csv.decode("a\n\"")`, ""},
		"bad image":            {`image.open(b"\x89PNG\r\n\x1a\n")`, ""},
		"dict while iterated":  {"x = {1: 1}\nfor k in x:\n    x[k + 1] = 1", "during iteration"},
		"hash a list":          {"{[]: 1}", "unhashable"},
		"a clock":              {"time.now()", "undefined"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Load(project(t, map[string]string{"p.star": body(c.lines)}), "p.star", "")
			if err == nil {
				s.Steps, s.Memory, s.Timeout = 20_000_000, 256<<20, 10*time.Minute
				r := processortest.Run(t, s, processortest.Case{Files: map[string][]byte{"a.p": nil}, Asset: "a.p"})
				err = r.Err
			}
			if err == nil {
				t.Fatal("it went well")
			}
			got := written1(err)
			said := slices.ContainsFunc(strings.Split(c.want, "|"), func(want string) bool { return strings.Contains(got, want) })
			if !said || len(got) > 10_000 {
				t.Errorf("got %.500s\nwant something with %q", got, c.want)
			}
		})
	}
}

// TestHostileModules: so does a project whose scripts are wrong when they are loaded.
func TestHostileModules(t *testing.T) {
	declared := "processor(\"p\")\ndef process(job):\n    pass\n"
	for name, c := range map[string]struct{ text, want string }{
		"nothing":            {"", "declares no processor"},
		"no process":         {`processor("p")`, `no function "process"`},
		"a wrong process":    {"processor(\"p\")\ndef process():\n    pass", "one argument"},
		"two":                {declared + `processor("q")`, "second"},
		"a bad name":         {`processor("A b")`, "name"},
		"a bad extension":    {`processor("p", extensions = ["x"])`, "extension"},
		"a bad setting":      {`processor("p", settings = {"A": 1})`, "is not a name"},
		"a bad default":      {`processor("p", settings = {"a": {}})`, "default"},
		"a bad bound":        {`processor("p", settings = {"a": setting(5, max = 3)})`, "a"},
		"a bad product":      {`processor("p", products = {"a": "x"})`, "dot"},
		"not Starlark":       {"def f(:", "K1450"},
		"no such name":       {declared + "lenght(3)", "undefined: lenght"},
		"a loop":             {"while True:\n    pass", "steps"},
		"brackets":           {strings.Repeat("(", 100_000), "excessive nesting"},
		"minus":              {"x = " + strings.Repeat("-", 200_000) + "1", ""},
		"not":                {"x = " + strings.Repeat("not ", 60_000) + "1\n" + declared, "excessive nesting"},
		"lambda":             {"x = " + strings.Repeat("lambda:", 30_000) + "1\n" + declared, ""},
		"a long sum":         {"x = " + strings.Repeat("1+", 100_000) + "1\n" + declared, "-"},
		"a long chain":       {"x = 1" + strings.Repeat(".a", 100_000) + "\n" + declared, ""},
		"too large":          {strings.Repeat("# a comment\n", 30_000), "KiB"},
		"deep global":        {"def f():\n    x = []\n    for i in range(1000000):\n        x = [x]\n    return x\ny = f()\n", "steps"},
		"zeros":              {"\x00\x00", "K14"},
		"load itself":        {`load("p.star", "x")`, "cycle: p.star -> p.star"},
		"load nothing":       {`load("q.star", "x")`, "does not exist"},
		"load from outside":  {`load("../q.star", "x")`, "leads out of the project"},
		"load absolutely":    {`load("/etc/passwd", "x")`, "absolute"},
		"load what is not":   {`load("empty.star", "x")`, "not found"},
		"load a ring":        {`load("ring.star", "x")`, "p.star -> ring.star -> p.star"},
		"load out by a link": {`load("link.star", "x")`, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := project(t, map[string]string{"p.star": c.text, "empty.star": "", "ring.star": `load("p.star", "y")`})
			symlink(t, dir, "link.star")
			_, err := Load(dir, "p.star", "")
			if c.want == "-" { // right, if unusual
				if err != nil {
					t.Error(written1(err))
				}
				return
			}
			if err == nil {
				t.Fatal("it was loaded")
			}
			for _, m := range diag.Messages(err, diag.Internal) {
				if m.Code == diag.Internal {
					t.Errorf("no code: %v", m)
				}
			}
			if got := written1(err); !strings.Contains(got, c.want) || len(got) > 10_000 {
				t.Errorf("got %.500s\nwant something with %q", got, c.want)
			}
		})
	}
}

// TestTime: a script that takes too long is ended, also within a built-in, and the failure is one of the moment.
func TestTime(t *testing.T) {
	s := load(t, body("while True:\n    pass"))
	s.Steps, s.Timeout = 1<<60, 30*time.Millisecond
	r := processortest.Run(t, s, processortest.Case{Files: map[string][]byte{"a.p": nil}, Asset: "a.p"})
	if !errors.Is(r.Err, diag.ErrMoment) || !strings.Contains(r.Err.Error(), string(diag.ScriptTime)) {
		t.Errorf("got %v", r.Err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Timeout = time.Hour
	r = processortest.RunContext(t, ctx, s, processortest.Case{Files: map[string][]byte{"a.p": nil}, Asset: "a.p"})
	if !errors.Is(r.Err, context.Canceled) {
		t.Errorf("got %v", r.Err)
	}
}

// FuzzScript: no text crashes the host.
func FuzzScript(f *testing.F) {
	for _, lines := range []string{
		"job.write(\"a\" + \"b\" * 3)", "x = [1]\nx[0] += 2\nx.extend(x)", "f = lambda *a: a\nf(*[1], **{\"a\": 1})",
		"x = image.new(3, 3)\nx.blit(x, 1, -1)\nx.resize(7, 2).map(r = lambda v: 255 - v).png()", "w = writer(endian = \"big\")\nw.u16(1, [2])\nw.align(4)\nw.patch_u8(0, 3)",
		"xml.decode(\"<a b='1'>x</a>\").find(\"c\")", "json.encode(json.decode(\"{}\"))", "(1, (2, 3))[::-1]", "\"%s %d\" % (1, 2)", "job.random(3).int(1, 6)",
	} {
		f.Add(body(lines))
	}
	f.Add(packer("job.pack(\"ui/\", \"a\", image.new(2, 2))\njob.pack(\"ui/\", \"b\", image.new(1, 1))", "job.write(str([r for r in responses]))"))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Load(project(t, map[string]string{"p.star": text}), "p.star", "")
		if err != nil {
			if diag.Messages(err, diag.Internal)[0].Code == diag.Internal {
				t.Errorf("no code: %v", err)
			}
			return
		}
		s.Steps, s.Memory, s.Timeout = 100_000, 64<<20, time.Second
		r := processortest.Run(t, s, processortest.Case{Files: map[string][]byte{"a.p": []byte("x")}, Asset: "a.p"})
		if r.Err != nil && strings.Contains(r.Err.Error(), "panicked") {
			t.Error(r.Err)
		}
	})
}
