package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/release"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/build"
)

func (a *app) newParcelReleaseCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "release [NAME]",
		Short: "Write down what is in the parcels of a release",
		Long: `Write down what is in the project's parcels: names, sizes and hashes, a line a resource. The file is small beside the parcels;
commit it with the release, and "kiln parcel since" shows later what has changed.`,
		Example: "  kiln build --compact\n  kiln parcel release 1.2 -o releases/1.2.release",
		Args:    atMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return a.writeRelease(name, out)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write it to `FILE`, not to standard output")
	return cmd
}

func (a *app) newParcelSinceCommand() *cobra.Command {
	var brief bool
	cmd := &cobra.Command{
		Use:   "since RELEASE [RELEASE]",
		Short: "Show what has changed since a release",
		Long: `Show which resources were added, removed, changed or renamed since a release, and how many bytes a patch has at most: in the
project's parcels as they are, or in a second release. What a patch really has is known when "kiln parcel patch" makes it.`,
		Example: "  kiln parcel since releases/1.2.release\n  kiln parcel since releases/1.1.release releases/1.2.release --brief",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return wrongUsage("kiln parcel since releases/1.2.release", "kiln parcel since needs a release, or two")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.since(args, brief) },
	}
	cmd.Flags().BoolVar(&brief, "brief", false, "list parcels, not each resource")
	return cmd
}

// parcelsNow returns the manifest of the project's current parcels.
func (a *app) parcelsNow(p *build.Project) (*release.Manifest, error) {
	platforms := a.platforms
	if len(platforms) == 0 {
		for _, name := range p.PlatformNames() {
			if slices.ContainsFunc(p.Parcels, func(x project.Parcel) bool { return x.On(name) }) {
				platforms = append(platforms, name)
			}
		}
	}
	if len(platforms) == 0 {
		return nil, diag.Errorf(diag.NothingKnown, diag.Pos{File: project.File}, "the project has no parcels").
			WithHint("add one to kiln.toml: [[parcels]] with name and assets")
	}
	m, err := ship.Released(p.Project, p.OutputDir(), platforms)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Errorf(diag.NothingKnown, diag.Pos{}, "the parcels were not built yet").WithHint("kiln build")
	}
	return m, err
}

func (a *app) writeRelease(name, out string) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	m, err := a.parcelsNow(p)
	if err != nil {
		return err
	}
	m.Name = name
	if out == "" {
		_, err = a.out.Write(m.Format())
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return err
	}
	return disk.Save(out, m.Format())
}

// readRelease reads a manifest, with the parcels of the requested platforms.
func (a *app) readRelease(file string) (*release.Manifest, error) {
	m, err := release.Load(file)
	if err == nil {
		m.Only(a.platforms)
	}
	return m, err
}

type sinceLine struct {
	Type     string `json:"type"` // "release_difference"
	Platform string `json:"platform"`
	Parcel   string `json:"parcel"`
	Change   string `json:"change"`
	Name     string `json:"name,omitempty"` // "": the parcel itself
	OldName  string `json:"old_name,omitempty"`
	OldSize  int64  `json:"old_size"`
	NewSize  int64  `json:"new_size"`
	Patch    int64  `json:"patch"` // bytes at most
}

type sinceSummary struct {
	Type    string `json:"type"` // "release_summary"
	Release string `json:"release"`
	Parcels int    `json:"parcels"` // changed ones
	Added   int    `json:"added"`   // resources
	Removed int    `json:"removed"`
	Changed int    `json:"changed"`
	Renamed int    `json:"renamed"`
	Patch   int64  `json:"patch"` // bytes at most
}

func (a *app) since(files []string, brief bool) error {
	older, err := a.readRelease(files[0])
	if err != nil {
		return err
	}
	var newer *release.Manifest
	if len(files) == 2 {
		newer, err = a.readRelease(files[1])
	} else {
		var p *build.Project
		if p, err = a.open(); err == nil {
			newer, err = a.parcelsNow(p)
		}
	}
	if err != nil {
		return err
	}
	all := release.Since(older, newer)
	t := a.table()
	for _, d := range all {
		if d.Change == "" {
			continue
		}
		lines := []sinceLine{{"release_difference", d.Platform, d.Parcel, d.Change, "", "", d.OldSize, d.NewSize, d.Patch}}
		for _, c := range d.Changes {
			if !brief {
				lines = append(lines, sinceLine{"release_difference", c.Platform, c.Parcel, c.Change, c.Name, c.OldName, c.OldSize, c.NewSize, c.Patch})
			}
		}
		for i := range lines {
			if err := a.sinceRow(t, &lines[i]); err != nil {
				return err
			}
		}
	}
	sum := release.Sum(all)
	if a.json {
		return a.emit(sinceSummary{"release_summary", older.Name, sum.Parcels, sum.Added, sum.Removed, sum.Changed, sum.Renamed, sum.Patch})
	}
	if err := t.write(); err != nil || a.quiet {
		return err
	}
	_, err = fmt.Fprintf(a.errs, "since %s: %s of %d; %d added, %d removed, %d changed, %d renamed; a patch has at most %s\n", orUnnamed(older.Name), count(sum.Parcels, "other parcel", "other parcels"), len(all),
		sum.Added, sum.Removed, sum.Changed, sum.Renamed, diag.Size(sum.Patch))
	return err
}

func orUnnamed(name string) string {
	if name == "" {
		return "the release"
	}
	return name
}

// sinceRow writes the row of a parcel, or of a resource in it.
func (a *app) sinceRow(t *table, l *sinceLine) error {
	if a.json {
		return a.emit(l)
	}
	name := "  " + oneLine(l.Name)
	if l.OldName != "" {
		name += ", was " + oneLine(l.OldName)
	}
	if l.Name == "" {
		name = fmt.Sprintf("parcel %s [%s]", l.Parcel, l.Platform)
	}
	t.row(left(name), left(l.Change), right(diag.Size(l.OldSize)), right(diag.Size(l.NewSize)), right(diag.Size(l.Patch)))
	return nil
}
