package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

// idsOptions are the flags of kiln ids.
type idsOptions struct{ repair, locked, dryRun bool }

func newIDsCommand(a *app) *cobra.Command {
	var o idsOptions
	cmd := &cobra.Command{
		Use:   "ids",
		Short: "Give each resource its number, in kiln.ids",
		Long: `Bring kiln.ids up to date: each product of the project, on whatever platforms, has a number there. Those that are there
already keep theirs; new ones take the lowest that are free. The project must have been built.

With --repair, numbers that are there twice after a merge are given to one resource: to the one that has it in
kiln.ids.released, or else to the first by name. With --locked nothing is written, and it fails if something would be.`,
		GroupID: groupMake,
		Example: "  kiln ids\n  kiln ids --repair\n  kiln ids --locked",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.repair && o.locked {
				return wrongUsage("--locked reports duplicates too", "--repair and --locked cannot be together")
			}
			if len(a.platforms) > 0 {
				return wrongUsage("leave out -p", "ids are the same on all platforms")
			}
			return a.assignIDs(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.repair, "repair", false, "give numbers that are there twice to one resource each")
	cmd.Flags().BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would change; write nothing, take no lock")
	cmd.Flags().BoolVar(&o.locked, "locked", false, "write nothing, and fail if something would change")
	return cmd
}

func (a *app) assignIDs(ctx context.Context, o idsOptions) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	if !o.locked && !o.dryRun {
		if err := a.lock(ctx, p, false); err != nil {
			return err
		}
		defer p.Unlock()
	}
	before, lost, err := ship.FindNumbers(p.Dir, p.StatePlace(), o.repair)
	if err != nil {
		return err
	}
	var changes []ids.Change
	file := before.File
	if o.repair {
		released, err := ship.ReadNumbers(p.Dir, ids.ReleasedName, false)
		if err != nil {
			return err
		}
		if file, changes, err = ids.Repair(before.File, released.File); err != nil {
			return err
		}
	} else if l := before.Contradictions(); len(l) > 0 {
		return l
	}
	v, err := p.Look(ctx, nil, nil)
	if err != nil {
		return err
	}
	products, failed, err := resources(v)
	if err != nil {
		return err
	}
	stages := v.OfStages()
	file, more, err := ids.Assign(file, products, func(uuid string) bool { return failed[uuid] || stages[uuid] })
	if err != nil {
		return err
	}
	if m := ship.Lost(p.Dir, lost); len(before.Text) == 0 && len(file.Entries) > 0 && m != nil && !o.locked && !o.dryRun {
		if err := a.tell(diag.List{m}); err != nil {
			return err
		}
	}
	return a.writeIDs(p, o, before, file, append(changes, more...))
}

// resources are the project's products as they are known by their last builds, and the assets, by UUID, that failed on some platform.
// If a build would still change something, it is an error: the ids would tell of what was.
func resources(v *view.View) (all []ids.Name, failed map[string]bool, err error) {
	failed = map[string]bool{}
	due, first := 0, ""
	for i := range v.Assets {
		as := &v.Assets[i]
		for k := range as.Jobs {
			j := &as.Jobs[k]
			if j.State == view.Failed && j.Failure == nil {
				failed[as.UUID] = true
				continue
			}
			if !j.State.Holds() && j.Failure == nil {
				due++
				first = cmp.Or(first, as.ID)
				continue
			}
			for _, p := range j.Products() {
				all = append(all, ids.Name{Asset: as.ID, UUID: as.UUID, Product: p.Name})
			}
		}
	}
	if due > 0 {
		return nil, nil, diag.Errorf(diag.IDsUnbuilt, diag.Pos{}, "%s not built yet, so their products are not known; the first is of %s", count(due, "job is", "jobs are"), first).
			WithHint("run: kiln build")
	}
	return all, failed, nil
}

// writeIDs reports what changed, and writes the file, or with --locked fails if it would change.
func (a *app) writeIDs(p *build.Project, o idsOptions, before ship.Numbers, f *ids.File, changes []ids.Change) error {
	for _, c := range changes {
		if err := a.tellID(c); err != nil {
			return err
		}
	}
	state := "unchanged"
	switch {
	case before.Same(f.Format()):
	case o.locked:
		if err := a.tell(diag.List{ship.Stale(p.Dir, before, nil)}); err != nil {
			return err
		}
		return exitFailed
	case o.dryRun:
		state = "would be written"
	default:
		state = "written"
		if err := ship.SaveNumbers(p.BelowProject(), f.Format()); err != nil {
			return err
		}
		ship.KeepNumbers(p.StatePlace(), f.Format())
	}
	if a.quiet || a.json {
		return nil
	}
	_, err := fmt.Fprintf(a.errs, "%s: %s, %s\n", ids.FileName, count(len(f.Entries), "resource", "resources"), state)
	return err
}

type idLine struct {
	Type    string   `json:"type"`
	Change  ids.What `json:"change"`
	Asset   string   `json:"asset"`
	Product string   `json:"product"`
	UUID    string   `json:"uuid"`
	ID      uint32   `json:"id"`
	Old     string   `json:"old,omitempty"`  // renamed: the former id
	From    *uint32  `json:"from,omitempty"` // moved: the former number
}

func (a *app) tellID(c ids.Change) error {
	if a.json {
		l := idLine{Type: "id", Change: c.What, Asset: c.Name.Asset, Product: c.Name.Product, UUID: c.Name.Identity(), ID: c.ID, Old: c.Old}
		if c.What == ids.Moved {
			l.From = &c.From
		}
		return a.emit(l)
	}
	text := fmt.Sprintf("%-7s  %6d  %s", c.What, c.ID, c.Name)
	switch c.What {
	case ids.Renamed:
		text += ", was " + c.Old
	case ids.Moved:
		text += fmt.Sprintf(", was %d", c.From)
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}
