package formats

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/ask/codes"
	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

func testRun() *Run {
	return &Run{
		Version: "1.2", Folder: "games/knights", File: "kiln.toml", Seconds: 0.5,
		Pages:  []codes.Page{{Code: "K1101", Name: "not well-formed", Means: "it is not JSON", Do: "correct it"}},
		Passed: []Case{{"pc", "a.png", 0.25}},
		Messages: diag.List{
			{Severity: diag.Error, Code: "K1101", Pos: diag.Pos{File: "assets/a, b: 100%.json", Line: 2, Column: 3}, Length: 4,
				Text: "\"}\" <here>\nis wrong", Line: "{\"ä\": }", Hint: "add it"},
			{Severity: diag.Warning, Code: "K0103", Pos: diag.Pos{File: "assets/ü.txt"}, Text: "the file is empty \x1b[31m"},
			{Severity: diag.Note, Code: "K0222", Text: "no place"},
			{Severity: diag.Warning, Code: "K0103", Pos: diag.Pos{File: "assets/ü.txt"}, Text: "the file is empty \x1b[31m"},
		},
	}
}

func write(t *testing.T, format string, r *Run) []byte {
	t.Helper()
	var a, b bytes.Buffer
	if err := Write(&a, format, r); err != nil {
		t.Fatal(err)
	}
	if err := Write(&b, format, r); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("%s is another the second time: %v", format, err)
	}
	return a.Bytes()
}

func TestGitHub(t *testing.T) {
	want := `::error file=games/knights/assets/a%2C b%3A 100%25.json,line=2,col=3,endColumn=7,title=Kiln K1101::"}" <here>%0Ais wrong%0Aadd it
::warning file=games/knights/assets/ü.txt,title=Kiln K0103::the file is empty ` + "\x1b[31m" + `
::notice file=games/knights/kiln.toml,title=Kiln K0222::no place
`
	got := string(write(t, "github", testRun()))
	if lines := strings.SplitAfter(got, "\n"); strings.Join(lines[:3], "") != want {
		t.Errorf("%s", got)
	}
}

func TestGitLab(t *testing.T) {
	var issues []map[string]any
	if err := json.Unmarshal(write(t, "gitlab", testRun()), &issues); err != nil {
		t.Fatal(err)
	}
	prints := map[any]bool{}
	for _, x := range issues {
		at := x["location"].(map[string]any)
		if x["description"] == "" || x["check_name"] == "" || at["path"] == "" || at["lines"].(map[string]any)["begin"].(float64) < 1 {
			t.Errorf("%v", x)
		}
		if s := x["severity"]; s != "major" && s != "minor" && s != "info" {
			t.Errorf("severity %v", s)
		}
		prints[x["fingerprint"]] = true
	}
	if len(issues) != 4 || len(prints) != 4 {
		t.Errorf("%d issues, %d fingerprints", len(issues), len(prints))
	}
	if got := string(write(t, "gitlab", &Run{})); got != "[]\n" {
		t.Errorf("nothing is %q", got)
	}
}

// TestSARIF checks a log against the required fields of the schema of SARIF 2.1.0, and the types of its fields.
func TestSARIF(t *testing.T) {
	type message struct{ Text *string }
	var log struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name, Version string
					Rules         []struct {
						ID                   string
						ShortDescription     *message
						FullDescription      *message
						Help                 *message
						DefaultConfiguration struct{ Level string }
					}
				}
			}
			ColumnKind string
			Results    []struct {
				RuleID              string
				RuleIndex           int
				Level               string
				Message             message
				PartialFingerprints map[string]string
				Locations           []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           *struct {
							StartLine, StartColumn, EndColumn int
							Snippet                           *message
						}
					}
				}
			}
		}
	}
	decodeStrictly(t, write(t, "sarif", testRun()), &log)
	if log.Version != "2.1.0" || !strings.HasSuffix(log.Schema, "sarif-2.1.0.json") || len(log.Runs) != 1 {
		t.Fatalf("%+v", log)
	}
	run := &log.Runs[0]
	if run.Tool.Driver.Name != "Kiln" || run.ColumnKind != "unicodeCodePoints" || len(run.Results) != 4 || len(run.Tool.Driver.Rules) != 3 {
		t.Fatalf("%+v", run)
	}
	if r := run.Tool.Driver.Rules[0]; *r.ShortDescription.Text != "not well-formed" || *r.Help.Text != "correct it" {
		t.Errorf("%+v", r)
	}
	for _, r := range run.Results {
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || r.Message.Text == nil ||
			len(r.Locations) != 1 || r.PartialFingerprints["kiln/v1"] == "" {
			t.Errorf("%+v", r)
		}
		if !slices.Contains([]string{"error", "warning", "note"}, r.Level) {
			t.Errorf("level %q", r.Level)
		}
		at := r.Locations[0].PhysicalLocation
		if u, err := url.Parse(at.ArtifactLocation.URI); err != nil || u.IsAbs() || strings.ContainsAny(at.ArtifactLocation.URI, " %\n") &&
			!strings.Contains(at.ArtifactLocation.URI, "%") {
			t.Errorf("%q: %v", at.ArtifactLocation.URI, err)
		}
		if g := at.Region; g != nil && (g.StartLine < 1 || g.EndColumn <= g.StartColumn) {
			t.Errorf("%+v", g)
		}
	}
	if u := run.Results[0].Locations[0].PhysicalLocation.ArtifactLocation.URI; u != "games/knights/assets/a,%20b:%20100%25.json" {
		t.Errorf("%q", u)
	}
}

