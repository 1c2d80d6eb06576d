// Package manual writes man pages for a command and all its subcommands, one file for each command, in the format of
// man(7). The same command gives the same bytes: a page has no date.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// Write writes the pages to a folder and returns the names of the files. It makes the folder if it does not exist.
func Write(root *cobra.Command, dir, version string) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	err = each(root, func(c *cobra.Command) error {
		name := pageName(c) + ".1"
		files = append(files, name)
		return disk.Save(filepath.Join(dir, name), []byte(Page(c, version)))
	})
	return files, err
}

func each(c *cobra.Command, do func(*cobra.Command) error) error {
	if err := do(c); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			if err := each(sub, do); err != nil {
				return err
			}
		}
	}
	return nil
}

// pageName returns kiln-parcel-ls for `kiln parcel ls`.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Variable returns the environment variable of a flag.
func Variable(f *pflag.Flag) string {
	return "KILN_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// Page returns the page of a command.
func Page(c *cobra.Command, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"Kiln %s\" \"Kiln\"\n", strings.ToUpper(pageName(c)), escape(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(pageName(c)), escape(c.Short))
	usage := c.UseLine()
	if c.HasSubCommands() {
		usage = c.CommandPath() + " COMMAND [flags]"
	}
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", text(usage))
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", text(about))
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", escape(sub.Name()), text(sub.Short))
			}
		}
	}
	if c.HasParent() {
		flags(&b, "OPTIONS", c.LocalFlags())
	}
	flags(&b, "OPTIONS OF EVERY COMMAND", c.Root().PersistentFlags())
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", text(strings.Trim(c.Example, "\n")))
	}
	b.WriteString(".SH SEE ALSO\n")
	also := []string{"kiln(1)"}
	if c.HasParent() && c.Parent().HasParent() {
		also = append(also, pageName(c.Parent())+"(1)")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			also = append(also, pageName(sub)+"(1)")
		}
	}
	fmt.Fprintf(&b, "%s\n", escape(strings.Join(also, ", ")))
	return b.String()
}

func flags(b *strings.Builder, title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			name += " " + value
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escape(name), text(usage))
	})
}

// text escapes text, so that no line begins with a request.
func text(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		l = escape(l)
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			l = `\&` + l
		}
		if l == "" {
			l = ".PP"
		}
		lines[i] = l
	}
	return strings.Join(lines, "\n")
}

func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
}
