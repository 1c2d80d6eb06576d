package doctor

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf16"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

// Limits of names. Windows takes paths of 259 UTF-16 units unless a program asks otherwise, and other tools of a game
// project do not: what is left of that after 80 for the folder that the project lies in is what a path in it may have.
const (
	maxPath = 259 - 80 // UTF-16 units, from the project folder
	maxName = 255      // bytes, of nearly all file systems
)

// devices are names that Windows gives to devices, with any extension.
var devices = strings.Fields("con prn aux nul conin$ conout$ com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9")

// unportable says why Windows cannot have a name; "" if it can.
func unportable(name string) string {
	if i := strings.IndexAny(name, `<>:"|?*\`); i >= 0 {
		return fmt.Sprintf("has %q in it", name[i:i+1])
	}
	for _, c := range name {
		if c < ' ' {
			return fmt.Sprintf("has the control character %U in it", c)
		}
	}
	if last := name[len(name)-1]; last == '.' || last == ' ' {
		return map[byte]string{'.': "ends in a dot", ' ': "ends in a space"}[last]
	}
	stem, _, _ := strings.Cut(name, ".")
	for _, d := range devices {
		if strings.EqualFold(strings.TrimRight(stem, " "), d) {
			return "is the name of a device"
		}
	}
	return ""
}

// name looks at the parts of a path. A folder is told of with each file in it: the list stays as long as the work is.
func (r *Report) name(f *sourceFile) {
	for part := range strings.SplitSeq(f.path, "/") {
		if why := unportable(part); why != "" {
			r.add(diag.Warningf(diag.NameNotPortable, diag.Pos{File: f.shown}, "Windows cannot have this file: %q %s", part, why).WithHint("rename it"))
			return
		}
		if len(part) > maxName {
			r.add(diag.Warningf(diag.PathTooLong, diag.Pos{File: f.shown}, "a name of %d bytes: most file systems take %d", len(part), maxName).WithHint("give it a shorter one"))
			return
		}
	}
	r.length(f.shown, f.shown)
}

func (r *Report) length(file, shown string) {
	if n := len(utf16.Encode([]rune(file))); n > maxPath {
		r.add(diag.Warningf(diag.PathTooLong, diag.Pos{File: shown}, "a path of %d characters: with the folder of the project, Windows takes %d", n, 259).
			WithHint("shorten a folder's name, or pin a shorter id with a rule"))
	}
}

// outputs looks at the names of what was built.
func (r *Report) outputs(p *build.Project, v *view.View) {
	for i := range v.Assets {
		for _, j := range v.Assets[i].Jobs {
			if j.Last == nil {
				continue
			}
			for _, pr := range j.Products() {
				if file := path.Join(p.Output, pr.File); len(utf16.Encode([]rune(v.Display(v.Assets[i].Path)))) <= maxPath {
					r.length(file, file)
				}
			}
		}
	}
}
