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

// Limits of names. Windows allows paths of 259 UTF-16 units unless a program asks for more, which other tools of a game
// project do not. 80 are reserved for the project's folder; the rest is the limit for a path in the project.
const (
	maxPath = 259 - 80 // UTF-16 units, from the project folder
	maxName = 255      // bytes; the limit of nearly all file systems
)

// devices are names that Windows reserves for devices, with any extension.
var devices = strings.Fields("con prn aux nul conin$ conout$ com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9")

// unportable returns why Windows does not allow a name, or "".
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

// name checks the parts of a path. A folder is reported with each file in it, so that the list shows how many files are
// affected.
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

// outputs checks the names of built files.
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
