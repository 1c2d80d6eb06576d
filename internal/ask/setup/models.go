package setup

import (
	"cmp"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/role"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

// union is what is known of all files in the roots together: a model in one may use images in another.
type union struct {
	used    map[string]role.Used // by asset
	folders map[string][]string  // the files of each folder
}

// union reads the models, and lists the folders.
func (p *Plan) union(t *tree) *union {
	c := &union{map[string]role.Used{}, map[string][]string{}}
	for _, root := range p.Roots {
		b := t.below(root)
		for _, f := range b.files {
			c.folders[path.Dir(f)] = append(c.folders[path.Dir(f)], f)
			if !role.Model(f) {
				continue
			}
			for _, u := range b.usedBy(f) {
				all := c.used[u.File]
				all.Buffer, all.Image = all.Buffer || u.Buffer, all.Image || u.Image
				for i, yes := range u.For {
					all.For[i] = all.For[i] || yes
				}
				c.used[u.File] = all
			}
		}
	}
	return c
}

func (b *branch) usedBy(model string) []role.Used {
	f, size := regular(b.abs(model))
	if f == nil {
		return nil
	}
	defer f.Close()
	return role.UsedBy(model, f, size)
}

// guess returns what a file needs because models use it; ok is false if none does.
func (c *union) guess(file string) (g processor.Guess, ok bool) {
	u, ok := c.used[file]
	if !ok {
		return g, false
	}
	if kind, _ := processors.Of(file); kind == nil && u.Buffer && !u.Image {
		why := "buffers of models, whose products contain them"
		return processor.Guess{Setting: "processor", Value: "none", Because: path.Ext(file), Why: why}, true
	}
	if u.For == [role.Purposes]bool{} || !isImage(file) {
		return g, false
	}
	named := role.Of(file, c.folders[path.Dir(file)])
	g.Because = cmp.Or(named.Because, named.Alone)
	ext := strings.ToLower(path.Ext(file))
	if p, one := u.Purpose(); one && !p.ServedBy(named.Use) && ext != ".dds" && ext != ".ktx2" { // these contain their use
		g.Setting, g.Value, g.Why = "use", p.Use(), "what the materials of models use it for"
	}
	return g, true
}
