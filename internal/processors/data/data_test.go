package data

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

var update = flag.Bool("update", false, "write the golden files")

// with changes the default settings.
func with(change func(*Settings)) *Settings {
	s := *Processor{}.Info().Settings.(*Settings)
	change(&s)
	return &s
}

func set(t *testing.T, s *Settings, key, value string) {
	if key == "header" {
		s.Header = value == "true"
		return
	}
	fields := map[string]*string{
		"format": &s.Format, "input": &s.Input, "schema": &s.Schema, "references": &s.References, "delimiter": &s.Delimiter, "csv_types": &s.CSVTypes,
	}
	if fields[key] == nil {
		t.Fatalf("setting %q", key)
	}
	*fields[key] = value
}

// Each file in testdata holds source files and, in its head, the jobs to run: "run ASSET setting=value ...".
// The file "want" is what they do.
func TestJobs(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runArchive(t, file) })
	}
}

func runArchive(t *testing.T, file string) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string][]byte{}
	var want *txtar.File
	for i, f := range ar.Files {
		if f.Name == "want" {
			want = &ar.Files[i]
		} else {
			sources[f.Name] = f.Data
		}
	}
	var got strings.Builder
	p := New()
	for line := range strings.Lines(string(ar.Comment)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "run" {
			continue
		}
		s := with(func(*Settings) {})
		for _, w := range words[2:] {
			key, value, _ := strings.Cut(w, "=")
			set(t, s, key, value)
		}
		fmt.Fprintf(&got, "# %s", strings.TrimPrefix(line, "run "))
		tell(&got, processortest.Run(t, p, processortest.Case{Files: sources, Asset: words[1], Settings: s}))
	}
	if *update {
		if want == nil {
			ar.Files = append(ar.Files, txtar.File{Name: "want"})
			want = &ar.Files[len(ar.Files)-1]
		}
		want.Data = []byte(got.String())
		if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want == nil {
		t.Fatal("no file want; run with -update")
	}
	if diff := cmp.Diff(string(want.Data), got.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// tell writes down what a job did.
func tell(b *strings.Builder, r processortest.Result) {
	for _, p := range processortest.Problems(r.Err) {
		fmt.Fprintf(b, "%s:%d:%d+%d %s %s\n", p.Path, p.Line, p.Column, p.Length, p.Code, p.Text)
		if p.Hint != "" {
			fmt.Fprintf(b, "    %s\n", p.Hint)
		}
	}
	for _, p := range r.Warnings {
		fmt.Fprintf(b, "warning %s %s\n    %s\n", p.Code, p.Text, p.Hint)
	}
	for _, o := range r.Observations {
		fmt.Fprintf(b, "saw %s\n", o)
	}
	for _, p := range r.Products {
		for _, ref := range p.References {
			fmt.Fprintf(b, "needs %s %08x required=%t\n", ref.UUID, ref.SubID, ref.Required)
		}
		text := string(p.Data)
		if p.Extension == ".msgpack" {
			text = fmt.Sprintf("%x", p.Data)
		}
		fmt.Fprintf(b, "made %s %q: %s\n", p.Type, p.Extension, text)
	}
}

// An asset that is named by its UUID is written as one that is named by its id.
func TestUUID(t *testing.T) {
	const uuid = "0f1d7c2e-91a4-4c7e-8b35-3c6f0a9d2e11"
	files := map[string][]byte{
		"a.json":           []byte(`{"$schema": "s.schema.json", "x": "UUID", "y": "sprites/tank.png"}`),
		"b.json":           []byte(`{"$schema": "s.schema.json", "x": "uuid:12"}`),
		"c.json":           []byte(`{"$schema": "s.schema.json", "x": "uuid:00000000-91a4-4c7e-8b35-3c6f0a9d2e11"}`),
		"s.schema.json":    []byte(`{"additionalProperties": {"kiln:asset": true}}`),
		"sprites/tank.png": nil,
	}
	files["a.json"] = []byte(strings.Replace(string(files["a.json"]), "UUID", "uuid:"+strings.ToUpper(uuid), 1))
	run := func(asset, references string) processortest.Result {
		return processortest.Run(t, Processor{}, processortest.Case{
			Files: files, Asset: asset, UUIDs: map[string]string{uuid: "sprites/tank.png"}, Settings: with(func(s *Settings) { s.References = references }),
		})
	}
	for references, want := range map[string]string{
		"path": `{"x":"sprites/tank.png","y":"sprites/tank.png"}`,
		"uuid": `{"x":"<sprites/tank.png>","y":"<sprites/tank.png>"}`,
	} {
		r := run("a.json", references)
		if got := strings.TrimSpace(string(r.Products[""].Data)); r.Err != nil || got != want || len(r.Products[""].References) != 1 {
			t.Errorf("%s: got %s, %v, %v", references, got, r.Products[""].References, r.Err)
		}
		if !slices.Contains(r.Observations, "asset uuid:"+uuid) {
			t.Errorf("saw %q", r.Observations)
		}
	}
	for asset, want := range map[string]string{"b.json": "K1115 asset \"uuid:12\" is not a UUID", "c.json": "K1114 asset \"uuid:00000000-91a4-4c7e-8b35-3c6f0a9d2e11\" does not exist"} {
		p := processortest.Problems(run(asset, "path").Err)
		if len(p) != 1 || !strings.HasPrefix(p[0].Code+" "+p[0].Text, want) || p[0].Hint == "" {
			t.Errorf("%s: got %+v", asset, p)
		}
	}
}

// What was meant is found in a folder of any name.
func TestNearestInOddFolder(t *testing.T) {
	for _, c := range []string{"*", "?", "[", "]", "{", "}", "!", ",", "#", "[!a]", "{a,b}"} {
		folder := "odd" + c + "/"
		r := processortest.Run(t, Processor{}, processortest.Case{Asset: "a.json", Files: map[string][]byte{
			"a.json":            []byte(`{"$schema": "s.schema.json", "x": "` + folder + `tnak.png"}`),
			"s.schema.json":     []byte(`{"additionalProperties": {"kiln:asset": true}}`),
			folder + "tank.png": nil, "oddX/tnak1.png": nil,
		}})
		if p := processortest.Problems(r.Err); len(p) != 1 || !strings.Contains(p[0].Hint, folder+"tank.png") {
			t.Errorf("folder %q: got %+v", folder, p)
		}
	}
}

// Every code that this processor can give stands in a golden, or in TestLarge.
func TestEveryCode(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	var all strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	for _, c := range []diag.Code{
		diag.DataSyntax, diag.DataRelaxedJSON, diag.DataDuplicateKey, diag.DataEncoding, diag.DataLimit, diag.DataNumber, diag.DataUnsupported, diag.DataRagged,
		diag.DataInput, diag.DataSchemaMissing, diag.DataSchemaInvalid, diag.DataSchemaRemote, diag.DataInvalid, diag.DataReferenceMissing, diag.DataReference,
	} {
		if !strings.Contains(all.String(), " "+string(c)+" ") {
			t.Errorf("no golden has %s", c)
		}
	}
}

// A file that is too large is refused before it is read.
func TestLarge(t *testing.T) {
	r := processortest.Run(t, Processor{}, processortest.Case{Files: map[string][]byte{"a.json": make([]byte, document.MaxSize+1)}, Asset: "a.json"})
	p := processortest.Problems(r.Err)
	if len(p) != 1 || p[0].Code != string(diag.DataLimit) || !strings.Contains(p[0].Text, "67108865 bytes") {
		t.Errorf("got %v", r.Err)
	}
}

// Of many mistakes the first 20 are told, and how many there are.
func TestMany(t *testing.T) {
	r := processortest.Run(t, Processor{}, processortest.Case{
		Files: map[string][]byte{
			"a.json":        []byte(`{"$schema": "s.schema.json", "x": [` + strings.TrimSuffix(strings.Repeat("1,\n", 50), ",\n") + `]}`),
			"s.schema.json": []byte(`{"properties": {"x": {"items": {"type": "string"}}}}`),
		},
		Asset: "a.json",
	})
	p := processortest.Problems(r.Err)
	if len(p) != 21 || p[19].Line != 20 || p[20].Text != "and 30 more problems of this kind" {
		t.Errorf("got %d problems: %v", len(p), r.Err)
	}
}

func TestCorpus(t *testing.T) {
	root := os.Getenv("KILN_CORPUS")
	if root == "" {
		t.Skip("KILN_CORPUS names no folder of real game content")
	}
	seen := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		input := ""
		switch strings.ToLower(filepath.Ext(file)) {
		case ".json", ".toml", ".yaml", ".yml", ".csv":
		case ".ldtk", ".ldtkl", ".world", ".gltf":
			input = "json"
		default:
			return nil
		}
		seen++
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		c := processortest.Case{Files: map[string][]byte{filepath.Base(file): data}, Asset: filepath.Base(file)}
		if input != "" {
			c.Settings = with(func(s *Settings) { s.Input = input })
		}
		r := processortest.Run(t, Processor{}, c)
		for _, p := range processortest.Problems(r.Err) {
			if p.Code != string(diag.DataRelaxedJSON) || p.Line == 0 || p.Hint == "" {
				t.Errorf("%s: %v", file, p)
			}
			t.Logf("%s:%d:%d %s", file, p.Line, p.Column, p.Text)
			c.Settings = with(func(s *Settings) { s.Input = "relaxed" })
			r = processortest.Run(t, Processor{}, c)
			if r.Err != nil {
				t.Errorf("%s, relaxed: %v", file, r.Err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Fatalf("no data in %s", root)
	}
	t.Logf("%d files", seen)
}
