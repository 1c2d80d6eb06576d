package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// python reads texts with Python's readers, and prints what each gives as JSON. YAML has the resolver of the core schema of YAML 1.2 in
// place of that of 1.1.
const python = `
import sys, json, csv, io, re, datetime, tomllib, math
def plain(x):
    if isinstance(x, dict): return {k: plain(v) for k, v in x.items()}
    if isinstance(x, list): return [plain(v) for v in x]
    if isinstance(x, datetime.datetime) or isinstance(x, datetime.time) or isinstance(x, datetime.date):
        s = x.isoformat()
        s = s.replace("+00:00", "Z")
        if "." in s:
            head, tail = s.split(".")
            digits = re.match(r"\d+", tail).group()
            s = head + "." + digits.rstrip("0") + tail[len(digits):]
        return s
    if isinstance(x, float) and not math.isfinite(x): raise ValueError("not finite")
    return x
def yaml12():
    import yaml
    class Core(yaml.SafeLoader): pass
    Core.yaml_implicit_resolvers = {}
    def add(tag, rx, first):
        Core.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(rx), first)
    add("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""])
    add("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF"))
    add("int", r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", list("-+0123456789"))
    add("float", r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)$", list("-+0123456789."))
    add("merge", r"^<<$", ["<"])
    def integer(loader, node):
        s = loader.construct_scalar(node)
        return int(s, 0) if s[:2] in ("0x", "0o") else int(s)
    Core.add_constructor("tag:yaml.org,2002:int", integer)
    Core.add_constructor("tag:yaml.org,2002:float", lambda l, n: float(l.construct_scalar(n)))
    return lambda t: yaml.load(t, Core)
def rows(delimiter):
    def read(t):
        t = t.decode("utf-8-sig")
        return [r for r in csv.reader(io.StringIO(t, newline=""), delimiter=delimiter, strict=True) if r]
    return read
readers = {"json": lambda t: json.loads(t.decode("utf-8-sig")), "toml": lambda t: tomllib.loads(t.decode()),
    "csv": rows(","), "csv;": rows(";"), "tsv": rows("\t")}
try: readers["yaml"] = yaml12()
except ImportError: pass
for c in json.load(sys.stdin):
    try:
        out = {"value": plain(readers[c["reader"]](bytes.fromhex(c["text"])))} if c["reader"] in readers else {"missing": True}
        line = json.dumps(out, ensure_ascii=True)
    except Exception as e:
        line = json.dumps({"error": type(e).__name__ + ": " + str(e)[:80]})
    print(line)
`

type otherCase struct {
	Reader string `json:"reader"`
	Text   string `json:"text"` // in hexadecimal digits
}

type otherAnswer struct {
	Value   json.RawMessage `json:"value"`
	Error   string          `json:"error"`
	Missing bool            `json:"missing"`
}

// others returns what Python reads.
func others(t *testing.T, reader string, texts []string) []otherAnswer {
	t.Helper()
	program := "/usr/bin/python3"
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("python3"); err != nil {
			t.Skip("python3 is not installed: nothing to compare with")
		}
	}
	cases := make([]otherCase, len(texts))
	for i, text := range texts {
		cases[i] = otherCase{reader, fmt.Sprintf("%x", text)}
	}
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	var failed bytes.Buffer
	cmd := exec.Command(program, "-c", python)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &failed
	out, err := cmd.Output()
	if err != nil {
		if strings.Contains(failed.String(), "tomllib") {
			t.Skip("this Python has no tomllib: nothing to compare with")
		}
		t.Fatalf("%v, %s", err, failed.Bytes())
	}
	answers := make([]otherAnswer, len(texts))
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(texts) {
		t.Fatalf("%d answers to %d texts", len(lines), len(texts))
	}
	for i, line := range lines {
		if err := json.Unmarshal(line, &answers[i]); err != nil {
			t.Fatal(err)
		}
		if answers[i].Missing {
			t.Skipf("Python has no reader of %s: nothing to compare with", reader)
		}
	}
	return answers
}

