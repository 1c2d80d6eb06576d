package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// prepareHelp makes `kiln help` and --help look the same everywhere: what a command does, an example, its own flags, and
// those of every command last.
func (a *app) prepareHelp(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { a.help(c) })
	root.SetUsageFunc(func(c *cobra.Command) error { a.help(c); return nil })
	root.SetHelpCommand(newHelpCommand(a))
	for _, c := range append(root.Commands(), root) {
		c.InitDefaultHelpFlag()
		c.Flags().Lookup("help").Usage = "tell what " + c.CommandPath() + " does"
		c.Flags().SortFlags = false
	}
}

func newHelpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Tell what Kiln or one of its commands does",
		GroupID: groupAbout,
		Example: "  kiln help\n  kiln help build",
		Args:    atMost(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range cmd.Root().Commands() {
				if len(args) == 0 && c.IsAvailableCommand() {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				a.help(root)
				return nil
			}
			for _, c := range root.Commands() {
				if c.Name() == args[0] {
					a.help(c)
					return nil
				}
			}
			return a.onlyKnownCommands(root, args)
		},
	}
}

// help writes the help of a command to standard output.
func (a *app) help(c *cobra.Command) {
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	usage := c.UseLine()
	if !c.HasParent() {
		usage = "kiln COMMAND [flags]"
	}
	a.section(about, "")
	a.section("Usage:", "  "+usage)
	a.section("Examples:", c.Example)
	for _, g := range c.Groups() {
		a.section(g.Title, commandList(c, g.ID))
	}
	if c.HasParent() {
		a.section("Flags:", c.LocalFlags().FlagUsages())
	}
	a.section("Flags of every command:", c.Root().PersistentFlags().FlagUsages())
	if c.HasAvailableSubCommands() {
		io.WriteString(a.out, "\n`kiln help COMMAND` tells more of a command.\n")
	}
}

// section writes a heading with what belongs to it, and nothing if nothing does. A text without a body has no heading.
func (a *app) section(heading, body string) {
	body = strings.TrimRight(body, "\n")
	switch {
	case strings.HasSuffix(heading, ":") && body == "":
	case body == "":
		fmt.Fprintln(a.out, heading)
	default:
		fmt.Fprintf(a.out, "\n%s\n%s\n", a.paint(a.out, bold, heading), body)
	}
}

func commandList(c *cobra.Command, group string) string {
	var b strings.Builder
	for _, sub := range c.Commands() {
		if sub.GroupID == group && sub.IsAvailableCommand() {
			fmt.Fprintf(&b, "  %-11s %s\n", sub.Name(), sub.Short)
		}
	}
	return b.String()
}
