package setup

import (
	"bytes"
	"fmt"
	"strings"
)

// Text returns the kiln.toml. Each line has a short comment.
func (p *Plan) Text() []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Kiln builds the content of this project with `kiln build`. Every file below the roots is an asset, unless")
	line("# it is ignored or a rule says otherwise. `kiln processors` lists what can be done with which files.")
	line("")
	line("[project]")
	roots := make([]string, len(p.Roots))
	for i := range roots {
		roots[i] = quote(p.Roots[i])
	}
	rows := [][2]string{
		{"name   = " + quote(p.Name), "display name"},
		{"roots  = [" + strings.Join(roots, ", ") + "]", p.rootsWhy()},
		{"output = " + quote(p.Output), "what is built; can be deleted at any time"},
	}
	aligned(&b, rows)
	p.ignoreText(&b)
	line("")
	line("# Platforms: everything is built once for each. What stands below one is for that platform only.")
	platformText(&b)
	if len(p.Rules) > 0 {
		line("")
		line("# Rules: files that match get these settings; a later rule wins, field by field. A rules.toml in any")
		line("# folder adds rules for what is below it.")
	}
	for _, r := range p.Rules {
		key, does, _ := strings.Cut(r.Does, " = ")
		width := max(len("match"), len(key))
		line("")
		line("[[rules]]  # %s", r.Why)
		line("%-*s = %s", width, "match", quote(r.Match))
		line("%-*s = %s", width, key, does)
	}
	if len(p.Atlases) > 0 {
		line("")
		line("# Folders of small images, which could be packed into one texture each: take away the #.")
	}
	for _, a := range p.Atlases {
		line("")
		line("# [[rules]]")
		line("# match     = %s", quote(a))
		line("# processor = \"atlas\"")
	}
	return b.Bytes()
}

// families are the texture formats that suit a platform, by its name. They are written as comments, because only the
// game's developers know whether it can load them.
var families = []struct{ platform, family, why string }{
	{"pc", "bc", "compressed for the graphics cards of PCs and consoles: a quarter of the memory"},
	{"mobile", "astc", "for phones since about 2015; \"etc2\" is for all that have OpenGL ES 3"},
}

// platformText writes the first platform, and an example of a second one.
func platformText(b *bytes.Buffer) {
	for i, f := range families {
		mark := ""
		if i > 0 {
			mark = "# "
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "%s[platforms.%s]\n# textures = { family = %s }  # %s\n", mark, f.platform, quote(f.family), f.why)
	}
	b.WriteString("# texture  = { max_size = 1024 }\n")
}

func (p *Plan) rootsWhy() string {
	switch {
	case len(p.Roots) > 1:
		return "source folders; the same path in a later one wins"
	case p.Roots[0] == ".":
		return "source files are all over this folder"
	}
	return "where the source files are"
}

func (p *Plan) ignoreText(b *bytes.Buffer) {
	if len(p.Ignore) == 0 {
		return
	}
	b.WriteString("ignore = [  # no content; as in .gitignore\n")
	rows := make([][2]string, len(p.Ignore))
	for i, ig := range p.Ignore {
		rows[i] = [2]string{"    " + quote(ig.Pattern) + ",", ig.Why}
	}
	aligned(b, rows)
	b.WriteString("]\n")
}

// aligned writes lines with aligned comments.
func aligned(b *bytes.Buffer, rows [][2]string) {
	width := 0
	for _, r := range rows {
		width = max(width, len(r[0]))
	}
	for _, r := range rows {
		fmt.Fprintf(b, "%-*s  # %s\n", width, r[0], r[1])
	}
}

// quote returns a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