// compare reads texts with our reader and Python's. known returns why a difference is known, or "".
func compare(t *testing.T, reader string, texts []string, known func(text string, err error, theirs otherAnswer) string) {
	t.Helper()
	read := readers()[reader]
	if strings.HasPrefix(reader, "csv") || reader == "tsv" {
		comma := map[string]rune{"csv": ',', "csv;": ';', "tsv": '\t'}[reader]
		read = func(b []byte) (Value, error) { return CSV(b, CSVOptions{Comma: comma, Strings: true, NoHeader: true}) }
	}
	reasons := map[string]int{}
	shown := 0
	for i, theirs := range others(t, reader, texts) {
		v, err := read([]byte(texts[i]))
		ours, want := "", ""
		if err == nil {
			ours = string(AppendJSON(nil, &v))
		}
		if theirs.Error == "" {
			w, bad := Written(theirs.Value, Limits{MaxSize, 1000, MaxValues})
			if bad != nil {
				t.Fatalf("%q: %v", theirs.Value, bad)
			}
			w, bad = JSON(theirs.Value)
			if bad == nil {
				want = string(AppendJSON(nil, &w))
			} else {
				want = "not for us: " + bad.Error()
			}
		}
		switch why := known(texts[i], err, theirs); {
		case (err == nil) == (theirs.Error == "") && ours == want:
			reasons[map[bool]string{true: "equal", false: "refused by both"}[err == nil]]++
		case why != "":
			reasons[why]++
		default:
			if shown++; shown <= 12 {
				t.Errorf("%s %q:\n ours   %s %v\n theirs %s %s", reader, texts[i], ours, err, want, theirs.Error)
			}
			reasons["different"]++
		}
	}
	t.Logf("%s: %d texts: %v", reader, len(texts), reasons)
	if reasons["equal"] < len(texts)/10 {
		t.Errorf("%s: %d of %d texts are read by both: this test tests little", reader, reasons["equal"], len(texts))
	}
}

// pieces joins random pieces of text.
func pieces(r *rand.Rand, n int, from ...string) string {
	var b strings.Builder
	for range 1 + r.IntN(n) {
		b.WriteString(from[r.IntN(len(from))])
	}
	return b.String()
}

func faultOf(err error) Fault {
	var e *Error
	if errors.As(err, &e) {
		return e.Fault
	}
	return 255
}

// TestOthersCSV compares tables of quotes, separators, line ends, byte order marks and empty cells with Python's csv module.
func TestOthersCSV(t *testing.T) {
	r := rand.New(rand.NewPCG(thorough.Seed(t), 1))
	for _, reader := range []string{"csv", "csv;", "tsv"} {
		comma := map[string]string{"csv": ",", "csv;": ";", "tsv": "\t"}[reader]
		var texts []string
		for range thorough.OfPeers(2000, 4000, 20000) {
			end := []string{"\n", "\r\n", "\r"}[r.IntN(3)]
			text := pieces(r, 12, "a", "", comma, comma, end, `"`, `"b"`, `""`, `"c`+end+`d"`, " ", "é", ",", ";", "\t", `"x""y"`, end+`"`)
			if r.IntN(2) == 0 { // most are tables that are right
				var rows []string
				n := 1 + r.IntN(4)
				for range 1 + r.IntN(4) {
					cells := make([]string, n)
					for k := range cells {
						cells[k] = []string{"a", "", `""`, `"b` + comma + `"`, `"c` + end + `"`, `27"`, `"x""y"`, "é ", "1", `a"b"c`}[r.IntN(10)]
					}
					rows = append(rows, strings.Join(cells, comma))
				}
				text = strings.Join(rows, end) + []string{"", end}[r.IntN(2)]
			}
			if r.IntN(10) == 0 {
				text = "\ufeff" + text
			}
			texts = append(texts, text)
		}
		compare(t, reader, texts, func(text string, err error, theirs otherAnswer) string {
			switch {
			case faultOf(err) == Ragged:
				return "refused: rows of other lengths"
			case err != nil && strings.Contains(err.Error(), "white space stands before the quotes"):
				return "refused: white space before quotes"
			case err == nil && theirs.Error == "" && strings.Contains(text, "\r\n"):
				w, _ := JSON(bytes.ReplaceAll(theirs.Value, []byte(`\r\n`), []byte(`\n`)))
				v, _ := CSV([]byte(text), CSVOptions{Comma: rune(comma[0]), Strings: true, NoHeader: true})
				if bytes.Equal(AppendJSON(nil, &w), AppendJSON(nil, &v)) {
					return "line ends in cells are LF"
				}
			}
			return ""
		})
	}
}

