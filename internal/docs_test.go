package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// refused are expressions that users do not see: each has a plainer one, which stands beside it.
var refused = []struct{ pattern, instead string }{
	{`\bmend(s|ed|ing)?\b`, "fix"},
	{`\b(tells?|told)\b`, "show, print, report; reports whether"},
	{`\b(is|are) no more\b`, "is deleted, is removed"},
	{`\b(is|are|was|were) gone\b`, "is deleted, is missing, was removed"},
	{`\bdrop what\b`, "delete"},
	{`\bwhoever\b|\bfor who\b`, "the caller; users"},
	{`\bpeople\b`, "users, or the noun that it is about"},
	{`\bother since\b`, "changed since"},
	{`\bheed(s|ed)?\b`, "respect"},
	{`\blook(s|ed)? into\b|\bhave a look\b|\b(is|are|was|were) looked at\b`, "check, inspect"},
	{`\bfinds none\b`, "finds nothing"},
	{`\banew\b`, "again: rebuilt, restarted"},
	{`\bas before\b`, "unchanged"},
	{`\bsome times\b`, "several times"},
	{`\bat who knows\b`, "in no fixed order"},
	{`\b(is|are) to be\b`, "must be, will be; Kiln then prints the X to run"},
	{`\bthe long way\b`, "the full build"},
	{`\ba mistake in kiln[ ,;:]`, "a bug in Kiln"},
	{`\bis wanted\b`, "is required"},
	{`\bin vain\b`, "without finding it"},
	{`\bso many\b`, "that number of"},
	{`\bcome(s)? (out )?of it\b|\bcame (out )?of it\b|\bbecomes? of\b|\bbecame of\b`, "the result"},
	{`\bwings?\b|\bthe house\b`, "layer, architecture"},
	{`\bpass(es|ed)? over\b`, "skip, ignore"},
	{`\bhand(s|ed|ing)? on\b`, "pass, copy, send"},
	{`\bputs? (\w+ ){1,3}into words\b`, "describe, format, a message"},
	{`\bnot as (it|they) (was|were)\b`, "has changed"},
	{`\bgoes on\b`, "continues"},
	{`\bat hand\b`, "available, in memory, current"},
	{`\b(is|are) other\b|\bother than (it|they)\b`, "has changed, differs"},
	{`\b(close|closes|closed|break|in) (a|the) ring\b`, "cycle"},
	{`\bby way of\b`, "through"},
	{`\bkept in mind\b`, "recorded"},
	{`\bcame to\b`, "the result"},
}

// notA is "is no file" and its like, where "there is no file" is meant to pass.
var notA = regexp.MustCompile(`(?i)(\w+)\s+(?:is|are)\s+no\s+(\w+)`)

var refusals = func() *regexp.Regexp {
	var all []string
	for _, r := range refused {
		all = append(all, r.pattern)
	}
	return regexp.MustCompile("(?i)" + strings.Join(all, "|"))
}()

// quirks are the refused expressions in a text, white space folded.
func quirks(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	found := refusals.FindAllString(text, -1)
	for _, m := range notA.FindAllStringSubmatch(text, -1) {
		if !strings.EqualFold(m[1], "there") && m[2] != "longer" {
			found = append(found, m[0])
		}
	}
	return found
}

// unrevised is how many refused expressions files still have that nobody has rewritten yet; of Go, the
// strings of a layer. It only goes down.
var unrevised = map[string]int{
	"ARCHITECTURE.md": 1, "docs/json.md": 1,
}

// unwrapped is how many lines of more than 140 columns pages still have outside of tables. It only goes down.
var unwrapped = map[string]int{
	"docs/cli.md": 2, "docs/formats/atlas.md": 1, "docs/json.md": 5, "docs/messages.md": 2,
}

// pages are all documents that users read, below the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir("..", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && file != ".." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "build" || e.Name() == "node_modules"):
			return fs.SkipDir
		case e.IsDir() || path.Ext(e.Name()) != ".md":
			return nil
		}
		text, err := os.ReadFile(file)
		rel, _ := filepath.Rel("..", file)
		found[filepath.ToSlash(rel)] = strings.ReplaceAll(string(text), "\r\n", "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// prose is a page without its fenced blocks, as many lines as the page.
func prose(text string) string {
	var out strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced {
			line = "\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)|\bsrc="([^"]+)"|\bhref="([^"]+)"`)
	code     = regexp.MustCompile("`[^`\n]*`")
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
	anchor   = regexp.MustCompile(`<a id="([^"]+)">`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// slug is the anchor that GitHub gives a heading.
func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(linkText.ReplaceAllString(title, "$1")) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

func anchors(text string) map[string]bool {
	found := map[string]bool{}
	plain := prose(text)
	for _, m := range heading.FindAllStringSubmatch(plain, -1) {
		s := slug(m[1])
		for n, name := 1, s; ; n++ {
			if !found[name] {
				found[name] = true
				break
			}
			name = fmt.Sprintf("%s-%d", s, n)
		}
	}
	for _, m := range anchor.FindAllStringSubmatch(plain, -1) {
		found[m[1]] = true
	}
	return found
}

// TestDocLinks: every link of a page leads to a file that is there, and to a heading or an anchor in it.
func TestDocLinks(t *testing.T) {
	all := pages(t)
	checked := 0
	for _, page := range slices.Sorted(maps.Keys(all)) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(prose(all[page]), ""), -1) {
			u, err := url.Parse(m[1] + m[2] + m[3])
			if err != nil || u.Scheme != "" {
				continue
			}
			checked++
			file := page
			if u.Path != "" {
				file = path.Join(path.Dir(page), u.Path)
			}
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(file))); err != nil {
				t.Errorf("%s: %s is not there", page, u)
			} else if text, ok := all[file]; ok && u.Fragment != "" && !anchors(text)[u.Fragment] {
				t.Errorf("%s: %s has no such heading", page, u)
			}
		}
	}
	if checked < 200 {
		t.Errorf("only %d links were found", checked)
	}
}

