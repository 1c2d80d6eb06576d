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

// ending is a group of files: the folder, and the part of their names from which the use was guessed, to the end.
type ending struct{ folder, text string }

// guessed returns the rules that files need by the guesses of their kinds. The globs are as wide as possible: a glob
// covers a folder if all files in it with the same ending need the same.
func (b *branch) guessed() []Rule {
	guesses := map[string]processor.Guess{}       // by file
	under := map[ending]map[processor.Guess]int{} // number of files for each guess
	for _, f := range b.files {
		k, _ := processors.Of(f)
		if k == nil || k.Guess == nil {
			continue
		}
		g := b.guess(k, f)
		if g.Because == "" {
			continue
		}
		guesses[f] = g
		for dir := path.Dir(f); ; dir = path.Dir(dir) {
			key := ending{dir, endOf(f, g)}
			if under[key] == nil {
				under[key] = map[processor.Guess]int{}
			}
			under[key][g]++
			if dir == "." {
				break
			}
		}
	}
	var rules []Rule
	for _, f := range b.files {
		if g := guesses[f]; g.Setting != "" {
			rules = append(rules, Rule{cover(f, endOf(f, g), under), does(g), g.Why})
		}
	}
	slices.SortFunc(rules, func(x, y Rule) int { return cmp.Or(cmp.Compare(x.Does, y.Does), cmp.Compare(x.Match, y.Match)) })
	return slices.Compact(rules)
}

// guess returns the guess of the kind. A Git LFS pointer counts as an unreadable file.
func (b *branch) guess(k *processors.Kind, file string) processor.Guess {
	info, err := os.Stat(b.abs(file))
	if err != nil {
		return processor.Guess{}
	}
	return k.Guess(file, info.Size(), func() []byte {
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
	return base[max(0, strings.LastIndex(base, g.Because)):]
}

// does returns the TOML of a rule.
func does(g processor.Guess) string {
	if g.Setting == "processor" {
		return "processor = " + quote(g.Value)
	}
	return fmt.Sprintf("settings = { %s = %s }", g.Setting, quote(g.Value))
}

// cover returns the widest possible glob for a file.
func cover(file, end string, under map[ending]map[processor.Guess]int) string {
	best := ""
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		counts := under[ending{dir, end}]
		if len(counts) > 1 {
			break
		}
		for _, n := range counts {
			if n > 1 {
				best = dir
			}
		}
		if dir == "." {
			break
		}
	}
	switch best {
	case "":
		return processor.QuoteGlob(file)
	case ".":
		return "**/*" + processor.QuoteGlob(end)
	}
	return processor.QuoteGlob(best) + "/**/*" + processor.QuoteGlob(end)
}
