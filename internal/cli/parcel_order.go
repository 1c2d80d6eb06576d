package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/delivery/loadorder"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/internal/store/used"
)

// orderFlags are the flags of kiln parcel order.
type orderFlags struct {
	write, anew bool
	from        []string
}

func (a *app) newParcelOrderCommand() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "order [PARCEL...]",
		Short: "Put what games loaded into the order of parcels",
		Long: `Merge what games loaded, in the order in which they did, into the file that the key "order" of parcels names, and print
it, or write it with --write. Lines that are there keep their places; what is new goes between what the game loaded before and after; lines that mean
nothing any more are taken out. What games loaded is what kiln serve has kept, and the files given with --from.`,
		Example: "  kiln parcel order level1\n  kiln parcel order --write\n  kiln parcel order --write --from tester1.used --from tester2.used",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.orderParcels(cmd.Context(), args, f) },
	}
	cmd.Flags().BoolVar(&f.write, "write", false, "write the file")
	cmd.Flags().BoolVar(&f.anew, "anew", false, "begin with nothing, not with the lines that are there")
	cmd.Flags().StringArrayVar(&f.from, "from", nil, "merge what another machine's games loaded, its .kiln/used/PLATFORM.used as `FILE`")
	return cmd
}

func (a *app) orderParcels(ctx context.Context, names []string, f orderFlags) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	files, err := orderFiles(p.Project, names)
	if err != nil {
		return err
	}
	if f.write && slices.Contains(files, "") {
		return wrongUsage(`give the parcel a key in kiln.toml: order = "level1.order"`, "--write needs to know where")
	}
	if f.write { // no other process may write these files meanwhile
		if err := a.lock(ctx, p, false); err != nil {
			return err
		}
		defer p.Unlock()
	}
	o := ordering{orderFlags: f}
	if o.reports, err = a.reports(p, f.from); err != nil {
		return err
	}
	db, err := openDatabase(p)
	if err != nil {
		return err
	}
	defer db.Close()
	if o.all, err = db.Resources(ctx); err != nil {
		return err
	}
	if o.lost, err = db.Lost(ctx); err != nil {
		return err
	}
	if err := o.keepNumbered(p); err != nil {
		return err
	}
	for _, file := range files {
		in := func(parcel string) bool { return hasOrder(p.Project, parcel, file, names) }
		if err := a.order(p, file, in, &o); err != nil {
			return err
		}
	}
	return nil
}

// keepNumbered adds the assets of resources that kiln.ids has and the last build has not, because they are of another stage.
func (o *ordering) keepNumbered(p *build.Project) error {
	numbers, err := ship.ReadNumbers(p.Dir, ids.FileName, true)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(o.all))
	for i := range o.all {
		known[o.all[i].Name] = true
	}
	for i := range numbers.Entries {
		if e := &numbers.Entries[i]; !known[ship.ResourceName(e.Asset, e.Product)] {
			o.lost[e.Asset] = true
		}
	}
	return nil
}

// ordering is the input of orders.
type ordering struct {
	orderFlags
	all     []contentdb.Resource
	lost    map[string]bool // assets whose products are not known now
	reports [][]used.Key
}