// TestOthersJSON compares with Python's json module, which is less strict.
func TestOthersJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(thorough.Seed(t), 2))
	var value func(depth int) string
	value = func(depth int) string {
		n := r.IntN(4)
		switch k := r.IntN(12); {
		case k < 2 && depth > 0:
			list := make([]string, n)
			for i := range list {
				list[i] = value(depth - 1)
			}
			return "[" + strings.Join(list, []string{",", " , "}[r.IntN(2)]) + []string{"", "", "", ","}[r.IntN(4)] + "]"
		case k < 5 && depth > 0:
			list := make([]string, n)
			for i := range list {
				list[i] = fmt.Sprintf("%q: %s", string(rune('a'+r.IntN(9))), value(depth-1))
			}
			return "{" + strings.Join(list, ",\n") + "}"
		}
		return []string{"1", "-0", "0.1", "1e5", "1E+400", "-1e-400", "9007199254740993", "18446744073709551616",
			"123456789012345678901234567890",
			"01", "+1", ".5", "5.", "NaN", "-Infinity", "null", "true", "True", `"a"`, `"\u00e9\ud83d\ude00"`, `"\ud800"`, `"\udc00x"`, `"\/\b"`,
			"\"\t\"", `"\x"`, "'a'", "/* c */ 1", "1 // c", `""`, "\u00a01", "1\f"}[r.IntN(31)]
	}
	texts := []string{strings.Repeat("[", 150) + strings.Repeat("]", 150), "\ufeff1", "\ufeff\ufeff1", "", " ", "1 2", "[1}", `{"a":1,"a":2}`}
	for range thorough.OfPeers(2000, 4000, 20000) {
		texts = append(texts, value(3))
	}
	compare(t, "json", texts, func(text string, err error, theirs otherAnswer) string {
		switch f := faultOf(err); {
		case f == Duplicate:
			return "refused: a key that is given twice"
		case f == Number:
			return "refused: a number that does not fit"
		case f == Encoding:
			return "refused: half a character"
		case f == Syntax && (strings.Contains(text, "NaN") || strings.Contains(text, "Infinity")):
			return "refused: NaN and Infinity"
		}
		return ""
	})
}

