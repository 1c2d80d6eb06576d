package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/make/explain"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
)

// depsFlags are the flags of deps and rdeps.
type depsFlags struct {
	kinds []string
	all   bool
	dot   bool
}

func (f *depsFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVar(&f.kinds, "kind", nil,
		"only `KIND`: source (files it reads), job (products it is made of), product (products the game needs with it), tool (programs and scripts)")
	fl.BoolVar(&f.all, "all", false, "also what these need, and so on")
	fl.BoolVar(&f.dot, "dot", false, "write a graph for Graphviz")
	cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(edgeKinds, cobra.ShellCompDirectiveNoFileComp))
}

var edgeKinds = []string{string(contentdb.SourceEdge), string(contentdb.JobEdge), string(contentdb.ProductEdge), string(contentdb.ToolEdge)}

func (f *depsFlags) parse() ([]contentdb.EdgeKind, error) {
	var kinds []contentdb.EdgeKind
	for _, k := range f.kinds {
		if !slices.Contains(edgeKinds, k) {
			hint := "kinds are source, job, product and tool"
			if near := diag.DidYouMean(k, edgeKinds); near != "" {
				hint = near
			}
			return nil, wrongUsage(hint, "there is no kind of dependency %q", k)
		}
		kinds = append(kinds, contentdb.EdgeKind(k))
	}
	return kinds, nil
}

func newDepsCommand(a *app) *cobra.Command {
	var f depsFlags
	cmd := &cobra.Command{
		Use:   "deps ASSET",
		Short: "Show what an asset needs",
		Long: `Show what an asset needs, as the last finished build found it: source files it read, looked for or listed;
other assets it is made of (job); other assets that the game needs with it (product); programs that were run
for it, and the scripts, modules and Go files of its processors (tool).`,
		GroupID:           groupLook,
		Example:           "  kiln deps models/knight.gltf\n  kiln deps --all --kind product levels/intro.json\n  kiln deps --all --dot levels/intro.json | dot -Tsvg > intro.svg",
		Args:              exactly("ASSET"),
		ValidArgsFunction: a.assetIDs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.dependencies(cmd.Context(), args[0], f, forward)
		},
	}
	f.add(cmd)
	return cmd
}

// direction in which dependencies are followed.
type direction struct {
	ask   func(*contentdb.Reader, context.Context, string, []contentdb.EdgeKind, bool) ([]contentdb.Edge, error)
	from  func(contentdb.Edge) string // the end that is nearer to the requested asset
	to    func(contentdb.Edge) string
	empty string // with the name, and what was asked for
}

var forward = direction{
	ask:   (*contentdb.Reader).Deps,
	from:  func(e contentdb.Edge) string { return e.From },
	to:    func(e contentdb.Edge) string { return e.To },
	empty: "the last build found nothing that %q needs%s",
}

func (a *app) dependencies(ctx context.Context, name string, f depsFlags, d direction) error {
	kinds, err := f.parse()
	if err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	db, err := openDatabase(p)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := p.CheckPlatforms(a.platforms); err != nil {
		return err
	}
	db.Platforms = a.platforms
	name = p.InDatabase(a.namedFile(p, name))
	db.Code = p.OwnCode()
	for _, processor := range p.ProcessorsOf(name) { // of a Go package the folder may be all that is listed
		if made := [2]string{processor, name}; !slices.Contains(db.Code, made) {
			db.Code = append(db.Code, made)
		}
	}
	edges, err := d.ask(db, ctx, name, kinds, f.all)
	if err != nil {
		return err
	}
	hidden := map[string]bool{}
	if len(kinds) == 0 {
		edges = slices.DeleteFunc(edges, func(e contentdb.Edge) bool {
			hide := e.To != name && ofSystem(e)
			if hide {
				hidden[e.To] = true
			}
			return hide
		})
	}
	byHand := a.handOf(ctx, p, edges)
	switch {
	case a.json:
		for _, e := range edges {
			if err := a.emit(dependencyLine{"dependency", e, byHand(e)}); err != nil {
				return err
			}
		}
		return nil
	case f.dot:
		_, err := fmt.Fprint(a.out, dotGraph(name, edges))
		return err
	}
	t := newTree(a, edges, d)
	t.byHand = byHand
	tops := t.tops(name)
	for _, top := range tops {
		fmt.Fprintln(a.out, a.paint(a.out, bold, oneLine(top)))
		t.write(top, "")
	}
	if len(hidden) > 0 {
		fmt.Fprintln(a.out, a.paint(a.out, dim, hiddenText(hidden)))
	}
	if len(edges) == 0 && !a.quiet {
		fmt.Fprintln(a.errs, a.paint(a.errs, dim, fmt.Sprintf(d.empty, name, a.askedFor(f))))
	}
	return nil
}

