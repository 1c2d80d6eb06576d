package cli

import (
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/ask/codes"
	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

func newExplainCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Explain the code of a message",
		Long: `Explain what the code of a message means and what to do about it. Without a code, list all codes.
--all lists each message of the last build instead, also those that kiln build shows as one line because there are
many of one code.`,
		GroupID:           groupAbout,
		Example:           "  kiln explain K1114\n  kiln explain --all",
		Args:              atMost(1),
		ValidArgsFunction: a.completeCodes,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return wrongUsage("", "--all is about the last build, and takes no code")
			case all:
				return a.explainAll()
			case len(args) == 0:
				return a.listCodes()
			}
			return a.explain(args[0])
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list each message of the last build")
	return cmd
}

// pages returns the pages of all codes.
func (a *app) pages() ([]codes.Page, error) {
	text, err := fs.ReadFile(a.cfg.Source, "docs/messages.md") // source.go embeds it
	return codes.Parse(string(text)), err
}

func (a *app) completeCodes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var words []string
	if pages, err := a.pages(); err == nil && len(args) == 0 {
		for i := range pages {
			words = append(words, fmt.Sprintf("%s\t%s", pages[i].Code, pages[i].Name))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

type codeLine struct {
	Type string `json:"type"`
	*codes.Page
}

func (a *app) listCodes() error {
	pages, err := a.pages()
	if err != nil {
		return err
	}
	t := a.table()
	section := ""
	for i := range pages {
		p := &pages[i]
		if a.json {
			if err := a.emit(codeLine{"code", p}); err != nil {
				return err
			}
			continue
		}
		if p.Section != section {
			section = p.Section
			t.note(a.paint(a.out, bold, section))
		}
		t.row(styled(severityStyle(p.Severity), string(p.Code)), left(string(p.Severity)), left(p.Name))
	}
	return t.write()
}

func severityStyle(s diag.Severity) style {
	switch s {
	case diag.Warning:
		return yellow
	case diag.Note:
		return cyan
	}
	return red
}

// explain prints the page of a code.
func (a *app) explain(code string) error {
	pages, err := a.pages()
	if err != nil {
		return err
	}
	p, near := codes.Find(pages, code)
	if p == nil {
		hint := "`kiln explain` lists them"
		if near != "" {
			hint = fmt.Sprintf("did you mean `kiln explain %s`?", near)
		}
		return wrongUsage(hint, "there is no code %q", code)
	}
	if a.json {
		return a.emit(codeLine{"code", p})
	}
	width := 100
	if isTerminal(a.out) {
		width, _ = screenSize(a.out)
	}
	fmt.Fprintf(a.out, "%s  %s  (%s; %s)\n", a.paint(a.out, severityStyle(p.Severity), string(p.Code)), a.paint(a.out, bold, p.Name), p.Severity, p.Section)
	for _, part := range []struct{ title, text string }{{"For example", p.Example}, {"What it means", p.Means}, {"What to do", p.Do}} {
		if part.text == "" {
			continue
		}
		fmt.Fprintf(a.out, "\n%s\n", a.paint(a.out, bold, part.title))
		for _, line := range wrap(part.text, width-4) {
			if _, err := fmt.Fprintf(a.out, "  %s\n", line); err != nil {
				return err
			}
		}
	}
	return nil
}

// explainAll lists the messages of the last build.
func (a *app) explainAll() error {
	p, err := a.open()
	if err != nil {
		return err
	}
	l, err := p.LastMessages()
	if err != nil {
		return err
	}
	for _, m := range l {
		if a.json {
			err = a.emit(messageLine{"message", m})
		} else {
			err = m.Write(a.out, diag.Style{Color: a.colored(a.out)})
		}
		if err != nil {
			return err
		}
	}
	if len(l) == 0 && !a.json {
		fmt.Fprintln(a.errs, "the last build had no messages")
	}
	return nil
}