// TestDocPaths: the front page has a column for each kind of reader, five pages long, and every page of docs can be reached from it.
func TestDocPaths(t *testing.T) {
	all := pages(t)
	const front = "docs/README.md"
	rows := 0
	for line := range strings.Lines(all[front]) {
		if !regexp.MustCompile(`^\| \d`).MatchString(line) {
			continue
		}
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); len(cells) == 5 {
			rows++
			for _, c := range cells[1:] {
				if !link.MatchString(c) {
					t.Errorf("%s: %q leads nowhere", front, strings.TrimSpace(c))
				}
			}
		}
	}
	if rows != 5 {
		t.Errorf("%s has %d rows of paths, want 5", front, rows)
	}
	reached := map[string]bool{front: true}
	for todo := []string{front}; len(todo) > 0; todo = todo[1:] {
		for _, m := range link.FindAllStringSubmatch(prose(all[todo[0]]), -1) {
			if u, err := url.Parse(m[1]); err == nil && u.Scheme == "" && u.Path != "" {
				if to := path.Join(path.Dir(todo[0]), u.Path); all[to] != "" && !reached[to] {
					reached[to] = true
					todo = append(todo, to)
				}
			}
		}
	}
	for page := range all {
		if strings.HasPrefix(page, "docs/") && !reached[page] {
			t.Errorf("no link leads to %s", page)
		}
	}
}

// TestDocWords: users read plain words, in pages, comments of public packages, messages, help texts and the dashboard.
func TestDocWords(t *testing.T) {
	found := map[string][]string{}
	for page, text := range pages(t) {
		found[page] = quirks(code.ReplaceAllString(prose(text), ""))
	}
	for _, f := range writtenByHand(t) {
		if f.test() {
			continue
		}
		room := f.room()
		if documented(room) {
			found[f.rel] = append(found[f.rel], quirks(comments(t, f.text))...)
		}
		layer := "strings of " + strings.Join(strings.Split(path.Dir(f.rel), "/")[:min(2, strings.Count(path.Dir(f.rel), "/")+1)], "/")
		found[layer] = append(found[layer], quirks(texts(f.tree))...)
	}
	templates, _ := filepath.Glob("running/dashboard/pages/*.html")
	for _, file := range templates {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found["internal/"+filepath.ToSlash(file)] = quirks(string(text))
	}
	compareCounts(t, found, unrevised, "unrevised", "say it plainly; the list refused has the words")
}

// documented reports whether users read the comments of a package on documentation sites.
func documented(room string) bool {
	return room == "." || room == "processor" || room == "kilnrt" || room == "kilnrt/live" ||
		strings.HasPrefix(room, "processor/") && !strings.HasSuffix(room, "/example")
}

// comments are the comments of a file.
func comments(t *testing.T, text []byte) string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range tree.Comments {
		b.WriteString(names.ReplaceAllString(c.Text(), "") + ".\n")
	}
	return b.String()
}

// names are the names of Go with which comments begin, or that they list.
var names = regexp.MustCompile(`(?m)^told |\bMended\b`)

// texts are the string literals with a space in them: messages, hints, help.
func texts(tree *ast.File) string {
	var b strings.Builder
	ast.Inspect(tree, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(s, " ") {
				b.WriteString(s + "\n.\n")
			}
		}
		return true
	})
	return b.String()
}

// TestDocLines: prose is wrapped.
func TestDocLines(t *testing.T) {
	found := map[string][]string{}
	for page, text := range pages(t) {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if !strings.HasPrefix(strings.TrimSpace(line), "|") && utf8.RuneCountInString(line) > lineColumns && strings.Contains(line, " ") {
				found[page] = append(found[page], line[:60]+"...")
			}
		}
	}
	compareCounts(t, found, unwrapped, "unwrapped", "wrap it at 120 columns")
}

// compareCounts fails where more was found than the list has, and logs where less was.
func compareCounts(t *testing.T, found map[string][]string, budget map[string]int, list, do string) {
	t.Helper()
	for _, where := range slices.Sorted(maps.Keys(found)) {
		switch n := len(found[where]); {
		case n > budget[where]:
			t.Errorf("%s: %d, the list %s has %d: %s:\n\t%s", where, n, list, budget[where], do, strings.Join(found[where], "\n\t"))
		case n < budget[where]:
			t.Logf("%s: %d, the list %s has %d: lower it", where, n, list, budget[where])
		}
	}
}
