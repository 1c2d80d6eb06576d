// Package formats writes messages in the formats that CI systems and editors read: annotations of GitHub, Code Quality
// of GitLab, SARIF and JUnit. Each format is a function from a Run to bytes. The same Run gives the same bytes.
package formats

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/ask/codes"
	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// Run is the result of a command.
type Run struct {
	Version  string       // version of Kiln
	Folder   string       // project folder relative to the root of its repository, with slashes; "" if it is the root
	File     string       // used as the place of messages without one; relative to the project folder
	Messages diag.List    // in order
	Passed   []Case       // jobs that succeeded
	Pages    []codes.Page // pages of the codes
	Seconds  float64
	Summary  string // how many assets were built, failed and so on; may be empty
}

// Case is a job that succeeded.
type Case struct {
	Class, Name string
	Seconds     float64
}

// writers are the formats by name.
var writers = map[string]func(io.Writer, *Run) error{"github": github, "gitlab": gitlab, "sarif": sarif, "junit": junit}

// Names returns the names of the formats.
func Names() []string { return []string{"github", "gitlab", "sarif", "junit"} }

// Write writes a run in a format. format is one of Names.
func Write(w io.Writer, format string, r *Run) error {
	write, ok := writers[format]
	if !ok {
		return fmt.Errorf("there is no format %q", format)
	}
	return write(w, r)
}

// place returns the file of a message, relative to the root of the repository.
func (r *Run) place(m *diag.Message) string {
	file := m.File
	if file == "" {
		file = r.File
	}
	return path.Join(r.Folder, file)
}

// body returns the text of a message with its details.
func body(m *diag.Message) string {
	parts := []string{m.Text}
	if m.Hint != "" {
		parts = append(parts, m.Hint)
	}
	return strings.Join(append(parts, m.Notes...), "\n")
}

// fingerprints are the same for the same messages in later runs, even if lines were inserted before them.
func (r *Run) fingerprints() []string {
	seen := map[string]int{}
	list := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		key := strings.Join([]string{string(m.Code), r.place(m), m.Text}, "\x00")
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", key, seen[key]))
		seen[key]++
		list[i] = hex.EncodeToString(sum[:16])
	}
	return list
}

// github writes workflow commands, one line for each message.
func github(w io.Writer, r *Run) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, m := range r.Messages {
		level := map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning", diag.Note: "notice"}[m.Severity]
		props := []string{"file=" + property.Replace(r.place(m))}
		if m.Pos.Line > 0 && m.File != "" {
			props = append(props, fmt.Sprintf("line=%d", m.Pos.Line))
			if m.Column > 0 {
				props = append(props, fmt.Sprintf("col=%d", m.Column), fmt.Sprintf("endColumn=%d", m.Column+max(1, m.Length)))
			}
		}
		props = append(props, "title="+property.Replace("Kiln "+string(m.Code)))
		if _, err := fmt.Fprintf(w, "::%s %s::%s\n", level, strings.Join(props, ","), data.Replace(body(m))); err != nil {
			return err
		}
	}
	return nil
}

