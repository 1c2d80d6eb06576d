package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestTexts: each point of docs/internals/texts.md has a verdict, and what shows it exists: a script of the command line, or a test. The
// counts at the top are those of the rows.
func TestTexts(t *testing.T) {
	data, err := os.ReadFile("../docs/internals/texts.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([a-z0-9]+\.\d+) \| (.+?) \| (\w+) \| (.*?) \| (.*?) \|$`).FindAllStringSubmatch(string(data), -1)
	if len(rows) != 182 {
		t.Fatalf("%d points, not 182", len(rows))
	}
	shown, seen, counts := regexp.MustCompile("`([^`]+)`"), map[string]bool{}, map[string]int{}
	for _, row := range rows {
		id, verdict, by, note := row[1], row[3], shown.FindAllStringSubmatch(row[4], -1), row[5]
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		counts[verdict]++
		switch {
		case verdict == "works" && len(by) == 0:
			t.Errorf("%s works, and nothing shows it", id)
		case verdict != "works" && strings.TrimSpace(note) == "" && verdict != "otherwise":
			t.Errorf("%s does not say what is missing", id)
		}
		for _, name := range by {
			if why := shows(name[1]); why != "" {
				t.Errorf("%s: %s", id, why)
			}
		}
	}
	tally := regexp.MustCompile(`(?m)^\| (works|otherwise|partly|no) \| (\d+) \|`).FindAllStringSubmatch(string(data), -1)
	for _, line := range tally {
		if got := counts[line[1]]; line[2] != strconv.Itoa(got) {
			t.Errorf("%s: %d points, not %s", line[1], got, line[2])
		}
		delete(counts, line[1])
	}
	for verdict := range counts {
		t.Errorf("%q is not a verdict", verdict)
	}
}

// shows says why there is no such script or test; "" if there is.
func shows(name string) string {
	folder, test, isTest := strings.Cut(name, " ")
	if !isTest {
		if _, err := os.Stat(filepath.Join("cli", "testdata", "script", name+".txtar")); err != nil {
			return "there is no script " + name
		}
		return ""
	}
	files, _ := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*_test.go"))
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "func "+test+"(") {
			return ""
		}
	}
	return "package " + folder + " has no test " + test
}