// TestOthersTOML compares with Python's tomllib, which reads TOML 1.0.
func TestOthersTOML(t *testing.T) {
	r := rand.New(rand.NewPCG(thorough.Seed(t), 3))
	values := []string{"1", "-0", "+7", "1_000", "1__0", "0x1F", "0o17", "0b101", "01", "0x", "1.5", "1.", ".5", "1e3", "1_0.0_1e+2",
		"inf", "nan", "true",
		"True", `"a"`, `"\u00e9\t\\"`, `"\x"`, `'a\b'`, "'''\na'b'''", "\"\"\"a\\\n  b\"\"\"", `"""a""b"""`, `""""a""""`, "1979-05-27",
		"1979-05-27T07:32:00Z", "1979-05-27 07:32:00.5+01:00", "07:32:00", "07:32:00.25", "1979-02-30", "25:00:00", "[1, 2]", "[1, [2,],]",
		"[\n1, # c\n2\n]",
		"{a = 1}", "{a.b = 1, c = [1]}", "{}", "{a = 1, a = 2}", "{a = 1,}", "[1 2]", "9223372036854775807", "9223372036854775808",
		"1979-05-27T07:32"}
	keys := []string{"a", "b", "a.b", `"a b"`, "'c'", "1", "-_", "a . b", "é", "", "a.1.2", `"a".b`}
	var texts []string
	for range thorough.OfPeers(2000, 4000, 20000) {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			switch r.IntN(6) {
			case 0:
				fmt.Fprintf(&b, "[%s]", keys[r.IntN(len(keys))])
			case 1:
				fmt.Fprintf(&b, "[[%s]]", keys[r.IntN(5)])
			default:
				fmt.Fprintf(&b, "%s = %s", keys[r.IntN(len(keys))], values[r.IntN(len(values))])
			}
			b.WriteString([]string{"\n", "\r\n", " # c\n", "\n\n"}[r.IntN(4)])
		}
		texts = append(texts, b.String())
	}
	compare(t, "toml", texts, func(text string, err error, theirs otherAnswer) string {
		switch f := faultOf(err); {
		case f == Number:
			return "refused: a number that does not fit, or is not finite"
		case err != nil && strings.Contains(text, "9223372036854775808"):
			return "refused: a number that does not fit, or is not finite"
		case theirs.Error != "" && (strings.Contains(text, ",}") || strings.Contains(text, "07:32\n") || strings.Contains(text, `"\x`) ||
			strings.Contains(text, "07:32\r") || strings.Contains(text, "07:32 #")):
			return "TOML 1.1"
		}
		return ""
	})
}

// TestOthersYAML compares with PyYAML, which resolves scalars here as YAML 1.2 does.
func TestOthersYAML(t *testing.T) {
	r := rand.New(rand.NewPCG(thorough.Seed(t), 4))
	scalars := []string{"1", "-1", "+1", "010", "0o17", "0x1F", "1.5", ".5", "1.", "1e3", "1_000", "190:20:30", "yes", "no", "on", "y",
		"true", "True",
		"TRUE", "tRue", "null", "~", "", "Null", "2001-01-01", "2001-12-14t21:59:43.10-05:00", "a b", "a: b", "a #b", "a#b", "'it''s'",
		`"\u00e9\x41\n"`,
		`"a\
  b"`, "'a\n  b'", "- a", "@a", "`a", "%a", "&x 1", "*x", "!!str 12", "!!int \"3\"", "!foo a", "[a, b]", "[a, b,]", "{a: 1, b}", "{a: 1, \"b\":2}",
		"[a: b]", "|\n  a\n   b\n", "|-\n  a\n", ">\n  a\n  b\n\n  c\n", ">+\n  a\n\n", "|2\n    a\n", "<<", "=", "a\tb", "a:b", "::", "1.2.3", "0b1", "-", "?", "é"}
	var block func(depth int, indent string) string
	block = func(depth int, indent string) string {
		var b strings.Builder
		list := r.IntN(2) == 0
		for i := range 1 + r.IntN(3) {
			b.WriteString(indent)
			if list {
				b.WriteString("-")
			} else {
				b.WriteString([]string{"a", "b", "'c d'", "e f", "é", `"g"`}[(i*2+r.IntN(2))%6] + ":")
			}
			if depth > 0 && r.IntN(3) == 0 {
				b.WriteString([]string{"\n", " # c\n", "  \n"}[r.IntN(3)] + block(depth-1, indent+[]string{" ", "  ", "    "}[r.IntN(3)]))
				continue
			}
			s := scalars[r.IntN(len(scalars))]
			if i := strings.IndexByte(s, '\n'); i >= 0 {
				s = s[:i] + strings.ReplaceAll(s[i:], "\n", "\n"+indent)
			}
			b.WriteString(" " + s + []string{"\n", "\n", " # c\n", "\n\n"}[r.IntN(4)])
		}
		return b.String()
	}
	texts := []string{"--- a\n", "%YAML 1.2\n---\na: 1\n", "a: 1\n...\n", "# c\n", "---\n", "a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n", "a:\n- b\n- c\n"}
	for range thorough.OfPeers(1500, 3000, 15000) {
		texts = append(texts, block(2, ""))
	}
	compare(t, "yaml", texts, yamlDifference)
}