// askedFor says which dependencies were asked for, if not all.
func (a *app) askedFor(f depsFlags) (of string) {
	if len(a.platforms) > 0 {
		of = " on " + strings.Join(a.platforms, ", ")
	}
	if len(f.kinds) > 0 {
		of += " by --kind " + strings.Join(f.kinds, ",")
	}
	return of
}

// ofSystem reports whether a dependency is on a file of the system that a program loads, such as /lib/libc.so.6, or on one in Kiln's own
// folder, in which it only looked: there are many.
func ofSystem(e contentdb.Edge) bool {
	own := strings.HasPrefix(e.To, project.StateFolder+"/")
	return e.Kind == contentdb.ToolEdge && (own || strings.HasPrefix(e.To, "/") || filepath.IsAbs(e.To))
}

// hiddenText says how many files of the system are not listed, and in which folders most of them are.
func hiddenText(files map[string]bool) string {
	const most = 4
	in := map[string]int{}
	for f := range files {
		parts := strings.SplitN(filepath.ToSlash(f), "/", 4) // /usr/lib of /usr/lib/x86_64/libc.so.6
		in[cmp.Or(strings.Join(parts[:min(len(parts)-1, 3)], "/"), "/")]++
	}
	folders := slices.SortedFunc(maps.Keys(in), func(x, y string) int { return cmp.Or(cmp.Compare(in[y], in[x]), cmp.Compare(x, y)) })
	var places []string
	left := len(files)
	for _, f := range folders[:min(len(folders), most)] {
		places = append(places, fmt.Sprintf("%d in %s", in[f], oneLine(f)))
		left -= in[f]
	}
	if left > 0 {
		places = append(places, fmt.Sprintf("%d elsewhere", left))
	}
	many := count(len(files), "file", "files")
	return "and " + many + " of the system that programs looked at: " + strings.Join(places, ", ") + "; --kind tool lists them"
}

type dependencyLine struct {
	Type string `json:"type"`
	contentdb.Edge
	ByHand string `json:"by_hand,omitempty"` // key and place of the dependency
}

// handOf returns a function that finds the place of a dependency by hand for an edge, in the current project.
func (a *app) handOf(ctx context.Context, p *build.Project, edges []contentdb.Edge) func(contentdb.Edge) string {
	none := func(contentdb.Edge) string { return "" }
	if len(edges) == 0 {
		return none
	}
	v, err := a.look(ctx, p, nil, nil)
	if err != nil {
		return none // a build reports what is wrong with it
	}
	return func(e contentdb.Edge) string {
		find := explain.Input
		if e.Kind == contentdb.JobEdge {
			find = explain.Need
		}
		from := v.Table().Find(e.From)
		if from == nil || e.Kind == contentdb.ProductEdge || e.Kind == contentdb.ToolEdge {
			return ""
		}
		for i := range from.Resolved {
			on := &from.Resolved[i]
			if at := find(on, e.To); at != "" {
				return at
			}
			if at := explain.IgnoredFile(on, e.To); at != "" && e.Kind == contentdb.SourceEdge {
				return at
			}
		}
		return ""
	}
}

// tree shows edges as an indented list.
type tree struct {
	a     *app
	d     direction
	kids  map[string][]branch
	shown map[string]bool

	byHand func(contentdb.Edge) string
}

// branch is all edges from one thing to another.
type branch struct {
	to    string
	edges []contentdb.Edge
}

func newTree(a *app, edges []contentdb.Edge, d direction) *tree {
	t := &tree{a: a, d: d, kids: map[string][]branch{}, shown: map[string]bool{}}
	rank := func(e contentdb.Edge) int { return slices.Index(edgeKinds, string(e.Kind)) }
	edges = slices.Clone(edges)
	slices.SortStableFunc(edges, func(x, y contentdb.Edge) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(d.to(x), d.to(y)))
	})
	for _, e := range edges {
		from, to := d.from(e), d.to(e)
		i := slices.IndexFunc(t.kids[from], func(b branch) bool {
			return b.to == to && sourceOnly(b, d) == sourceOnly(branch{to, []contentdb.Edge{e}}, d)
		})
		if i < 0 {
			t.kids[from] = append(t.kids[from], branch{to, []contentdb.Edge{e}})
		} else {
			t.kids[from][i].edges = append(t.kids[from][i].edges, e)
		}
	}
	return t
}

// tops returns the first names: the requested one, in the database's form, to which no edge leads.
func (t *tree) tops(name string) []string {
	inner := map[string]bool{}
	for from, kids := range t.kids {
		for _, b := range kids {
			inner[b.to] = inner[b.to] || b.to != from && !sourceOnly(b, t.d)
		}
	}
	var tops []string
	for from := range t.kids {
		if !inner[from] {
			tops = append(tops, from)
		}
	}
	if len(tops) == 0 { // a cycle, or nothing
		tops = []string{name}
	}
	slices.Sort(tops)
	return tops
}

