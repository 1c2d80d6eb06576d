package command

import (
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// maxReported is how many lines with a position become problems, and maxContext how many following
// lines are shown with one: compilers print the source and a caret.
const (
	maxReported = 20
	maxContext  = 6
)

// The forms of lines with a position:
//
//	a.vert:3:14: error: text      gcc, clang, and most others; the column may be missing
//	a.vert(3,14): error X3004: text    cl, fxc, dxc; the column may be missing or a range
//	ERROR: a.vert:3: text         glslang
var (
	gccLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(.+?):([0-9]{1,9})(?::([0-9]{1,9}))?: *(fatal error|error|warning)\b *(.*)$`)
	})
	msvcLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(.+?)\(([0-9]{1,9})(?:,([0-9]{1,9}))?(?:-[0-9,]+)?\) ?: *(fatal error|error|warning)\b *(.*)$`)
	})
	glslangLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(ERROR|WARNING): (.+?):([0-9]{1,9})(?::([0-9]{1,9}))?: *(.*)$`)
	})
)

// report is a line with a position.
type report struct {
	path         string // as printed
	line, column int
	warning      bool
	text         string
}

func parseLine(s string) (report, bool) {
	if m := glslangLine().FindStringSubmatch(s); m != nil {
		return report{m[2], number(m[3]), number(m[4]), m[1] == "WARNING", m[5]}, true
	}
	m := gccLine().FindStringSubmatch(s)
	if m == nil {
		m = msvcLine().FindStringSubmatch(s)
	}
	if m == nil {
		return report{}, false
	}
	return report{m[1], number(m[2]), number(m[3]), m[4] == "warning", strings.TrimSpace(strings.TrimPrefix(m[5], ":"))}, true
}

// number is the value of up to nine digits; 0 if there are none.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// diagnosis is a program's output in parts.
type diagnosis struct {
	errors, warnings []processor.Problem // with positions in files of the view
	rest             string              // all other lines
}

// diagnose finds the problems in a program's output. A file of the view is named by its path below
// the source roots; lines about other files stay text.
func diagnose(output string, v *view) diagnosis {
	var d diagnosis
	var rest []string
	var last *processor.Problem
	context := 0
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, " \n")
		r, ok := parseLine(line)
		source := ""
		if ok {
			source, ok = v.relative(r.path)
		}
		switch {
		case ok && len(d.errors)+len(d.warnings) < maxReported:
			list := &d.errors
			if r.warning {
				list = &d.warnings
			}
			*list = append(*list, processor.Problem{
				Code: string(diag.CommandReported), Path: source, Line: r.line, Column: r.column, Text: r.text,
			})
			last, context = &(*list)[len(*list)-1], 0
		case last != nil && context < maxContext && !ok:
			last.Text += "\n    " + line
			context++
		default:
			last = nil
			rest = append(rest, line)
		}
	}
	d.rest = strings.TrimSpace(strings.Join(rest, "\n"))
	return d
}

// withoutView replaces paths of the view by those of the sources, because the folder has another name in each run.
func withoutView(output string, v *view) string {
	for _, dir := range []string{v.path(viewFolder), v.dir, v.scratch} {
		output = strings.ReplaceAll(output, dir+string(filepath.Separator), "")
		output = strings.ReplaceAll(output, filepath.ToSlash(dir)+"/", "")
	}
	return output
}

// shown is what a program printed, with paths of the view as those of sources, and paths in the project relative to it: messages are the
// same in every checkout.
func (x *execution) shown(output string) string {
	output = withoutView(output, x.v)
	for name, file := range x.tools {
		name, file = filepath.ToSlash(name), filepath.ToSlash(file)
		if project, ok := strings.CutSuffix(file, "/"+path.Clean(name)); ok && strings.Contains(name, "/") {
			output = strings.NewReplacer(project+"/", "", filepath.FromSlash(project+"/"), "").Replace(output)
		}
	}
	return output
}

// line is the command line, with programs as the project file calls them.
func (x *execution) line(cmd *exec.Cmd) string {
	line := commandLine(cmd.Args)
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(x.tools))) { // tools/pack.py before tools/pack
		line = strings.ReplaceAll(line, x.tools[name], name)
	}
	return line
}

// commandLine is a command line for people to read, and to paste with few changes.
func commandLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n\"'`$&|;<>()*?[]#~!\\{}") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		quoted[i] = a
	}
	return strings.Join(quoted, " ")
}
