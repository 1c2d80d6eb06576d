package build

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/processor"
)

// TestNamesWrittenOtherwise asks for assets and files by names that can be written in several ways, and changes what they mean: whoever
// asked is built again if, and only if, the name means it.
func TestNamesWrittenOtherwise(t *testing.T) {
	uuid := asset.UUID("d/b.txt")
	folder := asset.UUID("f/")
	tests := []struct{ name, script, means string }{
		{"UUID", "use " + processor.ByUUID(uuid), "d/b.txt"},
		{"UUID in capitals", "use " + capitals(uuid), "d/b.txt"},
		{"UUID in capitals, listed", "list " + capitals(uuid), "d/b.txt"},
		{"UUID in capitals, found", "find " + capitals(uuid), "d/b.txt"},
		{"UUID in capitals, referred to", "ref " + capitals(uuid), "d/b.txt"},
		{"UUID in capitals, read", "try " + capitals(uuid), "d/b.txt"},
		{"UUID in capitals, of a file that is not there", "exists " + capitals(asset.UUID("d/new.txt")), "d/new.txt"},
		{"UUID and some capitals", "use uuid:" + strings.ToUpper(uuid[:9]) + uuid[9:], "d/b.txt"},
		{"the mark in capitals", "find UUID:" + uuid, ""},
		{"path with a slash at its end", "find d/b.txt/", "d/b.txt"},
		{"folder", "find f/", "f/"},
		{"folder without its slash", "find f", "f/"},
		{"folder by UUID in capitals", "find " + capitals(folder), "f/"},
		{"other case", "find D/b.txt", ""},
		{"dot", "find ./d/b.txt", ""},
		{"two slashes", "find d//b.txt", ""},
		{"backslash", `find d\b.txt`, ""},
		{"glob", "glob d/*.txt", "d/b.txt"},
		{"glob with a folder whose name has a character of patterns", `glob e\[1\]/*.txt`, "e[1]/c.txt"},
		{"glob with a dot", "glob ./d/*.txt", ""},
	}
	p := newProject(t, "-- assets/keep.txt --\nkept\n-- assets/d/keep.txt --\nkept\n-- assets/e[1]/keep.txt --\nkept\n-- assets/f/in.bin --\nx\n")
	p.procs = append(p.procs, bundle{})
	p.write("assets/rules.toml", "[[rules]]\nmatch = \"f/\"\nprocessor = \"bundle\"\n")
	script := func(i int) string { return fmt.Sprintf("z%02d.s", i) }
	for i, tt := range tests {
		p.write("assets/"+script(i), tt.script+"\n")
	}
	p.build()
	files := []string{"d/b.txt", "d/new.txt", "e[1]/c.txt"}
	for _, f := range files {
		p.write("assets/"+f, "one")
	}
	b := p.build()
	for i, tt := range tests {
		if ran, want := slices.Contains(strings.Fields(b.ran), script(i)), tt.means != "" && tt.means != "f/"; ran != want {
			t.Errorf("%s: %q ran again: %v", tt.name, tt.script, ran)
		}
		if got, want := strings.HasPrefix(p.read("build/pc/"+script(i)+".txt"), "f/ f "+folder), tt.means == "f/"; got != want {
			t.Errorf("%s: %q gave %q", tt.name, tt.script, p.read("build/pc/"+script(i)+".txt"))
		}
	}
	for _, f := range files {
		p.write("assets/"+f, "two")
	}
	p.build()
	for _, f := range files {
		p.remove("assets/" + f)
	}
	p.build()
}
