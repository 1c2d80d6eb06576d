package schema_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/schema"
)

// suite is the variable that names a clone of json-schema-org/JSON-Schema-Test-Suite, the official tests.
const suite = "KILN_JSON_SCHEMA_SUITE"

// notOurs are tests where Kiln differs on purpose, by file, or by file and the group's description.
var notOurs = map[string]string{
	"refRemote.json: base URI change":                              "a relative reference means a neighbour of its file, whatever the $id says",
	"refRemote.json: base URI change - change folder":              "so here",
	"refRemote.json: base URI change - change folder in subschema": "and here",
	"vocabulary.json":                "metaschemas of others are refused",
	"optional/format-assertion.json": "so here",
	"format.json":                    "formats are asserted",
	"optional/content.json":          "contents in texts are not asserted",
	"optional/ecmascript-regex.json": "patterns are RE2",
}

// TestSuite runs the official tests of both drafts.
func TestSuite(t *testing.T) {
	root := os.Getenv(suite)
	if root == "" {
		t.Skip(suite + " does not name a clone of json-schema-org/JSON-Schema-Test-Suite")
	}
	for _, draft := range drafts {
		name := map[int]string{7: "draft7", 2020: "draft2020-12"}[draft]
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(root, "tests", name)
			all, _ := filepath.Glob(filepath.Join(dir, "*.json"))
			more, _ := filepath.Glob(filepath.Join(dir, "optional", "*.json"))
			if len(all) < 30 {
				t.Fatalf("%s has %d files", dir, len(all))
			}
			for _, file := range append(all, more...) {
				rel, _ := filepath.Rel(dir, file)
				t.Run(strings.TrimSuffix(filepath.ToSlash(rel), ".json"), func(t *testing.T) { suiteFile(t, root, file, filepath.ToSlash(rel), draft) })
			}
		})
	}
}

// suiteGroup is one schema of a test file, with its tests.
type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func suiteFile(t *testing.T, root, file, rel string, draft int) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []suiteGroup
	if err := json.Unmarshal(data, &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if why := notOurs[rel] + notOurs[rel+": "+g.Description]; why != "" {
			continue
		}
		s, err := suiteCompile(root, g.Schema, draft)
		if beyond(err) {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", g.Description, err, g.Schema)
			continue
		}
		for _, c := range g.Tests {
			v, err := document.JSON(c.Data)
			if beyond(err) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Validate(&v); (err == nil) != c.Valid {
				t.Errorf("%s: %s: valid should be %v: %v\nschema %s\ndata %s", g.Description, c.Description, c.Valid, err, g.Schema, c.Data)
			}
		}
	}
}

// beyond reports whether the error is about a number that Kiln's documents refuse: an integer of more than 64 bits.
func beyond(err error) bool {
	var e *document.Error
	return errors.As(err, &e) && e.Fault == document.Number
}

// suiteCompile compiles a schema of the suite. The suite's other files have a URL of their own.
func suiteCompile(root string, text []byte, draft int) (*schema.Schema, error) {
	return schema.Compile(schema.Loader{
		Path: func(from schema.Place, ref string) (string, error) {
			if rest, ok := strings.CutPrefix(ref, "http://localhost:1234/"); ok {
				return rest, nil
			}
			if strings.Contains(ref, ":") {
				return "", errors.New("it is remote")
			}
			return filepath.ToSlash(filepath.Join(filepath.Dir(from.File), ref)), nil
		},
		Read: func(from schema.Place, path string) (document.Value, error) {
			if path != "main.json" {
				data, err := os.ReadFile(filepath.Join(root, "remotes", path))
				if err != nil {
					return document.Value{}, err
				}
				text = data
			}
			v, err := document.JSON(text)
			if o, ok := v.V.(document.Object); ok && o.Get("$schema") == nil && draft == 7 {
				v.V = append(o, document.Member{Key: "$schema", Value: document.Value{V: draftURLs[draft]}})
			}
			return v, err
		},
	}, schema.Place{}, "main.json", "")
}
