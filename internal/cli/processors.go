package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/fingerprint"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/processor"
)

func newProcessorsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "processors [NAME]",
		Short:   "List processors, or describe one",
		Long:    "List the processors that there are, the project's own included, or describe one: extensions, settings, products.",
		GroupID: groupAbout,
		Example: "  kiln processors\n  kiln processors texture",
		Args:    atMost(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			infos, _, _ := a.knownProcessors()
			return processorNames(infos), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			infos, p, warning := a.knownProcessors()
			if len(args) > 0 {
				i := slices.IndexFunc(infos, func(i processor.Info) bool { return i.Name == args[0] })
				if i < 0 {
					return noProcessor(args[0], infos, warning)
				}
				infos = infos[i : i+1]
			}
			if err := a.tell(warning); err != nil {
				return err
			}
			switch {
			case a.json:
				return a.emitProcessors(infos, p)
			case len(args) > 0:
				return a.describeProcessor(infos[0], p)
			}
			return a.listProcessors(infos, p)
		},
	}
}

// knownProcessors returns the processors of the project; without a project, or with one that cannot be
// read, the built-in ones.
func (a *app) knownProcessors() ([]processor.Info, *build.Project, diag.List) {
	p, err := a.open()
	if err == nil {
		return p.Processors(), p, nil
	}
	var infos []processor.Info
	for _, pr := range slices.Concat(a.cfg.Processors, a.cfg.Team) {
		infos = append(infos, pr.Info())
	}
	if l := diag.Messages(err, diag.Internal); l[0].Code != diag.ProjectMissing {
		w := diag.Warningf(l[0].Code, l[0].Pos, "the project file has mistakes, so its own processors are not shown").
			WithHint("`kiln build` lists them")
		return infos, nil, diag.List{w}
	}
	return infos, nil, nil
}

func processorNames(infos []processor.Info) []string {
	names := make([]string, len(infos))
	for i := range infos {
		names[i] = infos[i].Name
	}
	return names
}

func noProcessor(name string, infos []processor.Info, more diag.List) error {
	hint := diag.DidYouMean(name, processorNames(infos))
	if hint == "" {
		hint = "there are: " + strings.Join(processorNames(infos), ", ")
	}
	return append(diag.List{diag.Errorf(diag.UnknownProcessor, diag.Pos{}, "there is no processor %q", name).WithHint("%s", hint)}, more...)
}

func (a *app) listProcessors(infos []processor.Info, p *build.Project) error {
	t := a.table()
	for _, info := range infos {
		summary := info.Summary
		switch a.origin(info.Name, p) {
		case ofProject:
			summary = strings.TrimSpace(summary + " (of this project)")
		case ofTeam:
			summary = strings.TrimSpace(summary + " (of this kiln)")
		}
		t.row(styled(bold, info.Name), left(extensionsText(info)), left(summary))
	}
	if err := t.write(); err != nil {
		return err
	}
	for _, c := range clashes(p) {
		if _, err := fmt.Fprintf(a.out, "\n%s  %s and %s both claim it: %[2]s gets the files unless a rule names the other, processor = %[4]q\n",
			a.paint(a.out, yellow, c.Extension), c.First, c.Second, c.Second); err != nil {
			return err
		}
	}
	return nil
}

// Where a processor comes from.
const (
	ofKiln    = "kiln"
	ofTeam    = "team"
	ofProject = "project"
)

func (a *app) origin(name string, p *build.Project) string {
	switch {
	case p != nil && p.OwnProcessor(name):
		return ofProject
	case slices.ContainsFunc(a.cfg.Team, func(pr processor.Processor) bool { return pr.Info().Name == name }):
		return ofTeam
	}
	return ofKiln
}

func wayOf(name string, p *build.Project) fingerprint.Way {
	if p == nil {
		return ""
	}
	return p.Code(name)
}

func clashes(p *build.Project) []asset.Clash {
	if p == nil {
		return nil
	}
	return p.Clashes()
}

// emitProcessors writes a line for each processor, and one for each extension that two processors
// claim.
func (a *app) emitProcessors(infos []processor.Info, p *build.Project) error {
	here := map[string]bool{}
	for _, info := range infos {
		here[info.Name] = true
		if err := a.emit(newProcessorLine(info, a.origin(info.Name, p), wayOf(info.Name, p))); err != nil {
			return err
		}
	}
	for _, c := range clashes(p) {
		if here[c.First] || here[c.Second] {
			if err := a.emit(clashLine{"clash", c.Extension, c.First, c.Second}); err != nil {
				return err
			}
		}
	}
	return nil
}

