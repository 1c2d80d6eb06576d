package command

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// glslc is the example of the documentation.
func glslc() Config {
	return Config{
		Name:       "spirv",
		Command:    []string{"glslc", "{in}", "-o", "{out}", "-MD", "-MF", "{dep}", "-O{level}"},
		Extensions: []string{".vert", ".frag"},
		Output:     ".spv",
		Env:        []string{"GLSLC_FLAGS"},
		Settings:   []Setting{{Name: "level", Default: int64(2), Doc: `0 to 2; "s" is not offered`}},
	}
}

func TestInfo(t *testing.T) {
	c := glslc()
	c.Outputs = map[string]string{"z": ".json", "reflection": ".json"}
	c.Version, c.Summary, c.Memory = 3, "shaders", 1<<30
	c.Command = append(c.Command, "{out:reflection}", "{out:z}")
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	info := p.Info()
	settings := info.Settings
	info.Settings = nil
	want := processor.Info{
		Name: "spirv", Version: 3, Summary: "shaders", Memory: 1 << 30, Extensions: []string{".vert", ".frag"},
		Products: []processor.ProductType{
			{Type: "spirv", Extension: ".spv"},
			{Type: "reflection", Extension: ".json"},
			{Type: "z", Extension: ".json"},
		},
	}
	if d := cmp.Diff(want, info); d != "" {
		t.Error(d)
	}
	f := reflect.TypeOf(settings).Elem().Field(0)
	if f.Tag.Get("toml") != "level" || f.Tag.Get("doc") != `0 to 2; "s" is not offered` || f.Type.Kind() != reflect.Int64 {
		t.Errorf("field %+v", f)
	}
	if again := p.Info().Settings; again != settings {
		t.Error("Info gives other settings the second time")
	}
}

func TestInfoOfLittle(t *testing.T) {
	p := mustNew(t, Config{Name: "x", Command: []string{"bin/x", "{in}", "{out}"}, Extensions: []string{".größe.7z"}})
	info := p.Info()
	if info.Version != 1 || info.Summary != "runs bin/x" || info.Settings != nil || info.Memory != 0 || info.Folder {
		t.Errorf("%+v", info)
	}
}

