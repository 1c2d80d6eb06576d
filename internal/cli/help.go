package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// prepareHelp makes `kiln help` and --help look the same for all commands: what a command does, an example, its own
// flags, and those of every command last.
func (a *app) prepareHelp(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { a.help(c) })
	root.SetUsageFunc(func(c *cobra.Command) error { a.help(c); return nil })
	root.SetHelpCommand(newHelpCommand(a))
	prepareHelpFlags(root)
}

func prepareHelpFlags(c *cobra.Command) {
	c.InitDefaultHelpFlag()
	c.Flags().Lookup("help").Usage = "show what " + c.CommandPath() + " does"
	c.Flags().SortFlags = false
	for _, sub := range c.Commands() {
		prepareHelpFlags(sub)
	}
}

func newHelpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND...]",
		Short:   "Show what Kiln or one of its commands does",
		GroupID: groupAbout,
		Example: "  kiln help\n  kiln help build\n  kiln help parcel verify",
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
			c := cmd.Root()
			for i, name := range args {
				k := slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name })
				switch {
				case k >= 0:
					c = c.Commands()[k]
				case c.HasSubCommands():
					return a.onlyKnownCommands(c, args[i:])
				default:
					return tooMany(cmd, name)
				}
			}
			a.help(c)
			return nil
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
	if c.HasSubCommands() {
		usage = c.CommandPath() + " COMMAND [flags]"
	}
	a.section(about, "")
	a.section("Usage:", "  "+usage)
	a.section("Examples:", c.Example)
	for _, g := range c.Groups() {
		a.section(g.Title, commandList(c, g.ID))
	}
	a.section("Commands:", commandList(c, ""))
	if c.HasParent() {
		a.section("Flags:", c.LocalFlags().FlagUsages())
	}
	a.section("Flags of every command:", c.Root().PersistentFlags().FlagUsages())
	if !c.HasParent() {
		fmt.Fprintf(a.out, "\nA variable sets the default of each flag: KILN_PLATFORM=pc, KILN_JOBS=4, KILN_JSON=1.\n")
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(a.out, "\n`kiln help%s COMMAND` describes a command.\n", strings.TrimPrefix(c.CommandPath(), "kiln"))
	}
}

// section writes a heading with a body, and nothing if the body is empty. A text without a heading is written as it
// is.
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
