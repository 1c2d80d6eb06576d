package setup

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

// guesses are the guesses of a branch, by file.
type guesses map[string]processor.Guess

// guessed returns the rules that files need by the models that use them, or else by the guesses of their kinds. The globs are as wide as
// possible: a glob covers a folder if all files in it with the same ending need the same.
func (b *branch) guessed(c *union) []Rule {
	all := guesses{}
	for _, f := range b.files {
		all[f] = b.guess(c, f)
	}
	var rules []Rule
	covers := map[string]string{} // by folder, ending and rule
	for _, f := range b.files {
		g := all[f]
		if g.Setting == "" {
			continue
		}
		key := path.Dir(f) + "\n" + endOf(f, g) + "\n" + does(g)
		match, known := covers[key]
		if !known {
			match = b.cover(f, all)
			covers[key] = match
		}
		if match == "" {
			match = processor.QuoteGlob(f)
		}
		rules = append(rules, Rule{match, does(g), g.Why})
	}
	slices.SortFunc(rules, func(x, y Rule) int { return cmp.Or(cmp.Compare(x.Does, y.Does), cmp.Compare(x.Match, y.Match)) })
	return slices.Compact(rules)
}

// guess returns what a file needs: by the models that use it, or else by its kind. A Git LFS pointer counts as an unreadable file.
func (b *branch) guess(c *union, file string) processor.Guess {
	if g, ok := c.guess(file); ok {
		return g
	}
	k, _ := processors.Of(file)
	if k == nil || k.Guess == nil {
		return processor.Guess{}
	}
	info, err := os.Stat(b.abs(file))
	if err != nil {
		return processor.Guess{}
	}
	return k.Guess(file, c.folders[path.Dir(file)], info.Size(), func() []byte {
		data, err := os.ReadFile(b.abs(file))
		if err != nil || lfsPointer(data) {
			return nil
		}
		return data
	})
}

// endOf returns the end of a file's name from the part that the guess is based on.
func endOf(file string, g processor.Guess) string {
	base := path.Base(file)
	if g.Because == "" {
		return base
	}
	return base[max(0, strings.LastIndex(base, g.Because)):]
}

// does returns the TOML of a rule.
func does(g processor.Guess) string {
	if g.Setting == "processor" {
		return "processor = " + quote(g.Value)
	}
	return fmt.Sprintf("settings = { %s = %s }", g.Setting, quote(g.Value))
}

// cover returns the widest glob that matches a file, at least one other, and none that needs something else; "" if there is none.
func (b *branch) cover(file string, all guesses) string {
	g := all[file]
	end := endOf(file, g)
	if end == path.Base(file) {
		return ""
	}
	best := ""
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		n := 0
		for _, f := range b.files {
			if !strings.HasSuffix(path.Base(f), end) || dir != "." && !strings.HasPrefix(f, dir+"/") {
				continue
			}
			if n++; all[f].Setting != g.Setting || all[f].Value != g.Value {
				return best
			}
		}
		if n > 1 {
			best = "**/*" + processor.QuoteGlob(end)
			if dir != "." {
				best = processor.QuoteGlob(dir) + "/" + best
			}
		}
		if dir == "." {
			return best
		}
	}
}