// gitlab writes a Code Quality report: a JSON array.
func gitlab(w io.Writer, r *Run) error {
	type issue struct {
		Description string `json:"description"`
		CheckName   string `json:"check_name"`
		Fingerprint string `json:"fingerprint"`
		Severity    string `json:"severity"`
		Location    struct {
			Path  string `json:"path"`
			Lines struct {
				Begin int `json:"begin"`
			} `json:"lines"`
		} `json:"location"`
	}
	prints := r.fingerprints()
	issues := []issue{}
	for i, m := range r.Messages {
		x := issue{Description: body(m), CheckName: string(m.Code), Fingerprint: prints[i]}
		x.Severity = map[diag.Severity]string{diag.Error: "major", diag.Warning: "minor", diag.Note: "info"}[m.Severity]
		x.Location.Path, x.Location.Lines.Begin = r.place(m), max(1, m.Pos.Line)
		issues = append(issues, x)
	}
	return writeJSON(w, issues)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// The part of SARIF 2.1.0 that is used.
type (
	sarifText struct {
		Text string `json:"text"`
	}
	sarifRule struct {
		ID      string     `json:"id"`
		Short   *sarifText `json:"shortDescription,omitempty"`
		Full    *sarifText `json:"fullDescription,omitempty"`
		Help    *sarifText `json:"help,omitempty"`
		Default struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
	}
	sarifRegion struct {
		StartLine   int        `json:"startLine"`
		StartColumn int        `json:"startColumn,omitempty"`
		EndColumn   int        `json:"endColumn,omitempty"`
		Snippet     *sarifText `json:"snippet,omitempty"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Columns string        `json:"columnKind"`
		Results []sarifResult `json:"results"`
	}
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
)

// sarif writes a SARIF log of one run.
func sarif(w io.Writer, r *Run) error {
	run := sarifRun{Columns: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "Kiln", Version: r.Version, Rules: []sarifRule{}}
	rules := &run.Tool.Driver.Rules
	prints := r.fingerprints()
	for i, m := range r.Messages {
		n := slices.IndexFunc(*rules, func(x sarifRule) bool { return x.ID == string(m.Code) })
		if n < 0 {
			n = len(*rules)
			*rules = append(*rules, r.sarifRule(m))
		}
		x := sarifResult{
			RuleID: string(m.Code), RuleIndex: n, Level: string(m.Severity), Message: sarifText{body(m)},
			Locations: make([]sarifLocation, 1), Fingerprints: map[string]string{"kiln/v1": prints[i]},
		}
		at := &x.Locations[0].Physical
		at.Artifact.URI = (&url.URL{Path: r.place(m)}).EscapedPath()
		if m.File != "" && m.Pos.Line > 0 {
			at.Region = &sarifRegion{StartLine: m.Pos.Line, StartColumn: m.Column}
			if m.Column > 0 {
				at.Region.EndColumn = m.Column + max(1, m.Length)
			}
			if m.Line != "" {
				at.Region.Snippet = &sarifText{m.Line}
			}
		}
		run.Results = append(run.Results, x)
	}
	return writeJSON(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func (r *Run) sarifRule(m *diag.Message) sarifRule {
	rule := sarifRule{ID: string(m.Code)}
	rule.Default.Level = string(m.Severity)
	if page, _ := codes.Find(r.Pages, string(m.Code)); page != nil {
		rule.Short, rule.Full, rule.Help = &sarifText{page.Name}, &sarifText{page.Means}, &sarifText{page.Do}
	}
	return rule
}

// The part of JUnit's XML that is used.
type (
	junitText struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitCase struct {
		Class   string     `xml:"classname,attr"`
		Name    string     `xml:"name,attr"`
		File    string     `xml:"file,attr,omitempty"`
		Line    int        `xml:"line,attr,omitempty"`
		Time    string     `xml:"time,attr"`
		Failure *junitText `xml:"failure,omitempty"`
		Out     string     `xml:"system-out,omitempty"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
)

// junit writes a test suite: a passed test for each job that ran, a failed test for each error. A warning is a passed
// test with output.
func junit(w io.Writer, r *Run) error {
	seconds := func(s float64) string { return fmt.Sprintf("%.3f", s) }
	suite := junitSuite{Name: "kiln", Time: seconds(r.Seconds)}
	for _, c := range r.Passed {
		suite.Cases = append(suite.Cases, junitCase{Class: c.Class, Name: c.Name, Time: seconds(c.Seconds)})
	}
	for _, m := range r.Messages {
		place := r.place(m)
		at := diag.Pos{File: place, Line: m.Pos.Line, Column: m.Column}
		c := junitCase{Class: string(m.Code), Name: fmt.Sprintf("%s: %s", at, m.Text), File: place, Line: m.Pos.Line, Time: seconds(0)}
		if text := m.String(); m.Severity == diag.Error {
			c.Failure = &junitText{m.Text, string(m.Code), text}
			suite.Failures++
		} else {
			c.Out = text
		}
		suite.Cases = append(suite.Cases, c)
	}
	if len(suite.Cases) == 0 { // readers treat an empty suite as an error
		suite.Cases = []junitCase{{Class: "kiln", Name: "nothing to do", Time: seconds(0)}}
	}
	suite.Tests = len(suite.Cases)
	all := junitSuites{Name: "kiln", Tests: suite.Tests, Failures: suite.Failures, Time: suite.Time, Suites: []junitSuite{suite}}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}
