package move

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

// edit replaces the text of a span.
type edit struct {
	at   settings.Span
	text string
}

// ruleEdits returns the new texts of kiln.toml and of each rules.toml above the old path, by file. Those inside the
// moved folder move with it.
//
// more are further edits, by file; they may be in other files.
func (m *mover) ruleEdits(more map[string][]edit) (map[string][]byte, error) {
	out := map[string][]byte{}
	main := filepath.Join(m.p.Dir, project.File)
	if err := m.fileEdits(out, main, "", m.p.Rules, m.p.Listed, more[main]); err != nil {
		return nil, err
	}
	for _, root := range m.roots {
		for dir := path.Dir(m.from); ; dir = path.Dir(dir) {
			file := filepath.Join(root, filepath.FromSlash(dir), project.RulesFile)
			if text, err := disk.ReadFile(file); err == nil {
				base := strings.TrimPrefix(dir, ".")
				rules, _ := project.ParseRules(file, base, text, m.p.Names)
				var lists []project.Listed
				for i := range rules {
					lists = append(lists, rules[i].Listed...)
				}
				if err := m.fileEdits(out, file, base, rules, lists, more[file]); err != nil {
					return nil, err
				}
			}
			if dir == "." {
				break
			}
		}
	}
	m.others(out, more)
	return out, nil
}

// fileEdits adds the new text of a file with globs relative to base, if one of the globs begins with the old path.
func (m *mover) fileEdits(out map[string][]byte, file, base string, rules []project.Rule, lists []project.Listed, more []edit) error {
	var edits []edit
	for _, r := range rules {
		if r.Declares && r.Match == "" || r.List != nil {
			continue
		}
		if text, ok := m.retarget(base, r.Match); ok {
			edits = append(edits, edit{r.MatchSpan, strconv.Quote(text)})
		} else if _, of := m.below(r.Source()); of && r.Declares {
			return refuse("move the entry of [[assets]] into kiln.toml first", "the asset %q has %q as its source, and %s can name no file elsewhere",
				r.ID, r.Source(), path.Join(base, project.RulesFile))
		}
	}
	for _, g := range lists {
		if text, ok := m.retarget(base, g.Text); ok {
			edits = append(edits, edit{g.Span, strconv.Quote(g.Written(text))})
		}
	}
	switch {
	case len(edits)+len(more) == 0:
		return nil
	case len(edits) > 0 && project.IsGlob(within(base, m.to)):
		return refuse("take another name", "rules name %q, and %q has characters of globs", m.from, m.to)
	}
	text, err := disk.ReadFile(file)
	if err == nil {
		out[file] = splice(text, append(edits, more...))
	}
	return err
}

// retarget returns a glob with the new path in place of the old one, if it begins with the old path and can express the
// new one.
func (m *mover) retarget(base, glob string) (string, bool) {
	rest, ok := m.below(path.Join(base, glob))
	to, in := m.to, true
	if base != "" {
		to, in = strings.CutPrefix(m.to, base+"/")
	}
	if !ok || !in || glob == "./" {
		return "", false
	}
	if strings.HasSuffix(glob, "/") {
		rest += "/"
	}
	return to + rest, true
}

// splice applies edits to a text and changes nothing else. A byte order mark does not count as a column.
func splice(text []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(x, y edit) int {
		if x.at.Line != y.at.Line {
			return x.at.Line - y.at.Line
		}
		return x.at.Column - y.at.Column
	})
	body, bom := bytes.CutPrefix(text, []byte("\uFEFF"))
	lines := bytes.SplitAfter(body, []byte("\n"))
	for _, e := range slices.Backward(edits) {
		line := []rune(string(lines[e.at.Line-1]))
		from := e.at.Column - 1
		lines[e.at.Line-1] = []byte(string(line[:from]) + e.text + string(line[from+e.at.Length:]))
	}
	out := bytes.Join(lines, nil)
	if bom {
		out = append([]byte("\uFEFF"), out...)
	}
	return out
}