// decodeStrictly fails for unknown fields.
func decodeStrictly(t *testing.T, text []byte, v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatal(err)
	}
}

func TestJUnit(t *testing.T) {
	text := write(t, "junit", testRun())
	var all struct {
		XMLName  xml.Name `xml:"testsuites"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Suites   []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Errors   *int   `xml:"errors,attr"`
			Skipped  *int   `xml:"skipped,attr"`
			Time     string `xml:"time,attr"`
			Cases    []struct {
				Class   string `xml:"classname,attr"`
				Name    string `xml:"name,attr"`
				Time    string `xml:"time,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Type    string `xml:"type,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
				Out string `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &all); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	s := all.Suites[0]
	if all.Tests != 5 || all.Failures != 1 || s.Tests != 5 || s.Failures != 1 ||
		len(s.Cases) != 5 || s.Errors == nil || s.Skipped == nil || s.Time != "0.500" {
		t.Errorf("%s", text)
	}
	if c := s.Cases[1]; c.Failure == nil || c.Failure.Type != "K1101" ||
		!strings.Contains(c.Failure.Message, "<here>") || !strings.Contains(c.Failure.Text, "add it") {
		t.Errorf("%+v", c)
	}
	if c := s.Cases[2]; c.Failure != nil || !strings.Contains(c.Out, "the file is empty") {
		t.Errorf("%+v", c)
	}
	if empty := write(t, "junit", &Run{}); !bytes.Contains(empty, []byte("<testcase")) {
		t.Errorf("%s", empty)
	}
	if Write(io.Discard, "tap", &Run{}) == nil {
		t.Error("a format that does not exist was written")
	}
}

// TestSummary: errors come first, at most fifty messages, and nothing in a text is markup.
func TestSummary(t *testing.T) {
	r := &Run{Summary: "3 assets", File: "kiln.toml"}
	for i := range 60 {
		r.Messages = append(r.Messages, diag.Warningf("K0008", diag.Pos{File: fmt.Sprintf("w%d.png", i), Line: i}, "warning"))
	}
	r.Messages = append(r.Messages, diag.Errorf("K0001", diag.Pos{}, "a|b <i> `c`\n*d* [e](f)").WithHint("do _this_"))
	var b bytes.Buffer
	if err := Summary(&b, r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	want := []string{
		"### Kiln: 1 error, 60 warnings", "", "3 assets", "", "| | where | what | what to do |", "|---|---|---|---|",
		`| error K0001 | kiln.toml | a\|b &lt;i&gt; &#96;c&#96; \*d\* \[e](f) | do \_this\_ |`,
		"| warning K0008 | w0.png | warning |  |", "| warning K0008 | w1.png:1 | warning |  |",
	}
	if !slices.Equal(lines[:len(want)], want) {
		t.Errorf("%q", lines[:len(want)])
	}
	if n := strings.Count(b.String(), "\n| warning"); n != 49 || !strings.Contains(b.String(), "\nand 11 more messages, which the log has\n") {
		t.Errorf("%d warnings", n)
	}
}