// yamlDifference returns why a difference from PyYAML is known.
func yamlDifference(text string, err error, theirs otherAnswer) string {
	switch f := faultOf(err); {
	case f == Duplicate:
		return "refused: a key that is given twice"
	case f == Unsupported && strings.Contains(err.Error(), "is not a string"):
		return "refused: a key that is no string"
	case err == nil && strings.Contains(theirs.Error, "character '\\t'"):
		return "PyYAML refuses a tab within text"
	case err == nil && strings.Contains(theirs.Error, "2002:merge"):
		return "PyYAML refuses << as text"
	case err == nil && strings.Contains(theirs.Error, "found duplicate anchor"):
		return "PyYAML refuses an anchor that is given again"
	}
	return ""
}

// TestOthersProperties compares with java.util.Properties.
func TestOthersProperties(t *testing.T) {
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skip("there is no Java compiler: nothing to compare with")
	}
	const program = `
import java.io.*; import java.nio.charset.*; import java.nio.file.*; import java.util.*;
public class P {
  public static void main(String[] a) throws Exception {
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    for (String line : Files.readAllLines(Path.of(a[0]))) {
      byte[] b = new byte[line.length() / 2];
      for (int i = 0; i < b.length; i++) b[i] = (byte) Integer.parseInt(line.substring(2 * i, 2 * i + 2), 16);
      Properties p = new Properties();
      StringBuilder s = new StringBuilder();
      try {
        p.load(new StringReader(new String(b, StandardCharsets.UTF_8)));
        for (String k : new TreeSet<>(p.stringPropertyNames())) { hex(s, k); s.append('='); hex(s, p.getProperty(k)); s.append(' '); }
      } catch (IllegalArgumentException e) { s = new StringBuilder("error"); }
      out.println(s);
    }
    out.flush();
  }
  static void hex(StringBuilder s, String t) { for (byte c : t.getBytes(StandardCharsets.UTF_8)) s.append(String.format("%02x", c)); }
}`
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(thorough.Seed(t), 5))
	var texts []string
	var in strings.Builder
	for range thorough.OfPeers(4000, 8000, 40000) {
		text := pieces(r, 14, "a", "b", "=", ":", " ", "\t", "\f", "\n", "\r\n", "\r", "\\\n", "\\\r\n", "\\\r", "\\", `\\`, `\=`, `\:`, `\ `, `\t`, `\u00e9`, `\u00`,
			"#", "!", "# c\n", "é", "\n  ", `"`, `\#`, `\uD83D\uDE00`)
		texts = append(texts, text)
		fmt.Fprintf(&in, "%x\n", text)
	}
	source, list := filepath.Join(dir, "P.java"), filepath.Join(dir, "in")
	if err := errors.Join(os.WriteFile(source, []byte(program), 0o600), os.WriteFile(list, []byte(in.String()), 0o600)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("java", source, list).CombinedOutput()
	if err != nil {
		t.Skipf("java does not run a source file: %v, %s", err, out)
	}
	within := regexp.MustCompile(`\\u00.?\\[\r\n]`)
	equal, refused := 0, 0
	for i, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		v, err := Properties([]byte(texts[i]))
		ours := "error"
		if strings.HasSuffix(strings.TrimRight(texts[i], " \t\f\r\n"), `\`) || within.MatchString(texts[i]) {
			continue // Java has a key without a name if nothing follows a backslash, and goes on within \u
		}
		if f := faultOf(err); f == Duplicate || f == Encoding { // Java takes the last, and writes half a character as ?
			refused++
			continue
		}
		if err == nil {
			ours = ""
			sorted, _ := JSON(AppendJSON(nil, &v))
			for _, m := range sorted.V.(Object) {
				ours += fmt.Sprintf("%x=%x ", m.Key, m.Value.V)
			}
		}
		if ours != line {
			t.Errorf("%q:\n ours %s %v\n java %s", texts[i], ours, err, line)
			continue
		}
		equal++
	}
	t.Logf("properties: %d texts: %d equal, %d refused: keys given twice, half a character", len(texts), equal, refused)
}