// within returns a path relative to base, which contains it.
func within(base, name string) string { return strings.TrimPrefix(strings.TrimPrefix(name, base), "/") }

// pinnable returns an error, before anything is moved, if a rule cannot match only the new name.
func (m *mover) pinnable() error {
	_, base := m.pinFile()
	for _, name := range slices.Sorted(maps.Keys(m.was)) {
		if project.IsGlob(within(base, name)) {
			return refuse("take another name", "the UUID of %q could not be pinned: the name has characters of globs", name)
		}
	}
	return nil
}

// pin writes rules for the assets whose UUID has changed.
func (m *mover) pin(now *view.View) (int, error) {
	file, base := m.pinFile()
	var rules strings.Builder
	n := 0
	for i := range now.Assets {
		as := &now.Assets[i]
		if !m.loses(as.Asset) {
			continue
		}
		n++
		match := within(base, as.Path)
		switch {
		case as.Folder && match == "":
			match = "./"
		case as.Folder:
			match += "/"
		}
		fmt.Fprintf(&rules, "\n[[rules]]\nmatch = %s\nuuid  = %q\n", strconv.Quote(match), m.was[as.Path])
	}
	if n == 0 {
		return 0, nil
	}
	text, err := disk.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return 0, err
	}
	if len(text) == 0 {
		return n, m.replace(file, []byte(strings.TrimPrefix(rules.String(), "\n")))
	}
	if text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return n, m.replace(file, append(text, rules.String()...))
}

// loses reports whether an asset, as it is after the rename, was moved and has another UUID.
func (m *mover) loses(a *asset.Asset) bool {
	uuid, moved := m.was[a.Path]
	return moved && !a.Declared && uuid != a.UUID
}

// wouldPin returns how many rules pin would write. It evaluates the rules as they would be, on the files as they would be called.
func (m *mover) wouldPin(v *view.View) (n int) {
	renamed := func(name string) string {
		if rest, ok := m.below(name); ok {
			return m.to + rest
		}
		return name
	}
	edited := func(base string, rules []project.Rule) []project.Rule {
		rules = slices.Clone(rules)
		for i, r := range rules {
			if text, ok := m.retarget(base, r.Match); ok && r.List == nil {
				rules[i].Match = text
			}
		}
		return rules
	}
	after := *m.p.Project
	after.Rules = edited("", after.Rules)
	files, folders := workspace.SourcePaths(v.Sources())
	var rules []project.Rule
	for _, dir := range folders {
		base := strings.TrimPrefix(dir, ".")
		for _, r := range m.p.Roots {
			file := filepath.Join(r.Dir(m.p.Dir), filepath.FromSlash(dir), project.RulesFile)
			if text, err := disk.ReadFile(file); err == nil {
				list, _ := project.ParseRules(file, renamed(base), text, m.p.Names)
				if renamed(base) == base {
					list = edited(base, list)
				}
				rules = append(rules, list...)
			}
		}
	}
	for i, name := range files {
		files[i] = renamed(name)
	}
	slices.Sort(files)
	set, _ := asset.Build(asset.Input{
		Files: files, Project: &after, Rules: rules, Stages: m.p.Config.Stages,
		Processors: m.p.Builtin, Team: m.p.TeamInfos, Custom: m.p.CustomInfos,
	})
	for i := range set.Assets {
		if m.loses(&set.Assets[i]) {
			n++
		}
	}
	return n
}

// pinFile returns the file for pins. For a folder it is in the moved folder, so that the pins move with it the next
// time. For a file it is the rules.toml of its folder if there is one, else the project file. base is the folder that
// the rules there are relative to.
func (m *mover) pinFile() (file, base string) {
	for _, root := range m.roots {
		at := m.to
		if !m.folder {
			at = path.Dir(m.to)
		}
		file := filepath.Join(root, filepath.FromSlash(at), project.RulesFile)
		if _, err := os.Stat(file); err == nil || m.folder {
			return file, strings.TrimPrefix(at, ".")
		}
	}
	return filepath.Join(m.p.Dir, project.File), ""
}