func TestSettingsDecodeStrictly(t *testing.T) {
	p, err := New(Config{
		Name: "x", Command: []string{"x", "{in}", "{out}"},
		Settings: []Setting{
			{Name: "max_size", Default: 64},
			{Name: "flags", Default: []any{"-a"}},
			{Name: "sizes", Default: []int{1}},
			{Name: "none", Default: []any{}},
			{Name: "ratio", Default: 0.5},
			{Name: "on", Default: true},
			{Name: "text", Default: ""},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	decode := func(doc string) (any, error) {
		v := reflect.New(reflect.TypeOf(p.Info().Settings).Elem())
		v.Elem().Set(reflect.ValueOf(p.Info().Settings).Elem())
		err := toml.NewDecoder(strings.NewReader(doc)).DisallowUnknownFields().Decode(v.Interface())
		return v.Interface(), err
	}
	v, err := decode("max_size = 512\nflags = [\"-b\", \"-c\"]\nratio = 0.25\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"max_size": {"512"}, "flags": {"-b", "-c"}, "sizes": {"1"}, "none": {}, "ratio": {"0.25"}, "on": {"true"}, "text": {""},
	} {
		if d := cmp.Diff(want, settingValue(v, name)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	var strict *toml.StrictMissingError
	if _, err := decode("max_sise = 512"); !errors.As(err, &strict) {
		t.Errorf("unknown setting: error %v", err)
	}
	var decoding *toml.DecodeError
	if _, err := decode(`max_size = "big"`); !errors.As(err, &decoding) {
		t.Errorf("wrong type: error %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		code   diag.Code
		want   string // of the error
		hint   string // part of it
	}{
		"no command":     {func(c *Config) { c.Command = nil }, diag.CommandTemplate, "command: there is no program to run", "glslc"},
		"empty program":  {func(c *Config) { c.Command = []string{"", "{in}", "{out}"} }, diag.CommandTemplate, "command: there is no program to run", "glslc"},
		"unknown":        {func(c *Config) { c.Command[1] = "{inn}" }, diag.CommandTemplate, "command[1]: the placeholder {inn} is not known", `did you mean "{in}"? known are {in}, {out}, {dep}, {name}, {ext}, {platform}, {root}, {needs}, {level}, {assets:PATTERN} and {tool:NAME}`},
		"unknown output": {func(c *Config) { c.Command[1] = "{out:map}" }, diag.CommandTemplate, "command[1]: the placeholder {out:map} is not known", "known are"},
		"tool":           {func(c *Config) { c.Command[1] = "{tool}" }, diag.CommandTemplate, "command[1]: the placeholder {tool} is not known", "{tool:NAME}"},
		"detail":         {func(c *Config) { c.Command[1] = "{level:2}" }, diag.CommandTemplate, "command[1]: the placeholder {level:2} is not known", "{level}"},
		"open":           {func(c *Config) { c.Command[1] = "a{in" }, diag.CommandTemplate, "command[1]: a { without its }", "{{"},
		"close":          {func(c *Config) { c.Command[1] = "in}" }, diag.CommandTemplate, "command[1]: a } without its {", "}}"},
		"empty braces":   {func(c *Config) { c.Command[1] = "{}" }, diag.CommandTemplate, "command[1]: {} is no placeholder", "{{"},
		"empty detail":   {func(c *Config) { c.Command[1] = "{in:}" }, diag.CommandTemplate, "command[1]: {in:} is no placeholder", "{{"},
		"tool program":   {func(c *Config) { c.Command[0] = "{tool:bin/x.sh}" }, diag.CommandTemplate, "command[0]: the program itself cannot hold {tool:bin/x.sh}", "write ./bin/x.sh"},
		"program":        {func(c *Config) { c.Command[0] = "glslc-{platform}" }, diag.CommandTemplate, "command[0]: the program itself cannot hold {platform}", "one program"},
		"zero byte":      {func(c *Config) { c.Command[2] = "\x00" }, diag.CommandTemplate, "command[2]: an argument cannot hold a zero byte", "remove"},
		"list in text": {func(c *Config) { c.Settings[0].Default = []string{"1"} }, diag.CommandTemplate,
			"command[7]: {level} is a list, and there is more in its argument", "argument of its own"},
		"no in":           {func(c *Config) { c.Command[1] = "x" }, diag.CommandTemplate, "command: the command has no {in}", "name it"},
		"no out":          {func(c *Config) { c.Command[3] = "x" }, diag.CommandTemplate, "command: the command has no {out}", "name it"},
		"unused output":   {func(c *Config) { c.Outputs = map[string]string{"map": ".json"} }, diag.CommandTemplate, "command: the command has no {out:map}", "name it"},
		"name":            {func(c *Config) { c.Name = "SPIR V" }, diag.CommandConfig, `name: "SPIR V" is not a name of a processor`, "lower case"},
		"extension":       {func(c *Config) { c.Extensions = []string{".a", "vert"} }, diag.CommandConfig, `extensions[1]: "vert" is not an extension`, `".vert"`},
		"upper extension": {func(c *Config) { c.Extensions = []string{".VERT"} }, diag.CommandConfig, `extensions[0]: ".VERT" is not an extension`, "lower case"},
		"output":          {func(c *Config) { c.Output = "../x" }, diag.CommandConfig, `output: "../x" is not an extension`, `".spv"`},
		"output name": {func(c *Config) { c.Outputs = map[string]string{"a/b": ".x"}; c.Command[1] = "{in}{out:a/b}" }, diag.CommandConfig,
			`outputs.a/b: "a/b" is not a name of a product`, "lower case"},
		"output extension": {func(c *Config) { c.Outputs = map[string]string{"b": ""}; c.Command[1] = "{in}{out:b}" }, diag.CommandConfig,
			`outputs.b: "" is not an extension`, `".json"`},
		"output twice": {func(c *Config) {
			c.Outputs = map[string]string{"b": ".x"}
			c.Output = ".b.x"
			c.Command[1] = "{in}{out:b}"
		}, diag.CommandConfig,
			`outputs.b: it would be the same file as the main product, which ends in ".b.x"`, "another name"},
		"timeout":       {func(c *Config) { c.Timeout = -time.Second }, diag.CommandConfig, `timeout: -1s is not a time to run`, `"90s"`},
		"env":           {func(c *Config) { c.Env = []string{"A=b"} }, diag.CommandConfig, `env[0]: "A=b" is not a name of a variable`, "value"},
		"setting name":  {func(c *Config) { c.Settings[0].Name = "Level"; c.Command[7] = "" }, diag.CommandConfig, `settings.Level: "Level" is not a name of a setting`, "letter"},
		"setting taken": {func(c *Config) { c.Settings[0].Name = "out"; c.Command[7] = "" }, diag.CommandConfig, `settings.out: {out} is a placeholder of Kiln's own`, "another"},
		"setting twice": {func(c *Config) { c.Settings = append(c.Settings, c.Settings[0]) }, diag.CommandConfig, `settings.level: the setting "level" is declared twice`, "remove"},
		"setting type":  {func(c *Config) { c.Settings[0].Default = map[string]int{} }, diag.CommandConfig, `settings.level: the default of "level" has no type that a setting can have`, "boolean"},
		"setting mixed": {func(c *Config) { c.Settings[0].Default = []any{1, "a"} }, diag.CommandConfig, `settings.level: the default of "level" has no type that a setting can have`, "boolean"},
		"setting deep":  {func(c *Config) { c.Settings[0].Default = []any{[]any{}} }, diag.CommandConfig, `settings.level: the default of "level" has no type that a setting can have`, "boolean"},
		"setting unset": {func(c *Config) { c.Settings[0].Default = nil }, diag.CommandConfig, `settings.level: the default of "level" has no type that a setting can have`, "boolean"},
	} {
		t.Run(name, func(t *testing.T) {
			c := glslc()
			test.change(&c)
			p, err := New(c)
			var ce *ConfigError
			if !errors.As(err, &ce) {
				t.Fatalf("processor %v, error %v", p, err)
			}
			if err.Error() != test.want {
				t.Errorf("error %q, want %q", err, test.want)
			}
			if ce.Code != test.code || !strings.Contains(ce.Hint, test.hint) {
				t.Errorf("code %s, hint %q", ce.Code, ce.Hint)
			}
		})
	}
}

func TestNewTellsAll(t *testing.T) {
	c := glslc()
	c.Name, c.Output, c.Command[1] = "", "spv", "{inn}"
	_, err := New(c)
	if n := strings.Count(err.Error(), "\n") + 1; n != 3 {
		t.Errorf("%d errors, want 3: %v", n, err)
	}
}

func TestFingerprint(t *testing.T) {
	base := glslc().Fingerprint()
	for name, change := range map[string]func(*Config){
		"argument": func(c *Config) { c.Command[2] = "-p" },
		"order":    func(c *Config) { c.Command[4], c.Command[5] = c.Command[5], c.Command[4] },
		"output":   func(c *Config) { c.Output = ".bin" },
		"outputs":  func(c *Config) { c.Outputs = map[string]string{"a": ".b"} },
		"env":      func(c *Config) { c.Env = []string{"GLSLC"} },
		"no env":   func(c *Config) { c.Env = nil },
		"reads":    func(c *Config) { c.Reads = Traced },
	} {
		c := glslc()
		change(&c)
		if c.Fingerprint() == base {
			t.Errorf("%s: the fingerprint is the same", name)
		}
	}
	for name, change := range map[string]func(*Config){
		"nothing": func(*Config) {},
		"timeout": func(c *Config) { c.Timeout = time.Hour },
		"doc":     func(c *Config) { c.Settings[0].Doc = "another" },
	} {
		c := glslc()
		change(&c)
		if c.Fingerprint() != base {
			t.Errorf("%s: the fingerprint differs", name)
		}
	}
}

func TestTemplate(t *testing.T) {
	value := func(p part) ([]string, error) {
		switch p.String() {
		case "{flags}":
			return []string{"-a", "-b c"}, nil
		case "{none}":
			return nil, nil
		}
		return []string{"<" + p.String() + ">"}, nil
	}
	for _, test := range []struct {
		in   string
		want []string
	}{
		{"", []string{""}},
		{"plain text; $HOME `x`", []string{"plain text; $HOME `x`"}},
		{"{in}", []string{"<{in}>"}},
		{"-o{out}.tmp", []string{"-o<{out}>.tmp"}},
		{"{a}{b}", []string{"<{a}><{b}>"}},
		{"{out:reflection}", []string{"<{out:reflection}>"}},
		{"{tool:bin/x:y}", []string{"<{tool:bin/x:y}>"}},
		{"{{in}}", []string{"{in}"}},
		{`{{"level": {level}}}`, []string{`{"level": <{level}>}`}},
		{"{{{in}}}", []string{"{<{in}>}"}},
		{"{flags}", []string{"-a", "-b c"}},
		{"{none}", []string{}},
	} {
		a, err := parseArgument(test.in)
		if err != nil {
			t.Errorf("%q: %v", test.in, err)
			continue
		}
		got, err := expand([]argument{a}, value)
		if err != nil {
			t.Errorf("%q: %v", test.in, err)
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%q: %s", test.in, d)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "a{in}b", "{{x}}", "{out:x}", "}", "{", "{{{in}}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseArgument(s)
		if err != nil {
			return
		}
		// Written out again with its braces doubled, a template means the same.
		var b strings.Builder
		for _, p := range a {
			if p.name != "" {
				b.WriteString(p.String())
				continue
			}
			b.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(p.text))
		}
		if b.String() != s {
			t.Errorf("%q became %q", s, b.String())
		}
	})
}
