package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/ask/setup"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

func newInitCommand(a *app) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a kiln.toml for the files that are here",
		Long: `Look at the files in a folder and write a kiln.toml that builds them. It finds the source root,
what to leave out, data that needs a tolerant reader, images that models use for something else than their names say
or that are named for what they are not, and buffers of models, which their products contain. In a repository of
git, .gitattributes gets a line with which kiln.ids merges. Nothing else is changed, and a kiln.toml that is there
already stays as it is.`,
		GroupID: groupMake,
		Example: "  kiln init\n  kiln init ../game --dry-run",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := a.dir
			if len(args) > 0 && filepath.IsAbs(args[0]) {
				dir = args[0]
			} else if len(args) > 0 {
				dir = filepath.Join(dir, args[0])
			}
			return a.init(cmd.Context(), dir, dryRun)
		},
	}
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "show the file, and write nothing")
	return cmd
}

type initLine struct {
	Type     string         `json:"type"`
	File     string         `json:"file"`
	Written  bool           `json:"written"`
	Roots    []string       `json:"roots"`
	Rules    int            `json:"rules"`
	Ignored  []string       `json:"ignored"`
	Atlases  []string       `json:"atlases"` // folders that may be atlases
	Assets   map[string]int `json:"assets"`  // by processor; none in a dry run
	Outside  []string       `json:"outside"` // content below no root
	Pointers int            `json:"lfs_pointers"`
	Left     []string       `json:"left,omitempty"`          // settings of other engines that Kiln has nothing for
	Copied   map[string]int `json:"copied,omitempty"`        // source formats that no processor reads, by extension
	Git      bool           `json:"gitattributes,omitempty"` // .gitattributes gets a line
	Text     string         `json:"text,omitempty"`          // in a dry run
}

func (a *app) init(ctx context.Context, dir string, dryRun bool) error {
	plan, err := setup.Look(dir)
	if err != nil {
		return err
	}
	plan.Allowed = outside()
	line := initLine{
		Type: "init", File: filepath.ToSlash(filepath.Join(dir, project.File)), Written: !dryRun, Roots: plan.Roots, Rules: len(plan.Rules),
		Ignored: []string{}, Atlases: append([]string{}, plan.Atlases...), Assets: map[string]int{}, Outside: append([]string{}, plan.Outside...),
		Pointers: plan.Pointers, Left: plan.Left, Git: plan.Git,
	}
	for _, ig := range plan.Ignore {
		line.Ignored = append(line.Ignored, ig.Pattern)
	}
	if dryRun {
		if line.Text = string(plan.Text()); a.json {
			return a.emit(line)
		}
		_, err := fmt.Fprint(a.out, line.Text)
		return err
	}
	if err := plan.Write(); err != nil {
		return err
	}
	p, err := build.Open(a.cfg.Project(plan.Dir))
	if err != nil {
		return err
	}
	v, err := p.Look(ctx, nil, nil)
	if err != nil {
		return err
	}
	if err := a.tell(v.Messages); err != nil {
		return err
	}
	for i := range v.Assets {
		line.Assets[v.Assets[i].Processor]++
		if e := processors.SourceFormat(v.Assets[i].Path); e != "" && v.Assets[i].Unasked() {
			if line.Copied == nil {
				line.Copied = map[string]int{}
			}
			line.Copied[e]++
		}
	}
	if a.json {
		return a.emit(line)
	}
	return a.tellInit(plan, &line)
}

// tellInit shows what was found, what to check, and what to do next.
func (a *app) tellInit(plan *setup.Plan, l *initLine) error {
	out := func(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }
	also := ""
	if plan.Git {
		also = ", and in " + setup.Attributes + " how git merges kiln.ids"
	}
	out("wrote %s%s", a.paint(a.out, bold, l.File), also)
	out("")
	roots := strings.Join(l.Roots, ", ")
	if roots == "." {
		roots = "this folder"
	}
	if plan.MakeRoot {
		out("there is no content yet: put source files into %s/, which was made for them", roots)
	} else {
		a.tellAssets(l.Assets, roots)
	}
	notes := []string{}
	if n := len(plan.Rules); n > 0 {
		notes = append(notes, count(n, "rule for files that need one", "rules for files that need one"))
	}
	notes = append(notes, leftOut(plan.Ignore)...)
	if n := len(plan.Atlases); n > 0 {
		notes = append(notes, count(n, "folder of small images that could be an atlas is in the file, commented out", "folders of small images that could be atlases are in the file, commented out"))
	}
	if n := len(plan.Outside); n > 0 {
		notes = append(notes, fmt.Sprintf("%s outside %s and left out: %s", count(n, "content file lies", "content files lie"), roots, some(plan.Outside, 3)))
	}
	if n := len(plan.Left); n > 0 {
		notes = append(notes, fmt.Sprintf("%s for: %s", count(n, "setting of another engine that Kiln has nothing", "settings of other engines that Kiln has nothing"), some(plan.Left, 3)))
	}
	if plan.Pointers > 0 {
		notes = append(notes, count(plan.Pointers, "file is a Git LFS pointer", "files are Git LFS pointers")+": run `git lfs pull` before you build")
	} else if plan.LFS {
		notes = append(notes, "some files are kept in Git LFS; all of them are here")
	}
	for _, e := range slices.Sorted(maps.Keys(l.Copied)) {
		notes = append(notes, count(l.Copied[e],
			e+` is copied as it is: import = "..." processes it, processor = "none" leaves it out`,
			e+` are copied as they are: import = "..." processes them, processor = "none" leaves them out`))
	}
	for _, n := range notes {
		out("  %s %s", a.paint(a.out, dim, "-"), n)
	}
	out("")
	out("next: look through the file, then run")
	cd := ""
	if dir := filepath.Dir(l.File); dir != "." {
		cd = " -C " + shellWord(filepath.ToSlash(dir))
	}
	out("  %s", a.paint(a.out, cyan, "kiln build"+cd))
	return nil
}

// leftOut lists what is ignored, grouped by reason.
func leftOut(list []setup.Ignore) []string {
	var order, notes []string
	by := map[string][]string{}
	for _, ig := range list {
		if ig.Keeps() {
			continue
		}
		if by[ig.Why] == nil {
			order = append(order, ig.Why)
		}
		by[ig.Why] = append(by[ig.Why], ig.Pattern)
	}
	for _, why := range order {
		notes = append(notes, fmt.Sprintf("left out, %s: %s", why, some(by[why], 8)))
	}
	return notes
}

// tellAssets shows how many assets each processor has, the highest number first.
func (a *app) tellAssets(by map[string]int, roots string) {
	names := make([]string, 0, len(by))
	total := 0
	for name, n := range by {
		names, total = append(names, name), total+n
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(by[y], by[x]), cmp.Compare(x, y)) })
	fmt.Fprintf(a.out, "%s in %s:\n", count(total, "asset", "assets"), roots)
	t := a.table()
	for _, name := range names {
		what := ""
		if name == "copy" {
			what = "shipped as they are"
		}
		t.row(right("  "+fmt.Sprint(by[name])), left(name), styled(dim, what))
	}
	t.write()
}

// some returns the first n of a list.
func some(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:n], ", "), len(list)-n)
}

// shellWord quotes a word for a shell if necessary.
func shellWord(s string) string {
	if strings.ContainsAny(s, " '\"$&;()*?[]<>|\\`!") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
