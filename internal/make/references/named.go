package references

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/mention"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/processor"
)

// A reference has the number of a product and not its name. The name stands in a file that the job read, most often in the asset's own: a
// data file, its schema, a level.

// unnamed is a product whose name was not found.
const unnamed = "the product that this refers to"

// Limits of where it is looked for.
const (
	largestFile = 1 << 20
	mostFiles   = 16
	mostNamed   = 100 // of one asset; more are one mistake, made often
)

// named is a product in words, and where the file of the asset that refers to it names it, or at least the other asset.
func (c *Check) named(a *asset.Asset, platform string, to *asset.Asset, sub uint32) (name string, pos diag.Pos) {
	pos.File = c.W.DisplayAsset(a)
	names, found := plan.NamesOf(to), ""
	if sub == 0 {
		found = job.ProductText("")
	}
	for i, path := range append([]string{a.Path}, c.read(a, platform)...) {
		if name := c.wordsOf(path)[sub]; found == "" && name != "" {
			found = job.ProductText(name)
			if i == 0 {
				names = []string{name}
			}
		}
	}
	if at := mention.Find(c.text(a.Path), a.Path, names...); len(at) > 0 {
		pos.Line, pos.Column = at[0].Line, at[0].Column
	}
	return cmp.Or(found, unnamed), pos
}

// read lists files that the jobs of an asset read, besides its own.
func (c *Check) read(a *asset.Asset, platform string) (paths []string) {
	for _, t := range c.TasksOf(a, platform) {
		tr := c.TraceOf(t)
		if tr == nil {
			continue
		}
		for _, o := range tr.Observations {
			if o.Kind == job.SawFile && o.Subject != a.Path && len(paths) < mostFiles && !slices.Contains(paths, o.Subject) {
				paths = append(paths, o.Subject)
			}
		}
	}
	return paths
}

// text of a source file; nil if it cannot be read, or is large. If it is not what this build has seen, the next build checks everything.
func (c *Check) text(path string) []byte {
	i, root, ok := c.W.Table.Find(path)
	if !ok {
		return nil
	}
	text, err := disk.ReadText(c.W.Table.Abs(root, path), largestFile)
	if h := c.W.Table.At(i).Hash; !h.IsZero() && (err != nil || digest.Of(text) != h) && c.W.Table.At(i).Stat.Size <= largestFile {
		c.W.Changed = c.W.Display(path)
		return nil
	}
	if err != nil {
		return nil
	}
	return text
}

// wordsOf are the words of a source file that can be names of products, by the sub ids of these.
func (c *Check) wordsOf(path string) map[uint32]string {
	if words := c.words[path]; words != nil {
		return words
	}
	words := map[uint32]string{}
	other := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
	}
	for word := range strings.FieldsFuncSeq(string(c.text(path)), other) {
		words[processor.SubID(word)] = word
	}
	c.words[path] = words
	return words
}