type clashLine struct {
	Type      string `json:"type"`
	Extension string `json:"extension"`
	First     string `json:"first"` // the one that gets the files
	Second    string `json:"second"`
}

func extensionsText(info processor.Info) string {
	s := strings.Join(info.Extensions, " ")
	switch {
	case info.Folder && s == "":
		return "folders"
	case info.Folder:
		return "folders of " + s
	case info.Name == asset.Default:
		return "everything else"
	case s == "":
		return "what a rule names"
	}
	return s
}

// codeTexts describe how the code of a processor of a team's own kiln is fingerprinted.
var codeTexts = map[fingerprint.Way]string{
	fingerprint.Source:  "its source, which it carries: an edit of it builds its assets again",
	fingerprint.Module:  "its module's version: another one builds its assets again",
	fingerprint.Program: "the whole program: any change of it builds its assets again (docs/processors.md says how it carries its source instead)",
}

func (a *app) describeProcessor(info processor.Info, p *build.Project) error {
	fmt.Fprintf(a.out, "%s  %s\n", a.paint(a.out, bold, info.Name), info.Summary)
	heading := func(s string) { fmt.Fprintf(a.out, "\n%s\n", a.paint(a.out, bold, s)) }
	heading("For")
	switch {
	case info.Folder:
		fmt.Fprintf(a.out, "  folders that a rule names; files in them that belong to them: %s\n", strings.Join(info.Extensions, " "))
	case info.Name == asset.Default:
		fmt.Fprintln(a.out, "  every file that no other processor or rule claims")
	case len(info.Extensions) == 0:
		fmt.Fprintf(a.out, "  what a rule names: processor = %q\n", info.Name)
	default:
		fmt.Fprintf(a.out, "  %s\n", strings.Join(info.Extensions, " "))
	}
	list := settings.Describe(info)
	if len(list) > 0 {
		heading("Settings")
	}
	t := a.table()
	for _, s := range list {
		t.row(styled(cyan, "  "+s.Name), left(s.Type), left(s.DefaultText()), styled(dim, allowedText(s)))
		for _, line := range wrap(s.Doc, 88) {
			t.note("    " + line)
		}
	}
	if err := t.write(); err != nil {
		return err
	}
	if code := wayOf(info.Name, p); code != "" {
		heading("Code")
		fmt.Fprintln(a.out, "  "+codeTexts[code])
	}
	if len(info.Products) == 0 {
		return nil
	}
	heading("Products")
	t = a.table()
	for _, p := range info.Products {
		ext := p.Extension
		if ext == "" {
			ext = "as the source"
		}
		t.row(styled(cyan, "  "+p.Type), left(ext), left(p.Doc))
	}
	return t.write()
}

// allowedText lists the values of a setting.
func allowedText(s settings.Setting) string {
	switch {
	case len(s.Values) > 0:
		return strings.Join(s.Values, " | ")
	case s.Min != "" && s.Max != "":
		return s.Min + " to " + s.Max
	case s.Min != "":
		return "at least " + s.Min
	case s.Max != "":
		return "at most " + s.Max
	}
	return ""
}

type processorLine struct {
	Type       string             `json:"type"`
	Name       string             `json:"name"`
	Version    int                `json:"version"`
	Summary    string             `json:"summary"`
	Folder     bool               `json:"folder"`
	Own        bool               `json:"own"`    // declared in the project file
	Origin     string             `json:"origin"` // "kiln", "team" or "project"
	Code       fingerprint.Way    `json:"code,omitempty"`
	Extensions []string           `json:"extensions"`
	Settings   []settings.Setting `json:"settings"`
	Products   []productTypeLine  `json:"products"`
}

type productTypeLine struct {
	Type      string `json:"type"`
	Extension string `json:"extension"`
	Doc       string `json:"doc,omitempty"`
}

func newProcessorLine(info processor.Info, origin string, code fingerprint.Way) processorLine {
	l := processorLine{
		Type: "processor", Name: info.Name, Version: info.Version, Summary: info.Summary, Folder: info.Folder,
		Own: origin == ofProject, Origin: origin, Code: code,
		Extensions: append([]string{}, info.Extensions...), Settings: append([]settings.Setting{}, settings.Describe(info)...),
		Products: []productTypeLine{},
	}
	for _, pt := range info.Products {
		l.Products = append(l.Products, productTypeLine(pt))
	}
	return l
}
