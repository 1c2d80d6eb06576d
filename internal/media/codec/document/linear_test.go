package document

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/pelletier/go-toml/v2"
)

// shapes are documents of about size bytes that may be slow to parse.
var shapes = map[string]func(size int) (format, text string){
	"toml keys": func(n int) (string, string) {
		return "toml", lines(n, func(i int) string { return fmt.Sprintf("key_%d = %d\n", i, i) })
	},
	"toml tables": func(n int) (string, string) {
		return "toml", lines(n, func(i int) string { return fmt.Sprintf("[t%d]\nx = %d\n", i, i) })
	},
	"toml array of tables": func(n int) (string, string) {
		return "toml", lines(n, func(i int) string { return fmt.Sprintf("[[unit]]\nname = \"unit %d\"\nhp = %d\n", i, i) })
	},
	"toml dotted": func(n int) (string, string) {
		return "toml", lines(n, func(i int) string { return fmt.Sprintf("a.b.c%d.d = %d\n", i, i) })
	},
	"toml subtables": func(n int) (string, string) {
		return "toml", lines(n, func(i int) string { return fmt.Sprintf("[a.b.c%d.d]\nx = %d\n", i, i) })
	},
	"toml subtables of an array": func(n int) (string, string) {
		return "toml", lines(n, func(i int) string { return fmt.Sprintf("[[u]]\n[u.a]\nx = %d\n[[u.b]]\ny = 1\n", i) })
	},
	"toml inline": func(n int) (string, string) {
		return "toml", "a = [\n" + lines(n, func(i int) string { return fmt.Sprintf("{ x = %d, y = [1, 2] },\n", i) }) + "]\n"
	},
	"toml one inline table": func(n int) (string, string) {
		return "toml", "a = {" + strings.TrimSuffix(lines(n, func(i int) string { return fmt.Sprintf("k%d = %d, ", i, i) }), ", ") + "}\n"
	},
	"toml one array": func(n int) (string, string) {
		return "toml", "a = [" + lines(n, func(i int) string { return "1, " }) + "]\n"
	},
	"toml array of strings": func(n int) (string, string) {
		return "toml", "a = [" + lines(n, func(i int) string { return "'é', " }) + "]\n"
	},
	"toml string": func(n int) (string, string) {
		return "toml", "a = \"\"\"\n" + lines(n, func(i int) string { return "some text \\\" more\n" }) + "\"\"\"\n"
	},
	"toml comments": func(n int) (string, string) {
		return "toml", lines(n, func(i int) string { return "# nothing to see here\n" }) + "a = 1\n"
	},
	"toml comments in an array": func(n int) (string, string) {
		return "toml", "a = [\n" + lines(n, func(i int) string { return "1, # one\n" }) + "]\n"
	},
	"toml deep": func(n int) (string, string) {
		return "toml", lines(n, func(i int) string {
			return fmt.Sprintf("k%d = %s1%s\n", i, strings.Repeat("[", 100), strings.Repeat("]", 100))
		})
	},
	"toml one line of keys": func(n int) (string, string) {
		return "toml", "a = [" + lines(n, func(i int) string { return fmt.Sprintf("{ \"ключ%d\" = %d },", i, i) }) + "]\n"
	},
	"toml tree, one line": func(n int) (string, string) {
		return "tree", "a = [" + lines(n, func(i int) string { return fmt.Sprintf("[[{ k%d = 1979-05-27 }, inf]],", i) }) + "]\n"
	},
	"toml tree, all wrong": func(n int) (string, string) {
		return "tree", "a = 1\n" + lines(n, func(i int) string { return "a.b = inf\na = inf\n" })
	},
	"yaml keys": func(n int) (string, string) {
		return "yaml", lines(n, func(i int) string { return fmt.Sprintf("key_%d: %d\n", i, i) })
	},
	"yaml list": func(n int) (string, string) {
		return "yaml", lines(n, func(i int) string { return fmt.Sprintf("- { x: %d, y: [1, 2] }\n", i) })
	},
	"yaml one line": func(n int) (string, string) {
		return "yaml", "[" + lines(n, func(i int) string { return fmt.Sprintf("{ x: %d }, ", i) }) + "]"
	},
	"yaml anchors": func(n int) (string, string) {
		return "yaml", lines(n, func(i int) string { return fmt.Sprintf("- &a%d x\n- *a%d\n", i, i) })
	},
	"yaml comments": func(n int) (string, string) {
		return "yaml", lines(n, func(i int) string { return "# nothing to see here\n" }) + "a: 1\n"
	},
	"yaml string": func(n int) (string, string) {
		return "yaml", "a: |\n" + lines(n, func(i int) string { return "  some text\n" })
	},
	"yaml merges": func(n int) (string, string) {
		return "yaml", "b: &b { x: 1, y: 2 }\n" + lines(n, func(i int) string { return fmt.Sprintf("k%d: { <<: *b, z: 3 }\n", i) })
	},
	"json keys": func(n int) (string, string) {
		return "json", "{" + lines(n, func(i int) string { return fmt.Sprintf("\"key_%d\": %d, ", i, i) }) + "\"x\": 1}"
	},
	"json list": func(n int) (string, string) {
		return "json", "[" + lines(n, func(i int) string { return "{\"é\": [1, 2]},\n" }) + "1]"
	},
	"json string": func(n int) (string, string) {
		return "json", "\"" + lines(n, func(i int) string { return `some \u00e9 text ` }) + "\""
	},
	"csv": func(n int) (string, string) {
		return "csv", "a,b,c\n" + lines(n, func(i int) string { return fmt.Sprintf("%d,\"x\"\"y\",é\n", i) })
	},
	"csv wide": func(n int) (string, string) {
		return "csv", strings.TrimSuffix(lines(n, func(i int) string { return fmt.Sprintf("column_%d,", i) }), ",") + "\n"
	},
}

