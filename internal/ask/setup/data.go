package setup

import (
	"cmp"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/processor"
)

// treatment is what a rule says of data that the processor cannot read as its extension says; "" is nothing.
type treatment string

const (
	asIs      treatment = ""
	relaxed   treatment = `settings = { input = "relaxed" }`
	semicolon treatment = `settings = { delimiter = "semicolon" }`
	tabs      treatment = `settings = { delimiter = "tab" }`
	shipped   treatment = `processor = "copy"`
)

var reasons = map[treatment]string{
	relaxed:   "written for a tolerant reader: comments, trailing commas or text without quotes",
	semicolon: "cells are separated by semicolons",
	tabs:      "cells are separated by tabs",
	shipped:   "cannot be read as its extension says, so it is shipped as it is",
}

// dataRules are the rules that data files need, with globs as wide as possible and no wider: a
// glob covers a folder if all files of that extension below it need the same.
func (b *branch) dataRules() []Rule {
	needs := map[string]treatment{}            // by file
	under := map[[2]string]map[treatment]int{} // by folder and extension: how many files need what
	for _, f := range b.files {
		ext := path.Ext(f)
		if !slices.Contains([]string{".json", ".toml", ".yaml", ".yml", ".csv"}, strings.ToLower(ext)) {
			continue
		}
		needs[f] = treat(b.abs(f), strings.ToLower(ext))
		for dir := path.Dir(f); ; dir = path.Dir(dir) {
			key := [2]string{dir, ext}
			if under[key] == nil {
				under[key] = map[treatment]int{}
			}
			under[key][needs[f]]++
			if dir == "." {
				break
			}
		}
	}
	var rules []Rule
	for _, f := range b.files {
		if n, ok := needs[f]; ok && n != asIs {
			rules = append(rules, Rule{cover(f, under), string(n), reasons[n]})
		}
	}
	slices.SortFunc(rules, func(x, y Rule) int { return cmp.Or(cmp.Compare(x.Does, y.Does), cmp.Compare(x.Match, y.Match)) })
	return slices.Compact(rules)
}

// cover is the widest glob around a file.
func cover(file string, under map[[2]string]map[treatment]int) string {
	ext, best := path.Ext(file), ""
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		counts := under[[2]string{dir, ext}]
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
		return "**/*" + processor.QuoteGlob(ext)
	}
	return processor.QuoteGlob(best) + "/**/*" + processor.QuoteGlob(ext)
}

// treat finds out how a data file can be read. One that is too large is shipped as it is.
func treat(file, ext string) treatment {
	info, err := os.Stat(file)
	if err != nil || info.Size() > document.MaxSize {
		return shipped
	}
	data, err := os.ReadFile(file)
	if err != nil || lfsPointer(data) {
		return asIs // the build says what is wrong
	}
	switch ext {
	case ".json":
		_, err = document.JSON(data)
		if err != nil {
			if _, err := document.RelaxedJSON(data); err == nil {
				return relaxed
			}
		}
	case ".toml":
		_, err = document.TOML(data)
	case ".yaml", ".yml":
		_, err = document.YAML(data)
	case ".csv":
		return treatCSV(data)
	}
	if err != nil {
		return shipped
	}
	return asIs
}

// treatCSV finds out what stands between the cells: what the first line has most of.
func treatCSV(data []byte) treatment {
	first, _, _ := strings.Cut(string(data[:min(len(data), 1<<16)]), "\n")
	best, n := asIs, strings.Count(first, ",")
	comma := ','
	for _, c := range []struct {
		rune
		treatment
	}{{';', semicolon}, {'\t', tabs}} {
		if m := strings.Count(first, string(c.rune)); m > n {
			best, n, comma = c.treatment, m, c.rune
		}
	}
	if _, err := document.CSV(data, document.CSVOptions{Comma: comma}); err != nil {
		return shipped
	}
	return best
}
