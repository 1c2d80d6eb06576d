package project

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kiln-pipeline/kiln/processor"
)

func infos() []processor.Info {
	type inner struct {
		Size int `toml:"size" doc:"Size." min:"1"`
	}
	return []processor.Info{
		{Name: "copy", Summary: "Bytes as they are."},
		{Name: "texture", Summary: "Images.", Settings: &struct {
			Mips    bool              `toml:"mips" doc:"Mip chain."`
			MaxSize int               `toml:"max_size" doc:"Largest side." min:"0" max:"16384"`
			Format  string            `toml:"format" doc:"Format." values:"rgba8,bc7,r8"`
			Gamma   float64           `toml:"gamma" doc:"Gamma."`
			Sizes   []int             `toml:"sizes" doc:"Sizes."`
			Tags    map[string]string `toml:"tags" doc:"Tags."`
			Free    map[string]any    `toml:"free" doc:"Free."`
			Font    inner             `toml:"font"`
		}{Mips: true, Format: "rgba8", Gamma: math.Pi, Font: inner{12}}},
		{Name: "atlas", Summary: "Folders of images.", Folder: true, Settings: &struct {
			Padding int `toml:"padding" doc:"Pixels."`
		}{}},
	}
}

// schemas compiles the schema of kiln.toml and that of rules.toml.
func schemas(t *testing.T) (file, rules *jsonschema.Schema) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema(infos())))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(SchemaID, doc); err != nil {
		t.Fatal(err)
	}
	if file, err = c.Compile(SchemaID); err != nil {
		t.Fatal(err)
	}
	if rules, err = c.Compile(SchemaID + "#/$defs/rules-file"); err != nil {
		t.Fatal(err)
	}
	return file, rules
}

// instance is a TOML text as a JSON schema sees it.
func instance(t *testing.T, text string) any {
	t.Helper()
	var v map[string]any
	if err := toml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	x, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

const head = "[project]\nname = \"a\"\n"

func TestSchema(t *testing.T) {
	schema, _ := schemas(t)
	for _, good := range []string{
		strings.Replace(whole, ", deep.er = [1, 2.5]", "", 1), head,
		head + "[platforms.pc.texture]\nmips = false\nsizes = [1, 2]\ngamma = 2\nfont.size = 3\nfree.x = [1, 'a']\ntags.a = 'b'\n",
		head + "[platforms.pc.unheard]\nx = 1\n",
		head + "[[rules]]\nmatch = 'a'\nprocessor = 'unheard'\nsettings = { x = 1 }\n",
		head + "[[rules]]\nmatch = 'a'\nprocessor = 'none'\n",
		head + "[[rules]]\nmatch = 'a'\nprocessor = 'texture'\nplatforms.pc = { processor = 'atlas', settings = { padding = 1 } }\n",
		head + "[[rules]]\nmatch = 'a'\nsettings = { anything = 1 }\n",
		head + "[[rules]]\nmatch = 'a'\nprocessors = ['texture', 'unheard']\nsettings = { mips = true, unheard.x = 1 }\nplatforms.pc.processors = ['texture']\n",
	} {
		if err := schema.Validate(instance(t, good)); err != nil {
			t.Errorf("refused: %v\n%s", err, good)
		}
	}
	for _, bad := range []string{
		"", "[project]\n", head + "colour = 1\n", "x = 1\n" + head,
		head + "roots = []\n", head + "roots = ['/abs']\n", head + "ignore = 'x'\n",
		head + "[platforms.PC]\n", head + "[platforms.pc]\nformat = 'bc7'\n",
		head + "[platforms.pc.texture]\nmip = false\n", head + "[platforms.pc.texture]\nformat = 'bc8'\n",
		head + "[platforms.pc.texture]\nmax_size = 99999\n", head + "[platforms.pc.texture]\nmax_size = 1.5\n",
		head + "[platforms.pc.texture]\nfont.size = 0\n",
		head + "[platforms.pc.texture]\nfont.siz = 1\n", head + "[platforms.pc.texture]\ntags.a = 1\n",
		head + "[[rules]]\nprocessor = 'texture'\n", head + "[[rules]]\nmatch = 'a'\nproccessor = 'texture'\n",
		head + "[[rules]]\nmatch = 'a'\nprocessor = 'texture'\nsettings = { padding = 1 }\n",
		head + "[[rules]]\nmatch = 'a'\nprocessor = 'texture'\nplatforms.pc.settings = { padding = 1 }\n",
		head + "[[rules]]\nmatch = 'a'\nprocessor = 'texture'\nplatforms.pc = { processor = 'atlas', settings = { mips = true } }\n",
		head + "[[rules]]\nmatch = 'a'\nuuid = 'no'\n", head + "[[rules]]\nmatch = 'a'\nprocessors = []\n",
		head + "[[rules]]\nmatch = 'a'\nprocessor = 'copy'\nprocessors = ['texture']\n", head + "[[rules]]\nmatch = 'a'\nprocessors = ['copy', 'copy']\n",
		head + "[[processors]]\nname = 'a'\n", head + "[[processors]]\nname = 'a'\nscript = 'a'\ncommand = ['b']\n",
		head + "[[parcels]]\nname = 'a'\n", head + "[build]\nworkers = 0\n",
		head + "[run]\ncommand = []\n", head + "[run]\ncwd = 'x'\n", head + "[run]\ncommand = ['a']\nenv = { A = 1 }\n",
	} {
		if schema.Validate(instance(t, bad)) == nil {
			t.Errorf("let through:\n%s", bad)
		}
	}
	if !bytes.Equal(Schema(infos()), Schema(infos())) {
		t.Error("two schemas of the same processors differ")
	}
	golden(t, "testdata/kiln.schema.json", string(Schema(infos())))
}

var (
	tomlBlock  = regexp.MustCompile("(?s)```toml\n(.*?)```")
	hasProject = regexp.MustCompile(`(?m)^\[project\]`)
)

// TestDocs parses every example of the page and holds it to the schema.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../../docs/project-file.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := tomlBlock.FindAllSubmatch(data, -1)
	if len(blocks) < 10 {
		t.Fatalf("only %d examples", len(blocks))
	}
	file, rules := schemas(t)
	for _, b := range blocks {
		text := string(b[1])
		schema := file
		if strings.Contains(strings.SplitN(text, "\n", 2)[0], RulesFile) {
			schema = rules
			if r, l := ParseRules(RulesFile, "sprites", b[1], Names{}); l != nil || len(r) == 0 {
				t.Errorf("%s\n%s", messages(l), text)
			}
		} else {
			if !hasProject.MatchString(text) {
				text = head + text
			}
			if _, l := Parse(File, []byte(text), Given{}); l != nil {
				t.Errorf("%s\n%s", messages(l), text)
			}
		}
		if err := schema.Validate(instance(t, text)); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}