// sourceOnly reports whether a branch leads to a file or a tool, which may have the same name as an asset.
func sourceOnly(b branch, d direction) bool {
	e := b.edges[0]
	return (e.Kind == contentdb.SourceEdge || e.Kind == contentdb.ToolEdge) && d.to(e) == e.To
}

func (t *tree) write(name, indent string) {
	kids := t.kids[name]
	t.shown[name] = true
	width := 0
	for _, b := range kids {
		if w := textWidth(b.label()); w <= widestCell {
			width = max(width, w)
		}
	}
	for i, b := range kids {
		fork, below := "├─ ", "│  "
		if i == len(kids)-1 {
			fork, below = "└─ ", "   "
		}
		how := b.words()
		for _, e := range b.edges {
			if at := t.byHand(e); at != "" {
				how += " (" + at + ")"
				break
			}
		}
		deeper := b.to != name && !sourceOnly(b, t.d) && len(t.kids[b.to]) > 0
		if deeper && t.shown[b.to] {
			how += ", see above"
		}
		pad := strings.Repeat(" ", max(0, width-textWidth(b.label())))
		fmt.Fprintf(t.a.out, "%s%s%s  %s\n", t.a.paint(t.a.out, dim, indent+fork), b.label(), pad, t.a.paint(t.a.out, dim, how))
		if deeper && !t.shown[b.to] {
			t.write(b.to, indent+below)
		}
	}
}

// label is the target of a branch for display.
func (b branch) label() string { return oneLine(edgeLabel(b.edges[0], b.to)) }

// edgeLabel is the name of an edge's target, which may be a glob.
func edgeLabel(e contentdb.Edge, to string) string {
	if e.Saw == contentdb.SawGlob {
		return explain.Glob(to)
	}
	return to
}

// words describes how one thing needs another.
func (b branch) words() string {
	var parts []string
	for _, e := range b.edges {
		part := string(e.Kind)
		switch {
		case e.Kind == contentdb.ProductEdge && !e.Required:
			part += " (optional)"
		case e.Saw == contentdb.SawMissing:
			part += " (was not there)"
		case e.Saw == contentdb.SawExists:
			part += " (only that it is there)"
		case e.Saw == contentdb.SawGlob, e.Saw == contentdb.SawListing:
			part += " (list of names)"
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// dotGraph draws edges for Graphviz: assets as rounded boxes, files as plain names; the requested one is
// highlighted.
func dotGraph(name string, edges []contentdb.Edge) string {
	var b strings.Builder
	b.WriteString(`digraph kiln {
  rankdir=LR; nodesep=0.15; ranksep=0.6; bgcolor="white";
  node [fontname="Helvetica", fontsize=11, shape=box, style="rounded,filled", color="#8a4b2a", fillcolor="#fbeee4", fontcolor="#3b2418", margin="0.12,0.05", height=0.28];
  edge [color="#8a4b2a", arrowsize=0.6, fontname="Helvetica", fontsize=9];
`)
	files, assets := map[string]string{}, map[string]bool{}
	for _, e := range edges {
		assets[e.From] = true
		if e.Kind == contentdb.SourceEdge || e.Kind == contentdb.ToolEdge {
			files[e.To] = edgeLabel(e, e.To)
		} else {
			assets[e.To] = true
		}
	}
	for _, id := range sortedKeys(assets) {
		extra := ""
		if id == name {
			extra = `, penwidth=2, fillcolor="#f3c9a5"`
		}
		fmt.Fprintf(&b, "  %s [label=%s%s];\n", dotQuote("asset "+id), dotQuote(id), extra)
	}
	for _, f := range sortedKeys(files) {
		fmt.Fprintf(&b, "  %s [label=%s, shape=note, style=filled, color=\"#9aa5ad\", fillcolor=\"#f3f5f7\", fontcolor=\"#4a545c\", fontsize=10];\n", dotQuote("file "+f), dotQuote(files[f]))
	}
	for _, e := range edges {
		to, look := "asset "+e.To, ""
		switch {
		case e.Kind == contentdb.SourceEdge:
			to, look = "file "+e.To, ` [color="#9aa5ad"]`
			if e.Saw != contentdb.SawFile {
				look = fmt.Sprintf(` [color="#9aa5ad", style=dashed, fontcolor="#9aa5ad", label=%q]`, e.Saw)
			}
		case e.Kind == contentdb.ToolEdge:
			to, look = "file "+e.To, ` [color="#9aa5ad", fontcolor="#9aa5ad", label="tool"]`
		case e.Kind == contentdb.ProductEdge && e.Required:
			look = ` [color="#2f6f8f", arrowhead=vee]`
		case e.Kind == contentdb.ProductEdge:
			look = ` [color="#2f6f8f", arrowhead=vee, style=dashed]`
		}
		fmt.Fprintf(&b, "  %s -> %s%s;\n", dotQuote("asset "+e.From), dotQuote(to), look)
	}
	b.WriteString("}\n")
	return b.String()
}

// dotQuote quotes a string for Graphviz, where only the quote must be escaped.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
