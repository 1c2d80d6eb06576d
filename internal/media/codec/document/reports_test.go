package document

import (
	"strings"
	"testing"
	"time"
)

// TestReports has texts that people reported about readers of YAML, TOML, CSV and JSON, and what becomes of them here: the value, or
// the message. docs/internals/proof.md has the list.
func TestReports(t *testing.T) {
	deep := strings.Repeat("[", 20000)
	laughs := "a: &a [_,_,_,_,_,_,_,_,_,_,_,_,_,_,_]\n"
	for c := 'b'; c <= 'i'; c++ {
		laughs += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ",") + "]\n"
	}
	shared := "base: &b {a: 1, b: 2}\nlist:\n" + strings.Repeat("- <<: *b\n  c: 3\n", 20000)
	for _, c := range []struct{ report, reader, text, want string }{
		{"go-yaml-298", "yaml", "%YAML 1.2\n--- text", `"text"`},
		{"yaml-go-yaml-85", "yaml", "# c\n%YAML 1.2\n---\nmy: \"document\"\n", `{"my":"document"}`},
		{"yamlfmt-215", "yaml", "%YAML:1.0\n---\na: 1\n", "error 1: found unexpected non-alphabetical character"},
		{"go-yaml-665", "yaml", "#\n-\n-\n0", "error 4"},
		{"go-yaml-666", "yaml", "0: [:!00 \xef", "error 1:10: byte 0xef is not UTF-8"},
		{"go-yaml-560", "yaml", "a:\n.\n-", "error 2: could not find expected ':'"},
		{"go-yaml-833", "yaml", "! !00 \xf6", "error 1:7: byte 0xf6 is not UTF-8"},
		{"go-yaml-1050", "yaml", "40y::\r\r<<:\r\r-  - #\r?\r#\r\r#-\r -\r?\r#\r\r#--", "error 1:39: a key is a list or a mapping"},
		{"yaml-go-yaml-378", "yaml", "<<:\n? -", "error 2:3: a key is a list or a mapping"},
		{"goccy-479", "yaml", "0::", `{"0:":null}`},
		{"goccy-478", "yaml", "{{},<<}", "error 1:2: a key is a list or a mapping"},
		{"goccy-439", "yaml", "%YAML 1.2\n---\na: 1\nb: 0_\n", `{"a":1,"b":"0_"}`},
		{"goccy-307", "yaml", "cursor: {\n    # something\n    style: beam,\n}\n", `{"cursor":{"style":"beam"}}`},
		{"goccy-461", "yaml", laughs, "error 1:20: the file has more than 4194304 values"},
		{"go-yaml-969", "yaml", shared, `{"base":{"a":1,"b":2},"list":[{"a":1,"b":2,"c":3},{"a":1,"b":2,"c":3},...`},
		{"go-yaml-515", "yaml", deep, "error 1: exceeded max depth of 10000"},
		{"go-yaml-410", "yaml", "foo: &foo\n  some: foo\nbar: &bar\n  some: bar\nx:\n  <<: [*foo, *bar]\n  y: 1\nz:\n  <<: *foo\n  some: z\n",
			`{"bar":{"some":"bar"},"foo":{"some":"foo"},"x":{"some":"foo","y":1},"z":{"some":"z"}}`},
		{"go-yaml-478", "yaml", "tmp: &T\n  tmp: 123\nfoo: &F\n  x: 1\nbaz:\n  <<: *T\n  y: 2\n  <<: *F\n",
			`{"baz":{"tmp":123,"x":1,"y":2},"foo":{"x":1},"tmp":{"tmp":123}}`},
		{"gomplate-1441", "yaml", "php:\n  memory: -1\n  <<:\n    memory: 1024\n", `{"php":{"memory":-1}}`},
		{"yq-2110", "yaml", "- &c\n  name: circle\n  shape: round\n- name: ellipse\n  !!merge <<: *c\n",
			`[{"name":"circle","shape":"round"},{"name":"ellipse","shape":"round"}]`},
		{"succinctly-328", "yaml", "list:\n  - &m\n    k: v\n  - *m\n", `{"list":[{"k":"v"},{"k":"v"}]}`},
		{"succinctly-406", "yaml", "- k: &a\n    b: 1\n- *a\n", `[{"k":{"b":1}},{"b":1}]`},
		{"goccy-822", "yaml", "key:\n  config: &config\n#\n    val: \"\"\n", `{"key":{"config":{"val":""}}}`},
		{"pyyaml-450", "yaml", "---\nsome_key:\n  - value1\t# comment\n  - value2\n", `{"some_key":["value1","value2"]}`},
		{"YamlDotNet-86", "yaml", "output: |\n  \tline\n  another\n", "error 2:3: found a tab character where an indentation space is expected"},
		{"YamlDotNet-86 indented", "yaml", "output: |2\n  \tline\n  another\n", `{"output":"\tline\nanother\n"}`},
		{"YamlDotNet-288", "yaml", "foo:\n\t\n    #\n    - [ bar ]\n", "error 2:1: found character that cannot start any token"},
		{"js-yaml-80", "yaml", "a:\n\tb:\n\t\tc: x\n", "error 2:1: found character that cannot start any token"},
		{"eemeli-547", "yaml", "abc: |5\n      # six\n     # five\n    # four\n", `{"abc":" # six\n# five\n"}`},
		{"norway", "yaml", "[NO, no, on, y, Y, 0777, 1:30, 1_000, 0b1, 2001-01-01]",
			`["NO","no","on","y","Y",777,"1:30","1_000","0b1","2001-01-01"]`},

		{"go-toml-507", "toml", "0=\n0ame", "error 1:3"},
		{"go-toml-714", "toml", "0.", "error 1:"},
		{"go-toml-732", "toml", "[test]\nsomething =\nfoo = \"bar\"\n", "error 2:"},
		{"go-toml-579", "toml", "[a", "error 1:"},
		{"go-toml-586", "toml", "a={ ", "error 1:"},
		{"go-toml-658", "toml", "e={b=1,b=4}", `error 1:8: key "b" is given again`},
		{"go-toml-662", "toml", "a=[{b=1,b=2}]", `error 1:9: key "b" is given again`},
		{"go-toml-666", "toml", "a={}\na={}", `error 2:1: key "a" is given again`},
		{"go-toml-494", "toml", "foo = 2021-04-08\nbar = 2021-04-08\n", `{"bar":"2021-04-08","foo":"2021-04-08"}`},
		{"go-toml-321", "toml", "out = {block0 = {x = 99, y = 100}, block1 = {p = 999, q = 1000}}",
			`{"out":{"block0":{"x":99,"y":100},"block1":{"p":999,"q":1000}}}`},
		{"go-toml-850", "toml", "foo = {}", `{"foo":{}}`},
		{"uiri-toml-438", "toml", "a={b=2024-01-01 }", `{"a":{"b":"2024-01-01"}}`},
		{"toml-test-173", "toml", "a = 13:37\nb = 1979-05-27T07:32Z\n", `{"a":"13:37:00","b":"1979-05-27T07:32:00Z"}`},

		{"go-21672", "csv", "a,b\nIT\"S 163,1\n", `[{"a":"IT\"S 163","b":1}]`},
		{"csvq-119", "csv;", "a;b\n\"x\";TV 27\" to 31\"\n", `[{"a":"x","b":"TV 27\" to 31\""}]`},
		{"go-23344", "tsv", "a\tb\nv1\tval\"ue\n", `[{"a":"v1","b":"val\"ue"}]`},
		{"go-23344 begin", "tsv", "a\tb\nv1\t\"value\nv2\tx\n", "error 2:4: the quotes around a cell are not closed"},
		{"go-19019", "csv", "a,b\n1,\"x\n2,y\n3,z\n", "error 2:3: the quotes around a cell are not closed"},
		{"go-55069", "csv", "a,b\n\"a\"b,c\n", "error 2:4: text stands after the quotes"},
		{"go-76318", "csv", "a,b,c\nx,\"y\"   ,z\n", "error 2:6: text stands after the quotes"},
		{"go-65661", "csv", "a,b\n\"a \"word\"\",c\n", "error 2:5: text stands after the quotes"},
		{"go-csv-9", "csv", "first,last,user\n\"Rob\",\"Pike\",\nKen,Thompson,ken\n",
			`[{"first":"Rob","last":"Pike","user":null},{"first":"Ken","last":"Thompson","user":"ken"}]`},
		{"go-21201", "csv", "a,b\r\n\"Apple\r\nBananas\",x\r\n", `[{"a":"Apple\nBananas","b":"x"}]`},
		{"go-21811", "csv", "a,b\rOne,1313\rTwo,1314\r", `[{"a":"One","b":1313},{"a":"Two","b":1314}]`},
		{"gocsv-186", "csv", "\ufeff\"a\",\"b\"\n1,2\n", `[{"a":1,"b":2}]`},
		{"macreader-1", "csv", "a,b\r\n\"x\r\ny\",\"p\rq\"\r\n", `[{"a":"x\ny","b":"p\rq"}]`},
	} {
		t.Run(c.report, func(t *testing.T) {
			begin := time.Now()
			v, err := readers()[c.reader]([]byte(c.text))
			got := ""
			if err != nil {
				got = "error " + err.Error()
			} else {
				got = string(AppendJSON(nil, &v))
			}
			want, part := strings.CutSuffix(c.want, "...")
			if !strings.HasPrefix(got, want) || err == nil && !part && got != want {
				t.Errorf("%s %.80q:\n got %.200s\nwant %s", c.reader, c.text, got, c.want)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}