// orderFiles returns the order files of the named parcels, or of all that have one; "" for a parcel
// without.
func orderFiles(p *project.Project, names []string) ([]string, error) {
	var files, all []string
	for i := range p.Parcels {
		x := &p.Parcels[i]
		all = append(all, x.Name)
		if slices.Contains(names, x.Name) || len(names) == 0 && x.Order != "" {
			files = append(files, x.Order)
		}
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, noParcel(name, all)
		}
	}
	if len(files) == 0 {
		return nil, wrongUsage(`name a parcel, or give it the key in kiln.toml: order = "level1.order"`, "no parcel has an order")
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// noParcel is an error that lists the parcels.
func noParcel(name string, all []string) error {
	hint := diag.DidYouMean(name, all)
	switch {
	case len(all) == 0:
		hint = "the project has none; add one to kiln.toml: [[parcels]] with name and assets"
	case hint == "":
		hint = "there are: " + strings.Join(all, ", ")
	}
	return diag.Errorf(diag.NothingKnown, diag.Pos{}, "there is no parcel %q", name).WithHint("%s", hint)
}

// hasOrder reports whether a parcel, declared or made for split ones, has this order file. Parcels without an order
// must be in names.
func hasOrder(p *project.Project, parcel, file string, names []string) bool {
	x := ship.Declared(p, parcel)
	return x != nil && x.Order == file && (file != "" || slices.Contains(names, x.Name))
}

// reports returns what games loaded, each piece in order: from this machine, by platform, and from the
// given files.
func (a *app) reports(p *build.Project, from []string) ([][]used.Key, error) {
	platforms := a.platforms
	if len(platforms) == 0 {
		platforms = p.PlatformNames()
	}
	var reports [][]used.Key
	for _, name := range platforms {
		keys, err := used.Read(used.File(filepath.Dir(p.DatabasePath()), name))
		if err != nil {
			return nil, err
		}
		reports = append(reports, keys...)
	}
	for _, file := range from {
		if _, err := os.Stat(file); err != nil {
			return nil, err
		}
		keys, err := used.Read(file)
		if err != nil {
			return nil, err
		}
		if len(keys) == 0 {
			return nil, diag.Errorf(diag.NothingKnown, diag.Pos{File: file}, "there is nothing in it that a game loaded").WithHint("it has lines like: c7efcd22-ac42-5936-b9af-a05a6f8c40b6 0")
		}
		reports = append(reports, keys...)
	}
	if len(reports) == 0 {
		return nil, diag.Errorf(diag.NothingKnown, diag.Pos{}, "no game has reported what it loads").
			WithHint("run kiln serve, connect the game, and play it")
	}
	return reports, nil
}

type orderLine struct {
	Type    string `json:"type"` // "load_order"
	File    string `json:"file"` // "": the parcel has none yet
	Lines   int    `json:"lines"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Written bool   `json:"written"`
}

// order updates one file.
func (a *app) order(p *build.Project, file string, in func(parcel string) bool, o *ordering) error {
	l, before := &loadorder.List{}, []byte(nil)
	if file != "" && !o.anew {
		old, bad, err := ship.ReadOrder(p.Project, p.OutputDir(), file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case len(bad) > 0: // they would be lost
			return bad
		default:
			l, before = old, old.Format()
		}
	}
	gone := l.Gone(func(tell func(string)) {
		for i := range o.all {
			tell(o.all[i].Name)
		}
	}, o.lost)
	l.Drop(gone)
	had := l.Len()
	names := map[used.Key]string{}
	for i := range o.all {
		if x := &o.all[i]; in(x.Parcel) {
			names[used.Key{UUID: x.UUID, Sub: x.SubID}] = x.Name
		}
	}
	for _, keys := range o.reports {
		loaded := make([]string, 0, len(keys))
		for _, k := range keys {
			loaded = append(loaded, names[k]) // "" for resources in other parcels: skipped
		}
		l.Merge(loaded)
	}
	text := l.Format()
	line := orderLine{"load_order", file, l.Len(), l.Len() - had, len(gone), o.write && string(text) != string(before)}
	if line.Written {
		at := ship.Path(p.Project, p.OutputDir(), file)
		if err := p.Bounds(file).File(at); err != nil {
			return err
		}
		if err := disk.Save(at, text); err != nil {
			return err
		}
	}
	switch {
	case a.json:
		return a.emit(line)
	case !o.write:
		_, err := a.out.Write(text)
		return err
	case a.quiet:
		return nil
	}
	_, err := fmt.Fprintf(a.out, "%s: %s, %d new, %d taken out\n", file, count(line.Lines, "line", "lines"), line.Added, line.Removed)
	return err
}