func lines(size int, line func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(line(i))
	}
	return b.String()
}
func read(format, text string) error {
	var err error
	switch format {
	case "toml":
		_, err = TOML([]byte(text))
	case "tree":
		_, _, err = TOMLTree([]byte(text))
	case "yaml":
		_, err = YAML([]byte(text))
	case "json":
		_, err = JSON([]byte(text))
	case "csv":
		_, err = CSV([]byte(text), CSVOptions{Comma: ','})
	}
	return err
}

// TestLinear checks that a document of four times the size takes about four times as long, for all shapes. A quadratic
// reader would take sixteen times as long.
func TestLinear(t *testing.T) {
	thorough.Only(t, "what takes long is no race")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, shape := range shapes {
		took := func(size int) time.Duration {
			format, text := shape(size)
			best := time.Hour
			for range 2 {
				start := thorough.CPU()
				if err := read(format, text); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				best = min(best, thorough.CPU()-start)
			}
			return best
		}
		size, ratio := 64<<10, 100.0
		small, large := time.Hour, time.Hour
		for try := 0; try < 20 && ratio >= 10; try++ { // the best of each: what else the machine does takes room in its caches
			small, large = min(small, took(size)), min(large, took(4*size))
			ratio = float64(large) / float64(small)
		}
		if ratio >= 10 {
			t.Errorf("%s: four times the size takes %.1f times as long", name, ratio)
		}
	}
}

// TestTOMLTables compares where tables may be defined, and their values, with go-toml.
func TestTOMLTables(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	key := func() string {
		k := pick("a", "b", "'c'")
		for r.IntN(2) == 0 {
			k += "." + pick("a", "b", "c")
		}
		return k
	}
	var value func() string
	value = func() string {
		switch r.IntN(9) {
		case 0:
			return "{" + key() + " = " + value() + ", " + key() + " = " + value() + "}"
		case 1:
			return "[" + value() + ", " + value() + "]"
		case 2:
			return pick("{}", "[]", "[{}]")
		case 3:
			return pick("01", "1__0", "+1_0", "0x1f", "0o17", "-0b1", "1.", "1e5", "+1.5_0e-3", "1e999", "9223372036854775808", "-9223372036854775808", "+0", "-00", "+")
		case 4:
			return pick("1979-05-27", "07:32:00", "1979-05-27 07:32:00Z", "1979-13-27", "25:00:00", "07:32", "1979-05-27T07:32:00.123456789+01:00")
		}
		return pick("1", "true", "\"x\"", "''")
	}
	good := 0
	for range 8_000 {
		var b strings.Builder
		for range 1 + r.IntN(5) {
			fmt.Fprintln(&b, pick("["+key()+"]", "[["+key()+"]]", key()+" = "+value(), key()+" = "+value()))
		}
		plain := map[string]any{}
		want := toml.Unmarshal([]byte(b.String()), &plain)
		v, err := TOML([]byte(b.String()))
		if (err == nil) != (want == nil) && !strings.Contains(fmt.Sprint(err), "finite") {
			t.Fatalf("%s\ngot %v, want %v", b.String(), err, want)
		}
		if err != nil || want != nil {
			continue
		}
		good++
		if got := fmt.Sprint(v.Plain()); got != fmt.Sprint(texts(plain)) {
			t.Fatalf("%s\ngot  %s\nwant %v", b.String(), got, texts(plain))
		}
	}
	if good < 800 {
		t.Errorf("only %d documents are right", good)
	}
}

// texts replaces times by strings.
func texts(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k := range x {
			x[k] = texts(x[k])
		}
	case []any:
		for i := range x {
			x[i] = texts(x[i])
		}
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case toml.LocalDate, toml.LocalTime, toml.LocalDateTime:
		return fmt.Sprint(x)
	}
	return v
}
